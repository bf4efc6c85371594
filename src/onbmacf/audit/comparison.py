"""Groups compared: the decisions about them, and every measure of an audit by every column, corrected together.

    explainer, target, truth  ->  Decisions  ->  selection_rates, error_rates, decision_gaps
    answers, by, decisions  ->  grouped  ->  GroupedBy, one per column or pair of them  ->  group_gaps  ->  {name: gaps}

Burden looks at the rows that were refused; the figures of decisions look at every row of the table. Each function says
where its definition comes from. A column has the same groups among the explained rows and among the rows of the table.
`corrected`, `verdicts` and `findings` read what `group_gaps` returns.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import did_you_mean, listed
from onbmacf._explain.request import target_labels
from onbmacf.audit.arguments import check_per_row, numbers, per_row, typed
from onbmacf.audit.groups import MISSING, OTHER, checked_column, crossed, grouped_like, mean_of, members_of
from onbmacf.audit.pairwise import GAPS, LEAST, gaps_of, gaps_of_columns
from onbmacf.audit.recourse import burden_measures
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]
MOST_CROSSED = 3  # pairs of columns whose intersections are compared


# --- decisions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Decisions:
    """What the model decides about each row of a table.

    Attributes
    ----------
    rows : DataFrame
        The rows of the table.
    selected : array of bool
        Per row: whether the model gives it a favourable label.
    truth : array of float or None
        Per row: 1 where its true label is favourable, 0 where it is not, NaN where it is not known; None where no true
        labels were given.

    Examples
    --------
    >>> audit.Decisions.of(explainer, "fine").selected.mean().round(2)
    np.float64(0.7)

    """

    rows: pd.DataFrame
    selected: NDArray[np.bool_]
    truth: Values | None = None

    @classmethod
    @typed
    def of(cls, explainer: ONBMACF, target: Any, truth: Any = None) -> "Decisions":
        """Return the decisions about the rows that an explainer was fitted on; `target` is the favourable label.

        Parameters
        ----------
        explainer : ONBMACF
            Fitted.
        target : label or list of labels
            What counts as favourable.
        truth : array-like, optional
            The true label of each fitted row, missing where it is not known.

        """
        favourable = target_labels(target, explainer.classes_.tolist())
        drawn = explainer.fitted_.drawn
        labels = pd.Series(explainer.classes_[explainer.labels_[drawn]], dtype=object)
        rows = explainer.fitted_.space.decode(explainer.Z_[drawn])
        known = None if truth is None else _as_truth(truth, favourable, labels)
        return cls(rows, labels.isin(favourable).to_numpy(), known)

    @property
    def n_unknown(self) -> int:
        """How many rows have no true label; 0 where no true labels were given."""
        return 0 if self.truth is None else int(np.isnan(self.truth).sum())

    def measures(self) -> dict[str, Values]:
        """Return one value per row for each rate: 0 or 1, NaN where the row does not count."""
        selected = self.selected.astype(np.float64)
        measures = {"selected": selected}
        if self.truth is not None:
            measures["true_positive"] = np.where(self.truth == 1, selected, np.nan)
            measures["false_positive"] = np.where(self.truth == 0, selected, np.nan)
        return measures


@typed
def selection_rates(selected: Any, groups: Any, *, least: int = LEAST) -> pd.DataFrame:
    """Return how often each group is selected, and that rate over the highest one of a group that is large enough.

    The form is that of New York City's rules for Local Law 144 (6 RCNY 5-301): the selection rate is the number
    selected over the number in the category, the impact ratio the rate over that of the most selected category; rows of
    an unknown category are counted and left out of the ratios. The four-fifths rule of the US Uniform Guidelines
    (29 CFR 1607.4 D) looks at ratios below 0.8.

    Parameters
    ----------
    selected : array-like of bool
        Per row: whether it gets the favourable decision.
    groups : array-like
        One group per row; missing where it is unknown.
    least : int, default 20
        A group with fewer rows is none that others are compared with.

    Returns
    -------
    DataFrame
        One line per ``group``: ``n_rows``, ``n_selected``, ``selection_rate`` and ``impact_ratio``, which is missing
        where no group is large enough; the last line, if there are any, is of the rows whose group is missing, without
        a ratio.

    Examples
    --------
    >>> audit.selection_rates([1, 1, 0, 1, 0, 0, 1], ["a", "a", "b", "b", "b", "b", None], least=2)
           group  n_rows  n_selected  selection_rate  impact_ratio
    0          a       2           2            1.00          1.00
    1          b       4           1            0.25          0.25
    2  (missing)       1           1            1.00           NaN

    """
    chosen = numbers("selected", selected)
    lines = []
    for group, rows in members_of(per_row("groups", groups, len(chosen))).items():
        lines.append((group, len(rows), int(chosen[rows].sum()), float(chosen[rows].mean()), np.nan))
    frame = pd.DataFrame(lines, columns=["group", "n_rows", "n_selected", "selection_rate", "impact_ratio"])
    known = frame["group"] != MISSING
    highest = frame.loc[known & (frame["n_rows"] >= least), "selection_rate"].max()
    if highest > 0:
        frame.loc[known, "impact_ratio"] = frame.loc[known, "selection_rate"] / highest
    return frame


@typed
def error_rates(selected: Any, truth: Any, groups: Any) -> pd.DataFrame:
    """Return how often the decisions about each group are right.

    Equalised odds (Hardt, Price and Srebro, 2016) asks for equal true and false positive rates, equal opportunity for
    equal true positive rates.

    Parameters
    ----------
    selected : array-like of bool
        Per row: whether it gets the favourable decision.
    truth : array-like of float
        Per row: 1 where the favourable decision would be right, 0 where it would not, NaN where that is not known.
    groups : array-like
        One group per row.

    Returns
    -------
    DataFrame
        One line per ``group``: ``n_rows`` with a known true label, ``n_unknown`` without; ``accuracy``, the share of
        right decisions; ``true_positive_rate``, the share selected among rows whose true label is favourable;
        ``false_positive_rate``, the share selected among those whose true label is not. NaN where there is no such row.

    Examples
    --------
    >>> audit.error_rates([1, 0, 1, 0], [1, 1, 0, np.nan], ["a"] * 4).round(2)
      group  n_rows  n_unknown  accuracy  true_positive_rate  false_positive_rate
    0     a       3          1      0.33                 0.5                  1.0

    """
    chosen = numbers("selected", selected)
    right = numbers("truth", per_row("truth", truth, len(chosen)))
    lines = []
    for group, rows in members_of(per_row("groups", groups, len(chosen))).items():
        said, known = chosen[rows], right[rows]
        is_known = ~np.isnan(known)
        accuracy = mean_of((said == known)[is_known])
        rates = mean_of(said[known == 1]), mean_of(said[known == 0])
        lines.append((group, int(is_known.sum()), int((~is_known).sum()), accuracy, *rates))
    columns = ["group", "n_rows", "n_unknown", "accuracy", "true_positive_rate", "false_positive_rate"]
    return pd.DataFrame(lines, columns=columns)


@typed
def decision_gaps(decisions: Decisions, groups: Any, **options: Any) -> pd.DataFrame:
    """Return the differences between groups in how often they are selected, and wrongly so; tested together.

    Parameters
    ----------
    decisions : Decisions
        The decisions about a table.
    groups : array-like
        One group per row of it.
    **options
        As for `pairwise_gaps`.

    Returns
    -------
    DataFrame
        As `burden_gaps` gives it, for the measures ``selected`` and, where true labels are known, ``true_positive`` and
        ``false_positive``.

    Examples
    --------
    >>> audit.decision_gaps(audit.Decisions.of(explainer, "fine"), table["famhist"])[["measure", "gap"]].round(2)
        measure   gap
    0  selected  0.15

    """
    return gaps_of(decisions.measures(), groups, **options)


def _as_truth(truth: Any, favourable: list[Any], labels: "pd.Series[Any]") -> Values:
    """Return true labels as 1, 0 and NaN, checked against the rows and against the model's labels."""
    check_per_row("truth", truth)
    column = pd.Series(list(truth), dtype=object)
    if len(column) != len(labels):
        raise ParameterError(f"truth has {len(column):,} labels for {len(labels):,} fitted rows.")
    known = column.dropna()
    if len(known) and not known.isin(favourable + list(labels.unique())).any():
        theirs, ours = (listed(list(column.unique())[:5]) for column in (known, labels))
        raise ParameterError(f"truth has none of the model's labels: it has {theirs}, the model says {ours}.")
    return np.where(column.isna(), np.nan, column.isin(favourable).to_numpy(dtype=np.float64))


# --- every column at once ---------------------------------------------------------------------------------------------


class GroupedBy(NamedTuple):
    """The groups of one column.

    Attributes
    ----------
    name : str
        The column, or two of them.
    rows : Series
        The group of each explained row.
    table : Series or None
        The group of each row of the table; None where it is not known.
    note : str
        What the reader should know about the groups; often empty.

    """

    name: str
    rows: "pd.Series[Any]"
    table: "pd.Series[Any] | None" = None
    note: str = ""


@typed
def grouped(
    answers: Explanations,
    by: Iterable[Hashable] | Mapping[str, Any] = (),
    decisions: Decisions | None = None,
    bands: Mapping[Hashable, Any] | None = None,
) -> list[GroupedBy]:
    """Return the groups of each column, and the intersections of two.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    by : sequence of columns, or mapping of str to array-like
        Columns of the explained rows; or, by name, one value per explained row, which need not be known to the model.
    decisions : Decisions, optional
        The decisions about the table, whose rows are grouped the same way.
    bands : mapping of hashable to sequence, optional
        By column: where its bands begin, in its own unit, such as ``{"age": [30, 50]}``. By default a column with many
        numbers or dates has four bands of about as many rows of the table.

    Returns
    -------
    list of GroupedBy
        One per column; many numbers or dates are in bands, rare levels together. Then one per pair of columns, for
        the first 3 pairs.

    Examples
    --------
    >>> [group.name for group in audit.grouped(answers, ["famhist", "age"])]
    ['famhist', 'age', 'famhist and age']

    """
    given, edges = by if isinstance(by, Mapping) else dict.fromkeys(by), bands or {}
    for name in edges:
        if name not in given:
            hint = did_you_mean(name, given)
            raise ParameterError(f"bands names {name!r}, by which nothing is grouped.{hint} Columns: {listed(given)}.")
    single = [_of_column(answers, name, values, decisions, edges.get(name)) for name, values in given.items()]
    pairs = list(combinations([group for group in single if len(members_of(group.rows)) > 1], 2))[:MOST_CROSSED]
    intersections = []
    for one, other in pairs:
        table = crossed(one.table, other.table) if one.table is not None and other.table is not None else None
        both = GroupedBy(f"{one.name} and {other.name}", crossed(one.rows, other.rows), table)
        intersections.append(both._replace(note=_small(both)))
    return [*single, *intersections]


@typed
def group_gaps(
    answers: Explanations,
    groups: Sequence[GroupedBy],
    decisions: Decisions | None = None,
    *,
    cost: Mapping[Hashable, float] | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """Return every comparison of an audit: of decisions, of errors and of burden, each by itself.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    groups : sequence of GroupedBy
        As `grouped` gives them.
    decisions : Decisions, optional
        The decisions about the table: compared as well, where the groups of its rows are known.
    cost : mapping of hashable to float, optional
        As for `burden`.
    n_resamples : int, default 2000
        How often the values are shuffled.
    seed : int, default 0
        Of the shuffles.

    Returns
    -------
    dict of DataFrame
        By the name of what grouped the rows: the gaps of all measures. The intervals of who gets the decision, of how
        often it is right, and of burden are each as wide as it takes that those of one column hold together in 95 of
        100 audits, whatever else is compared; one that excludes 0 is a clear difference.

    Examples
    --------
    >>> gaps = audit.group_gaps(answers, audit.grouped(answers, ["famhist"]))
    >>> list(gaps), gaps["famhist"]["measure"].tolist()
    (['famhist'], ['share_found', 'share_released', 'distance', 'n_changes'])

    """
    of_rows, of_table = burden_measures(answers, cost), {} if decisions is None else decisions.measures()
    columns = [
        [
            (measures, column)
            for measures, column in ((of_table, group.table), (of_rows, group.rows))
            if measures and column is not None
        ]
        for group in groups
    ]
    every = [column for several in columns for column in several]
    frames = iter(gaps_of_columns(every, n_resamples=n_resamples, seed=seed))
    gaps = {}
    for group, several in zip(groups, columns, strict=True):
        some = [frame for _ in several if len(frame := next(frames))]
        gaps[group.name] = pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=GAPS)
    return gaps


def _of_column(
    answers: Explanations, name: Hashable, values: Any, decisions: Decisions | None, edges: Any
) -> GroupedBy:
    rows = checked_column(answers, name if values is None else pd.Series(values).reset_index(drop=True))
    rows = rows.reset_index(drop=True)
    table = None
    if values is None and decisions is not None:
        if name not in decisions.rows.columns:
            known = listed(decisions.rows.columns)
            raise ParameterError(f"by names {name!r}.{did_you_mean(name, decisions.rows.columns)} Columns: {known}.")
        table = decisions.rows[name].reset_index(drop=True)
    known = rows if table is None else table  # where the table is known, the explained rows change no group
    of_known, of_rows = grouped_like(known, known, edges=edges), grouped_like(known, rows, edges=edges)
    grouped_by = GroupedBy(str(name), of_rows, None if table is None else of_known)
    note = _note(name, known, of_known, "explained" if table is None else "of the table")
    return grouped_by._replace(note=f"{note} {_small(grouped_by)}".strip())


def _note(name: Hashable, before: "pd.Series[Any]", after: "pd.Series[Any]", where: str) -> str:
    """Return what a reader should know of the groups: many that were put together, or rows without one."""
    parts = []
    if OTHER in set(after.astype(object)):
        kept = f"the {after.nunique() - 1} largest are kept apart, the others are one group, {OTHER}."
        parts.append(f"{name} has {before.nunique():,} groups: {kept}")
    n_missing = int(before.isna().sum())
    if n_missing:
        some, own = (f"1 row {where} has", "its") if n_missing == 1 else (f"{n_missing:,} rows {where} have", "their")
        parts.append(f"{some} no value of {name}: a group of {own} own, (missing).")
    return " ".join(parts)


def _small(group: GroupedBy) -> str:
    """Return which groups are not tested, because they have too few rows."""
    explained = {value: len(rows) for value, rows in members_of(group.rows).items()}
    every = explained if group.table is None else {value: len(rows) for value, rows in members_of(group.table).items()}
    n_small = sum(size < LEAST for size in every.values())
    n_few = sum(size >= LEAST > explained.get(value, 0) for value, size in every.items())
    small, few = ("1 group has" if n == 1 else f"{n} groups have" for n in (n_small, n_few))
    parts = []
    if n_small:
        parts.append(f"{small} fewer than {LEAST} rows and {'is' if n_small == 1 else 'are'} not tested.")
    if n_few:
        parts.append(f"{few} fewer than {LEAST} explained rows: burden is not tested there.")
    return " ".join(parts)
