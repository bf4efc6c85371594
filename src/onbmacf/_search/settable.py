"""Options that can be set and read by name, as those of scikit-learn's estimators can."""

from copy import copy
from typing import Any, Self

from onbmacf._search.options import DEFAULTS, NAMES, Options, check_names, written


class SettableOptions(Options):
    """What an estimator is told before it is fitted: `Options` are frozen where they are read, these can be set."""

    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__

    def with_options(self, **options: Any) -> Self:
        """Return an explainer with other options on the same map; this one stays as it is.

        >>> from onbmacf import ONBMACF
        >>> ONBMACF(plausibility=1).with_options(n_counterfactuals=3)
        ONBMACF(n_counterfactuals=3, plausibility=1)
        """
        return copy(self).set_params(**options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as scikit-learn's estimators do."""
        return {name: getattr(self, name) for name in NAMES}

    def set_params(self, **options: Any) -> Self:
        """Set options by name, as scikit-learn's estimators do; an unknown name is an error that lists all."""
        check_names(options)
        for name, value in options.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {name: value for name, value in self.get_params().items() if value != DEFAULTS[name]}
        return f"{type(self).__name__}({', '.join(written(name, value) for name, value in changed.items())})"

    def __sklearn_clone__(self) -> Self:
        """Return one with the same options and nothing fitted; the members of its committee stay fitted."""
        return type(self)(**self.get_params())

    def _options(self) -> Options:
        """Return the options as a frozen value; they are checked where they are used."""
        return Options(**self.get_params())
