"""What is served: a fitted explainer, the rows that people can pick, and what to call them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.missing import known_ends
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF


@dataclass(frozen=True, eq=False)
class Source:
    """A fitted explainer and a table of rows with its columns."""

    explainer: ONBMACF
    table: pd.DataFrame
    target: Any = None  # label, labels, or None
    name: str = "a table in memory"
    model_name: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256 by name
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, explainer: ONBMACF, table: Any = None, **names: Any) -> "Source":
        """Return a source; without a table, people pick from the fitted rows."""
        space = explainer.fitted_.space if hasattr(explainer, "fitted_") else None
        if space is None:
            raise ParameterError("this explainer is not fitted: call fit(table, model) first.")
        rows = space.decode(explainer.Z_) if table is None else space.form.arrange(table)[0]
        if "model_name" in names and not names["model_name"]:
            names["model_name"] = type(explainer.fitted_.black_box.model).__name__
        return cls(explainer, rows, **names)

    @property
    def classes(self) -> list[Any]:
        """The model's labels."""
        return self.explainer.classes_.tolist()

    @property
    def is_fitted_table(self) -> bool:
        """Whether the rows are those of the fit, so that the model's label of each is known."""
        return len(self.table) == len(self.explainer.labels_)

    @cached_property
    def column_of(self) -> dict[str, Hashable]:
        """The columns' names by their text, as forms and JSON write them."""
        names = {str(name): name for name in self.explainer.schema_.names}
        if len(names) < len(self.explainer.schema_.names):
            raise ParameterError("two column names are the same as text: rename them to serve the table.")
        return names

    @cached_property
    def ends(self) -> dict[Hashable, tuple[Any, Any]]:
        """The smallest and largest fitted value of each numeric feature, in the caller's dtype."""
        Z = self.explainer.Z_
        ends = self.explainer.fitted_.space.decode(np.stack(known_ends(Z)))
        numeric = [feature.name for feature in self.explainer.schema_.features if feature.is_numeric]
        return {name: (ends[name].iloc[0], ends[name].iloc[1]) for name in numeric}

    @cached_property
    def labels(self) -> NDArray[Any] | None:
        """The model's label of each row of the table, where it is known without asking."""
        return self.explainer.classes_[self.explainer.labels_] if self.is_fitted_table else None
