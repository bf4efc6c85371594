"""Which action for whom: a small tree over the rows' own values, with one action per leaf.

Actions, answers  ->  best action of each row  ->  decision tree  ->  one line per leaf, in words
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_count
from onbmacf._text.wording import shown
from onbmacf.audit.actions import Actions
from onbmacf.audit.effectiveness import cheapest
from onbmacf.explanations import Explanations

LEAVES = ["subgroup", "n_rows", "action", "effectiveness", "mean_cost"]
LEAST = 20  # rows in a leaf


def action_tree(chosen: Actions, answers: Explanations, depth: int = 2) -> pd.DataFrame:
    """Return subgroups of rows, and the action that helps most rows of each.

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
    0       9            1.0
    1      12            1.0

    """
    from sklearn.tree import DecisionTreeClassifier

    if not len(chosen.positions) or not chosen.actions:
        return pd.DataFrame(columns=LEAVES)
    matrix, names = _readable_columns(answers.rows.iloc[chosen.positions])
    best = np.where(chosen.flips, chosen.costs, np.inf).argmin(axis=1)
    best = np.where(chosen.flips.any(axis=1), best, chosen.flips.sum(axis=0).argmax())
    least = min(LEAST, max(1, len(best) // 4))
    tree = DecisionTreeClassifier(max_depth=check_count("depth", depth), min_samples_leaf=least, random_state=0)
    leaf = tree.fit(matrix, best).apply(matrix)
    words = _paths(tree.tree_, names)
    lines = [_leaf(words[int(own)], np.flatnonzero(leaf == own), chosen) for own in np.unique(leaf)]
    return pd.DataFrame(lines, columns=LEAVES)


def _leaf(words: str, rows: NDArray[np.intp], chosen: Actions) -> tuple[Any, ...]:
    flips, costs = chosen.flips[rows], chosen.costs[rows]
    place = int(flips.sum(axis=0).argmax())
    own = cheapest(flips[:, [place]], costs[:, [place]])
    known = own[np.isfinite(own)]
    mean = float(known.mean()) if len(known) else float("nan")
    return words, len(rows), chosen.actions[place], float(flips[:, place].mean()), mean


def _readable_columns(rows: pd.DataFrame) -> tuple[NDArray[np.float64], list[tuple[str, str]]]:
    """Return numbers as they are and levels as one column each, with the words of both sides of a split."""
    parts, names = [], []
    for name in rows.columns:
        column = rows[name]
        if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
            parts.append(column.to_numpy(dtype=np.float64))
            names.append((f"{name} at most {{}}", f"{name} above {{}}"))
            continue
        for level in sorted(column.dropna().unique(), key=str):
            parts.append((column == level).to_numpy(dtype=np.float64))
            names.append((f"{name} not {shown(level)}".replace("{", "{{"), f"{name} {shown(level)}".replace("{", "{{")))
    return np.column_stack(parts), names


def _paths(tree: Any, names: list[tuple[str, str]]) -> dict[int, str]:
    """Return, per leaf, the answers that lead to it; of two answers about one feature and side the last, narrower."""
    found: dict[int, str] = {}
    open_nodes: list[tuple[int, dict[str, str]]] = [(0, {})]
    while open_nodes:
        node, path = open_nodes.pop()
        if tree.children_left[node] < 0:
            found[node] = " and ".join(path.values()) or "all rows"
            continue
        low, high = names[tree.feature[node]]
        value = f"{tree.threshold[node]:.4g}"
        for child, text in ((tree.children_left[node], low), (tree.children_right[node], high)):
            open_nodes.append((int(child), {**path, text: text.replace("{}", value).replace("{{", "{")}))
    return found
