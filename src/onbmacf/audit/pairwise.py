"""Differences between groups that hold: a permutation test per column and question, by itself.

    values, groups  ->  pairwise_gaps  ->  one line per pair of groups        {column: gaps}  ->  corrected  ->  claims

A family is one question about one column: who gets the decision, how often it is right, what another one would take.
What is stated of it does not depend on any other question, column or intersection. Of each measure of a family, a pair
of groups has a statistic: the difference of the means over its standard error. The values are shuffled over the rows;
the p of a pair is the share of shuffles in which the largest statistic of any pair is as large as the pair's own (the
max-T method of Westfall and Young), times the number of measures of the family. The interval of a pair is its gap give
or take the quantile of those largest statistics that p is compared with: it holds 0 where the difference is not clear,
and only there. Measures with equally many values are shuffled in the same orders, drawn once. Decision 0069.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_between, check_count
from onbmacf.audit.arguments import numbers, per_row, typed, with_columns
from onbmacf.audit.groups import check_few, members_of

Values = NDArray[np.float64]
LEAST = 20  # rows of a group that is compared
CELLS = 1 << 18  # values shuffled at a time
PAIRWISE = ["group", "other", "n_rows", "n_other", "mean", "mean_other", "gap", "low", "high", "p", "excludes_zero"]
GAPS = ["measure", *PAIRWISE, "superiority"]
CLAIMS = ["by", "measure", *PAIRWISE[:-1], "ratio", "superiority", "size", "clear"]
LEVEL = 0.05
FAMILIES = {"selected": "decisions", "true_positive": "errors", "false_positive": "errors"}  # other measures: burden


class Sums(NamedTuple):
    """Per group, or per shuffle and group: the sum of the values and of their squares."""

    total: Values
    squares: Values


@typed
def pairwise_gaps(
    values: Any,
    groups: Any,
    *,
    least: int = LEAST,
    confidence: float = 1 - LEVEL,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the differences of a measure between groups, tested together.

    Parameters
    ----------
    values : array-like of float
        One number per row; 0 and 1 for a share, whose intervals end at -1 and 1; NaN where the measure does not apply
        to a row.
    groups : array-like
        One group per row, at most 100 different ones; rows without one are the group "(missing)".
    least : int, default 20
        A group with fewer values has neither interval nor p, and does not count in the test.
    confidence : float, default 0.95
        How often all intervals hold at once.
    n_resamples : int, default 2000
        How often the values are shuffled.
    seed : int, default 0
        Of the shuffles; the same seed gives the same figures.

    Returns
    -------
    DataFrame
        One line per pair: ``group`` and ``other``, how many values each has, their means, the ``gap`` (first minus
        other), its interval ``low`` to ``high``, ``p`` and ``excludes_zero`` (the interval lies on one side of 0, which
        is so where ``p`` is at most 1 - confidence); then ``superiority``: how often a row of the first group has more
        than a row of the other, a tie counted as half.

    Examples
    --------
    >>> gaps = audit.pairwise_gaps([0] * 30 + [1] * 20 + [0] * 10, ["a"] * 30 + ["b"] * 30)
    >>> gaps[["group", "other", "gap", "excludes_zero"]].round(2)
      group other   gap  excludes_zero
    0     a     b -0.67           True

    """
    families = [(values, groups)]
    return gaps_of_families(families, least=least, confidence=confidence, n_resamples=n_resamples, seed=seed)[0]


def gaps_of(measures: Mapping[str, Values], column: Any, **options: Any) -> pd.DataFrame:
    """Return the gaps of several measures by one column, one under the other; `options` are of `pairwise_gaps`.

    The measures of one family hold together: each has its share of the level.
    """
    return gaps_of_columns([(measures, column)], **options)[0]


def gaps_of_columns(columns: Sequence[tuple[Mapping[str, Values], Any]], **options: Any) -> list[pd.DataFrame]:
    """Return `gaps_of` several columns, each with its measures: the same figures, shuffled together."""
    families = [(values, column) for measures, column in columns for values in measures.values()]
    names = [(at, FAMILIES.get(name, "burden")) for at, (measures, _) in enumerate(columns) for name in measures]
    frames = iter(gaps_of_families(families, names, **options))
    parts = [[next(frames).assign(measure=name) for name in measures] for measures, _ in columns]
    # A measure that nobody has is a frame without lines, whose columns have no dtype.
    return [pd.concat([frame for frame in part if len(frame)] or part, ignore_index=True)[GAPS] for part in parts]


def gaps_of_families(
    measures: Sequence[tuple[Any, Any]],
    families: Sequence[Hashable] | None = None,
    *,
    least: int = LEAST,
    confidence: float = 1 - LEVEL,
    n_resamples: int = 2000,
    seed: int = 0,
) -> list[pd.DataFrame]:
    """Return `pairwise_gaps` of several measures, each one's values and groups: the same figures, shuffled together.

    Measures that name the same family hold together, as far as they can be tested; by default each is its own.
    """
    check_count("n_resamples", n_resamples), check_count("seed", seed, 0)
    level = 1 - check_between("confidence", confidence, 0, 1)
    samples = [_samples(values, groups) for values, groups in measures]
    tested = [{group: own for group, own in of_groups.items() if len(own) >= max(least, 2)} for of_groups in samples]
    largest = largest_of([list(of_groups.values()) for of_groups in tested], n_resamples, seed)
    families = range(len(measures)) if families is None else families
    n_tested = Counter(family for family, groups in zip(families, tested, strict=True) if len(groups) > 1)
    together = [max(1, n_tested[family]) for family in families]
    return [_gaps(*measure, level) for measure in zip(samples, tested, largest, together, strict=True)]


@typed
def corrected(gaps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the gaps of all columns and measures as claims, the clearest and largest first.

    Parameters
    ----------
    gaps : mapping of str to DataFrame
        What `group_gaps`, `burden_gaps` or `decision_gaps` returned, by the name of what grouped the rows.

    Returns
    -------
    DataFrame
        One line per pair that was tested: ``by``, ``measure``, the columns of `pairwise_gaps`, ``ratio`` of the means,
        ``size`` in words (small, medium, large) and ``clear``, whether the interval excludes 0.

    Examples
    --------
    >>> claims = audit.corrected({"famhist": audit.burden_gaps(answers, "famhist", least=5)})
    >>> claims[["by", "measure", "p", "clear"]].round(2).head(2)
            by    measure     p  clear
    0  famhist  n_changes  0.11  False
    1  famhist   distance  1.00  False

    """
    for name, frame in gaps.items():
        with_columns(f"gaps[{name!r}]", frame, GAPS, "burden_gaps")
    frames = [frame.assign(by=name) for name, frame in gaps.items() if len(frame)]
    if not frames:
        return pd.DataFrame(columns=CLAIMS).astype({"clear": bool})
    every = pd.concat(frames, ignore_index=True)
    every = every[every["p"].notna()].reset_index(drop=True)
    every["clear"] = every["excludes_zero"].astype(bool)
    means, others = every["mean"].to_numpy(dtype=float), every["mean_other"].to_numpy(dtype=float)
    every["ratio"] = np.divide(means, others, out=np.full(len(means), np.nan), where=others != 0)
    sizes = [_strength(line.superiority, line.ratio) for line in every.itertuples()]
    every["size"] = [["small", "medium", "large"][min(int(size), 2)] for size in sizes]
    order = np.lexsort([-every["gap"].abs(), -np.array(sizes), ~every["clear"]])  # of equal sizes, the wider gap
    return every.iloc[order][CLAIMS].reset_index(drop=True)


def _samples(values: Any, groups: Any) -> dict[Any, Values]:
    """Return the values of each group that has any."""
    values = numbers("values", values)
    members = members_of(per_row("groups", groups, len(values)))
    samples = {group: sample for group, rows in members.items() if len(sample := present(values[rows]))}
    check_few(samples)
    return samples


def _gaps(
    samples: dict[Any, Values], tested: dict[Any, Values], largest: Values, n_measures: int, level: float
) -> pd.DataFrame:
    """Return one line per pair of groups; intervals of shares end at -1 and 1."""
    errors = dict(zip(tested, _squared_errors(list(tested.values())), strict=True))
    test = np.sort(largest), n_measures, level
    lines = [_line(samples, errors, one, other, *test) for one, other in combinations(samples, 2)]
    frame = pd.DataFrame(lines, columns=[*PAIRWISE, "superiority"])
    if all(np.isin(sample, (0, 1)).all() for sample in samples.values()):
        frame[["low", "high"]] = frame[["low", "high"]].clip(-1, 1)
    return frame if lines else frame.astype({"excludes_zero": bool})


def _line(
    samples: dict[Any, Values],
    errors: dict[Any, float],
    one: Any,
    other: Any,
    largest: Values,
    n_measures: int,
    level: float,
) -> tuple[Any, ...]:
    first, second = samples[one], samples[other]
    means = float(first.mean()), float(second.mean())
    gap = means[0] - means[1]
    sizes, above = (len(first), len(second)), _superiority(first, second)
    if one not in errors or other not in errors:
        return (one, other, *sizes, *means, gap, np.nan, np.nan, np.nan, False, above)
    error = float(np.sqrt(errors[one] + errors[other]))
    statistic = abs(gap) / error if error > 0 else 0.0  # without any spread there is no gap
    n_as_large = 1 + int((largest >= statistic - 1e-12).sum())  # shuffles, and the data
    allowed = int(np.floor(level / n_measures * (len(largest) + 1) + 1e-9))
    half = (float(largest[-allowed]) if allowed >= 1 else np.inf) * error
    low, high, is_clear = gap - half, gap + half, n_as_large <= allowed
    if not is_clear:  # the same test, but for the last bits
        low, high = min(low, 0.0), max(high, 0.0)
    p = min(1.0, n_measures * n_as_large / (len(largest) + 1))
    return (one, other, *sizes, *means, gap, low, high, p, is_clear, above)


def _squared_errors(samples: list[Values]) -> Values:
    """Return the squared standard error of each group's mean."""
    if not samples:
        return np.empty(0)
    whole, sizes = np.concatenate(samples), np.array([len(sample) for sample in samples])
    centred = [sample - whole.mean() for sample in samples]
    sums = Sums(np.array([part.sum() for part in centred]), np.array([(part**2).sum() for part in centred]))
    return _errors_of(sums, sizes, float(whole.var()))


def _errors_of(sums: Sums, sizes: NDArray[np.intp], spread: float) -> Values:
    """Return squared errors of means: each group's variance, with one more value as far out as all rows usually are.

    So a group whose values are all the same is not taken for certain.
    """
    within = np.maximum(sums.squares - sums.total**2 / sizes, 0) + spread
    return np.asarray(within / sizes / sizes)


def largest_of(families: Sequence[list[Values]], n_resamples: int, seed: int) -> list[Values]:
    """Return, per family and shuffle, the largest statistic of any pair of groups.

    Each family is shuffled as if it were alone. Those with equally many values are so in the same order, drawn once.
    """
    largest = [np.zeros(n_resamples) for _ in families]
    same_length: dict[int, list[tuple[Shuffled, Values]]] = {}
    for samples, drawn in zip(families, largest, strict=True):
        family = Shuffled.of(samples)
        if family.spread > 0 and family.is_binary:
            drawn[:] = family.largest(_counted(family, n_resamples, np.random.default_rng(seed)))
        elif family.spread > 0:
            same_length.setdefault(len(family.whole), []).append((family, drawn))
    for length, several in same_length.items():
        for lines, order in _orders(length, n_resamples, np.random.default_rng(seed)):
            for family, drawn in several:
                drawn[lines] = family.largest(_summed(family, order))
    return largest


class Shuffled(NamedTuple):
    """The values of one family, group after group, less their mean."""

    whole: Values
    sizes: NDArray[np.intp]
    spread: float  # the variance of all values; 0 where there is nothing to compare

    @classmethod
    def of(cls, samples: list[Values]) -> "Shuffled":
        """Join the values of the groups."""
        whole, sizes = np.concatenate([*samples, []]), np.array([len(sample) for sample in samples], dtype=np.intp)
        return cls(whole - whole.mean(), sizes, float(whole.var())) if len(samples) > 1 else cls(whole, sizes, 0.0)

    @property
    def is_binary(self) -> bool:
        """Whether all values are one of two: these are counted, not shuffled."""
        return bool(((self.whole == self.whole.min()) | (self.whole == self.whole.max())).all())

    def largest(self, sums: Sums) -> Values:
        """Return, per shuffle, the largest statistic of any pair of groups."""
        means, errors = sums.total / self.sizes, _errors_of(sums, self.sizes, self.spread)
        top = np.zeros(len(means))
        for i, j in combinations(range(len(self.sizes)), 2):
            top = np.maximum(top, np.abs(means[:, i] - means[:, j]) / np.sqrt(errors[:, i] + errors[:, j]))
        return top


def _counted(family: Shuffled, n_resamples: int, random: np.random.Generator) -> Sums:
    """Return the sums of all shuffles of values that are one of two."""
    low, high, sizes = family.whole.min(), family.whole.max(), family.sizes
    ones = random.multivariate_hypergeometric(sizes, int((family.whole == high).sum()), n_resamples)
    return Sums(low * (sizes - ones) + high * ones, low**2 * (sizes - ones) + high**2 * ones)


def _summed(family: Shuffled, order: NDArray[np.intp]) -> Sums:
    """Return the sums of the shuffles with these orders."""
    starts, drawn = np.concatenate([[0], np.cumsum(family.sizes)[:-1]]), family.whole[order]
    return Sums(np.add.reduceat(drawn, starts, axis=1), np.add.reduceat(drawn**2, starts, axis=1))


def _orders(length: int, n_resamples: int, random: np.random.Generator) -> Iterator[tuple[slice, NDArray[np.intp]]]:
    """Yield shuffled positions, some shuffles at a time."""
    at_a_time = max(1, CELLS // length)
    for start in range(0, n_resamples, at_a_time):
        order = np.tile(np.arange(length), (min(at_a_time, n_resamples - start), 1))
        for line in order:
            random.shuffle(line)
        yield slice(start, start + len(order)), order


def _superiority(first: Values, second: Values) -> float:
    """Return how often a value of the first is above one of the second; ties count half."""
    ordered = np.sort(second)
    below, up_to = np.searchsorted(ordered, first, "left"), np.searchsorted(ordered, first, "right")
    return float((below + up_to).sum() / 2 / (len(first) * len(second)))


def _strength(superiority: float, ratio: float) -> float:
    """Return how large a difference is: below 1 small, below 2 medium, from 2 on large (decision 0069)."""
    apart = abs(2 * superiority - 1)  # Cliff's delta; of shares, their difference
    times = np.inf if ratio == 0 else 1.0 if np.isnan(ratio) else max(ratio, 1 / ratio) if ratio > 0 else 1.0
    by_rows = apart / 0.15 if apart < 0.15 else 1 + (apart - 0.15) / 0.18
    by_times = (times - 1) / 0.25 if times < 1.25 else 1 + min((times - 1.25) / 0.75, 1.5)
    return float(max(by_rows, by_times))


def present(values: Values) -> Values:
    """Return the values that are not missing."""
    return values[~np.isnan(values)]
