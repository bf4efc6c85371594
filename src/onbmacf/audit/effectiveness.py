"""Actions and groups: how many rows some actions help, and at what cost, as FACTS defines it.

    flips, costs (rows x actions)  ->  one figure        flips, costs, groups  ->  recourse_fairness  ->  frame

Kavouras et al., "Fairness Aware Counterfactuals for Subgroups" (2023), section 2. In the micro view each row takes the
cheapest action that helps it; in the macro view one action is applied to all rows of a group, and costs it the mean of
what it costs its rows. ``flips`` says which action gives which row the favourable decision; ``costs`` what it would
cost the row, NaN where the row may not take it. Each function is about the rows of one group. Own counterfactuals are
the case of one action per row that costs the distance: `individual`.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_choice, check_within
from onbmacf.audit.arguments import numbers, per_row, typed
from onbmacf.audit.groups import check_few, mean_of, members_of
from onbmacf.errors import ParameterError

Values = NDArray[np.float64]
Flips = NDArray[np.bool_]
VIEWS = ("micro", "macro")


@typed
def individual(costs: Any) -> tuple[Flips, Values]:
    """Return own counterfactuals as flips and costs with one action: infinite costs help nobody.

    >>> audit.individual([0.5, np.inf])[0].tolist()
    [[True], [False]]
    """
    costs_ = numbers("costs", costs)[:, np.newaxis]
    return np.isfinite(costs_), np.where(np.isfinite(costs_), costs_, np.nan)


@typed
def effectiveness(flips: Any, viewpoint: str = "micro") -> float:
    """Return FACTS' effectiveness: the share of rows that some action helps (micro), or the best single one (macro).

    Equal effectiveness holds where it is the same for all groups.

    >>> audit.effectiveness([[1, 0], [0, 0], [0, 1], [1, 0]]), audit.effectiveness([[1, 0], [0, 0]], "macro")
    (0.75, 0.5)
    """
    helped = numbers("flips", flips, 2).astype(bool)
    check_choice("viewpoint", viewpoint, VIEWS)
    if not helped.size:
        return float("nan")
    return float(helped.any(axis=1).mean() if viewpoint == "micro" else helped.mean(axis=0).max())


@typed
def choices(flips: Any, share: float = 0.5) -> int:
    """Return FACTS' choice for recourse: how many actions help at least this share of the rows (macro only).

    >>> audit.choices([[1, 0, 1], [1, 0, 0]], share=0.5)
    2
    """
    helped = numbers("flips", flips, 2).astype(bool)
    return int((helped.mean(axis=0) >= check_within("share", share, 0, 1)).sum()) if len(helped) else 0


@typed
def within_budget(flips: Any, costs: Any, budget: float, viewpoint: str = "micro") -> float:
    """Return FACTS' effectiveness within a budget: the same, with actions that cost no more.

    Micro: the share of rows with a helping action of at most this cost. Macro: the best of the actions whose mean cost
    is at most this; 0 if there is none.

    >>> audit.within_budget([[1, 1], [0, 1]], [[1, 3], [1, 2]], budget=1)
    0.5
    """
    helped, paid = _helped_and_paid(flips, costs)
    check_choice("viewpoint", viewpoint, VIEWS), check_within("budget", budget, 0, np.inf)
    if not helped.size:
        return float("nan")
    if viewpoint == "micro":
        return float((cheapest(helped, paid) <= budget).mean())
    affordable = mean_costs(paid) <= budget
    return float(helped.mean(axis=0)[affordable].max()) if affordable.any() else 0.0


@typed
def cost_of_effectiveness(flips: Any, costs: Any, share: float = 0.5, viewpoint: str = "micro") -> float:
    """Return FACTS' cost of effectiveness: the least cost at which at least this share of the rows is helped.

    Micro: the least budget within which so many rows have a helping action. Macro: the mean cost of the cheapest action
    that helps so many. Infinite where none does.

    >>> audit.cost_of_effectiveness([[1, 1], [0, 1]], [[1, 3], [1, 2]], share=1.0)
    2.0
    """
    helped, paid = _helped_and_paid(flips, costs)
    check_choice("viewpoint", viewpoint, VIEWS), check_within("share", share, 0, 1)
    if not helped.size:
        return float("nan")
    if viewpoint == "micro":
        needed = max(1, int(np.ceil(share * len(helped) - 1e-9)))
        return float(np.sort(cheapest(helped, paid))[needed - 1])
    enough = helped.mean(axis=0) >= share
    return float(mean_costs(paid)[enough].min()) if enough.any() else float("inf")


@typed
def mean_recourse(flips: Any, costs: Any) -> float:
    """Return FACTS' mean recourse: the mean cost of the cheapest helping action of the rows that have one (micro only).

    >>> audit.mean_recourse([[1, 1], [0, 1], [0, 0]], [[1, 3], [1, 2], [1, 1]])
    1.5
    """
    least = cheapest(flips, costs)
    return mean_of(least[np.isfinite(least)])


@typed
def trade_off(one: Sequence[Any], other: Sequence[Any], viewpoint: str = "micro") -> float:
    """Return FACTS' effectiveness-cost trade-off of two groups: their largest gap in effectiveness over all budgets.

    Each group is its flips and costs. 0 says that at every budget the same share is helped; it is the statistic of
    Kolmogorov and Smirnov.

    >>> audit.trade_off(audit.individual([1, 2]), audit.individual([1, 4]))
    0.5
    """
    check_choice("viewpoint", viewpoint, VIEWS)
    if len(one) != 2 or len(other) != 2:
        raise ParameterError(f"each group must be its flips and costs, got {len(one)} and {len(other)} parts.")
    both = [_helped_and_paid(*group) for group in (one, other)]
    if not all(len(helped) for helped, _ in both):
        return float("nan")
    least = [cheapest(*group) if viewpoint == "micro" else mean_costs(group[1]) for group in both]
    budgets = np.unique(np.concatenate(least))
    budgets = budgets[np.isfinite(budgets)]
    if viewpoint == "micro":  # `within_budget` of all budgets at once
        shares = [np.searchsorted(np.sort(costs), budgets, side="right") / len(costs) for costs in least]
    else:
        shares = [np.array([within_budget(*group, float(budget), "macro") for budget in budgets]) for group in both]
    return float(np.abs(shares[0] - shares[1]).max(initial=0.0))


@typed
def recourse_fairness(flips: Any, costs: Any, groups: Any, budget: float, share: float = 0.5) -> pd.DataFrame:
    """Return all of these figures for each group, and the trade-off of each pair.

    Parameters
    ----------
    flips : array-like of bool, rows x actions
        Which action gives which row the favourable decision.
    costs : array-like of float, rows x actions
        What it would cost the row; NaN where the row may not take it.
    groups : array-like
        One group per row.
    budget : float
        For the effectiveness within a budget.
    share : float, default 0.5
        For the choices and the cost of effectiveness.

    Returns
    -------
    DataFrame
        One line per ``figure``, ``viewpoint`` and ``group``, with its ``value``; for the trade-off also ``other``.

    Examples
    --------
    >>> flips, costs = audit.individual(audit.recourse_costs(answers)[answers.statuses == "found"])
    >>> frame = audit.recourse_fairness(flips, costs, answers.rows["famhist"][answers.statuses == "found"], 0.2)
    >>> frame[frame["viewpoint"] == "micro"].tail(2).round(2)
              figure viewpoint    group    other  value
    7  mean_recourse     micro  Present      NaN   0.22
    8      trade_off     micro   Absent  Present   0.21

    """
    helped, paid = _helped_and_paid(flips, costs)
    members = members_of(per_row("groups", groups, len(helped)))
    check_few(members)
    of_groups = {group: (helped[rows], paid[rows]) for group, rows in members.items()}
    lines: list[tuple[Any, ...]] = []
    for view in VIEWS:
        figures = {
            "effectiveness": [effectiveness(flips, view) for flips, _ in of_groups.values()],
            "within_budget": [within_budget(*group, budget, view) for group in of_groups.values()],
            "cost_of_effectiveness": [cost_of_effectiveness(*group, share, view) for group in of_groups.values()],
        }
        if view == "micro":
            figures["mean_recourse"] = [mean_recourse(*group) for group in of_groups.values()]
        else:
            figures["choices"] = [float(choices(flips, share)) for flips, _ in of_groups.values()]
        for name, values in figures.items():
            lines += [(name, view, group, None, value) for group, value in zip(of_groups, values, strict=True)]
        pairs = combinations(of_groups, 2)
        lines += [("trade_off", view, i, j, trade_off(of_groups[i], of_groups[j], view)) for i, j in pairs]
    return pd.DataFrame(lines, columns=["figure", "viewpoint", "group", "other", "value"])


@typed
def cheapest(flips: Any, costs: Any) -> Values:
    """Return each row's cheapest helping action's cost; infinite where none helps.

    >>> audit.cheapest([[1, 1], [0, 0]], [[1, 3], [1, 2]])
    array([ 1., inf])
    """
    helped, paid = _helped_and_paid(flips, costs)
    paid = np.where(helped & ~np.isnan(paid), paid, np.inf)
    return np.asarray(paid.min(axis=1)) if paid.shape[1] else np.full(len(paid), np.inf)


@typed
def mean_costs(costs: Any) -> Values:
    """Return each action's mean cost over the rows that may take it; infinite where none may.

    >>> audit.mean_costs([[1, np.nan], [2, np.nan]])
    array([1.5, inf])
    """
    paid = numbers("costs", costs, 2)
    may = ~np.isnan(paid)
    total = np.where(may, paid, 0.0).sum(axis=0)
    return np.divide(total, may.sum(axis=0), out=np.full(paid.shape[1], np.inf), where=may.any(axis=0))


def _helped_and_paid(flips: Any, costs: Any) -> tuple[Flips, Values]:
    helped, paid = numbers("flips", flips, 2).astype(bool), numbers("costs", costs, 2)
    if helped.shape != paid.shape:
        raise ParameterError(f"flips and costs must have one shape, got {helped.shape} and {paid.shape}.")
    return helped, paid
