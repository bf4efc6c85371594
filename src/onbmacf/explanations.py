"""What `explain` returns: the answers for a batch of rows, with the caller's index.

    Explanations (one per batch) -> Explanation (one per row)

A batch is held as a few frames and parallel arrays; the single results are made when they are looked at.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.enums import Relaxation, Status
from onbmacf._base.origin import Origin
from onbmacf._columns.interop import PolarsTypes, polars_frame
from onbmacf._table.lazy_rows import LazyRows
from onbmacf._text import frames, records, wording
from onbmacf._text.labels import Labels
from onbmacf.blocks import Blocks
from onbmacf.errors import ParameterError
from onbmacf.explanation import Counterfactual, Explanation, Semifactual


class Batch(NamedTuple):
    """The counterfactuals of a batch, one line each; those of one row follow each other, the best first."""

    factual: Rows  # position of the row they explain
    rows: LazyRows  # the changed rows, `values` as a frame
    label: NDArray[Any]
    distance: Matrix
    changed: Mask  # lines x features
    released: Mask  # of these, immutable features and those whose rule is broken
    relaxation: NDArray[Any]
    ball: Rows
    plausibility: Matrix
    margin: Matrix
    probability: Matrix | None
    semifactual_rows: LazyRows
    semifactual_distance: Matrix  # NaN where there is none
    semifactual_changed: Mask
    ranges: NDArray[Any] | None = None  # dicts of Range, or None; the column is None unless asked for
    box: NDArray[Any] | None = None
    stability: Matrix | None = None  # share of a committee's members that agree
    predicted: Matrix | None = None  # of a regressor: the numbers before and after, lines x 2
    effects: Mask | None = None  # features that follow from those changed; None without causes
    semifactual_effects: Mask | None = None
    donor: Rows | None = None  # with blocks: the fitted row whose values it has
    donor_rows: LazyRows | None = None  # that row

    @property
    def values(self) -> pd.DataFrame:
        """The changed rows in the caller's dtypes, numbered."""
        return self.rows.frame

    @property
    def semifactual_values(self) -> pd.DataFrame:
        """The semifactual of each, numbered; where there is none, any row."""
        return self.semifactual_rows.frame

    def __repr__(self) -> str:
        return f"<Batch of {len(self.factual):,} counterfactuals of {len(set(self.factual.tolist())):,} rows>"


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Sequence[Explanation]):
    """The answers for a batch of rows, in their order: a sequence of `Explanation`.

    An integer picks one `Explanation`, a slice returns `Explanations`.

    Attributes
    ----------
    rows : DataFrame
        The rows that were explained, with the caller's index.
    labels : array
        Per row: the label that the model gives it.
    statuses : array of str
        Per row: how it was answered, a `Status` as text.
    reasons : array of str
        Per row: why there is no counterfactual, or fewer than asked for; empty otherwise.
    would_need : array of tuple
        Per row: the first release with which a counterfactual is found; empty where that is not the question.
    batch : Batch
        All counterfactuals as parallel arrays, one line each.
    warnings : tuple of str
        What ``fit`` and ``explain`` warned of.
    n_calls : int
        How often the model was called for this batch.
    n_questions : int
        How many points it was asked about.
    n_model_rows : int
        How many rows it was handed: the points, and the rows that fill each call up to ``predict_chunk``.
    n_members : int
        How many members the committee has; 0 without one.
    n_member_questions : int
        How many points its members were asked about, each member's counted; in none of the figures above.
    n_copy_questions : int
        How many points an exact copy of the model was asked about in its place; 0 where the model was asked itself.
        What is returned was always asked of the model, once (``read_model``).
    certificates : array of Certificate, or None
        Per row: what was proven about its answer, None for a row that was not searched; None unless a proof was asked
        for.
    polars : object or None
        The dtypes of the table's columns, where ``fit`` was given a frame of polars: `to_polars` returns these.
    days : tuple
        Names of the columns whose times are whole days; dicts and JSON have no time of day there.
    words : dict
        What people call columns and values: the ``labels`` of the schema.
    origin : Origin
        What gave the answers, for `rules`; forgotten where they are saved or sent.
    blocks : Blocks or None
        What changed together; None for a map without blocks.

    """

    rows: pd.DataFrame
    labels: NDArray[Any]
    statuses: NDArray[Any]
    reasons: NDArray[Any]
    would_need: NDArray[Any]
    batch: Batch
    warnings: tuple[str, ...] = ()
    n_calls: int = 0
    n_questions: int = 0
    n_model_rows: int = 0
    n_members: int = 0
    n_member_questions: int = 0
    n_copy_questions: int = 0
    certificates: NDArray[Any] | None = None
    polars: PolarsTypes | None = None
    days: tuple[Hashable, ...] = ()
    words: Labels = field(default_factory=Labels)
    origin: Origin = field(default_factory=Origin)
    blocks: Blocks | None = None

    @classmethod
    def concat(cls, parts: "Sequence[Explanations]") -> "Explanations":
        """Return the answers for successive rows as one.

        Parameters
        ----------
        parts : sequence of Explanations
            At least one, all of rows with the same columns.

        Returns
        -------
        Explanations
            All rows in order; warnings are kept once, counts are added up.

        """
        if not len(parts):
            raise ParameterError("nothing to put together: give at least one Explanations.")
        starts = np.cumsum([0, *(len(part) for part in parts)])
        batches = [
            part.batch._replace(factual=part.batch.factual + at) for part, at in zip(parts, starts, strict=False)
        ]
        return cls(
            rows=pd.concat([part.rows for part in parts if len(part)] or [parts[0].rows]),
            labels=np.concatenate([part.labels for part in parts]),
            statuses=np.concatenate([part.statuses for part in parts]),
            reasons=np.concatenate([part.reasons for part in parts]),
            would_need=np.concatenate([part.would_need for part in parts]),
            batch=stack(batches),
            warnings=tuple(dict.fromkeys(message for part in parts for message in part.warnings)),
            n_calls=sum(part.n_calls for part in parts),
            n_questions=sum(part.n_questions for part in parts),
            n_model_rows=sum(part.n_model_rows for part in parts),
            n_members=parts[0].n_members,
            n_member_questions=sum(part.n_member_questions for part in parts),
            n_copy_questions=sum(part.n_copy_questions for part in parts),
            certificates=_joined([part.certificates for part in parts]),
            polars=parts[0].polars,
            days=parts[0].days,
            words=parts[0].words,
            origin=parts[0].origin,
            blocks=parts[0].blocks,
        )

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, position: int) -> Explanation: ...
    @overload
    def __getitem__(self, position: slice) -> "Explanations": ...
    def __getitem__(self, position: int | slice) -> "Explanation | Explanations":
        if isinstance(position, slice):
            return self._some(np.arange(len(self))[position])
        if not -len(self) <= position < len(self):
            raise IndexError(f"there are answers for {len(self):,} rows, got position {position!r}.")
        place = range(len(self))[position]
        factual: Any = cache(partial(frames.row_of, self.rows, place))  # made once for all that hold it
        label = self.rows.index[place]
        found = tuple(self._counterfactual(line, factual, label) for line in self._lines(place))
        status, reason, needs = Status(self.statuses[place]), self.reasons[place], tuple(self.would_need[place])
        certificate = None if self.certificates is None else self.certificates[place]
        of_form = (self.days, self.words, self.origin)
        return Explanation(factual, self.labels[place], status, reason, needs, found, certificate, *of_form)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        counts = pd.Series(self.statuses, dtype=object).value_counts()
        listed = ", ".join(f"{count} {status}" for status, count in counts.items())
        n_rows, n_found = len(self), len(self.batch.factual)
        rows, found = f"row{'s' * (n_rows != 1)}", f"counterfactual{'s' * (n_found != 1)}"
        return f"<Explanations of {n_rows:,} {rows}: {listed or 'none'}; {n_found:,} {found}>"

    def plot(self, ax: Any = None) -> Any:
        """Draw the answers; return the Axes.

        One row is drawn as `Explanation.plot` does: its best counterfactual, before and after. Of several rows, it is
        drawn how often each feature changes: `plots.change_frequencies`.

        Parameters
        ----------
        ax : matplotlib Axes or Figure, optional
            Where to draw; a new figure of pyplot by default, which a notebook shows.

        Returns
        -------
        Axes
            ``.figure.savefig("picture.png")`` saves it.

        """
        from onbmacf import plots  # upwards, when a picture is wanted (decision 0019)

        return self[0].plot(ax) if len(self) == 1 else plots.change_frequencies(self, ax=ax)

    def to_frame(self, *, only_changes: bool = False) -> pd.DataFrame:
        """Return one line per counterfactual: how it was found, then its values in the caller's dtypes.

        The index is the caller's, repeated where a row has several. A name of ours that is also a column of the table
        gets a trailing underscore. Rows without a counterfactual are in `status_frame`.

        Parameters
        ----------
        only_changes : bool, default False
            For reading: after rank, from, to, distance and n_changes, only the features that some counterfactual
            changes, with empty text where one keeps the row's own value. `changes` has the same as a long frame, with
            the values before.

        Returns
        -------
        DataFrame
            In the order of the rows, the best counterfactual of each first.

        """
        return frames.only_changes(self) if only_changes else frames.counterfactual_frame(self)

    def to_polars(self) -> Any:
        """Return what `to_frame` does as a frame of polars, the values in the dtypes of the table given to ``fit``.

        There is no index: the first column, ``row``, is the position of the row among those explained.

        Returns
        -------
        polars.DataFrame
            In the order of the rows, the best counterfactual of each first.

        Raises
        ------
        ImportError
            polars is not installed.

        """
        return polars_frame(frames.numbered(self), self.rows.columns, self.polars)

    def status_frame(self) -> pd.DataFrame:
        """Return one line per row: its label, status, reason, and number of counterfactuals (n_found)."""
        return frames.status_frame(self)

    def changes(self) -> pd.DataFrame:
        """Return one line per changed feature of each counterfactual: rank, feature, before, after.

        With ranges, a column says in which values the label holds. With causes, what follows has lines, too, and the
        column ``kind`` says "action" or "effect".
        """
        return frames.change_frame(self)

    def ranges(self) -> pd.DataFrame:
        """Return one line per changed feature of each counterfactual that has ranges.

        The columns are rank, feature, after, then low, high, levels and n_asked of the feature alone, and the same of
        the box of all changed features together (``box_low``, ...). Empty unless ``explain(..., ranges=True)``.
        """
        return frames.range_frame(self)

    def rules(self, explainer: Any = None) -> pd.DataFrame:
        """Return which conditions of the model each counterfactual crosses, as `Explanation.rules` does for one row."""
        from onbmacf._explain.crossed import of_explanations  # upwards, when rules are wanted (decision 0133)

        frame: pd.DataFrame = of_explanations(self, explainer).frame
        return frame

    def sentences(self, *, rules: Any = False) -> list[str]:
        """Return every answer as sentences, row by row; with `rules`, also what each crosses of the model."""
        return [sentence for explanation in self for sentence in explanation.sentences(rules=rules)]

    def to_dicts(self, *, rules: Any = False) -> list[dict[str, Any]]:
        """Return one dict per row, as `Explanation.to_dict` makes it."""
        return [explanation.to_dict(rules=rules) for explanation in self]

    def to_json(self, indent: int | None = None, *, rules: Any = False) -> str:
        """Return the answers as one JSON document that ends in a line break.

        Parameters
        ----------
        indent : int or None
            Spaces per level; None writes everything on one line.
        rules : bool or ONBMACF, default False
            Also what each counterfactual crosses of the model, as in `Explanation.to_dict`.

        Returns
        -------
        str
            An object with ``format`` ("onbmacf-explanations"), ``version`` (1; a later number means that keys have
            changed), ``warnings`` and ``answers``, the list that `to_dicts` returns. Nothing in it depends on how the
            rows were batched.

        """
        return records.document(self.to_dicts(rules=rules), self.warnings, indent)

    def in_order(self, places: Rows) -> "Explanations":
        """Return the answers, of which each is for the row at its place in `places`, in the order of the rows."""
        return self._some(np.argsort(places))

    def _repr_html_(self) -> str:
        table = wording.html_table(self[:20], n_more=max(0, len(self) - 20))
        return f"<p>{wording.escaped(repr(self)[1:-1])}</p>{wording.scrolling(table)}"

    def _lines(self, place: int) -> range:
        """Return the lines of one row's counterfactuals; the batch is sorted by row."""
        return range(*np.searchsorted(self.batch.factual, [place, place + 1]))

    def _some(self, places: Rows) -> "Explanations":
        """Return the answers for some rows, in the order given; counts stay those of the whole batch."""
        lines = [np.array(self._lines(place), dtype=np.intp) for place in places]
        batch = take(self.batch, np.concatenate([np.empty(0, dtype=np.intp), *lines]))
        batch = batch._replace(factual=np.repeat(np.arange(len(places)), [len(found) for found in lines]))
        of_rows = (self.labels[places], self.statuses[places], self.reasons[places], self.would_need[places])
        asked = (self.n_calls, self.n_questions, self.n_model_rows)
        counts = (*asked, self.n_members, self.n_member_questions, self.n_copy_questions)
        certificates = None if self.certificates is None else self.certificates[places]
        whole = (certificates, self.polars, self.days, self.words)
        rows = self.rows.iloc[places]
        return Explanations(rows, *of_rows, batch, self.warnings, *counts, *whole, self.origin, self.blocks)

    def _counterfactual(self, line: int, factual: Any, label: Hashable) -> Counterfactual:
        batch = self.batch
        values: Any = partial(batch.rows.row, line, label)
        semifactual: Any = partial(self._semifactual, line, factual, label)
        ball = int(batch.ball[line])
        return Counterfactual(
            values=values,
            factual=factual,
            label=batch.label[line],
            distance=float(batch.distance[line]),
            changed=self._names(batch.changed[line]),
            released=self._names(batch.released[line]),
            relaxation=Relaxation(batch.relaxation[line]),
            ball=None if ball < 0 else ball,
            plausibility=float(batch.plausibility[line]),
            margin=float(batch.margin[line]),
            probability=None if batch.probability is None else float(batch.probability[line]),
            semifactual=semifactual,
            ranges=None if batch.ranges is None else batch.ranges[line],
            box=None if batch.box is None else batch.box[line],
            stability=None if batch.stability is None else float(batch.stability[line]),
            n_members=self.n_members,
            predicted=None
            if batch.predicted is None
            else (float(batch.predicted[line, 0]), float(batch.predicted[line, 1])),
            words=self.words,
            effects=() if batch.effects is None else self._names(batch.effects[line]),
            donor=None if batch.donor is None else int(batch.donor[line]),
            donor_values=None if batch.donor_rows is None else partial(batch.donor_rows.row, line, label),
            of_blocks=self.blocks,
        )

    def _semifactual(self, line: int, factual: Any, label: Hashable) -> Semifactual | None:
        batch = self.batch
        if np.isnan(batch.semifactual_distance[line]):
            return None
        values: Any = partial(batch.semifactual_rows.row, line, label)
        changed = self._names(batch.semifactual_changed[line])
        effects = () if batch.semifactual_effects is None else self._names(batch.semifactual_effects[line])
        return Semifactual(values, factual, float(batch.semifactual_distance[line]), changed, effects)

    def _names(self, changed: Mask) -> tuple[Hashable, ...]:
        return tuple(name for name, is_changed in zip(self.rows.columns, changed, strict=True) if is_changed)


def _joined(certificates: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    known = [part for part in certificates if part is not None]
    return np.concatenate(known) if len(known) == len(certificates) else None
