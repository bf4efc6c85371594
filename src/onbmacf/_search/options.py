"""The parameters of `ONBMACF`, spelled here and nowhere else: one frozen value that every stage reads."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, ParamSpec, Self

from onbmacf._balls.associate import ASSOCIATIONS
from onbmacf._balls.cover import COMPETITORS
from onbmacf._balls.geometry import BOUNDARIES
from onbmacf._balls.metrics import Metric, check_metric
from onbmacf._base.checks import (
    check_between,
    check_choice,
    check_count,
    check_within,
    did_you_mean,
    listed,
    real_number,
    shortened,
)
from onbmacf.errors import ParameterError

EFFORTS = {"full": 1.0, "half": 0.5, "quarter": 0.25}  # points asked about per row, in parts of the usual number
RELEASES = ("immutable", "nothing", "rules")
SEARCHES = ("best_first", "exhaustive")
DECIMALS = ("round", "exact")
LIMITS = ("max_model_rows", "max_model_calls")  # of what is spent on one row
ALL_UP_TO, MOST_COVERED = 50_000, 20_000  # rows of a table that are all covered; of a larger one, rows of the sample
Parameters = ParamSpec("Parameters")
OF_FIT = ("metric", "competitors", "predict_chunk", "private", "cover_rows")  # cannot change once a map is fitted


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """How rows are explained. The docstring of `ONBMACF` says what each option means."""

    n_counterfactuals: int = field(default=1, kw_only=False)
    metric: Metric = "manhattan"
    step_ratio: float = 0.5
    max_steps: int = 10
    competitors: str = "uncovered"
    association: str = "surface"
    boundary: str = "surface"
    strategy: str = "refined"
    plausibility: float = 0.5
    release: str | None = None
    search: str = "best_first"
    max_model_rows: int | None = None
    max_model_calls: int | None = None
    predict_chunk: int = 512
    n_jobs: int = 1
    committee: Any = None
    agreement: float = 0.0
    private: int | None = None
    cover_rows: Any = "auto"
    effort: Any = "full"
    read_model: bool = True
    decimals: str = "round"

    @property
    def limits(self) -> str:
        """The names of the limits that are set; nothing where there are none."""
        return " or ".join(name for name in LIMITS if getattr(self, name) is not None)

    def has_default(self, name: str) -> bool:
        """Say whether an option has its default value."""
        return bool(getattr(self, name) == DEFAULTS[name])


NAMES = tuple(option.name for option in fields(Options))
SAVED = tuple(name for name in NAMES if name != "committee")  # models are not written into a map
DEFAULTS: dict[str, Any] = {option.name: option.default for option in fields(Options)}
# More than these are a mistake or an attack: each asks for memory or processes.
MOST = {"n_counterfactuals": 100_000, "max_steps": 10_000, "predict_chunk": 1_000_000, "n_jobs": 10_000}
CHOICES = {
    "competitors": COMPETITORS,
    "association": ASSOCIATIONS,
    "boundary": BOUNDARIES,
    "search": SEARCHES,
    "decimals": DECIMALS,
}


def check_options(options: Options) -> Options:
    """Return the options, or raise an error that names the first one that is not allowed.

    The name of the strategy is checked where strategies are registered.
    """
    check_metric(options.metric)
    for name, most in MOST.items():
        if check_count(name, getattr(options, name)) > most:
            raise ParameterError(f"{name} must be at most {most:,}, got {shortened(getattr(options, name))}.")
    check_between("step_ratio", options.step_ratio, 0, 1)
    check_within("plausibility", options.plausibility, 0, 1)
    for name, choices in CHOICES.items():
        check_choice(name, getattr(options, name), choices)
    if options.release is not None:
        check_choice("release", options.release, RELEASES)
    for name in LIMITS:
        if getattr(options, name) is not None:
            check_count(name, getattr(options, name))
    if options.private is not None:
        check_count("private", options.private, least=2)
    if options.cover_rows is not None and options.cover_rows != "auto":
        check_count("cover_rows", options.cover_rows, least=2)
    effort_of(options.effort)
    if not isinstance(options.read_model, bool):
        raise ParameterError(f"read_model must be True or False, got {shortened(options.read_model)}.")
    _check_committee(options.committee, options.agreement)
    return options


def effort_of(effort: Any) -> float:
    """Return an effort as a number.

    >>> effort_of("half"), effort_of(2)
    (0.5, 2.0)
    """
    if isinstance(effort, str):
        return EFFORTS[check_choice("effort", effort, EFFORTS)]
    if isinstance(effort, bool) or not 0.05 <= real_number(effort) <= 100:
        names = ", ".join(map(repr, EFFORTS))
        raise ParameterError(f"effort must be {names}, or a number from 0.05 to 100, got {shortened(effort)}.")
    return float(effort)


def rows_to_cover(cover_rows: int | str | None, n_rows: int) -> int:
    """Return how many rows of a table are covered.

    >>> rows_to_cover("auto", 50_000), rows_to_cover("auto", 50_001), rows_to_cover(None, 50_001)
    (50000, 20000, 50001)
    """
    if cover_rows == "auto":
        return n_rows if n_rows <= ALL_UP_TO else MOST_COVERED
    return n_rows if cover_rows is None else min(n_rows, int(cover_rows))


def written(name: str, value: Any) -> str:
    """Return an option as it is written in a call; of a committee only its size.

    >>> written("plausibility", 1), written("committee", ["a model", "another"])
    ('plausibility=1', 'committee=<2 models>')
    """
    is_many = name == "committee" and isinstance(value, list | tuple)
    return f"{name}=<{len(value)} models>" if is_many else f"{name}={value!r}"


def _check_committee(committee: Any, agreement: Any) -> None:
    check_within("agreement", agreement, 0, 1)
    if committee is None and agreement > 0:
        raise ParameterError(f"agreement={agreement!r} needs a committee: a list of fitted models.")
    if committee is not None and (not isinstance(committee, list | tuple) or not committee):
        raise ParameterError(f"committee must be a list or tuple of fitted models, got {committee!r}.")


def check_names(names: Any) -> None:
    """Raise an error that lists the options if a name is none of them."""
    for name in names:
        if name not in NAMES:
            raise ParameterError(
                f"there is no option {name!r}.{did_you_mean(name, NAMES)} Options: {listed(NAMES, 99)}."
            )


def signed_like(other: Callable[Parameters, None]) -> Callable[[Callable[..., None]], Callable[Parameters, None]]:
    """Show a method with the name, help and signature of another: to people, and to every type checker.

    What `functools.wraps` returns is no method to pyright.
    """
    return lambda method: wraps(other)(method)


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
