"""Known kinds of models as arithmetic: sums of trees, sums of one term per column, or small networks.

    estimator  ->  reader_of  ->  reader  ->  Structure

A score per class; the label is the class with the highest. Another kind is one function and one entry in KINDS, which
names the parameters that its reader has looked at: an estimator with any other is not read, for it may do what the
reader does not know of.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._prove.columns import NotKnownError, dense, is_of

OPERATIONS = 16  # with whose rounding a unit is charged beside its own sum
OTHER = "the model's answers are not those of its structure"
NEAR = 1e-9  # two ways to the same probability
DOUBLE, SINGLE = 2.0**-52, 2.0**-23  # rounding error of one operation
ACTIVATIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "identity": lambda sums: sums,
    "logistic": expit,
    "relu": lambda sums: np.maximum(sums, 0.0),
    "tanh": np.tanh,
}


# --- networks ---------------------------------------------------------------------------------------------------------


class Layers(NamedTuple):
    """A network as one row sees it: what each choice adds to the first layer's sums, and the layers after it."""

    given: Matrix  # choices x units of the first layer
    fixed: Matrix  # what the units of the first layer get whatever is chosen
    is_line: Rows  # per feature: 1 where its choices lie on one line, in order
    line: Matrix  # features x units of the first layer: the direction of such a line
    along: Matrix  # per choice of such a feature: how far along it lies
    sizes: Rows  # units per layer, the first one first; the last are the conditions
    start: Rows  # where each layer's units begin among all units
    weights: Matrix  # of the layers after the first, one after the other: units of the layer before x units
    at: Rows  # where the weights of each layer begin; of the first, nothing
    bias: Matrix  # of all units; of the first layer, nothing


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of units, the last one without: its sums are the scores."""

    words: str
    classes: Any
    weights: list[Matrix]  # per layer: columns or units of the layer before x units
    bias: list[Matrix]
    own_scores: Callable[[Matrix], Matrix]  # the model's own, from columns
    size: Matrix  # the largest number in each column
    unit: float  # rounding error of one operation
    link: str = "softmax"
    activation: str = "relu"  # of the units before the last layer, in scikit-learn's words

    @property
    def offset(self) -> Matrix:
        """What is added to the scores: nothing, the last layer does."""
        return np.zeros(len(self.bias[-1]))

    @property
    def error(self) -> float:
        """The largest difference that rounding makes to a score, and to a bound of one."""
        largest, n_summed = self.size, 0
        for weights, bias in zip(self.weights, self.bias, strict=True):
            largest, n_summed = largest @ np.abs(weights) + np.abs(bias), n_summed + len(weights) + OPERATIONS
        return 4.0 * self.unit * n_summed * float(largest.max())

    def scores(self, columns: Matrix) -> Matrix:
        """Return the scores of rows of columns."""
        found = columns @ self.weights[0] + self.bias[0]
        for weights, bias in zip(self.weights[1:], self.bias[1:], strict=True):
            found = ACTIVATIONS[self.activation](found) @ weights + bias
        return found

    def layers(self, given: Matrix, fixed: Matrix, lines: tuple[Rows, Matrix, Matrix], conditions: Matrix) -> Layers:
        """Return the layers that lead from what choices add to the first one's sums to the sums of the conditions."""
        if self.activation != "relu":
            raise NotKnownError(f"a network of {self.activation!r} units is not known")
        weights = [*self.weights[1:-1], self.weights[-1] @ conditions]
        bias = [np.zeros(len(fixed)), *self.bias[1:-1], self.bias[-1] @ conditions]
        sizes = np.array([len(layer) for layer in bias])
        at = np.cumsum([0, 0, *(layer.size for layer in weights)])[: len(sizes)]
        flat = np.concatenate([np.ascontiguousarray(layer).ravel() for layer in weights])
        start = np.cumsum([0, *sizes])[: len(sizes)]
        return Layers(given, fixed, *lines, sizes, start, flat, at, np.concatenate(bias))


def read_network(model: Any, size: Matrix) -> Network:
    """Read scikit-learn's network."""
    if model.out_activation_ not in ("logistic", "softmax") or getattr(model, "_label_binarizer", None) is None:
        raise NotKnownError("this kind of network is not known")
    if model._label_binarizer.y_type_.startswith("multilabel"):
        raise NotKnownError("the model has several outputs")
    weights, bias = ([layer.astype(np.float64) for layer in every] for every in (model.coefs_, model.intercepts_))
    if len(weights) < 2:
        raise NotKnownError("a network without hidden layers is not known")
    if model.n_outputs_ == 1:  # the sum of the second class against the first
        weights[-1], bias[-1] = np.pad(weights[-1], ((0, 0), (1, 0))), np.pad(bias[-1], (1, 0))
    unit = float(np.finfo(model.coefs_[0].dtype).eps)

    def own_scores(rows: Matrix) -> Matrix:
        """Return the scores behind the model's own probabilities: those of the structure where they agree."""
        scores = network.scores(rows)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        is_same = np.abs(shares - model.predict_proba(rows)).max(axis=1) <= max(NEAR, 64 * unit)
        return np.where(is_same[:, np.newaxis], scores, np.inf)

    network = Network("network", model.classes_, weights, bias, own_scores, size, unit, activation=model.activation)
    return network


# --- structures -------------------------------------------------------------------------------------------------------


class Tree(NamedTuple):
    """One tree, an entry per node, the root first. A row goes left where its column is at most the threshold."""

    left: Rows  # -1 for a leaf
    right: Rows
    column: Rows
    threshold: Matrix
    values: Matrix  # nodes x classes: what a leaf adds to the scores
    lacking: Mask | None = None  # whether a missing value goes left; None: it goes right


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of trees."""

    words: str
    classes: Any
    trees: list[Tree]
    offset: Matrix  # per class
    is_single: bool  # whether columns are rounded to single precision before they are compared
    link: str  # how scores become probabilities: "share", "softmax" or nothing known
    own_scores: Callable[[Matrix], Matrix]  # the model's own, from columns
    unit: float = DOUBLE  # rounding error of the model's sums

    @property
    def error(self) -> float:
        """The largest difference that rounding makes to a score."""
        highest = sum(float(np.abs(tree.values).max(initial=0.0)) for tree in self.trees)
        return self.unit * (len(self.trees) + 8) * (highest + float(np.abs(self.offset).max()) + 1.0)

    def rounded(self, columns: Matrix) -> Matrix:
        """Return columns as the trees compare them."""
        with np.errstate(over="ignore"):
            return columns.astype(np.float32).astype(np.float64) if self.is_single else columns

    def scores(self, columns: Matrix) -> Matrix:
        """Return the scores of rows of columns."""
        columns = self.rounded(columns)
        total = np.tile(self.offset, (len(columns), 1))
        for tree in self.trees:
            total += tree.values[_leaves(tree, columns)]
        return total


@dataclass(frozen=True, eq=False)
class Additive:
    """A sum of one term per column."""

    words: str
    classes: Any
    weights: Matrix  # columns x classes
    offset: Matrix
    link: str
    own_scores: Callable[[Matrix], Matrix]
    size: float  # the largest number of any column
    unit: float = DOUBLE

    @property
    def error(self) -> float:
        """The largest difference that rounding makes to a score."""
        highest = float(np.abs(self.weights).sum(axis=0).max()) * self.size + float(np.abs(self.offset).max())
        return self.unit * (len(self.weights) + 8) * (highest + 1e-300)

    def scores(self, columns: Matrix) -> Matrix:
        """Return the scores of rows of columns."""
        return columns @ self.weights + self.offset


Structure = Trees | Additive | Network


def read(model: Any, columns: Matrix, size: Matrix) -> Structure:
    """Return a model's structure; it must give these rows of columns the model's own scores.

    `size` is the largest number that any choice makes of each column.
    """
    with without_names():
        found = reader_of(model)(model, size)
        if not has_scores(found, columns, found.scores(columns)).all():
            raise NotKnownError(OTHER)
    return found


def has_scores(structure: Structure, columns: Matrix, scores: Matrix) -> Mask:
    """Say which rows of columns have these scores by the model itself, too."""
    with without_names():
        expected = structure.own_scores(columns)
    with np.errstate(invalid="ignore"):
        apart = np.abs(scores - expected).max(axis=1)
    return np.asarray(np.isfinite(expected).all(axis=1) & (apart <= 16 * structure.error))


@contextmanager
def without_names() -> Iterator[None]:
    """Keep a model from warning that columns of numbers have no names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def reader_of(model: Any) -> "Reader":
    """Return the function that reads this kind of model; NotKnownError where there is none."""
    kind = next((kind for kind in KINDS if is_of(model, kind.package, *kind.names)), None)
    if kind is None and not hasattr(model, "predict"):
        raise NotKnownError("a function cannot be read: give the model in it, prove=model")
    if kind is None:
        raise NotKnownError("this kind of model is not known")
    unknown = sorted({*model.get_params(deep=False)} - kind.parameters)
    if unknown:
        raise NotKnownError(f"what the parameter {unknown[0]!r} of {type(model).__name__} does is not known")
    if METHODS & vars(model).keys():
        raise NotKnownError("the model's own methods were replaced")
    return kind.reader


def _leaves(tree: Tree, columns: Matrix) -> Rows:
    node = np.zeros(len(columns), dtype=np.intp)
    for _ in range(len(tree.left)):
        inner = np.flatnonzero(tree.left[node] >= 0)
        if not len(inner):
            break
        at = node[inner]
        seen = columns[inner, tree.column[at]]
        goes_left = seen <= tree.threshold[at]
        if tree.lacking is not None:
            goes_left |= np.isnan(seen) & tree.lacking[at]
        node[inner] = np.where(goes_left, tree.left[at], tree.right[at])
    return node


def _two(margins: Any) -> Matrix:
    """Return scores per class; a single margin is that of the second class against the first."""
    margins = np.asarray(margins, dtype=np.float64)
    margins = margins.reshape(len(margins), -1)
    return np.column_stack([np.zeros(len(margins)), margins]) if margins.shape[1] == 1 else margins


def _linear(model: Any, size: Matrix) -> Additive:
    weights = _two(np.asarray(dense(model.coef_), dtype=np.float64).T)
    offset = _two(np.atleast_2d(np.asarray(model.intercept_, dtype=np.float64)))[0]
    offset = np.broadcast_to(offset, weights.shape[1]) if len(offset) != weights.shape[1] else offset
    is_logit = len(offset) == 2 and is_of(model, "sklearn", "LogisticRegression", "LinearDiscriminantAnalysis")
    scores, largest = (lambda C: _two(model.decision_function(C))), float(size.max(initial=0.0))
    return Additive("linear model", model.classes_, weights, offset, "softmax" if is_logit else "", scores, largest)


def _of_sklearn(tree: Any, values: Matrix) -> Tree:
    lacking = np.asarray(tree.missing_go_to_left, dtype=bool)
    return Tree(tree.children_left, tree.children_right, tree.feature, tree.threshold, values, lacking)


def _forest(model: Any, size: Matrix) -> Trees:
    """Read a forest, or a tree, which is a forest of one."""
    if model.n_outputs_ != 1:
        raise NotKnownError("the model has several outputs")
    n, estimators = len(model.classes_), getattr(model, "estimators_", [model])
    trees = []
    for one in estimators:
        values = one.tree_.value[:, 0, :n]
        trees.append(_of_sklearn(one.tree_, values / values.sum(axis=1, keepdims=True) / len(estimators)))
    words = "forest" if hasattr(model, "estimators_") else "tree"
    return Trees(words, model.classes_, trees, np.zeros(n), True, "share", model.predict_proba)


def _boosted(words: str, model: Any, trees: list[Tree], scores: Callable[[Matrix], Matrix], **more: Any) -> Trees:
    """Return boosted trees; the offset is what their sums lack of the model's own score at a row of zeros."""
    n, link = trees[0].values.shape[1], more.pop("link", "softmax")
    plain = Trees(words, model.classes_, trees, np.zeros(n), link=link, own_scores=scores, **more)
    zeros = np.zeros((1, model.n_features_in_))
    return replace(plain, offset=(scores(zeros) - plain.scores(zeros))[0])


def _at_class(values: Matrix, place: int, n_classes: int) -> Matrix:
    """Return the leaves' values as the scores of one class; with two classes, of the second."""
    scores = np.zeros((len(values), n_classes))
    scores[:, 1 if n_classes == 2 else place] = values
    return scores


def _gradient_boosting(model: Any, size: Matrix) -> Trees:
    if model.loss not in ("log_loss", "deviance"):
        raise NotKnownError(f"boosting with the loss {model.loss!r} is not known")
    if not isinstance(model.init_, str) and not is_of(model.init_, "sklearn", "DummyClassifier"):
        raise NotKnownError("boosting that begins with another model is not known")
    n, rate = len(model.classes_), model.learning_rate
    trees = [
        _of_sklearn(one.tree_, _at_class(rate * one.tree_.value[:, 0, 0], k, n))
        for round_ in model.estimators_
        for k, one in enumerate(round_)
    ]
    scores = lambda C: _two(model.decision_function(C))  # noqa: E731 - one line, used twice
    return _boosted("boosted model", model, trees, scores, is_single=True)


def _hist_boosting(model: Any, size: Matrix) -> Trees:
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise NotKnownError("boosting with categories of its own is not known")
    n = len(model.classes_)
    trees = [_of_hist(one.nodes, k, n) for round_ in model._predictors for k, one in enumerate(round_)]
    scores = lambda C: _two(model.decision_function(C))  # noqa: E731
    return _boosted("boosted model", model, trees, scores, is_single=False)


def _of_hist(nodes: Any, place: int, n_classes: int) -> Tree:
    is_leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(is_leaf, -1, nodes[side].astype(np.intp)) for side in ("left", "right"))
    values = _at_class(np.where(is_leaf, nodes["value"], 0.0), place, n_classes)
    column, threshold = nodes["feature_idx"].astype(np.intp), nodes["num_threshold"].astype(np.float64)
    return Tree(left, right, column, threshold, values, nodes["missing_go_to_left"].astype(bool))


def _xgboost(model: Any, size: Matrix) -> Trees:
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
    scores = lambda C: _two(model.predict(C, output_margin=True))  # noqa: E731
    return _boosted("boosted model", model, trees, scores, is_single=True, unit=SINGLE)


def _of_xgboost(tree: dict[str, Any], place: int, n_classes: int) -> Tree:
    if tree["categories_nodes"]:
        raise NotKnownError("boosting with categories of its own is not known")
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    cuts = np.array(tree["split_conditions"], dtype=np.float32)
    at_most = np.nextafter(cuts, np.float32(-np.inf)).astype(np.float64)  # below a cut: at most the number before it
    values = _at_class(np.where(left < 0, cuts, 0.0).astype(np.float64), place, n_classes)
    column, lacking = np.array(tree["split_indices"], dtype=np.intp), np.array(tree["default_left"], dtype=bool)
    return Tree(left, right, column, at_most, values, lacking)


def _lightgbm(model: Any, size: Matrix) -> Trees:
    content, n = model.booster_.dump_model(), len(model.classes_)
    objective, each = str(content["objective"]), content["num_tree_per_iteration"]
    if not objective.startswith(("binary ", "multiclass ")) or content.get("average_output"):
        raise NotKnownError("this kind of lightgbm model is not known")
    link = "softmax" if objective.startswith("multiclass ") or objective.endswith("sigmoid:1") else ""
    trees = [_of_lightgbm(tree["tree_structure"], at % each, n) for at, tree in enumerate(content["tree_info"])]
    scores = lambda C: _two(model.predict(C, raw_score=True))  # noqa: E731
    return _boosted("boosted model", model, trees, scores, is_single=False, link=link)


def _of_lightgbm(root: dict[str, Any], place: int, n_classes: int) -> Tree:
    lines: list[list[Any]] = []
    _write_down(root, lines)
    left, right, column, threshold, value, lacking = (np.array(part) for part in zip(*lines, strict=True))
    values = _at_class(value.astype(float), place, n_classes)
    return Tree(left, right, column, threshold.astype(np.float64), values, lacking)


def _write_down(node: dict[str, Any], lines: list[list[Any]]) -> int:
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
    lines[here][0] = _write_down(node["left_child"], lines)
    lines[here][1] = _write_down(node["right_child"], lines)
    return here


Reader = Callable[[Any, Matrix], "Structure"]  # estimator, the largest number of each column


class Kind(NamedTuple):
    """A kind of model that is read."""

    package: str
    names: tuple[str, ...]  # of its classes, or of one that they derive from
    reader: Reader
    parameters: frozenset[str]  # that the reader has looked at: most only matter while a model is trained


def _kind(package: str, names: str, reader: Reader, parameters: str) -> Kind:
    return Kind(package, tuple(names.split()), reader, frozenset(parameters.split()))


METHODS = {"predict", "predict_proba", "decision_function"}
TREES = (
    "ccp_alpha class_weight criterion max_depth max_features max_leaf_nodes min_impurity_decrease min_samples_leaf "
    "min_samples_split min_weight_fraction_leaf monotonic_cst n_estimators n_jobs random_state verbose warm_start "
)
KINDS = [
    _kind(
        "sklearn",
        "LinearClassifierMixin",
        _linear,
        "C Cs alpha alphas average class_weight copy_X covariance_estimator cv dual early_stopping epsilon eta0 "
        "fit_intercept intercept_scaling l1_ratio l1_ratios learning_rate loss max_iter multi_class n_components "
        "n_iter_no_change n_jobs penalty positive power_t priors random_state refit scoring shrinkage shuffle solver "
        "store_covariance store_cv_results store_cv_values tol use_legacy_attributes validation_fraction verbose "
        "warm_start",
    ),
    _kind(
        "sklearn",
        "DecisionTreeClassifier RandomForestClassifier ExtraTreesClassifier",
        _forest,
        TREES + "bootstrap max_samples oob_score splitter",
    ),
    _kind(
        "sklearn",
        "GradientBoostingClassifier",
        _gradient_boosting,
        TREES + "init learning_rate loss n_iter_no_change subsample tol validation_fraction",
    ),
    _kind(
        "sklearn",
        "HistGradientBoostingClassifier",
        _hist_boosting,
        TREES + "categorical_features early_stopping interaction_cst l2_regularization learning_rate loss max_bins "
        "max_iter n_iter_no_change scoring tol validation_fraction",
    ),
    _kind(
        "xgboost",
        "XGBClassifier",
        _xgboost,
        "base_score booster callbacks colsample_bylevel colsample_bynode colsample_bytree device early_stopping_rounds "
        "enable_categorical eval_metric feature_types feature_weights gamma grow_policy importance_type "
        "interaction_constraints learning_rate max_bin max_cat_threshold max_cat_to_onehot max_delta_step max_depth "
        "max_leaves min_child_weight missing monotone_constraints multi_strategy n_estimators n_jobs num_parallel_tree "
        "objective random_state reg_alpha reg_lambda sampling_method scale_pos_weight seed subsample tree_method "
        "use_label_encoder validate_parameters verbosity",
    ),
    _kind(
        "lightgbm",
        "LGBMClassifier",
        _lightgbm,
        "bagging_fraction bagging_freq boost_from_average boosting_type class_weight colsample_bytree deterministic "
        "extra_trees feature_fraction force_col_wise force_row_wise importance_type is_unbalance lambda_l1 lambda_l2 "
        "learning_rate linear_tree max_bin max_depth metric min_child_samples min_child_weight min_data_in_leaf "
        "min_split_gain monotone_constraints n_estimators n_jobs num_leaves objective path_smooth random_state "
        "reg_alpha reg_lambda scale_pos_weight seed sigmoid subsample subsample_for_bin subsample_freq use_missing "
        "verbose verbosity zero_as_missing",
    ),
    _kind(
        "sklearn",
        "MLPClassifier",
        read_network,
        "activation alpha batch_size beta_1 beta_2 early_stopping epsilon hidden_layer_sizes learning_rate "
        "learning_rate_init max_fun max_iter momentum n_iter_no_change nesterovs_momentum power_t random_state shuffle "
        "solver tol validation_fraction verbose warm_start",
    ),
]
