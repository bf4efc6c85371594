"""All comparisons of one audit: every column, their intersections, every measure, corrected together.

    answers, by, decisions  ->  grouped  ->  GroupedBy, one per column or pair of them  ->  group_gaps  ->  {name: gaps}

A column has the same groups among the explained rows and among the rows of the table. `corrected`, `verdicts` and
`findings` read what `group_gaps` returns.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from onbmacf._base.checks import did_you_mean, listed
from onbmacf.audit.arguments import typed
from onbmacf.audit.decisions import Decisions
from onbmacf.audit.grouping import OTHER, as_groups, checked_column, crossed, members_of
from onbmacf.audit.groups import GAPS, Values, burden_measures, gaps_of_columns
from onbmacf.audit.pairwise import LEAST, LEVEL, n_shuffles
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations

Measures = Mapping[str, Values]
MOST_CROSSED = 3  # pairs of columns whose intersections are compared


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
    answers: Explanations, by: Iterable[Hashable] | Mapping[str, Any] = (), decisions: Decisions | None = None
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

    Returns
    -------
    list of GroupedBy
        One per column; numbers with many values are in bands, rare levels together. Then one per pair of columns, for
        the first 3 pairs.

    Examples
    --------
    >>> [group.name for group in audit.grouped(answers, ["famhist", "age"])]
    ['famhist', 'age', 'famhist and age']

    """
    given = by if isinstance(by, Mapping) else dict.fromkeys(by)
    single = [_of_column(answers, name, values, decisions) for name, values in given.items()]
    pairs = list(combinations([group for group in single if len(members_of(group.rows)) > 1], 2))[:MOST_CROSSED]
    return [*single, *(_crossed(one, other) for one, other in pairs)]


@typed
def group_gaps(
    answers: Explanations,
    groups: Sequence[GroupedBy],
    decisions: Decisions | None = None,
    *,
    cost: Mapping[Hashable, float] | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """Return every comparison of an audit, with intervals that hold all at once.

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
    n_resamples : int, optional
        How often the values are shuffled; by default as often as so many comparisons need, at least 2000.
    seed : int, default 0
        Of the shuffles.

    Returns
    -------
    dict of DataFrame
        By the name of what grouped the rows: the gaps of all measures. Each interval is as wide as it takes that all of
        them hold together in 95 of 100 audits; one that excludes 0 is a clear difference.

    Examples
    --------
    >>> gaps = audit.group_gaps(answers, audit.grouped(answers, ["famhist"]))
    >>> list(gaps), gaps["famhist"]["measure"].tolist()
    (['famhist'], ['share_found', 'share_released', 'distance', 'n_changes'])

    """
    of_rows, of_table = burden_measures(answers, cost), {} if decisions is None else decisions.measures()
    n_families = sum(len(of_rows) + (len(of_table) if group.table is not None else 0) for group in groups)
    options: dict[str, Any] = {
        "confidence": 1 - LEVEL / max(n_families, 1),
        "n_resamples": n_resamples or n_shuffles(n_families),
        "seed": seed,
    }
    columns = [_measured(group, of_rows, of_table) for group in groups]
    frames = iter(gaps_of_columns([column for several in columns for column in several], **options))
    return {
        group.name: _joined([next(frames) for _ in several]) for group, several in zip(groups, columns, strict=True)
    }


def _measured(group: GroupedBy, of_rows: Measures, of_table: Measures) -> list[tuple[Measures, Any]]:
    """Return the measures that are compared by one column, with the groups of their rows."""
    both = ((of_table, group.table), (of_rows, group.rows))
    return [(measures, column) for measures, column in both if measures and column is not None]


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    some = [frame for frame in frames if len(frame)]
    return pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=GAPS)


def _of_column(answers: Explanations, name: Hashable, values: Any, decisions: Decisions | None) -> GroupedBy:
    rows = checked_column(answers, name if values is None else pd.Series(values).reset_index(drop=True))
    rows = rows.reset_index(drop=True)
    table = None
    if values is None and decisions is not None:
        if name not in decisions.rows.columns:
            known = listed(decisions.rows.columns)
            raise ParameterError(f"by names {name!r}.{did_you_mean(name, decisions.rows.columns)} Columns: {known}.")
        table = decisions.rows[name].reset_index(drop=True)
    both = rows if table is None else pd.concat([rows, table], ignore_index=True)
    as_one = as_groups(both)
    of_rows, of_table = as_one.iloc[: len(rows)], as_one.iloc[len(rows) :].reset_index(drop=True)
    grouped_by = GroupedBy(str(name), of_rows, None if table is None else of_table)
    return grouped_by._replace(note=f"{_note(name, both, as_one, len(rows))} {_small(grouped_by)}".strip())


def _note(name: Hashable, before: "pd.Series[Any]", after: "pd.Series[Any]", n_explained: int) -> str:
    """Return what a reader should know of the groups: many that were put together, or rows without one.

    The explained rows come first in both columns, then those of the table, where they are known.
    """
    parts, levels = [], before.nunique()
    if OTHER in set(after.astype(object)):
        kept = after.nunique() - 1
        parts.append(
            f"{name} has {levels:,} groups: the {kept} largest are kept apart, the others are one group, {OTHER}."
        )
    is_known = len(before) > n_explained
    n_missing = int((before.iloc[n_explained:] if is_known else before).isna().sum())
    if n_missing:
        where = "of the table" if is_known else "explained"
        some = f"1 row {where} has" if n_missing == 1 else f"{n_missing:,} rows {where} have"
        parts.append(f"{some} no value of {name}: a group of its own, (missing).")
    return " ".join(parts)


def _small(group: GroupedBy) -> str:
    """Return which groups are not tested, because they have too few rows."""
    explained = {value: len(rows) for value, rows in members_of(group.rows).items()}
    every = explained if group.table is None else {value: len(rows) for value, rows in members_of(group.table).items()}
    n_small = sum(size < LEAST for size in every.values())
    n_few = sum(size >= LEAST > explained.get(value, 0) for value, size in every.items())
    parts = []
    if n_small:
        parts.append(f"{_counted(n_small)} fewer than {LEAST} rows and {'is' if n_small == 1 else 'are'} not tested.")
    if n_few:
        parts.append(f"{_counted(n_few)} fewer than {LEAST} explained rows: burden is not tested there.")
    return " ".join(parts)


def _counted(n_groups: int) -> str:
    return "1 group has" if n_groups == 1 else f"{n_groups} groups have"


def _crossed(one: GroupedBy, other: GroupedBy) -> GroupedBy:
    table = crossed(one.table, other.table) if one.table is not None and other.table is not None else None
    both = GroupedBy(f"{one.name} and {other.name}", crossed(one.rows, other.rows), table)
    return both._replace(note=_small(both))
