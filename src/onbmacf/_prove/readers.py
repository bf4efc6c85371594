"""Known kinds of models as arithmetic, and what is made of several of them: averages, votes, calibrations, thresholds.

    estimator  ->  reader_of  ->  reader  ->  Structure

Another kind is one function, here or beside its like (`boosting`, `rule_models`, `layers`), and one entry in KINDS,
which names the parameters that its reader has looked at: an estimator with any other is not read, for it may do what
the reader does not know of.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._base.checks import error_words
from onbmacf._prove.boosting import (
    of_sklearn,
    read_boosting_machine,
    read_catboost,
    read_gradient_boosting,
    read_hist_boosting,
    read_lightgbm,
    read_xgboost,
)
from onbmacf._prove.columns import NotKnownError, dense, is_kind, is_of
from onbmacf._prove.layers import read_network, read_onnx, read_torch
from onbmacf._prove.rule_models import read_figs, read_ripper, read_rule_fit, read_rule_list
from onbmacf._prove.structures import Additive, Network, Structure, Tree, Trees, behind, combined, two
from onbmacf._table.readings import Reading

OTHER = "the model's answers are not those of its structure"
METHODS = {"predict", "predict_proba", "decision_function", "forward"}


def read(model: Any, columns: Matrix, size: Matrix, reading: Reading | None = None) -> Structure:
    """Return a model's structure; it must give these rows of columns the model's own scores.

    `size` is the largest number that any choice makes of each column. A `reading` says which threshold and names the
    caller reads the model's answers with.
    """
    with quietly():
        found = reader_of(model)(model, size)
        found = found if reading is None else _as_read(found, model, reading)
        if not has_scores(found, columns, found.scores(columns)).all():
            raise NotKnownError(OTHER)
    return found


def has_scores(structure: Structure, columns: Matrix, scores: Matrix) -> Mask:
    """Say which rows of columns have these scores by the model itself, too."""
    with quietly():
        expected = structure.own_scores(columns)
    with np.errstate(invalid="ignore"):
        apart = np.abs(scores - expected).max(axis=1)
    return np.asarray(np.isfinite(expected).all(axis=1) & (apart <= 16 * structure.error))


@contextmanager
def quietly() -> Iterator[None]:
    """Turn what a model raises into NotKnownError, and keep it from warning of names that columns do not have."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except NotKnownError:
        raise
    except Exception as error:  # of the caller's own model, in which anything may happen
        raise NotKnownError(f"the model could not be read: it raised {error_words(error)}") from error


def reader_of(model: Any) -> "Reader":
    """Return the function that reads this kind of model; NotKnownError where there is none."""
    kind = next((kind for kind in KINDS if is_of(model, kind.package, *kind.names)), None)
    if kind is None and not hasattr(model, "predict"):
        raise NotKnownError("a function cannot be read: give the model in it, prove=model")
    if kind is None:
        raise NotKnownError("this kind of model is not known")
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    unknown = sorted({*parameters} - kind.parameters)
    if unknown:
        raise NotKnownError(f"what the parameter {unknown[0]!r} of {type(model).__name__} does is not known")
    if METHODS & vars(model).keys():
        raise NotKnownError("the model's own methods were replaced")
    return kind.reader


# --- linear models and forests ----------------------------------------------------------------------------------------


def _linear(model: Any, size: Matrix) -> Additive:
    weights = two(np.asarray(dense(model.coef_), dtype=np.float64).T)
    offset = two(np.atleast_2d(np.asarray(model.intercept_, dtype=np.float64)))[0]
    offset = np.broadcast_to(offset, weights.shape[1]) if len(offset) != weights.shape[1] else offset
    is_logit = len(offset) == 2 and is_of(model, "sklearn", "LogisticRegression", "LinearDiscriminantAnalysis")
    scores, largest = (lambda C: two(model.decision_function(C))), float(size.max(initial=0.0))
    return Additive("linear model", model.classes_, weights, offset, "softmax" if is_logit else "", scores, largest)


def _forest(model: Any, size: Matrix) -> Trees:
    """Read a forest, or a tree, which is a forest of one."""
    if model.n_outputs_ != 1:
        raise NotKnownError("the model has several outputs")
    n, estimators = len(model.classes_), getattr(model, "estimators_", [model])
    trees, undivided = [], []
    for one in estimators:
        values = one.tree_.value[:, 0, :n]
        trees.append(of_sklearn(one.tree_, values / values.sum(axis=1, keepdims=True) / len(estimators)))
        undivided.append(values)
    words = "forest" if hasattr(model, "estimators_") else "tree"
    # A sum of quotients would have neither the bits nor the ties of the model's own.
    return Trees(words, model.classes_, trees, np.zeros(n), True, "share", model.predict_proba, undivided=undivided)


# --- several models ---------------------------------------------------------------------------------------------------


def _member(model: Any, size: Matrix, what: str) -> Trees:
    """Read a member whose probabilities are shares that trees add up to."""
    found = reader_of(model)(model, size)
    if not isinstance(found, Trees) or found.link != "share":
        raise NotKnownError(f"{what} of other members than trees and forests is not known")
    return found


def _averaged(words: str, model: Any, members: Sequence[Trees], weights: Matrix) -> Trees:
    """Return the average of members, with one column per class of the model each."""
    if len({member.is_single for member in members}) > 1:
        raise NotKnownError("members that round their columns differently are not known")
    pairs = list(zip(members, weights, strict=True))
    trees = [tree._replace(values=tree.values * weight) for member, weight in pairs for tree in member.trees]
    is_plain = all(len(member.trees) == 1 for member in members) and len({*weights.tolist()}) == 1
    undivided = [part for member in members for part in member.undivided or ()] if is_plain else []
    offset, own = np.zeros(len(model.classes_)), model.predict_proba
    found = Trees(words, model.classes_, trees, offset, members[0].is_single, "share", own)
    return replace(found, undivided=undivided if len(undivided) == len(trees) else None)


def _bagging(model: Any, size: Matrix) -> Trees:
    """Read the average of members, each trained on some of the columns and maybe without some of the classes."""
    n, members = len(model.classes_), []
    for one, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        member = _member(one, size[columns], "bagging")
        place = np.eye(n)[np.asarray(one.classes_, dtype=np.intp)]
        of_model = np.append(np.asarray(columns, dtype=np.intp), 0)  # leaves have no column
        trees = [t._replace(column=of_model[np.maximum(t.column, -1)], values=t.values @ place) for t in member.trees]
        undivided = None if member.undivided is None else [values @ place for values in member.undivided]
        members.append(replace(member, trees=trees, undivided=undivided))
    return _averaged("bagging of trees", model, members, np.full(len(members), 1.0 / len(members)))


def _voting(model: Any, size: Matrix) -> Trees:
    members = [_member(one, size, "voting") for one in model.estimators_]
    weights = np.array(model._weights_not_none or [1.0] * len(members), dtype=np.float64)
    if model.voting == "soft":
        return _averaged("voting of trees", model, members, weights / weights.sum())
    n = len(model.classes_)
    trees = [_vote(member, weight * np.eye(n)) for member, weight in zip(members, weights, strict=True)]

    def own(columns: Matrix) -> Matrix:
        """Return the votes for each class, weighted."""
        votes = np.asarray(model.transform(columns))
        return np.stack([(votes == place) @ weights for place in range(n)], axis=1)

    return Trees("voting of trees", model.classes_, trees, np.zeros(n), members[0].is_single, "", own)


def _vote(member: Trees, scores: Matrix) -> Tree:
    """Return the tree whose leaves add what the votes for their labels do; `scores` has a line per label."""
    if len(member.trees) != 1 or member.undivided is None or len(member.classes) != len(scores):
        raise NotKnownError("votes of other members than single trees are not known")
    return member.trees[0]._replace(values=scores[member.undivided[0].argmax(axis=1)])


def _ada_boost(model: Any, size: Matrix) -> Trees:
    """Read trees whose votes are weighted; with two classes only the second one's score is not 0."""
    n, weights, total = len(model.classes_), model.estimator_weights_, model.estimator_weights_.sum()
    votes = (n * np.eye(n) - 1.0) / (n - 1) ** 2 if n > 2 else np.array([[0.0, -2.0], [0.0, 2.0]])
    members = [_member(one, size, "boosting") for one in model.estimators_]
    trees = [_vote(one, votes * weight / total) for one, weight in zip(members, weights, strict=False)]
    own = lambda C: two(model.decision_function(C)) / (n - 1)  # noqa: E731
    return Trees("boosted model", model.classes_, trees, np.zeros(n), members[0].is_single, "softmax", own)


# --- what is done to a model's scores ---------------------------------------------------------------------------------


def _frozen(model: Any, size: Matrix) -> Structure:
    return reader_of(model.estimator)(model.estimator, size)


def _calibrated(model: Any, size: Matrix) -> Structure:
    """Read a calibration of two classes on one set: a sigmoid of the scores, or a threshold at which a half lies."""
    if len(model.classes_) != 2 or len(model.calibrated_classifiers_) != 1:
        raise NotKnownError("a calibration of several classes, or an average of several, is not known")
    (inner,) = model.calibrated_classifiers_
    found = reader_of(inner.estimator)(inner.estimator, size)
    (calibrator,) = inner.calibrators
    # Decision values where there are some, else the probability of the second class.
    is_lead = _has_leads(inner.estimator)
    if len(found.offset) != 2 or (not is_lead and found.link != "share"):
        raise NotKnownError("a calibration of such probabilities is not known")
    lead = np.array([[0.0, -1.0 if is_lead else 0.0], [0.0, 1.0]])
    if inner.method == "sigmoid":
        plus = np.array([0.0, -float(calibrator.b_)])
        scaled = combined(found, lead * -float(calibrator.a_), plus, classes=model.classes_, link="softmax")
        return replace(scaled, own_scores=lambda C: behind(scaled.scores(C), model.predict_proba(C), scaled.unit))
    if inner.method != "isotonic":
        raise NotKnownError(f"the calibration {inner.method!r} is not known")
    at, unit = _half(calibrator)
    classes, unit = model.classes_, max(unit, found.unit)
    return _confirmed(combined(found, lead, np.array([0.0, -at]), classes=classes, link="", unit=unit), model)


def _has_leads(model: Any) -> bool:
    """Say whether a model has decision values; NotKnownError where they are not the lead of its second class."""
    if is_kind(model, "sklearn", "FrozenEstimator"):
        return _has_leads(model.estimator)
    is_other = is_of(model, "sklearn", "FixedThresholdClassifier", "TunedThresholdClassifierCV")
    has_some = hasattr(model, "decision_function")
    if has_some and (is_other or not is_of(model, "sklearn", "ClassifierMixin")):
        raise NotKnownError(f"what the decision values of {type(model).__name__} are is not known")
    return has_some


def _half(isotonic: Any) -> tuple[float, float]:
    """Return the last number of which an isotonic regression makes at most a half, and its rounding error."""
    x, y = (np.asarray(part) for part in (isotonic.X_thresholds_, isotonic.y_thresholds_))
    n_below = int((y <= 0.5).sum())
    if not isotonic.increasing_ or n_below in (0, len(y)):
        raise NotKnownError("a calibration that does not rise through a half is not known")
    (left, right), (low, high) = x[n_below - 1 : n_below + 1].tolist(), y[n_below - 1 : n_below + 1].tolist()
    unit = float(np.finfo(x.dtype).eps)
    return left + (0.5 - low) * (right - left) / (high - low), unit * max(1.0, (right - left) / (high - low))


def _fixed_threshold(model: Any, size: Matrix) -> Structure:
    """Read a model whose second class begins at another threshold."""
    at: Any = model.best_threshold_ if hasattr(model, "best_threshold_") else model.threshold
    inner, method = model.estimator_, getattr(model, "response_method", "auto")
    if model.__dict__.get("pos_label") not in (None, model.classes_[1]) or at == "auto":
        raise NotKnownError("a threshold for the first class, or one that is not given, is not known")
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    if method == "decision_function":
        _has_leads(inner)
    found = reader_of(inner)(inner, size)
    return _confirmed(_above(found, float(at), method == "predict_proba"), model)


def _confirmed(found: Structure, model: Any) -> Structure:
    """Return the structure of two classes with infinite scores where, beyond doubt, the model says the other one."""
    own = found.own_scores

    def confirmed(columns: Matrix) -> Matrix:
        """Return the scores of the model inside, where they are those of the label that the model itself says."""
        scores, is_second = own(columns), np.asarray(model.predict(columns)) == model.classes_[1]
        lead = scores[:, 1] - scores[:, 0]
        is_other = (np.abs(lead) > 8 * found.error) & ((lead > 0) != is_second)
        return np.where(is_other[:, np.newaxis], np.inf, scores)

    return replace(found, own_scores=confirmed)


def _above(found: Structure, threshold: float, is_probability: bool) -> Structure:
    """Return the structure whose second class leads where its probability, or its lead, is above a threshold."""
    if len(found.offset) != 2 or (is_probability and not found.link):
        raise NotKnownError("a threshold for such scores is not known")
    if not is_probability:
        return combined(found, np.eye(2), np.array([0.0, -threshold]), link="")
    if not 0.0 < threshold < 1.0:
        raise NotKnownError(f"the threshold {threshold:g} is not known")
    if found.link == "share":
        return combined(found, np.eye(2), np.array([0.0, 1.0 - 2.0 * threshold]), link="")
    unit = found.unit / (threshold * (1.0 - threshold))  # by how much more a probability's rounding moves its odds
    return combined(found, np.eye(2), np.array([0.0, -float(logit(threshold))]), link="", unit=unit)


def _as_read(found: Structure, model: Any, reading: Reading) -> Structure:
    """Return a structure as the caller reads the model's answers: with a threshold, and names of classes."""
    if reading.threshold is not None:
        is_raw = is_kind(model, "torch", "Sequential") or is_kind(model, "onbmacf", "Onnx")
        is_margin = is_raw and not isinstance(found, Trees) and not _last(found)[:, 0].any()
        if not found.link and not is_margin:
            raise NotKnownError("a threshold for such scores is not known")
        found = _above(found, reading.threshold, bool(found.link))
    if reading.classes is None:
        return found
    if len(reading.classes) != len(found.offset):
        raise NotKnownError("the model tells other classes apart than are named")
    return replace(found, classes=np.array([*reading.classes, None], dtype=object)[:-1])


def _last(found: Additive | Network) -> Matrix:
    return found.weights if isinstance(found, Additive) else found.weights[-1]


# --- kinds ------------------------------------------------------------------------------------------------------------

Reader = Callable[[Any, Matrix], "Structure"]  # estimator, the largest number of each column


class Kind(NamedTuple):
    """A kind of model that is read."""

    package: str
    names: tuple[str, ...]  # of its classes, or of one that they derive from
    reader: Reader
    parameters: frozenset[str]  # that the reader has looked at: most only matter while a model is trained


def _kind(package: str, names: str, reader: Reader, parameters: str) -> Kind:
    return Kind(package, tuple(names.split()), reader, frozenset(parameters.split()))


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
        "BaggingClassifier",
        _bagging,
        "base_estimator bootstrap bootstrap_features estimator max_features max_samples n_estimators n_jobs oob_score "
        "random_state verbose warm_start",
    ),
    _kind("sklearn", "VotingClassifier", _voting, "estimators flatten_transform n_jobs verbose voting weights"),
    _kind(
        "sklearn",
        "AdaBoostClassifier",
        _ada_boost,
        "algorithm base_estimator estimator learning_rate n_estimators random_state",  # one algorithm since 1.6
    ),
    _kind("sklearn", "FrozenEstimator", _frozen, "estimator"),
    _kind("sklearn", "CalibratedClassifierCV", _calibrated, "base_estimator cv ensemble estimator method n_jobs"),
    _kind(
        "sklearn",
        "FixedThresholdClassifier TunedThresholdClassifierCV",
        _fixed_threshold,
        "cv estimator n_jobs pos_label random_state refit response_method scoring store_cv_results threshold "
        "thresholds",
    ),
    _kind(
        "sklearn",
        "GradientBoostingClassifier",
        read_gradient_boosting,
        TREES + "init learning_rate loss n_iter_no_change subsample tol validation_fraction",
    ),
    _kind(
        "sklearn",
        "HistGradientBoostingClassifier",
        read_hist_boosting,
        TREES + "categorical_features early_stopping interaction_cst l2_regularization learning_rate loss max_bins "
        "max_iter n_iter_no_change scoring tol validation_fraction",
    ),
    _kind(
        "xgboost",
        "XGBClassifier",
        read_xgboost,
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
        read_lightgbm,
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
    _kind("torch", "Sequential", read_torch, ""),
    _kind("onbmacf", "Onnx", read_onnx, ""),
    _kind(
        "catboost",
        "CatBoostClassifier",
        read_catboost,
        "allow_const_label allow_writing_files auto_class_weights bagging_temperature best_model_min_trees "
        "boost_from_average boosting_type bootstrap_type border_count class_names class_weights classes_count "
        "colsample_bylevel custom_loss custom_metric depth early_stopping_rounds eta eval_fraction eval_metric "
        "feature_border_type feature_weights fold_len_multiplier grow_policy has_time ignored_features iterations "
        "l2_leaf_reg langevin leaf_estimation_backtracking leaf_estimation_iterations leaf_estimation_method "
        "learning_rate logging_level loss_function max_bin max_depth max_leaves metric_period min_child_samples "
        "min_data_in_leaf model_shrink_mode model_shrink_rate model_size_reg monotone_constraints mvs_reg n_estimators "
        "nan_mode num_boost_round num_leaves num_trees objective od_pval od_type od_wait one_hot_max_size "
        "penalties_coefficient posterior_sampling random_score_type random_seed random_state random_strength "
        "reg_lambda rsm sampling_frequency sampling_unit save_snapshot scale_pos_weight score_function silent "
        "snapshot_file snapshot_interval subsample task_type thread_count train_dir use_best_model used_ram_limit "
        "verbose",
    ),
    _kind(
        "interpret",
        "ExplainableBoostingClassifier",
        read_boosting_machine,
        "callback cat_smooth cyclic_progress early_stopping_rounds early_stopping_tolerance exclude feature_names "
        "feature_types gain_scale greedy_ratio inner_bags interaction_smoothing_rounds interactions learning_rate "
        "max_bins max_delta_step max_interaction_bins max_leaves max_rounds min_cat_samples min_hessian "
        "min_samples_leaf missing monotone_constraints n_jobs objective outer_bags random_state reg_alpha reg_lambda "
        "smoothing_rounds validation_size",
    ),
    _kind(
        "imodels",
        "FIGSClassifier",
        read_figs,
        "class_weight max_depth max_features max_rules max_trees min_impurity_decrease n_jobs random_state verbose",
    ),
    _kind("imodels", "GreedyRuleListClassifier", read_rule_list, "class_weight criterion max_depth verbose"),
    _kind(
        "imodels",
        "RuleFitClassifier",
        read_rule_fit,
        "alpha cv exp_rand_tree_size include_linear lin_standardise lin_trim_quantile max_rules memory_par "
        "n_estimators random_state sample_fract tree_generator tree_size verbose",
    ),
    _kind(
        "wittgenstein",
        "RIPPER IREP",
        read_ripper,
        "alpha dl_allowance k max_rule_conds max_rules max_total_conds min_rule_samples min_ruleset_samples "
        "n_discretize_bins prune_size random_state verbosity",
    ),
]
