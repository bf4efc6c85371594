"""Models made of rules as sums of trees: those of `imodels`, and the rule sets of `wittgenstein`.

    estimator  ->  reader  ->  Trees

A rule is a chain of conditions; a list of rules is one tree, a set of rules a tree per rule.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._prove.columns import NotKnownError
from onbmacf._prove.structures import Branch, Condition, Trees, behind, grown


def _where(conditions: Iterable[Condition], leaf: Matrix, other: Branch | Matrix) -> Branch | Matrix:
    """Return a tree with a leaf where all conditions hold, and something else where one does not."""
    node: Branch | Matrix = leaf
    for column, low, high in conditions:
        node = node if high == np.inf else Branch(column, high, node, other)
        node = node if low == -np.inf else Branch(column, low, other, node)
    return node


def _before(number: float) -> float:
    return float(np.nextafter(number, -np.inf))


# --- imodels ----------------------------------------------------------------------------------------------------------


def read_figs(model: Any, size: Matrix) -> Trees:
    """Read FIGS: a sum of trees."""
    if hasattr(model, "_encoder"):
        raise NotKnownError("a sum of trees with categories of its own is not known")
    n = len(model.classes_)
    trees = [grown(_of_figs(root)) for root in model.trees_]
    found: Trees
    own = lambda C: behind(found.scores(C), model.predict_proba(C))  # noqa: E731
    found = Trees("sum of trees", model.classes_, trees, np.zeros(n), False, "softmax", own)
    return found


def _of_figs(node: Any) -> Branch | Matrix:
    if node.left is None and node.right is None:
        return np.asarray(node.value, dtype=np.float64).ravel()
    return Branch(int(node.feature), float(node.threshold), _of_figs(node.left), _of_figs(node.right))


def read_rule_list(model: Any, size: Matrix) -> Trees:
    """Read a rule list: the first rule that holds tells the share of the second class."""
    *rules, last = model.rules_
    says: list[tuple[Condition, ...]] = []
    node: Branch | Matrix = np.array([1 - last["val"], last["val"]])
    for rule in reversed(rules):
        fires, cut = np.array([1 - rule["val_right"], rule["val_right"]]), _before(rule["cutoff"])
        below, above = (fires, node) if rule["flip"] else (node, fires)
        node = Branch(int(rule["index_col"]), cut, below, above)
        says.insert(0, (Condition(node.column, **{"high" if rule["flip"] else "low": cut}),))
    trees, own = [grown(node)], model.predict_proba
    return Trees("rule list", model.classes_, trees, np.zeros(2), False, "share", own, rules=says)


def read_rule_fit(model: Any, size: Matrix) -> Trees:
    """Read RuleFit where only rules, no columns of their own, have coefficients."""
    coefficients = np.asarray(model.coef, dtype=np.float64)
    if model.include_linear and coefficients[: model.n_features_].any():
        raise NotKnownError("rules beside linear terms are not known")
    places = {name: place for place, name in enumerate(model.feature_placeholders)}
    rules = model.rules_without_feature_names_
    says = [tuple(_conditions(rule, places)) for rule in rules]
    leaves = [np.array([0.0, 2.0 * rule.args[0]]) for rule in rules]
    trees = [grown(_where(conditions, leaf, np.zeros(2))) for conditions, leaf in zip(says, leaves, strict=True)]
    found: Trees
    own = lambda C: behind(found.scores(C), model.predict_proba(C))  # noqa: E731
    offset = np.array(
        [0.0, 2.0 * float(np.ravel(model.intercept)[0]) - 1.0]
    )  # its probabilities are those of 1 - sum and sum
    # pandas rounds the number in a condition to single precision where the column is.
    found = Trees("rule set", model.classes_, trees, offset, False, "softmax", own, is_double=True, rules=says)
    return found


def _conditions(rule: Any, places: dict[str, int]) -> Iterable[Condition]:
    for (name, symbol), written in rule.agg_dict.items():
        at, number = places[name], float(written)
        if symbol in ("<=", "<"):
            yield Condition(at, high=number if symbol == "<=" else _before(number))
        elif symbol in (">", ">="):
            yield Condition(at, low=number if symbol == ">" else _before(number))
        else:
            raise NotKnownError(f"rules with {symbol!r} are not known")


# --- wittgenstein -----------------------------------------------------------------------------------------------------


def read_ripper(model: Any, size: Matrix) -> Trees:
    """Read a rule set of RIPPER or IREP over numbers: it says True where at least one rule holds.

    The score is the number of rules that do. Of its own answers it only tells whether there is one.
    """
    import pandas as pd

    binned = model.bin_transformer_
    if getattr(binned, "thresholds_", None):
        raise NotKnownError("rules over bins of this kind are not known")
    names, bins = [*model.trainset_features_], binned.bins_ or {}
    rules = [tuple(_of_condition(one, names, bins, binned) for one in rule.conds) for rule in model.ruleset_.rules]
    trees = [grown(_where(conditions, np.array([0.0, 1.0]), np.zeros(2))) for conditions in rules]
    if not trees:
        raise NotKnownError("a set without rules is not known")

    def own(columns: Matrix) -> Matrix:
        """Return the scores of rows of which the model says what they say."""
        scores, said = found.scores(columns), model.predict(pd.DataFrame(columns, columns=names))
        return np.where((np.array(said, dtype=bool) == (scores[:, 1] > 0))[:, np.newaxis], scores, np.inf)

    offset = np.array([0.0, -0.5])
    found = Trees("rule set", np.array([False, True]), trees, offset, False, "", own, rules=rules)
    return found


def _of_condition(condition: Any, names: list[Any], bins: dict[Any, Any], binned: Any) -> Condition:
    column = names.index(condition.feature)
    if condition.feature in bins:
        return Condition(column, *binned._str_to_floor_ceil(condition.val, condition.feature))
    if not isinstance(condition.val, int | float | np.number):
        raise NotKnownError("rules about levels of their own are not known")
    return Condition(column, _before(float(condition.val)), float(condition.val))
