"""What reaching the favourable decision takes each group, as the literature measures it.

    answers  ->  recourse_costs  ->  costs, one per row        costs, truth, groups  ->  one figure per group

A cost is 0 where the decision is favourable already, infinite where no way to it was found, NaN where nobody looked.
Every function takes arrays with one entry per row, says what it computes and whose definition that is, and returns a
frame with one line per group.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_count
from onbmacf._base.enums import Status
from onbmacf.audit.arguments import numbers, per_row, typed
from onbmacf.audit.figures import first_lines, is_asked
from onbmacf.audit.grouping import members_of
from onbmacf.audit.groups import burden_measures
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]


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
        return len(refused), int(np.isinf(refused).sum()), _mean(refused[np.isfinite(refused)])

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
        rate, burden = (len(refused) / len(paid) if len(paid) else np.nan), _mean(refused[np.isfinite(refused)])
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
        return len(known), int(np.isinf(paid).sum()), _mean(known)

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
        return len(refused), _mean(refused == Status.INFEASIBLE), _mean(refused == Status.NONE_FOUND)

    return _per_group(groups, len(states), line, ["n_refused", "share_proven", "share_none_found"])


def _costs_and_truth(costs: Any, truth: Any) -> tuple[Values, Values]:
    costs = numbers("costs", costs)
    return costs, numbers("truth", per_row("truth", truth, len(costs)))


def _per_group(
    groups: Any, n_rows: int, line: Callable[[NDArray[np.intp]], tuple[Any, ...]], columns: list[str]
) -> pd.DataFrame:
    members = members_of(per_row("groups", groups, n_rows))
    return pd.DataFrame([(group, *line(rows)) for group, rows in members.items()], columns=["group", *columns])


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")
