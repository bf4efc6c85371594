"""Which action for whom: a small tree over the rows' own values, with one action per leaf.

Actions, answers  ->  best action of each row  ->  decision tree  ->  one line per leaf, in words
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask
from onbmacf._base.checks import check_count
from onbmacf._columns.converters import MOMENTS, converter_of, holds, measured
from onbmacf._text.wording import shown
from onbmacf.audit.actions import Actions
from onbmacf.audit.arguments import typed
from onbmacf.audit.effectiveness import cheapest
from onbmacf.explanations import Explanations

LEAVES = ["subgroup", "n_rows", "action", "effectiveness", "mean_cost"]
LEAST = 20  # rows in a leaf


@typed
def action_tree(chosen: Actions, answers: Explanations, depth: int = 2) -> pd.DataFrame:
    """Return subgroups of rows, and the action that helps most rows of each; of several, the cheapest.

    Parameters
    ----------
    chosen : Actions
        What `actions` returned.
    answers : Explanations
        The answers that it was given.
    depth : int, default 2
        How many questions lead to a subgroup.

    Returns
    -------
    DataFrame
        One line per ``subgroup``, described by the values of its rows: ``n_rows``, its ``action``, the
        ``effectiveness`` of that action in it, and its ``mean_cost`` there.

    Examples
    --------
    >>> chosen = audit.actions(answers, explainer, k=2)
    >>> audit.action_tree(chosen, answers, depth=1)[["n_rows", "effectiveness"]]
       n_rows  effectiveness
    0      13            1.0
    1       8            1.0

    """
    from sklearn.tree import DecisionTreeClassifier

    if not len(chosen.positions) or not chosen.actions:
        return pd.DataFrame(columns=LEAVES)
    splits = _splits(answers.rows.iloc[chosen.positions])
    matrix = np.column_stack([split.numbers for split in splits])
    best = np.where(chosen.flips, chosen.costs, np.inf).argmin(axis=1)
    best = np.where(chosen.flips.any(axis=1), best, chosen.flips.sum(axis=0).argmax())
    least = min(LEAST, max(1, len(best) // 4))
    tree = DecisionTreeClassifier(max_depth=check_count("depth", depth), min_samples_leaf=least, random_state=0)
    leaf = tree.fit(matrix, best).apply(matrix)
    words = _paths(tree.tree_, tree.decision_path(matrix).toarray() > 0, splits)
    lines = [_leaf(words[int(own)], np.flatnonzero(leaf == own), chosen) for own in np.unique(leaf)]
    return pd.DataFrame(lines, columns=LEAVES)


def _leaf(words: str, rows: NDArray[np.intp], chosen: Actions) -> tuple[Any, ...]:
    flips, costs = chosen.flips[rows], chosen.costs[rows]
    spent = np.where(flips, costs, 0.0).sum(axis=0)
    place = int(np.lexsort((spent, -flips.sum(axis=0)))[0])  # of those that help as many, the cheapest
    own = cheapest(flips[:, [place]], costs[:, [place]])
    known = own[np.isfinite(own)]
    mean = float(known.mean()) if len(known) else float("nan")
    return words, len(rows), chosen.actions[place], float(flips[:, place].mean()), mean


class Split(NamedTuple):
    """A column that the tree may ask about: its numbers, and how both answers read."""

    numbers: NDArray[np.float64]
    below: str
    above: str
    values: "pd.Series[Any] | None" = None  # as the caller wrote them; None for a level, which a row has or not

    def sides(self, left: Mask, right: Mask) -> tuple[str, str]:
        """Return how both sides read: a number is split at the largest value on the left, not between two values."""
        if self.values is None:
            return self.below, self.above
        end = shown(self.values.iloc[int(np.nanargmax(np.where(left, self.numbers, np.nan)))])
        lacks = np.isnan(self.numbers)
        unknown = ["(or unknown)" if (lacks & rows).any() else "" for rows in (left, right)]
        return f"{self.below} {end} {unknown[0]}".rstrip(), f"{self.above} {end} {unknown[1]}".rstrip()


def _splits(rows: pd.DataFrame) -> list[Split]:
    """Return the columns that may be asked about: numbers, dates and the like as they are, levels as one each."""
    found = []
    for name in rows.columns:
        column, by = rows[name], converter_of(rows[name])
        is_number = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
        if is_number or by is not None:
            words = ("no later than", "later than") if holds(by) in MOMENTS else ("at most", "above")
            found.append(Split(measured(column), f"{name} {words[0]}", f"{name} {words[1]}", column))
            continue
        for level in sorted(column.dropna().unique(), key=str):
            has = np.asarray(column == level, dtype=np.float64)
            found.append(Split(has, f"{name} not {shown(level)}", f"{name} {shown(level)}"))
    return found


def _paths(tree: Any, reached: Mask, splits: list[Split]) -> dict[int, str]:
    """Return, per leaf, the answers that lead to it; of two answers about one feature and side the last, narrower.

    `reached` says of each row and node whether the row comes by there.
    """
    found: dict[int, str] = {}
    open_nodes: list[tuple[int, dict[str, str]]] = [(0, {})]
    while open_nodes:
        node, path = open_nodes.pop()
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            found[node] = " and ".join(path.values()) or "all rows"
            continue
        split = splits[tree.feature[node]]
        below, above = split.sides(reached[:, left], reached[:, right])
        open_nodes += [(left, {**path, split.below: below}), (right, {**path, split.above: above})]
    return found
