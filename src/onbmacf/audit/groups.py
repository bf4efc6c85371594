"""The burden of each group: how far its rows are from another decision, with bootstrap intervals.

    Explanations, groups  ->  one value per row and measure  ->  means per group, resampled  ->  burden, burden_gaps

Intervals are percentile intervals of the means of rows drawn with replacement within each group. Each group has its own
random generator (seed, position of the group), so its result does not depend on the other groups.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_between, check_count, did_you_mean, listed
from onbmacf.audit.figures import first_lines, is_asked, is_released
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]
MEASURES = ("share_found", "share_released", "distance", "n_changes", "cost")
BURDEN = ["measure", "group", "n_rows", "estimate", "low", "high"]
GAPS = ["measure", "group", "other", "n_rows", "n_other", "gap", "low", "high", "excludes_zero"]
CELLS = 4_000_000  # values drawn at a time
MISSING = "(missing)"
OTHER = "(other)"


def bands(column: Any, edges: Sequence[float] | None = None, n_bands: int = 4) -> "pd.Series[Any]":
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
    column = pd.Series(column)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    cuts = sorted(float(edge) for edge in (_quantiles(numbers, n_bands) if edges is None else edges))
    if not cuts:
        raise ParameterError("bands needs numbers with at least two different values, or edges.")
    between = [f"{low:g} to below {high:g}" for low, high in pairwise(cuts)]
    names = [f"below {cuts[0]:g}", *between, f"{cuts[-1]:g} and above"]
    codes = np.where(np.isnan(numbers), -1, np.searchsorted(cuts, numbers, side="right"))
    return pd.Series(pd.Categorical.from_codes(codes, names, ordered=True), index=column.index, name=column.name)


def as_groups(column: "pd.Series[Any]", most: int = 8) -> "pd.Series[Any]":
    """Return a column fit to group by: numbers with many values as bands, the rarer of many levels as one group.

    Parameters
    ----------
    column : Series
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
    if column.nunique() <= most:
        return column
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        return bands(column)
    kept = column.astype(object).value_counts(sort=True).index[: most - 1]
    return column.astype(object).where(column.isin(kept) | column.isna(), OTHER)


def burden(
    answers: Explanations,
    by: Any,
    *,
    cost: Mapping[Hashable, float] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return what another decision takes the rows of each group, as means with bootstrap intervals.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    by : hashable or array-like
        A column of the explained rows, or one value per row, which need not be known to the model (`bands` turns
        numbers into groups).
    cost : mapping of hashable to float, optional
        What changing a feature costs, by name, in a unit of your own; 1 for a feature that is not named. Without it
        there is no measure ``cost``.
    confidence : float, default 0.95
        How often such an interval holds the true mean.
    n_resamples : int, default 2000
        Bootstrap samples.
    seed : int, default 0
        Of the bootstrap; the same seed gives the same intervals.

    Returns
    -------
    DataFrame
        One line per ``measure`` and ``group``: ``n_rows``, the ``estimate`` (a mean), and the interval ``low`` to
        ``high`` (NaN for fewer than two rows). ``share_found`` and ``share_released`` are over the rows that were
        searched; ``distance`` (encoded units), ``n_changes`` and ``cost`` are of each row's first counterfactual.

    Examples
    --------
    >>> groups = audit.burden(answers, "famhist")
    >>> groups[groups["measure"] == "distance"].round(2)
        measure    group  n_rows  estimate   low  high
    4  distance   Absent       7      0.26  0.13  0.43
    5  distance  Present      14      0.21  0.16  0.28

    """
    groups = _groups(answers, by)
    values = _measured(answers, cost)
    lines = []
    for measure, of_rows in values.items():
        for place, (group, members) in enumerate(groups.items()):
            sample = _present(of_rows[members])
            means = _resampled(sample, n_resamples, seed, place)
            lines.append((measure, group, len(sample), _mean(sample), *_interval(means, confidence)))
    return pd.DataFrame(lines, columns=BURDEN)


def burden_gaps(
    answers: Explanations,
    by: Any,
    *,
    cost: Mapping[Hashable, float] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the differences in burden between groups, with bootstrap intervals.

    Parameters
    ----------
    answers, by, cost, confidence, n_resamples, seed
        As for `burden`.

    Returns
    -------
    DataFrame
        One line per ``measure`` and pair of groups: ``group`` and ``other``, their ``n_rows`` and ``n_other``,
        the ``gap`` (mean of the first minus mean of the other), its interval ``low`` to ``high``, and
        ``excludes_zero``, whether the whole interval lies on one side of 0.

    Examples
    --------
    >>> gaps = audit.burden_gaps(answers, "famhist")
    >>> gaps.loc[gaps["measure"] == "distance", ["group", "other", "gap", "excludes_zero"]].round(2)
        group    other   gap  excludes_zero
    2  Absent  Present  0.04          False

    """
    groups = _groups(answers, by)
    values = _measured(answers, cost)
    lines = []
    for measure, of_rows in values.items():
        samples = [_present(of_rows[members]) for members in groups.values()]
        means = [_resampled(sample, n_resamples, seed, place) for place, sample in enumerate(samples)]
        for (i, one), (j, other) in combinations(enumerate(groups), 2):
            low, high = _interval(means[i] - means[j], confidence)
            sizes = len(samples[i]), len(samples[j])
            gap = _mean(samples[i]) - _mean(samples[j])
            lines.append((measure, one, other, *sizes, gap, low, high, low > 0 or high < 0))
    return pd.DataFrame(lines, columns=GAPS)


def _quantiles(numbers: Values, n_bands: int) -> list[float]:
    """Return the values that cut the numbers into bands of about equal size, none of them empty."""
    shares = np.linspace(0, 1, check_count("n_bands", n_bands, 2) + 1)[1:-1]
    values = np.unique(_present(numbers))
    if len(values) < 2:
        return []
    edges = np.unique(np.quantile(_present(numbers), shares, method="higher"))
    return [float(edge) for edge in edges if edge > values[0]] or [float(values[1])]


def _measured(answers: Explanations, cost: Mapping[Hashable, float] | None) -> dict[str, Values]:
    """Return one value per row for each measure, NaN where it does not apply."""
    first, asked = first_lines(answers), is_asked(answers)
    batch, found = answers.batch, first >= 0
    values = {
        "share_found": np.where(asked, found, np.nan),
        "share_released": np.where(asked, is_released(answers), np.nan),
        "distance": _spread(batch.distance, first),
        "n_changes": _spread(batch.changed.sum(axis=1), first),
    }
    if cost is not None:
        values["cost"] = _spread(batch.changed @ _weights(list(answers.rows.columns), cost), first)
    return values


def _spread(of_lines: Any, first: NDArray[np.intp]) -> Values:
    return np.append(np.asarray(of_lines, dtype=np.float64), np.nan)[first]  # first is -1: the last entry, NaN


def _weights(names: list[Hashable], cost: Mapping[Hashable, float]) -> Values:
    for name in cost:
        if name not in names:
            raise ParameterError(f"cost names {name!r}, which is not a column.{did_you_mean(name, names)}")
    return np.array([float(cost.get(name, 1.0)) for name in names])


def _groups(answers: Explanations, by: Any) -> dict[Any, NDArray[np.intp]]:
    """Return the positions of each group's rows; ordered categories keep their order, other groups are sorted."""
    column = _group_column(answers, by)
    if len(column) != len(answers):
        raise ParameterError(f"by has {len(column)} values for {len(answers)} rows.")
    codes, levels = pd.factorize(column, sort=not _is_mixed(column))
    order = range(len(levels))
    if isinstance(column.dtype, pd.CategoricalDtype):
        order = sorted(order, key=lambda place: column.cat.categories.get_loc(levels[place]))  # type: ignore[assignment]
    groups = {_plain(levels[place]): np.flatnonzero(codes == place) for place in order}
    if (codes < 0).any():
        groups[MISSING] = np.flatnonzero(codes < 0)
    return groups


def _group_column(answers: Explanations, by: Any) -> "pd.Series[Any]":
    if isinstance(by, pd.Series):
        return by
    is_name = isinstance(by, Hashable) and not isinstance(by, tuple)
    if is_name and by in answers.rows.columns:
        return answers.rows[by]
    if is_name:
        columns = answers.rows.columns
        raise ParameterError(
            f"by names {by!r}, which is not a column.{did_you_mean(by, columns)} Columns: {listed(columns)}."
        )
    return pd.Series(list(by), dtype=object).infer_objects()


def _is_mixed(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_object_dtype(column.dtype) and len(set(column.dropna().map(type))) > 1


def _plain(level: Any) -> Any:
    return level.item() if isinstance(level, np.generic) else level


def _resampled(sample: Values, n_resamples: int, seed: int, place: int) -> Values:
    """Return the means of resamples of the same size, drawn with replacement; NaN for fewer than two rows."""
    check_count("n_resamples", n_resamples)
    if len(sample) < 2:
        return np.full(n_resamples, np.nan)
    random = np.random.default_rng([check_count("seed", seed, 0), place])
    at_a_time = max(1, CELLS // len(sample))
    means = []
    for start in range(0, n_resamples, at_a_time):
        size = (min(at_a_time, n_resamples - start), len(sample))
        means.append(sample[random.integers(0, len(sample), size)].mean(axis=1))
    return np.concatenate(means)


def _interval(means: Values, confidence: float) -> tuple[float, float]:
    tail = (1 - check_between("confidence", confidence, 0, 1)) / 2
    if np.isnan(means).any():
        return float("nan"), float("nan")
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _present(values: Values) -> Values:
    return values[~np.isnan(values)]


def _mean(sample: Values) -> float:
    return float(sample.mean()) if len(sample) else float("nan")
