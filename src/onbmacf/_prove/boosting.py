"""Boosted models as sums of trees: scikit-learn's, xgboost, lightgbm, catboost, and explainable boosting machines.

estimator  ->  reader  ->  Trees
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._prove.columns import NotKnownError, is_of
from onbmacf._prove.structures import SINGLE, Branch, Tree, Trees, grown, two


def _boosted(size: Matrix, model: Any, trees: list[Tree], scores: Callable[[Matrix], Matrix], **more: Any) -> Trees:
    """Return boosted trees; the offset is what their sums lack of the model's own score at a row of zeros."""
    n, link = trees[0].values.shape[1], more.pop("link", "softmax")
    plain = Trees("boosted model", model.classes_, trees, np.zeros(n), link=link, own_scores=scores, **more)
    zeros = np.zeros((1, len(size)))
    return replace(plain, offset=(scores(zeros) - plain.scores(zeros))[0])


def of_sklearn(tree: Any, values: Matrix) -> Tree:
    """Return a tree of scikit-learn with some values at its nodes."""
    lacking = np.asarray(tree.missing_go_to_left, dtype=bool)
    return Tree(tree.children_left, tree.children_right, tree.feature, tree.threshold, values, lacking)


def _at_class(values: Matrix, place: int, n_classes: int) -> Matrix:
    """Return the leaves' values as the scores of one class; with two classes, of the second."""
    scores = np.zeros((len(values), n_classes))
    scores[:, 1 if n_classes == 2 else place] = values
    return scores


def read_gradient_boosting(model: Any, size: Matrix) -> Trees:
    """Read scikit-learn's boosted trees."""
    if model.loss not in ("log_loss", "deviance"):
        raise NotKnownError(f"boosting with the loss {model.loss!r} is not known")
    if not isinstance(model.init_, str) and not is_of(model.init_, "sklearn", "DummyClassifier"):
        raise NotKnownError("boosting that begins with another model is not known")
    n, rate = len(model.classes_), model.learning_rate
    trees = [
        of_sklearn(one.tree_, _at_class(rate * one.tree_.value[:, 0, 0], k, n))
        for round_ in model.estimators_
        for k, one in enumerate(round_)
    ]
    scores = lambda C: two(model.decision_function(C))  # noqa: E731 - one line, used twice
    return _boosted(size, model, trees, scores, is_single=True)


def read_hist_boosting(model: Any, size: Matrix) -> Trees:
    """Read scikit-learn's boosted trees over binned columns."""
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise NotKnownError("boosting with categories of its own is not known")
    n = len(model.classes_)
    trees = [_of_hist(one.nodes, k, n) for round_ in model._predictors for k, one in enumerate(round_)]
    scores = lambda C: two(model.decision_function(C))  # noqa: E731
    return _boosted(size, model, trees, scores, is_single=False)


def _of_hist(nodes: Any, place: int, n_classes: int) -> Tree:
    is_leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(is_leaf, -1, nodes[side].astype(np.intp)) for side in ("left", "right"))
    values = _at_class(np.where(is_leaf, nodes["value"], 0.0), place, n_classes)
    column, threshold = nodes["feature_idx"].astype(np.intp), nodes["num_threshold"].astype(np.float64)
    return Tree(left, right, column, threshold, values, nodes["missing_go_to_left"].astype(bool))


def read_xgboost(model: Any, size: Matrix) -> Trees:
    """Read xgboost's trees."""
    learner = json.loads(model.get_booster().save_raw("json"))["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree" or not str(learner["objective"]["name"]).startswith(("binary:log", "multi:soft")):
        raise NotKnownError("this kind of xgboost model is not known")
    if not (isinstance(model.missing, float | np.floating) and np.isnan(model.missing)):
        raise NotKnownError(f"xgboost that takes {model.missing} for a missing value is not known")
    n, content = len(model.classes_), booster["model"]
    if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in content["trees"]):
        raise NotKnownError("xgboost with several scores in a leaf is not known")
    best = getattr(model, "best_iteration", None)  # known where it was stopped early
    stop = None if best is None else content["iteration_indptr"][best + 1]
    chosen = list(zip(content["trees"], content["tree_info"], strict=True))[:stop]
    trees = [_of_xgboost(tree, k, n) for tree, k in chosen]
    scores = lambda C: two(model.predict(C, output_margin=True))  # noqa: E731
    return _boosted(size, model, trees, scores, is_single=True, unit=SINGLE)


def _of_xgboost(tree: dict[str, Any], place: int, n_classes: int) -> Tree:
    if tree["categories_nodes"]:
        raise NotKnownError("boosting with categories of its own is not known")
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    cuts = np.array(tree["split_conditions"], dtype=np.float32)
    at_most = np.nextafter(cuts, np.float32(-np.inf)).astype(np.float64)  # below a cut: at most the number before it
    values = _at_class(np.where(left < 0, cuts, 0.0).astype(np.float64), place, n_classes)
    column, lacking = np.array(tree["split_indices"], dtype=np.intp), np.array(tree["default_left"], dtype=bool)
    return Tree(left, right, column, at_most, values, lacking)


def read_lightgbm(model: Any, size: Matrix) -> Trees:
    """Read lightgbm's trees."""
    content, n = model.booster_.dump_model(), len(model.classes_)
    objective, each = str(content["objective"]), content["num_tree_per_iteration"]
    if not objective.startswith(("binary ", "multiclass ")) or content.get("average_output"):
        raise NotKnownError("this kind of lightgbm model is not known")
    link = "softmax" if objective.startswith("multiclass ") or objective.endswith("sigmoid:1") else ""
    trees = [_of_lightgbm(tree["tree_structure"], at % each, n) for at, tree in enumerate(content["tree_info"])]
    scores = lambda C: two(model.predict(C, raw_score=True))  # noqa: E731
    return _boosted(size, model, trees, scores, is_single=False, link=link)


def _of_lightgbm(root: dict[str, Any], place: int, n_classes: int) -> Tree:
    lines: list[list[Any]] = []
    _write_lightgbm(root, lines)
    left, right, column, threshold, value, lacking = (np.array(part) for part in zip(*lines, strict=True))
    values = _at_class(value.astype(float), place, n_classes)
    return Tree(left, right, column, threshold.astype(np.float64), values, lacking)


def _write_lightgbm(node: dict[str, Any], lines: list[list[Any]]) -> int:
    """Append a node and all below; return its position."""
    here = len(lines)
    if "leaf_coeff" in node:
        raise NotKnownError("boosting whose leaves are linear models is not known")
    if "leaf_value" in node:
        lines.append([-1, -1, 0, 0.0, node["leaf_value"], False])
        return here
    if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
        raise NotKnownError("boosting with categories of its own is not known")
    lacking = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0  # taken for a 0
    lines.append([-1, -1, node["split_feature"], node["threshold"], 0.0, lacking])
    lines[here][0] = _write_lightgbm(node["left_child"], lines)
    lines[here][1] = _write_lightgbm(node["right_child"], lines)
    return here


def read_catboost(model: Any, size: Matrix) -> Trees:
    """Read catboost's trees, symmetric ones or not."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content = json.loads(path.read_text(encoding="utf-8"))
    if model.get_all_params().get("loss_function") not in ("Logloss", "CrossEntropy", "MultiClass"):
        raise NotKnownError("this kind of catboost model is not known")
    if content["features_info"].keys() != {"float_features"}:
        raise NotKnownError("boosting with categories of its own is not known")
    n = len(model.classes_)
    if n == 2 and model.get_probability_threshold() != 0.5:
        raise NotKnownError("catboost with another threshold than 0.5 is not known")
    features, scale = content["features_info"]["float_features"], content["scale_and_bias"][0]
    trees = [_of_catboost(tree, features, scale, n) for tree in content.get("oblivious_trees", ())]
    trees += [grown(_below_catboost(tree, features, scale, n)) for tree in content.get("trees", ())]
    scores = lambda C: two(model.predict(C, prediction_type="RawFormulaVal"))  # noqa: E731
    return _boosted(size, model, trees, scores, is_single=True)


def _of_catboost(tree: dict[str, Any], features: list[Any], scale: float, n_classes: int) -> Tree:
    """Return a symmetric tree: all nodes of a level have one split, which is a bit of the leaf's number."""
    splits = [_split_of_catboost(split, features) for split in tree["splits"] or ()]
    n_inner, place = (1 << len(splits)) - 1, np.arange(1 << len(splits))
    leaf = sum(((place >> (len(splits) - 1 - bit)) & 1) << bit for bit in range(len(splits)))
    node = np.arange(n_inner + len(place))
    left = np.where(node < n_inner, 2 * node + 1, -1)
    column, border, lacking = (
        np.append(np.repeat([split[part] for split in splits], 1 << np.arange(len(splits))), np.zeros(len(place)))
        for part in range(3)
    )
    values = np.zeros((len(node), n_classes))
    of_leaves = np.array(tree["leaf_values"]).reshape(len(place), -1)[leaf] * scale
    values[n_inner:, n_classes - of_leaves.shape[1] :] = of_leaves  # a single value is that of the second class
    return Tree(left, np.where(left < 0, -1, left + 1), column.astype(np.intp), border, values, lacking.astype(bool))


def _below_catboost(node: dict[str, Any], features: list[Any], scale: float, n_classes: int) -> Branch | Matrix:
    """Return a node of a tree that is not symmetric, and all below."""
    if "split" not in node:
        return _per_class(np.atleast_1d(np.array(node["value"], dtype=np.float64)) * scale, n_classes)
    column, border, lacking = _split_of_catboost(node["split"], features)
    left, right = (_below_catboost(node[side], features, scale, n_classes) for side in ("left", "right"))
    return Branch(column, border, left, right, lacking)


def _split_of_catboost(split: dict[str, Any], features: list[Any]) -> tuple[int, float, bool]:
    if split["split_type"] != "FloatFeature":
        raise NotKnownError("boosting with categories of its own is not known")
    feature = features[split["float_feature_index"]]
    return feature["flat_feature_index"], split["border"], feature["nan_value_treatment"] != "AsTrue"


def _per_class(values: Matrix, n_classes: int) -> Matrix:
    """Return scores per class; a single value is that of the second."""
    return np.append(0.0, values) if n_classes == 2 and len(values) == 1 else values


# --- explainable boosting machines ------------------------------------------------------------------------------------


def read_boosting_machine(model: Any, size: Matrix) -> Trees:
    """Read `interpret`'s explainable boosting machine: a table per column, or per pair of columns, is a tree."""
    if model.link_ not in ("logit", "mlogit"):
        raise NotKnownError(f"a boosting machine with the link {model.link_!r} is not known")
    if set(model.feature_types_in_) != {"continuous"}:
        raise NotKnownError("boosting with categories of its own is not known")
    n, trees = len(model.classes_), []
    for columns, scores in zip(model.term_features_, model.term_scores_, strict=True):
        bins = [model.bins_[column] for column in columns]
        cuts = [levels[min(len(levels), len(columns)) - 1] for levels in bins]  # coarser ones for pairs
        trees.append(grown(_of_table([*columns], cuts, scores.reshape(*scores.shape[: len(columns)], -1), n)))
    offset = _per_class(np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)), n)
    scores_of = lambda C: two(model.decision_function(C))  # noqa: E731
    return Trees("boosting machine", model.classes_, trees, offset, False, "softmax", scores_of)


def _of_table(columns: list[int], cuts: list[Matrix], scores: Matrix, n_classes: int) -> Branch | Matrix:
    """Return a table of scores as a tree; along each column first what a missing value gets, last an unknown level."""
    if not columns:
        return _per_class(scores, n_classes)
    pieces = [_of_table(columns[1:], cuts[1:], part, n_classes) for part in scores[:-1]]
    at_most = np.nextafter(cuts[0], -np.inf)  # a number on a cut belongs to the piece above it
    present = _bisected(columns[0], at_most, pieces[1:])
    return Branch(columns[0], -np.inf, pieces[0], present, lacking=True)


def _bisected(column: int, cuts: Matrix, pieces: list[Branch | Matrix]) -> Branch | Matrix:
    """Return pieces between cuts as a tree of even depth."""
    if len(pieces) == 1:
        return pieces[0]
    half = len(pieces) // 2
    left, right = _bisected(column, cuts[: half - 1], pieces[:half]), _bisected(column, cuts[half:], pieces[half:])
    return Branch(column, float(cuts[half - 1]), left, right)
