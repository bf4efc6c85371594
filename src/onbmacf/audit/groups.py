"""Which rows belong together: columns as groups, numbers as bands, two columns crossed.

    column  ->  as_groups, bands, crossed  ->  one group per row        answers, by  ->  checked_column  ->  members_of

A row without a value belongs to the group "(missing)", which is counted like any other.
"""

from collections.abc import Collection, Hashable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_count, did_you_mean, listed
from onbmacf._text.wording import shown
from onbmacf.audit.arguments import check_per_row, numbers, per_row, typed
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]
MISSING = "(missing)"
OTHER = "(other)"
MOST_COMPARED = 100  # groups whose pairs are compared


@typed
def bands(column: Any, edges: Any = None, n_bands: int = 4) -> "pd.Series[Any]":
    """Return numbers as bands in words, to group rows by.

    Parameters
    ----------
    column : array-like of numbers
        One value per row.
    edges : sequence of float, optional
        Where one band ends and the next begins, in the column's own unit.
    n_bands : int, default 4
        Without edges: into how many bands of about equally many rows.

    Returns
    -------
    Series
        An ordered category per row, missing where the number is.

    Examples
    --------
    >>> bands([19, 33, 47, 70], edges=[30, 60]).tolist()
    ['below 30', '30 to below 60', '30 to below 60', '60 and above']

    """
    column = per_row("column", column)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    cuts = sorted(_quantile_edges(values, n_bands) if edges is None else numbers("edges", edges).tolist())
    if not cuts:
        raise ParameterError("bands needs numbers with at least two different values, or edges.")
    between = [f"{low:g} to below {high:g}" for low, high in pairwise(cuts)]
    names = [f"below {cuts[0]:g}", *between, f"{cuts[-1]:g} and above"]
    codes = np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="right"))
    return pd.Series(pd.Categorical.from_codes(codes, names, ordered=True), index=column.index, name=column.name)


@typed
def as_groups(column: Any, most: int = 8) -> "pd.Series[Any]":
    """Return a column fit to group by: numbers with many values as bands, the rarer of many levels as one group.

    Parameters
    ----------
    column : array-like
        One value per row.
    most : int, default 8
        The most groups; a column with no more values than that is returned as it is.

    Returns
    -------
    Series
        One group per row.

    Examples
    --------
    >>> as_groups(table["age"]).cat.categories.tolist()
    ['below 31', '31 to below 45', '45 to below 55', '55 and above']

    """
    column = per_row("column", column)
    if column.nunique() <= most:
        return column
    if is_number(column):
        return bands(column)
    kept = column.astype(object).value_counts(sort=True).index[: most - 1]
    return column.astype(object).where(column.isin(kept) | column.isna(), OTHER)


@typed
def crossed(first: Any, second: Any) -> "pd.Series[Any]":
    """Return the intersections of two columns' groups, in words.

    Parameters
    ----------
    first, second : array-like
        One group per row each, as `as_groups` or `bands` gives them.

    Returns
    -------
    Series
        One group per row, in the order of the first column's groups, then of the second's; missing where either is.

    Examples
    --------
    >>> crossed(pd.Series(["f", "m"]), pd.Series(["old", None])).tolist()
    ['f, old', nan]

    """
    first = per_row("first", first)
    second = per_row("second", second, len(first))
    one, other = (part.astype(object).map(shown, na_action="ignore").reset_index(drop=True) for part in (first, second))
    names = one + ", " + other
    order = [f"{shown(one)}, {shown(other)}" for one in members_of(first) for other in members_of(second)]
    return pd.Series(pd.Categorical(names, list(dict.fromkeys(order)), ordered=True), index=first.index)


def checked_column(answers: Explanations, by: Any) -> "pd.Series[Any]":
    """Return one group per explained row: a column of theirs, or the values given, as many as there are rows."""
    columns = answers.rows.columns
    if isinstance(by, pd.Series):
        column = by
    elif isinstance(by, Hashable) and not isinstance(by, tuple):
        if by not in columns:
            hint = did_you_mean(by, columns)
            raise ParameterError(f"by names {by!r}, which is not a column.{hint} Columns: {listed(columns)}.")
        column = answers.rows[by]
    else:
        check_per_row("by", by)
        column = pd.Series(list(by), dtype=object).infer_objects()
    if len(column) != len(answers):
        raise ParameterError(f"by has {len(column)} values for {len(answers)} rows.")
    return column


def members_of(column: "pd.Series[Any]") -> dict[Any, NDArray[np.intp]]:
    """Return the positions of each group's rows; ordered categories keep their order, other groups are sorted."""
    # Values of several types have no order: these groups stay as they appear.
    is_mixed = pd.api.types.is_object_dtype(column.dtype) and len(set(column.dropna().map(type))) > 1
    codes, levels = pd.factorize(column, sort=not is_mixed)
    order = list(range(len(levels)))
    if isinstance(column.dtype, pd.CategoricalDtype):
        order = sorted(order, key=lambda place: column.cat.categories.get_loc(levels[place]))
    names = [level.item() if isinstance(level, np.generic) else level for level in levels]
    groups = {names[place]: np.flatnonzero(codes == place) for place in order}
    if (codes < 0).any():
        groups[MISSING] = np.flatnonzero(codes < 0)
    return groups


def check_few(groups: Collection[Any]) -> None:
    """Raise where comparing all pairs of groups would be comparing thousands of them."""
    if (n := len(groups)) > MOST_COMPARED:
        raise ParameterError(
            f"{n:,} groups are {n * (n - 1) // 2:,} comparisons, at most {MOST_COMPARED} groups are compared. Put the "
            "rare ones together first: audit.as_groups(column)."
        )


def _quantile_edges(numbers: Values, n_bands: int) -> list[float]:
    """Return the values that cut the numbers into bands of about equal size, none of them empty."""
    shares = np.linspace(0, 1, check_count("n_bands", n_bands, 2) + 1)[1:-1]
    values = np.unique(numbers[~np.isnan(numbers)])
    if len(values) < 2:
        return []
    edges = np.unique(np.quantile(numbers[~np.isnan(numbers)], shares, method="higher"))
    return [float(edge) for edge in edges if edge > values[0]] or [float(values[1])]


def is_number(column: "pd.Series[Any]") -> bool:
    """Say whether a column holds numbers; True and False are none."""
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def mean_of(values: Any) -> float:
    """Return the mean; NaN of nothing."""
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()) if len(numbers) else float("nan")
