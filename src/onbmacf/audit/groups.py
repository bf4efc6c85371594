"""The burden of each group: how far its rows are from another decision, with bootstrap intervals.

    Explanations, groups  ->  one value per row and measure  ->  means per group  ->  burden, burden_gaps

The interval of a group's mean is a percentile interval of rows drawn with replacement within it. Each group has its own
random generator (seed, position of the group), so its result does not depend on the other groups. Gaps between groups
are tested together: pairwise.py.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_between, check_count, did_you_mean
from onbmacf.audit.arguments import typed
from onbmacf.audit.figures import first_lines, is_asked, is_released
from onbmacf.audit.grouping import checked_column, members_of
from onbmacf.audit.pairwise import LEAST, PAIRWISE, gaps_of_families
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]
MEASURES = ("share_found", "share_released", "distance", "n_changes", "cost")
BURDEN = ["measure", "group", "n_rows", "estimate", "low", "high"]
GAPS = ["measure", *PAIRWISE, "superiority"]
CELLS = 1 << 18  # values drawn at a time


@typed
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
    4  distance   Absent       7      0.26  0.13  0.42
    5  distance  Present      14      0.22  0.16  0.27

    """
    groups = members_of(checked_column(answers, by))
    values = burden_measures(answers, cost)
    of_groups = []
    for place, members in enumerate(groups.values()):
        samples = [_present(of_rows[members]) for of_rows in values.values()]
        means = _resampled(samples, n_resamples, seed, place)
        of_groups.append(
            [
                (len(sample), _mean(sample), *_interval(drawn, confidence))
                for sample, drawn in zip(samples, means, strict=True)
            ]
        )
    lines = [
        (measure, group, *figures[at])
        for at, measure in enumerate(values)
        for group, figures in zip(groups, of_groups, strict=True)
    ]
    return pd.DataFrame(lines, columns=BURDEN)


@typed
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
    return gaps_of_columns([(measures, column)], **options)[0]


def gaps_of_columns(columns: Sequence[tuple[Mapping[str, Values], Any]], **options: Any) -> list[pd.DataFrame]:
    """Return `gaps_of` several columns, each with its measures: the same figures, shuffled together."""
    families = [(values, column) for measures, column in columns for values in measures.values()]
    frames = iter(gaps_of_families(families, **options))
    parts = [[next(frames).assign(measure=name) for name in measures] for measures, _ in columns]
    return [pd.concat(part, ignore_index=True)[GAPS] for part in parts]


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


def _resampled(samples: Sequence[Values], n_resamples: int, seed: int, place: int) -> list[Values]:
    """Return the means of resamples of each sample, drawn with replacement; NaN for fewer than two rows.

    Samples of one length are drawn at the same places. One that is all 0 or all 1 has that mean whatever is drawn.
    """
    check_count("n_resamples", n_resamples), check_count("seed", seed, 0)
    means = [np.full(n_resamples, sample[0] if _is_known(sample) else np.nan) for sample in samples]
    for length in {len(sample) for sample in samples if len(sample) > 1 and not _is_known(sample)}:
        several = [at for at, sample in enumerate(samples) if len(sample) == length and not _is_known(sample)]
        for lines, places in _drawn(length, n_resamples, np.random.default_rng([seed, place])):
            for at in several:
                means[at][lines] = samples[at][places].mean(axis=1)
    return means


def _is_known(sample: Values) -> bool:
    """Say whether all values are 0, or all 1."""
    return len(sample) > 1 and sample[0] in (0.0, 1.0) and bool((sample == sample[0]).all())


def _drawn(length: int, n_resamples: int, random: np.random.Generator) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Yield places drawn with replacement, some resamples at a time."""
    at_a_time = max(1, CELLS // length)
    for start in range(0, n_resamples, at_a_time):
        lines = slice(start, min(start + at_a_time, n_resamples))
        yield lines, random.integers(0, length, (lines.stop - start, length))


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
