"""Few actions that help many rows, from their own counterfactuals; and which action for whom, as a small tree."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask
from onbmacf._base.checks import check_count
from onbmacf._columns.converters import MOMENTS, converter_of, holds, measured
from onbmacf._explain.fitted import Fitted
from onbmacf._text.wording import shown
from onbmacf.audit.arguments import typed
from onbmacf.audit.effectiveness import cheapest
from onbmacf.audit.figures import first_lines, is_asked
from onbmacf.audit.groups import checked_column, is_number, mean_of, members_of
from onbmacf.audit.moves import (
    AT_LEAST,
    AT_MOST,
    BY,
    TO,
    Action,
    Move,
    RefusedRows,
    Valued,
    by_gain,
    evenly,
    held_by,
    improved,
    in_words,
    most_missed,
    readable,
    worths,
)
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]
STRETCHES = (1.0, 1.5, 2.5)
SOURCES = 120  # rows whose own changes become candidates
SAMPLE = 500  # rows of which candidates are asked
SPARE = 2  # actions, at most, that are taken beyond k and then taken out; never more than k
LEAST = 20  # rows in a leaf
LEAVES = ["subgroup", "n_rows", "action", "effectiveness", "mean_cost"]


# --- actions ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Actions:
    """The chosen actions, and whom each helps.

    Attributes
    ----------
    actions : tuple of str
        Each action in words.
    moves : tuple of tuple of Move
        The same as features and values.
    positions : array of int
        Which of the explained rows the lines below are about: those that were searched.
    flips : array of bool, rows x actions
        Whether the action leads the row to a favourable label, as the model says.
    costs : array of float, rows x actions
        The distance that it moves the row; NaN where the row may not take it.
    groups : Series or None
        The group of each line, where `by` was given.

    """

    actions: tuple[str, ...]
    moves: tuple[Action, ...]
    positions: NDArray[np.intp]
    flips: NDArray[np.bool_]
    costs: Values
    groups: "pd.Series[Any] | None" = field(default=None)

    @property
    def effectiveness(self) -> float:
        """The share of rows that some action helps."""
        return mean_of(self.flips.any(axis=1))

    @property
    def mean_cost(self) -> float:
        """The mean cost of the cheapest helping action, of the rows that are helped."""
        return _mean_finite(cheapest(self.flips, self.costs))

    def to_frame(self) -> pd.DataFrame:
        """Return one line per action, in the order chosen: whom it helps, alone and after those before it."""
        lines = []
        for place, words in enumerate(self.actions):
            before, now = self.flips[:, :place].any(axis=1), self.flips[:, place]
            paid = _mean_finite(self.costs[now, place])
            lines.append((words, len(self.moves[place]), mean_of(now), mean_of(now & ~before), paid))
        return pd.DataFrame(lines, columns=["action", "n_features", "effectiveness", "added", "mean_cost"])

    def curve(self) -> pd.DataFrame:
        """Return effectiveness and mean cost of the first action, the first two, and so on."""
        lines = []
        for k in range(1, len(self.actions) + 1):
            least = cheapest(self.flips[:, :k], self.costs[:, :k])
            lines.append((k, mean_of(np.isfinite(least)), _mean_finite(least)))
        return pd.DataFrame(lines, columns=["k", "effectiveness", "mean_cost"])

    def by_group(self) -> pd.DataFrame:
        """Return, per group, how many rows the actions help and at what mean cost; one line where there are none."""
        groups = pd.Series(["all"] * len(self.flips)) if self.groups is None else self.groups
        least, lines = cheapest(self.flips, self.costs), []
        for group, rows in members_of(groups).items():
            lines.append((group, len(rows), mean_of(np.isfinite(least[rows])), _mean_finite(least[rows])))
        return pd.DataFrame(lines, columns=["group", "n_rows", "effectiveness", "mean_cost"])


@typed
def actions(
    answers: Explanations,
    explainer: ONBMACF,
    k: int = 3,
    by: Any = None,
    *,
    target: Any = None,
    most_features: int = 6,
    price: float = 0.9,
) -> Actions:
    """Choose a few actions that lead many rows to the favourable decision.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned; the rows that were searched are those to be helped.
    explainer : ONBMACF
        The explainer that gave them: its model is asked, its rules and immutable features are kept.
    k : int, default 3
        How many actions.
    by : hashable or array-like, optional
        A column of the explained rows, or one group per row: whom the actions help is then told per group.
    target : label or list of labels, optional
        What is favourable; by default the labels that the counterfactuals have.
    most_features : int, default 6
        The most features in one action.
    price : float, default 0.9
        What a unit of distance takes off the worth of helping a row, which is 1; more makes for cheaper actions that
        help fewer.

    Returns
    -------
    Actions
        In the order chosen, the most useful first.

    Examples
    --------
    >>> chosen = audit.actions(answers, explainer, k=2, by="famhist")
    >>> chosen.actions[0], chosen.effectiveness
    ('tobacco at most 3.6 and ldl at most 6.4', 1.0)

    """
    check_count("k", k)
    lines = np.flatnonzero(is_asked(answers))
    rows = RefusedRows.of(explainer.fitted_, answers.rows.iloc[lines], _favourable(answers, target))
    sample = evenly(len(lines), SAMPLE)

    def candidates_of(is_left: Mask) -> list[Action]:
        return candidates(answers, explainer.fitted_, most_features, lines[sample[is_left]])

    chosen = choose(rows.some(sample).in_large_calls(), candidates_of, k, price, most_features)
    flips, costs = rows.outcomes(chosen)
    groups = None if by is None else checked_column(answers, by).iloc[lines].reset_index(drop=True)
    words = tuple(in_words(explainer.fitted_, action) for action in chosen)
    return Actions(words, chosen, lines, flips, costs, groups)


def candidates(
    answers: Explanations, fitted: Fitted, most_features: int, rows: NDArray[np.intp] | None = None
) -> list[Action]:
    """Return the changes of first counterfactuals as actions: as far as they go, and stretched; each once.

    Those of some rows only, where `rows` says which.
    """
    first = first_lines(answers)[rows if rows is not None else slice(None)]
    lines = [line for line in first[first >= 0] if not answers.batch.released[line].any()]
    lines = [lines[place] for place in evenly(len(lines), SOURCES)]
    before = fitted.space.form.numbers(answers.rows.iloc[answers.batch.factual[lines]])
    after = fitted.space.form.numbers(answers.batch.values.iloc[lines])
    found: dict[Action, None] = {}
    for old, new, changed in zip(before, after, answers.batch.changed[lines], strict=True):
        features = np.flatnonzero(changed)
        if 0 < len(features) <= most_features:
            for by_amount in (False, True):
                for stretch in STRETCHES:
                    found[tuple(_move(fitted, int(at), old[at], new[at], stretch, by_amount) for at in features)] = None
    return list(found)


def choose(
    rows: RefusedRows, candidates_of: Callable[[Mask], list[Action]], k: int, price: float, most_features: int
) -> tuple[Action, ...]:
    """Take some more actions than k, then take out the least missed and improve the others, until k are left.

    An early action was chosen before the others were known: with them, it may be the one that is least missed
    (decision 0070).
    """
    chosen = one_by_one(rows, candidates_of, k + min(k, SPARE), price, most_features)
    for n_kept in range(max(k, len(chosen) - 1), k - 1, -1):
        chosen = improved(rows, most_missed(chosen, n_kept), price, most_features)
    return by_gain(chosen)


def one_by_one(
    rows: RefusedRows, candidates_of: Callable[[Mask], list[Action]], k: int, price: float, most_features: int
) -> list[Valued]:
    """Take the candidate that adds most and improve it beside those taken before, k times or until none adds anything.

    An action that is improved before the next is taken leaves that one other rows to help (decision 0070), and the
    changes of these rows join the candidates.
    """
    pool, found, chosen = dict[Action, None](), np.zeros((len(rows.N), 0)), list[Valued]()
    for place in range(k):
        held = held_by(chosen, len(found))
        new = [action for action in candidates_of(held <= 0) if action not in pool]
        pool, found = pool | dict.fromkeys(new), np.hstack([found, worths(rows, new, price)])
        gains = np.maximum(found, held[:, np.newaxis]).sum(axis=0) - held.sum()
        if gains.max(initial=0.0) <= 1e-12:
            break
        best = int(gains.argmax())  # a tie goes to the first
        taken = Valued(list(pool)[best], found[:, best])
        chosen = improved(rows, [*chosen, taken], price, most_features, first=place)
    return chosen


def _move(fitted: Fitted, at: int, old: float, new: float, stretch: float, by_amount: bool) -> Move:
    feature = fitted.space.schema.features[at]
    if not feature.is_numeric and feature.kind != "ordinal":
        return Move(at, TO, float(new))
    low, high = fitted.ranges[at] if feature.is_numeric else (0.0, float(len(feature.levels or ()) - 1))
    value = float(np.clip(readable(fitted, at, old + stretch * (new - old)), min(low, new), max(high, new)))
    if by_amount and feature.is_numeric:
        return Move(at, BY, readable(fitted, at, value - old))
    return Move(at, AT_LEAST if new > old else AT_MOST, value)


def _favourable(answers: Explanations, target: Any) -> Any:
    if target is not None:
        return target
    found = list(dict.fromkeys(answers.batch.label.tolist()))
    if not found or set(answers.labels[is_asked(answers)].tolist()) & set(found):
        raise ParameterError("actions needs target: which label is favourable does not follow from these answers.")
    return found


def _mean_finite(values: Values) -> float:
    return mean_of(values[np.isfinite(values)])


# --- which action for whom --------------------------------------------------------------------------------------------


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
    0      14            1.0
    1       7            1.0

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
    lines = []
    for number in np.unique(leaf):
        flips, costs = chosen.flips[leaf == number], chosen.costs[leaf == number]
        spent = np.where(flips, costs, 0.0).sum(axis=0)
        place = int(np.lexsort((spent, -flips.sum(axis=0)))[0])  # of those that help as many, the cheapest
        paid = _mean_finite(cheapest(flips[:, [place]], costs[:, [place]]))
        lines.append((words[int(number)], len(flips), chosen.actions[place], float(flips[:, place].mean()), paid))
    return pd.DataFrame(lines, columns=LEAVES)


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
        if is_number(column) or by is not None:
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
