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
N_BANDS = 4
MOST_COMPARED = 100  # groups whose pairs are compared


@typed
def bands(column: Any, edges: Any = None, n_bands: int = N_BANDS) -> "pd.Series[Any]":
    """Return numbers or dates as bands in words, to group rows by.

    Parameters
    ----------
    column : array-like of numbers or dates
        One value per row.
    edges : sequence of float, or of dates, optional
        Where one band ends and the next begins, in the column's own unit.
    n_bands : int, default 4
        Without edges: into how many bands of about equally many rows.

    Returns
    -------
    Series
        An ordered category per row, missing where the value is.

    Examples
    --------
    >>> bands([19, 33, 47, 70], edges=[30, 60]).tolist()
    ['below 30', '30 to below 60', '30 to below 60', '60 and above']

    """
    column = per_row("column", column)
    if is_date(column):
        values, cuts = _days(column), _date_edges(column, n_bands) if edges is None else _dates("edges", edges)
        words, below, above = _date_words(cuts), "before", "later"
        cuts = _days(pd.Series(cuts)).tolist()
    else:
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        cuts = sorted(_quantile_edges(values, n_bands) if edges is None else numbers("edges", edges).tolist())
        words, below, above = [f"{cut:g}" for cut in cuts], "below", "above"
    if not cuts:
        raise ParameterError("bands needs at least two different numbers or dates, or edges.")
    between = [f"{low} to {below} {high}" for low, high in pairwise(words)]
    names = [f"{below} {words[0]}", *between, f"{words[-1]} and {above}"]
    codes = np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="right"))
    return pd.Series(pd.Categorical.from_codes(codes, names, ordered=True), index=column.index, name=column.name)


@typed
def as_groups(column: Any, most: int = 8) -> "pd.Series[Any]":
    """Return a column fit to group by: many numbers or dates as bands, the rarer of many levels as one group.

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
    return grouped_like(column, column, most)


def grouped_like(
    table: "pd.Series[Any]", column: "pd.Series[Any]", most: int = 8, edges: Any = None
) -> "pd.Series[Any]":
    """Return a column in the groups of another: its bands, between edges where they are given, its frequent levels."""
    if edges is not None:
        return bands(column, edges)
    if table.nunique() <= most:
        return column.dt.strftime("%Y-%m-%d") if is_date(column) else column
    if is_date(table):
        return bands(column, _date_edges(table, N_BANDS))
    if is_number(table):
        return bands(column, _quantile_edges(pd.to_numeric(table).to_numpy(dtype=np.float64), N_BANDS))
    kept = table.astype(object).value_counts(sort=True).index[: most - 1]
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


def _days(column: "pd.Series[Any]") -> Values:
    """Return dates as days since 1970, by their own clock; NaN where one is missing."""
    plain = column.dt.tz_localize(None) if getattr(column.dtype, "tz", None) is not None else column
    return ((plain - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64)


def _date_edges(column: "pd.Series[Any]", n_bands: int) -> list[pd.Timestamp]:
    """Return where dates are cut into bands of about equal size: at the beginnings of years where these tell apart."""
    edges = [pd.Timestamp(0) + pd.Timedelta(days=int(day)) for day in _quantile_edges(_days(column), n_bands)]
    years = sorted({edge.year for edge in edges})
    first = np.nanmin(_days(column))
    at_years = [pd.Timestamp(year=year, month=1, day=1) for year in years]
    is_enough = len(years) == len(edges) and all((year - pd.Timestamp(0)).days > first for year in at_years)
    return at_years if is_enough else edges


def _dates(name: str, edges: Any) -> list[pd.Timestamp]:
    try:
        return sorted(pd.Timestamp(edge) for edge in edges)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} of a column of dates must be dates such as 1980-01-01: {error}.") from error


def _date_words(cuts: list[pd.Timestamp]) -> list[str]:
    """Return dates in words: as years where all are beginnings of one."""
    are_years = all(cut == pd.Timestamp(year=cut.year, month=1, day=1) for cut in cuts)
    return [str(cut.year) if are_years else cut.date().isoformat() for cut in cuts]


def is_date(column: "pd.Series[Any]") -> bool:
    """Say whether a column holds dates or times."""
    return pd.api.types.is_datetime64_any_dtype(column.dtype)


def is_number(column: "pd.Series[Any]") -> bool:
    """Say whether a column holds numbers; True and False are none."""
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def mean_of(values: Any) -> float:
    """Return the mean; NaN of nothing."""
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()) if len(numbers) else float("nan")
