"""What comes back: frozen results in raw units, with the caller's dtypes and index.

    Explanations (one per batch) -> Explanation (one per row) -> Counterfactual, Semifactual

The batch is held as a few frames and parallel arrays; the single results are made when they are looked at.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._text import wording


class Relaxation(StrEnum):
    """What had to be given up to find a counterfactual (Algorithm 3 lines 11-14)."""

    NONE = "none"
    PROJECTION = "projection"  # the projected centre may leave its ball
    IMMUTABILITY = "immutability"  # immutable features may change
    RULES = "rules"  # a rule of the user's was released, on request


class Status(StrEnum):
    """How a row was answered."""

    FOUND = "found"
    ALREADY = "already"
    INFEASIBLE = "infeasible"
    MODEL_ERROR = "model_error"
    INVALID_ROW = "invalid_row"


@dataclass(frozen=True, eq=False)
class Semifactual:
    """A changed row on which the model still says what it said of the factual."""

    values: "pd.Series[Any]"
    factual: "pd.Series[Any]"
    distance: float
    changed: tuple[Hashable, ...]

    def changes(self) -> pd.DataFrame:
        """Return one line per changed feature: feature, before, after."""
        return _changes(self.factual, self.values, self.changed)


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A changed row on which the model says something else."""

    values: "pd.Series[Any]"
    factual: "pd.Series[Any]"
    label: Any  # what the model says of it
    distance: float  # from the factual, in encoded units
    changed: tuple[Hashable, ...]
    relaxation: Relaxation
    ball: int | None  # in explainer.cover_; None for a ball made by re-covering
    plausibility: float  # share of its 5 nearest fitted rows that the model gives its label
    margin: float  # how far it can move back towards the factual before the label flips, to 1/16 of the way
    probability: float | None  # the model's own, of its label; None where the model has none
    semifactual: Semifactual | None

    @property
    def n_changes(self) -> int:
        """Number of features that differ from the factual."""
        return len(self.changed)

    def changes(self) -> pd.DataFrame:
        """Return one line per changed feature: feature, before, after."""
        return _changes(self.factual, self.values, self.changed)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer for one row."""

    factual: "pd.Series[Any]"
    label: Any  # what the model says of the row; None where it could not be asked
    status: Status
    reason: str
    counterfactuals: tuple[Counterfactual, ...]

    @property
    def semifactuals(self) -> tuple[Semifactual | None, ...]:
        """One per counterfactual; None where there is none."""
        return tuple(found.semifactual for found in self.counterfactuals)

    def sentences(self) -> list[str]:
        """Say each counterfactual in words; a row without one says why."""
        if not self.counterfactuals:
            return [f"{wording.shown(self.factual.name)}: {self.reason}"]
        return [wording.sentence(self.label, found) for found in self.counterfactuals]

    def _repr_html_(self) -> str:
        return wording.html_table([self])


@dataclass(frozen=True, eq=False)
class Batch:
    """The counterfactuals of a batch, one line each; those of one row follow each other, best first."""

    factual: NDArray[np.intp]  # position of the row they explain
    values: pd.DataFrame
    label: NDArray[Any]
    distance: NDArray[np.float64]
    changed: NDArray[np.bool_]  # lines x features
    relaxation: NDArray[Any]
    ball: NDArray[np.intp]
    plausibility: NDArray[np.float64]
    margin: NDArray[np.float64]
    probability: NDArray[np.float64] | None
    semifactual_values: pd.DataFrame
    semifactual_distance: NDArray[np.float64]  # NaN where there is none
    semifactual_changed: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Sequence[Explanation]):
    """The answers for a batch of rows, in their order."""

    rows: pd.DataFrame  # the factuals, with the caller's index
    labels: NDArray[Any]
    statuses: NDArray[Any]
    reasons: NDArray[Any]
    batch: Batch
    warnings: tuple[str, ...] = ()
    n_calls: int = 0  # how often the model was asked for this batch
    n_rows: int = 0  # and for how many rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, position: int) -> Explanation: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Explanation, ...]: ...
    def __getitem__(self, position: int | slice) -> Explanation | tuple[Explanation, ...]:
        if isinstance(position, slice):
            return tuple(self[place] for place in range(*position.indices(len(self))))
        place = range(len(self))[position]
        factual = row_of(self.rows, place)
        lines = np.flatnonzero(self.batch.factual == place)
        found = tuple(self._counterfactual(int(line), factual) for line in lines)
        return Explanation(factual, self.labels[place], Status(self.statuses[place]), self.reasons[place], found)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        counts = pd.Series(self.statuses, dtype=object).value_counts()
        said = ", ".join(f"{count} {status}" for status, count in counts.items())
        return f"<Explanations of {len(self)} rows: {said or 'none'}; {len(self.batch.factual)} counterfactuals>"

    def to_frame(self) -> pd.DataFrame:
        """Return one line per counterfactual: how it was found, then its values in the caller's dtypes.

        The index is the caller's, repeated where a row has several. A name of ours that is also a column of
        the table gets a trailing underscore. Rows without a counterfactual are in `status_frame`.
        """
        batch = self.batch
        found = {
            "rank": _ranks(batch.factual),
            "from": self.labels[batch.factual],
            "to": batch.label,
            "distance": batch.distance,
            "n_changes": batch.changed.sum(axis=1),
            "relaxation": batch.relaxation,
            "ball": batch.ball,
            "plausibility": batch.plausibility,
            "margin": batch.margin,
        }
        if batch.probability is not None:
            found["probability"] = batch.probability
        names = {name: _free(name, self.rows.columns) for name in found}
        meta = pd.DataFrame({names[name]: column for name, column in found.items()})
        frame = pd.concat([meta, batch.values], axis=1)
        frame.index = self.rows.index[batch.factual]
        return frame

    def status_frame(self) -> pd.DataFrame:
        """Return one line per row: its label, status, reason, and number of counterfactuals."""
        counts = np.bincount(self.batch.factual, minlength=len(self)) if len(self) else np.empty(0, dtype=int)
        columns = {"label": self.labels, "status": self.statuses, "reason": self.reasons, "n_found": counts}
        return pd.DataFrame(columns, index=self.rows.index)

    def changes(self) -> pd.DataFrame:
        """Return one line per changed feature of each counterfactual: rank, feature, before, after."""
        lines, features = np.nonzero(self.batch.changed)
        columns = list(self.rows.columns)
        place = self.batch.factual[lines]
        columns_of = {
            "rank": _ranks(self.batch.factual)[lines],
            "feature": [columns[feature] for feature in features],
            "before": _cells(self.rows, place, features),
            "after": _cells(self.batch.values, lines, features),
        }
        return pd.DataFrame(columns_of, index=self.rows.index[place])

    def sentences(self) -> list[str]:
        """Say every answer in words, row by row."""
        return [sentence for explanation in self for sentence in explanation.sentences()]

    def _repr_html_(self) -> str:
        return wording.html_table(self[:20], n_more=max(0, len(self) - 20))

    def _counterfactual(self, line: int, factual: "pd.Series[Any]") -> Counterfactual:
        batch = self.batch
        values = row_of(batch.values, line).rename(factual.name)
        ball = int(batch.ball[line])
        return Counterfactual(
            values=values,
            factual=factual,
            label=batch.label[line],
            distance=float(batch.distance[line]),
            changed=self._names(batch.changed[line]),
            relaxation=Relaxation(batch.relaxation[line]),
            ball=None if ball < 0 else ball,
            plausibility=float(batch.plausibility[line]),
            margin=float(batch.margin[line]),
            probability=None if batch.probability is None else float(batch.probability[line]),
            semifactual=self._semifactual(line, factual),
        )

    def _semifactual(self, line: int, factual: "pd.Series[Any]") -> Semifactual | None:
        batch = self.batch
        if np.isnan(batch.semifactual_distance[line]):
            return None
        values = row_of(batch.semifactual_values, line).rename(factual.name)
        changed = self._names(batch.semifactual_changed[line])
        return Semifactual(values, factual, float(batch.semifactual_distance[line]), changed)

    def _names(self, changed: NDArray[np.bool_]) -> tuple[Hashable, ...]:
        return tuple(name for name, is_changed in zip(self.rows.columns, changed, strict=True) if is_changed)


def select(batch: Batch, lines: NDArray[np.intp], factual: NDArray[np.intp] | None = None) -> Batch:
    """Return some lines of a batch, for other factuals where they are given."""
    columns = {name: getattr(batch, name) for name in batch.__dataclass_fields__}
    taken = {
        name: column.iloc[lines].reset_index(drop=True) if isinstance(column, pd.DataFrame) else column[lines]
        for name, column in columns.items()
        if column is not None
    }
    taken |= {} if factual is None else {"factual": factual}
    return Batch(**{**columns, **taken})


def merged(
    answers: Explanations,
    other: Explanations,
    places: NDArray[np.intp],
    freed: NDArray[np.intp],
    reason: str,
    take: bool,
) -> Explanations:
    """Write why rows were blocked; with `take`, put in what `other` found for them, marked as released.

    `places` are the rows that other explained, `freed` those of them it found an answer for.
    """
    statuses, reasons = answers.statuses.copy(), answers.reasons.copy()
    for row in places[freed]:
        reasons[row] = f"{reasons[row]} {reason}"
        statuses[row] = Status.FOUND if take else statuses[row]
    if not take or not len(freed):
        return replace(answers, statuses=statuses, reasons=reasons)
    lines = np.flatnonzero(np.isin(other.batch.factual, freed))
    released = np.full(len(lines), Relaxation.RULES, dtype=object)
    new = replace(select(other.batch, lines, places[other.batch.factual[lines]]), relaxation=released)
    return replace(answers, statuses=statuses, reasons=reasons, batch=_joined(answers.batch, new))


def _joined(first: Batch, second: Batch) -> Batch:
    columns: dict[str, Any] = {}
    for name in first.__dataclass_fields__:
        parts = [getattr(first, name), getattr(second, name)]
        if isinstance(parts[0], pd.DataFrame):
            columns[name] = pd.concat(parts, ignore_index=True) if len(parts[0]) else parts[1]
        else:
            columns[name] = None if parts[0] is None else np.concatenate(parts)
    both = Batch(**columns)
    return select(both, np.argsort(both.factual, kind="stable"))


def on_the_front(batch: Batch) -> NDArray[np.intp]:
    """Return the lines that no other of the same factual beats in distance, changes and plausibility, nearest first."""
    figures = np.column_stack([batch.distance, batch.changed.sum(axis=1), -batch.plausibility])
    kept = []
    for place in np.unique(batch.factual):
        lines = np.flatnonzero(batch.factual == place)
        own = figures[lines]
        no_worse = (own[:, np.newaxis] <= own[np.newaxis]).all(axis=2)
        better = no_worse & (own[:, np.newaxis] < own[np.newaxis]).any(axis=2)
        twin = np.tril(no_worse & no_worse.T, k=-1).any(axis=1)  # an equal one stands before
        best = lines[~better.any(axis=0) & ~twin]
        kept.append(best[np.lexsort((best, batch.distance[best]))])
    return np.concatenate(kept) if kept else np.empty(0, dtype=np.intp)


def row_of(frame: pd.DataFrame, place: int) -> "pd.Series[Any]":
    """Return one row without the casts of iloc: each value keeps the type of its own column."""
    if len(set(frame.dtypes)) == 1:
        return frame.iloc[place]
    values = pd.Series([frame[name].iloc[place] for name in frame.columns], index=frame.columns, dtype=object)
    return values.rename(frame.index[place])


def _changes(before: "pd.Series[Any]", after: "pd.Series[Any]", changed: tuple[Hashable, ...]) -> pd.DataFrame:
    names = list(changed)
    return pd.DataFrame(
        {
            "feature": names,
            "before": [before[name] for name in names],
            "after": [after[name] for name in names],
        }
    )


def _ranks(factual: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return 1, 2, ... within each run of equal factuals."""
    return np.arange(len(factual)) - np.searchsorted(factual, factual) + 1


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _cells(frame: pd.DataFrame, lines: Any, features: Any) -> list[Any]:
    columns = [frame.iloc[:, feature] for feature in range(frame.shape[1])]
    return [columns[feature].iloc[line] for line, feature in zip(lines, features, strict=True)]
