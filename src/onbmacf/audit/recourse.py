"""What the favourable decision takes each group: burden with bootstrap intervals, and the literature's figures.

    answers, groups  ->  burden_measures, one value per row and measure  ->  burden, burden_gaps
    answers  ->  recourse_costs, one per row        costs, truth, groups  ->  one figure per group

The interval of a group's mean is a percentile interval of rows drawn with replacement within it. Each group has its own
random generator (seed, position of the group), so its result does not depend on the other groups. Gaps between groups
are tested together: pairwise.py.

A cost is 0 where the decision is favourable already, infinite where no way to it was found, NaN where nobody looked.
The functions of costs take arrays with one entry per row, say whose definition they compute, and return a frame with
one line per group.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_between, check_count, did_you_mean
from onbmacf._base.enums import Status
from onbmacf.audit.arguments import numbers, per_row, typed
from onbmacf.audit.figures import first_lines, is_asked, is_released
from onbmacf.audit.groups import checked_column, mean_of, members_of
from onbmacf.audit.pairwise import LEAST, gaps_of, present
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]
BURDEN = ["measure", "group", "n_rows", "estimate", "low", "high"]
CELLS = 1 << 18  # values drawn at a time


# --- burden -----------------------------------------------------------------------------------------------------------


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
    4  distance   Absent       7      0.27  0.14  0.43
    5  distance  Present      14      0.22  0.16  0.27

    """
    groups = members_of(checked_column(answers, by))
    values = burden_measures(answers, cost)
    of_groups = []
    for place, members in enumerate(groups.values()):
        samples = [present(of_rows[members]) for of_rows in values.values()]
        means = resampled_means(samples, n_resamples, seed, place)
        pairs = zip(samples, means, strict=True)
        of_groups.append([(len(sample), mean_of(sample), *_interval(drawn, confidence)) for sample, drawn in pairs])
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
    2  Absent  Present  0.05          False

    """
    column, measures = checked_column(answers, by), burden_measures(answers, cost)
    return gaps_of(measures, column, least=least, confidence=confidence, n_resamples=n_resamples, seed=seed)


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
        names = list(answers.rows.columns)
        for name in cost:
            if name not in names:
                raise ParameterError(f"cost names {name!r}, which is not a column.{did_you_mean(name, names)}")
        values["cost"] = _spread(batch.changed @ np.array([float(cost.get(name, 1.0)) for name in names]), first)
    return values


def _spread(of_lines: Any, first: NDArray[np.intp]) -> Values:
    return np.append(np.asarray(of_lines, dtype=np.float64), np.nan)[first]  # first is -1: the last entry, NaN


def resampled_means(samples: Sequence[Values], n_resamples: int, seed: int, place: int) -> list[Values]:
    """Return the means of resamples of each sample, drawn with replacement; NaN for fewer than two rows.

    Samples of one length are drawn at the same places. One that is all 0 or all 1 has that mean whatever is drawn.
    """
    check_count("n_resamples", n_resamples), check_count("seed", seed, 0)
    means = [np.full(n_resamples, sample[0] if _is_known(sample) else np.nan) for sample in samples]
    for length in {len(sample) for sample in samples if len(sample) > 1 and not _is_known(sample)}:
        several = [at for at, sample in enumerate(samples) if len(sample) == length and not _is_known(sample)]
        random, at_a_time = np.random.default_rng([seed, place]), max(1, CELLS // length)
        for start in range(0, n_resamples, at_a_time):
            drawn = random.integers(0, length, (min(at_a_time, n_resamples - start), length))
            for at in several:
                means[at][start : start + len(drawn)] = samples[at][drawn].mean(axis=1)
    return means


def _is_known(sample: Values) -> bool:
    """Say whether all values are 0, or all 1."""
    return len(sample) > 1 and sample[0] in (0.0, 1.0) and bool((sample == sample[0]).all())


def _interval(means: Values, confidence: float) -> tuple[float, float]:
    tail = (1 - check_between("confidence", confidence, 0, 1)) / 2
    if np.isnan(means).any():
        return float("nan"), float("nan")
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


# --- costs ------------------------------------------------------------------------------------------------------------


@typed
def recourse_costs(answers: Explanations, cost: Mapping[Hashable, float] | None = None) -> Values:
    """Return what the favourable decision costs each explained row.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned for a favourable target.
    cost : mapping of hashable to float, optional
        What changing a feature costs, by name; the distance of the first counterfactual by default.

    Returns
    -------
    array of float
        0 for a row that has the target label already, infinite where no counterfactual was found, NaN for a row that
        could not be asked.

    Examples
    --------
    >>> audit.recourse_costs(answers)[:4].round(2)
    array([0.25, 0.  , 0.  , 0.13])

    """
    costs = burden_measures(answers, cost)["distance" if cost is None else "cost"]
    costs = np.where(is_asked(answers) & (first_lines(answers) < 0), np.inf, costs)
    return np.where(answers.statuses == Status.ALREADY, 0.0, costs)


@typed
def mean_burden(costs: Any, groups: Any) -> pd.DataFrame:
    """Return the burden of each group: the mean cost of its refused rows.

    Sharma, Henderson and Ghosh, CERTIFAI (2020): burden of a group = mean distance between each of its rows with the
    unfavourable decision and its counterfactual. Rows for which none was found have no distance; they are counted.

    Parameters
    ----------
    costs : array-like of float
        As `recourse_costs` gives them.
    groups : array-like
        One group per row.

    Returns
    -------
    DataFrame
        Per ``group``: ``n_refused``, ``n_without`` any counterfactual, and ``burden``.

    Examples
    --------
    >>> audit.mean_burden([0, 1, 3, np.inf], ["a"] * 4)
      group  n_refused  n_without  burden
    0     a          3          1     2.0

    """
    costs = numbers("costs", costs)

    def line(rows: NDArray[np.intp]) -> tuple[Any, ...]:
        paid = costs[rows]
        refused = paid[paid > 0]
        return len(refused), int(np.isinf(refused).sum()), mean_of(refused[np.isfinite(refused)])

    return _per_group(groups, len(costs), line, ["n_refused", "n_without", "burden"])


@typed
def accuracy_weighted_burden(costs: Any, truth: Any, groups: Any, n_features: int) -> pd.DataFrame:
    """Return the normalised accuracy weighted burden of each group (NAWB).

    Kuratomi, Pitoura, Papapetrou, Lindgren and Tsaparas, "Measuring the Burden of (Un)fairness Using Counterfactuals"
    (2022): the burden of those who are refused although they should not be, times how often that happens, over the
    largest distance there is: NAWB = FNR x mean distance of the false negatives / number of features. It is between 0
    and 1, where each feature adds at most 1 to a distance.

    Parameters
    ----------
    costs : array-like of float
        As `recourse_costs` gives them; NaN for refused rows that were not explained, which count in the rate only.
    truth : array-like of float
        Per row: 1 where the favourable decision would be right, 0 where it would not, NaN where that is not known.
    groups : array-like
        One group per row.
    n_features : int
        How many features a distance adds up.

    Returns
    -------
    DataFrame
        Per ``group``: ``n_rows`` that should get the favourable decision, ``false_negative_rate``, the mean cost of the
        false negatives, ``burden``, and ``nawb``.

    Examples
    --------
    >>> audit.accuracy_weighted_burden([0, 0, 0.5, 1.5], [1, 1, 1, 1], ["a"] * 4, n_features=5)
      group  n_rows  false_negative_rate  burden  nawb
    0     a       4                  0.5     1.0   0.1

    """
    costs, right = _costs_and_truth(costs, truth)
    check_count("n_features", n_features)

    def line(rows: NDArray[np.intp]) -> tuple[Any, ...]:
        paid = costs[rows][right[rows] == 1]
        refused = paid[paid != 0]  # NaN: refused, and not explained
        rate, burden = (len(refused) / len(paid) if len(paid) else np.nan), mean_of(refused[np.isfinite(refused)])
        nawb = 0.0 if rate == 0 else rate * burden / n_features
        return len(paid), rate, burden, nawb

    return _per_group(groups, len(costs), line, ["n_rows", "false_negative_rate", "burden", "nawb"])


@typed
def social_burden(costs: Any, truth: Any, groups: Any) -> pd.DataFrame:
    """Return the social burden of each group: its mean cost for rows whose true label is favourable.

    Milli, Miller, Dragan and Hardt, "The Social Cost of Strategic Classification" (2019): the expected cost that a
    truly qualified individual must incur to be accepted, 0 for one who is accepted as it is. Rows for which no way was
    found are left out of the mean and counted, since their cost is not known.

    Parameters
    ----------
    costs : array-like of float
        As `recourse_costs` gives them.
    truth : array-like of float
        Per row: 1 where the favourable decision would be right, 0 where it would not, NaN where that is not known.
    groups : array-like
        One group per row.

    Returns
    -------
    DataFrame
        Per ``group``: ``n_rows`` that should get the favourable decision and whose cost is known, ``n_without`` any way
        to it, and ``social_burden``.

    Examples
    --------
    >>> audit.social_burden([0, 0, 1, 3, np.inf], [1, 1, 1, 0, 1], ["a"] * 5)
      group  n_rows  n_without  social_burden
    0     a       3          1       0.333333

    """
    costs, right = _costs_and_truth(costs, truth)

    def line(rows: NDArray[np.intp]) -> tuple[Any, ...]:
        paid = costs[rows][right[rows] == 1]
        known = paid[np.isfinite(paid)]
        return len(known), int(np.isinf(paid).sum()), mean_of(known)

    return _per_group(groups, len(costs), line, ["n_rows", "n_without", "social_burden"])


@typed
def without_recourse(statuses: Any, groups: Any) -> pd.DataFrame:
    """Return how many refused rows of each group have no way to the favourable decision.

    Ustun, Spangher and Liu, "Actionable Recourse in Linear Classification" (2019), ask for this share. Proven means
    that every allowed row was asked about or excluded; none found, that the search ended without one.

    Parameters
    ----------
    statuses : array-like of str
        One `Status` per row, as ``answers.statuses`` has them.
    groups : array-like
        One group per row.

    Returns
    -------
    DataFrame
        Per ``group``: ``n_refused`` rows that were searched, and the shares ``share_proven`` and ``share_none_found``.

    Examples
    --------
    >>> audit.without_recourse(["found", "found", "none_found", "infeasible", "already"], ["a"] * 5)
      group  n_refused  share_proven  share_none_found
    0     a          4          0.25              0.25

    """
    states = per_row("statuses", statuses).to_numpy(dtype=object).astype(str)

    def line(rows: NDArray[np.intp]) -> tuple[Any, ...]:
        paid = states[rows]
        refused = paid[np.isin(paid, [Status.FOUND, Status.NONE_FOUND, Status.INFEASIBLE])]
        return len(refused), mean_of(refused == Status.INFEASIBLE), mean_of(refused == Status.NONE_FOUND)

    return _per_group(groups, len(states), line, ["n_refused", "share_proven", "share_none_found"])


def _costs_and_truth(costs: Any, truth: Any) -> tuple[Values, Values]:
    costs = numbers("costs", costs)
    return costs, numbers("truth", per_row("truth", truth, len(costs)))


def _per_group(
    groups: Any, n_rows: int, line: Callable[[NDArray[np.intp]], tuple[Any, ...]], columns: list[str]
) -> pd.DataFrame:
    members = members_of(per_row("groups", groups, n_rows))
    return pd.DataFrame([(group, *line(rows)) for group, rows in members.items()], columns=["group", *columns])
