"""What is asked of the library, as data, and the calls themselves: functions that an engine can run anywhere.

JSON or form  ->  rows, Ask  ->  explained, predicted  ->  Explanations, Prediction
"""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.checks import did_you_mean, listed
from onbmacf._columns.frames import frame_of_cells
from onbmacf.errors import OnbmacfWarning, ParameterError, RowsError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.rules import Rules

OF_CALL = ("immutable", "vary", "rules", "n", "plausibility")  # None: as the explainer was told


@dataclass(frozen=True)
class Ask:
    """One question about rows, beside the rows."""

    target: Any = None
    n: int | None = None
    plausibility: float | None = None
    immutable: tuple[Hashable, ...] | None = None
    vary: tuple[Hashable, ...] | None = None
    rules: Rules | None = None
    min_probability: float = 0.0
    ranges: bool = False
    front: bool = False

    def explain(self, explainer: ONBMACF, rows: Any) -> Explanations:
        """Make the one library call."""
        given = {name: getattr(self, name) for name in OF_CALL if getattr(self, name) is not None}
        asked: dict[str, Any] = {"min_probability": self.min_probability, "ranges": self.ranges, "front": self.front}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OnbmacfWarning)  # they are in the answers
            return explainer.explain(rows, self.target, **asked, **given)


class Prediction(NamedTuple):
    """What the model says of rows."""

    labels: list[Any]
    statuses: list[str]  # "predicted", or why not
    reasons: list[str]
    probabilities: list[float | None]  # of the label; None where the model has none


def explained(explainer: ONBMACF, rows: Any, ask: Ask) -> Explanations:
    """Explain rows."""
    return ask.explain(explainer, rows)


def predicted(explainer: ONBMACF, rows: pd.DataFrame) -> Prediction:
    """Ask the model for labels and their probabilities; a row that cannot be asked gets its reason."""
    found = explainer.predictions(rows)
    shares = [None if np.isnan(share) else share for share in found["probability"].tolist()]
    return Prediction(found["label"].tolist(), found["status"].tolist(), found["reason"].tolist(), shares)


def frame_of(records: Sequence[Mapping[str, Any]], column_of: Mapping[str, Hashable]) -> pd.DataFrame:
    """Return rows given as dicts, by the text of their columns' names; each must have them all, and no others."""
    for place, record in enumerate(records):
        lacking = [name for name in column_of if name not in record]
        if lacking:
            raise RowsError(f"row {place} lacks {listed(lacking)}. Columns: {listed(list(column_of))}.")
        unknown = [name for name in record if name not in column_of]
        if unknown:
            hint = did_you_mean(unknown[0], list(column_of))
            raise RowsError(f"row {place} has {unknown[0]!r}, which is not a column.{hint}")
        nested = [name for name, value in record.items() if isinstance(value, list | dict)]
        if nested:
            raise RowsError(f"row {place}: {nested[0]!r} must be a number, a text, true, false or null.")
    columns = {name: [record[text] for record in records] for text, name in column_of.items()}
    return frame_of_cells(columns, list(column_of.values()))


def label_of(value: Any, classes: Sequence[Any]) -> Any:
    """Return the model's own label that JSON or a form writes like this."""
    if value in classes:
        return value
    written = {str(label): label for label in classes}
    if str(value) not in written:
        raise ParameterError(f"target must be among the model's labels {listed(classes)}, got {value!r}.")
    return written[str(value)]
