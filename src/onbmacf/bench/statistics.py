"""What differences between methods are worth: intervals, ranks and tests over tables.

    scores (tables x seeds x methods)  ->  bootstrap  ->  intervals of means and of differences
    scores (tables x methods)  ->  ranks  ->  friedman, critical_difference
    differences (tables)  ->  signed_rank  ->  how probable it is that one is better, or both are alike

Higher scores are better everywhere. Tables are what conclusions are drawn about, so tables are drawn anew; seeds within
them. The tests are those of Demsar (2006) and Benavoli, Corani, Demsar and Zaffalon (2017).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Matrix = NDArray[np.float64]

DRAWS = 2000  # of the bootstrap
POSTERIOR_DRAWS = 10_000
CONFIDENCE = 0.95
PRIOR_STRENGTH = 0.5  # of one more table without a difference
WRONG = 0.05  # chance of a false finding among all pairs


class Interval(NamedTuple):
    """A mean over tables, and where it lies for 95 of 100 draws."""

    mean: Matrix
    low: Matrix
    high: Matrix


def bootstrap(scores: Matrix, seed: int = 0) -> Interval:
    """Return the mean over tables of the means over seeds, with an interval: (tables, seeds, ...) -> (...).

    Tables are drawn with replacement, and for each drawn table seeds. A missing score (NaN) counts as the mean of the
    other seeds of its table; a table without any is left out.
    """
    random = np.random.default_rng(seed)
    n_tables, n_seeds = scores.shape[:2]
    of_tables = mean_of_present(scores, axis=1)
    filled = np.where(np.isnan(scores), of_tables[:, np.newaxis], scores).reshape(n_tables * n_seeds, -1)
    tables = random.integers(n_tables, size=(DRAWS, n_tables, 1))
    seeds = random.integers(n_seeds, size=(DRAWS, n_tables, n_seeds))
    places = (tables * n_seeds + seeds).reshape(DRAWS, -1)
    times = np.stack([np.bincount(drawn, minlength=len(filled)) for drawn in places]).astype(np.float64)
    present = ~np.isnan(filled)
    count = times @ present
    with np.errstate(invalid="ignore"):  # a draw of nothing but tables without a score
        drawn = (times @ np.where(present, filled, 0.0)) / np.where(count > 0, count, np.nan)
    edge = (1.0 - CONFIDENCE) / 2
    low, high = np.nanquantile(drawn, [edge, 1.0 - edge], axis=0)
    shape = scores.shape[2:]
    return Interval(mean_of_present(of_tables, axis=0), low.reshape(shape), high.reshape(shape))


def mean_of_present(values: Matrix, axis: int) -> Matrix:
    """Return the mean along an axis of what is not NaN."""
    present = ~np.isnan(values)
    count = present.sum(axis=axis)
    total = np.where(present, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def ranks(scores: Matrix) -> Matrix:
    """Return the rank of each method within each table, 1 the best; equal scores share, none at all comes last."""
    return np.asarray(stats.rankdata(-np.nan_to_num(scores, nan=-np.inf), axis=1))


def friedman(ranked: Matrix) -> float:
    """Return how probable ranks so different are if all methods are alike: Friedman, Iman and Davenport's F."""
    n_tables, n_methods = ranked.shape
    with np.errstate(invalid="ignore"):  # NaN where all methods are tied on every table
        chi_square = float(stats.friedmanchisquare(*ranked.T).statistic)
    left = n_tables * (n_methods - 1) - chi_square
    if np.isnan(chi_square) or left <= 0:
        return 1.0 if np.isnan(chi_square) else 0.0
    freedom = (n_methods - 1, (n_methods - 1) * (n_tables - 1))
    return float(stats.f.sf((n_tables - 1) * chi_square / left, *freedom))


def critical_difference(n_methods: int, n_tables: int) -> float:
    """Return by how much two average ranks must differ for the methods to differ, by Nemenyi's test."""
    quantile = stats.studentized_range.ppf(1.0 - WRONG, n_methods, np.inf) / np.sqrt(2.0)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tables)))


def cliques(average_ranks: Matrix, difference: float) -> list[tuple[int, int]]:
    """Return the first and last place, in the order of ranks, of each largest group that no difference parts."""
    ordered = np.sort(average_ranks)
    groups: list[tuple[int, int]] = []
    for first in range(len(ordered)):
        last = int(np.searchsorted(ordered, ordered[first] + difference)) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


class Verdict(NamedTuple):
    """How probable it is that, on tables like these, the first is worse, practically alike, or better."""

    worse: float
    alike: float
    better: float


def signed_rank(differences: Matrix, alike: float, seed: int = 0) -> Verdict:
    """Return the verdict on differences per table (first minus second), by the Bayesian signed-rank test.

    Weights of the tables, and of one more without a difference, are drawn from a Dirichlet distribution; pairs of
    tables (Walsh averages) whose mean difference is below -alike, within, or above it vote. The verdict is the share of
    draws that each wins.
    """
    present = differences[~np.isnan(differences)]
    points = np.append(0.0, present)
    sums = points[:, np.newaxis] + points
    weights = np.random.default_rng(seed).dirichlet([PRIOR_STRENGTH, *np.ones(len(present))], POSTERIOR_DRAWS)
    votes = [_votes(weights, region) for region in (sums < -2 * alike, np.abs(sums) <= 2 * alike, sums > 2 * alike)]
    winners = np.bincount(np.argmax(votes, axis=0), minlength=3) / POSTERIOR_DRAWS
    return Verdict(*(float(share) for share in winners))


def _votes(weights: Matrix, region: NDArray[np.bool_]) -> Matrix:
    """Return the weight of the pairs in a region, per draw."""
    return np.einsum("di,di->d", weights @ region.astype(np.float64), weights)
