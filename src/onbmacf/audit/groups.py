"""The burden of each group: how far its rows are from another decision, with bootstrap intervals.

    Explanations, groups  ->  one value per row and measure  ->  means per group  ->  burden, burden_gaps

The interval of a group's mean is a percentile interval of rows drawn with replacement within it. Each group has its own
random generator (seed, position of the group), so its result does not depend on the other groups. Gaps between groups
are tested together: pairwise.py.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_between, check_count, did_you_mean
from onbmacf.audit.figures import first_lines, is_asked, is_released
from onbmacf.audit.grouping import checked_column, members_of
from onbmacf.audit.pairwise import LEAST, PAIRWISE, pairwise_gaps
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]
MEASURES = ("share_found", "share_released", "distance", "n_changes", "cost")
BURDEN = ["measure", "group", "n_rows", "estimate", "low", "high"]
GAPS = ["measure", *PAIRWISE, "superiority"]
CELLS = 4_000_000  # values drawn at a time


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
    groups = members_of(checked_column(answers, by))
    values = burden_measures(answers, cost)
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
    least: int = LEAST,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the differences in burden between groups; those of one measure are tested together.

    Parameters
    ----------
    answers, by, cost
        As for `burden`.
    least, confidence, n_resamples, seed
        As for `pairwise_gaps`.

    Returns
    -------
    DataFrame
        One line per ``measure`` and pair of groups, with the columns of `pairwise_gaps`. `corrected` corrects them for
        the number of measures, and of columns where several are compared.

    Examples
    --------
    >>> gaps = audit.burden_gaps(answers, "famhist", least=5)
    >>> gaps.loc[gaps["measure"] == "distance", ["group", "other", "gap", "excludes_zero"]].round(2)
        group    other   gap  excludes_zero
    2  Absent  Present  0.04          False

    """
    column = checked_column(answers, by)
    options: dict[str, Any] = {"least": least, "confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    return gaps_of(burden_measures(answers, cost), column, **options)


def gaps_of(measures: Mapping[str, Values], column: Any, **options: Any) -> pd.DataFrame:
    """Return the gaps of several measures by one column, one under the other; `options` are of `pairwise_gaps`."""
    parts = [pairwise_gaps(values, column, **options).assign(measure=name) for name, values in measures.items()]
    return pd.concat(parts, ignore_index=True)[GAPS]


def burden_measures(answers: Explanations, cost: Mapping[Hashable, float] | None) -> dict[str, Values]:
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
