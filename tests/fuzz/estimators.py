"""Certificates against every point of small grids, for models with random legal parameters.

    python -m fuzz --certificates 3000 [--seed 0]      in the folder tests

A model is drawn by its seed alone: a class that can be read (or a wrapper around one), its parameters, weights, labels,
missing values, steps before it. Some rows are explained with `prove=`, and what the certificates say is compared with
the answers of the model itself for every row that they may become. A proof may abstain; it must not be wrong.
"""

import itertools
import warnings
from collections import Counter

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from catboost import CatBoostClassifier, CatBoostError
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF
from onbmacf._base.enums import CertificateKind
from onbmacf.errors import OnbmacfError

N_ROWS = 8  # explained rows per model
REFUSING = (xgboost.core.XGBoostError, lightgbm.basic.LightGBMError, CatBoostError)
METRICS = {"manhattan": 1, "euclidean": 2, "chebyshev": np.inf}
ENDS = (0.5, 0.7, 0.9, 0.99, 1 - 1e-7, 1 - 1e-10, 1.0)  # probabilities that answers must have


def pick(rng, *values):
    """Return one of some values, of any type."""
    return values[int(rng.integers(len(values)))]


def rarely(rng, usual, *others):
    """Return the usual value five times of six."""
    return usual if rng.random() < 5 / 6 else pick(rng, *others)


def _depth(rng):
    return int(rng.integers(1, 6))


def _tree_params(rng):
    return {
        "criterion": pick(rng, "gini", "entropy", "log_loss"),
        "max_depth": pick(rng, None, _depth(rng)),
        "min_samples_leaf": pick(rng, 1, 3, 0.05),
        "max_leaf_nodes": pick(rng, None, 5, 12),
        "class_weight": pick(rng, None, "balanced"),
        "ccp_alpha": pick(rng, 0.0, 0.01),
        "min_impurity_decrease": pick(rng, 0.0, 0.01),
        "max_features": pick(rng, None, "sqrt", 2),
        "random_state": int(rng.integers(99)),
    }


def _forest_params(rng):
    bootstrap = pick(rng, True, False)
    return _tree_params(rng) | {
        "n_estimators": int(rng.integers(1, 9)),
        "bootstrap": bootstrap,
        "max_samples": pick(rng, None, 0.6) if bootstrap else None,
        "n_jobs": 1,
    }


def _gradient_boosting(rng):
    init = rarely(rng, None, "zero", LogisticRegression(), DecisionTreeClassifier(max_depth=2), GaussianNB())
    return GradientBoostingClassifier(
        loss=rarely(rng, "log_loss", "exponential"),
        init=init,
        n_estimators=int(rng.integers(1, 8)),
        learning_rate=pick(rng, 0.1, 0.5, 1.0),
        max_depth=_depth(rng),
        subsample=pick(rng, 1.0, 0.7),
        criterion=pick(rng, "friedman_mse", "squared_error"),
        n_iter_no_change=pick(rng, None, 2),
        random_state=0,
    )


def _hist(rng):
    return HistGradientBoostingClassifier(
        max_iter=int(rng.integers(1, 8)),
        learning_rate=pick(rng, 0.1, 0.6),
        max_depth=pick(rng, None, _depth(rng)),
        max_leaf_nodes=pick(rng, 4, 31),
        min_samples_leaf=pick(rng, 2, 8),
        l2_regularization=pick(rng, 0.0, 1.0),
        max_bins=pick(rng, 4, 255),
        categorical_features=rarely(rng, None, [0], [1]),
        interaction_cst=pick(rng, None, "no_interactions"),
        class_weight=pick(rng, None, "balanced"),
        early_stopping=pick(rng, False, True),
        random_state=0,
    )


def _xgboost(rng):
    params = {
        "n_estimators": int(rng.integers(1, 8)),
        "max_depth": _depth(rng),
        "learning_rate": pick(rng, 0.1, 0.7),
        "booster": rarely(rng, "gbtree", "dart", "gblinear"),
        "missing": rarely(rng, np.nan, 0, 2, 5),
        "base_score": pick(rng, None, 0.3, 0.9),
        "scale_pos_weight": pick(rng, None, 3.0),
        "n_jobs": 1,
        "random_state": 0,
    }
    if params["booster"] != "gblinear":
        params |= {
            "num_parallel_tree": pick(rng, 1, 1, 3),
            "tree_method": pick(rng, "hist", "exact", "approx"),
            "grow_policy": pick(rng, "depthwise", "lossguide"),
            "max_leaves": pick(rng, 0, 4),
            "gamma": pick(rng, 0.0, 0.5),
            "reg_alpha": pick(rng, 0.0, 0.5),
            "reg_lambda": pick(rng, 0.0, 1.0),
            "subsample": pick(rng, 1.0, 0.7),
            "max_delta_step": pick(rng, 0, 1),
        }
    if params.get("tree_method") == "hist" and rng.random() < 0.3:
        params |= {"multi_strategy": "multi_output_tree"}
    if params["booster"] == "dart":
        params |= {"rate_drop": 0.3}
    if params["booster"] == "gbtree" and rng.random() < 0.2:
        params |= {"early_stopping_rounds": 2}
    return xgboost.XGBClassifier(**params)


def _lightgbm(rng):
    params = {
        "boosting_type": rarely(rng, "gbdt", "dart", "rf"),
        "n_estimators": int(rng.integers(1, 8)),
        "num_leaves": pick(rng, 3, 15),
        "max_depth": pick(rng, -1, _depth(rng)),
        "min_child_samples": pick(rng, 2, 8),
        "learning_rate": pick(rng, 0.1, 0.7),
        "linear_tree": rarely(rng, False, True),
        "zero_as_missing": rarely(rng, False, True),
        "use_missing": rarely(rng, True, False),
        "is_unbalance": pick(rng, False, True),
        "extra_trees": pick(rng, False, True),
        "sigmoid": rarely(rng, 1.0, 2.5),
        "boost_from_average": pick(rng, True, False),
        "reg_lambda": pick(rng, 0.0, 1.0),
        "objective": rarely(rng, None, "multiclassova", "cross_entropy"),
        "n_jobs": 1,
        "random_state": 0,
        "verbose": -1,
    }
    if params["boosting_type"] == "rf":
        params |= {"bagging_freq": 1, "bagging_fraction": 0.7, "linear_tree": False}
    if params["linear_tree"]:
        params["boosting_type"] = "gbdt"
    return lightgbm.LGBMClassifier(**params)


def _network(rng):
    return MLPClassifier(
        pick(rng, (4,), (6, 3), (3, 3, 3)),
        activation=rarely(rng, "relu", "tanh", "logistic", "identity"),
        solver=pick(rng, "lbfgs", "adam"),
        alpha=pick(rng, 1e-4, 1.0),
        early_stopping=pick(rng, False, True),
        max_iter=60,
        random_state=int(rng.integers(99)),
    )


def _sgd(rng):
    loss = pick(rng, "hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron", "huber")
    return SGDClassifier(
        loss=loss, penalty=pick(rng, "l2", "l1", None), average=pick(rng, False, True), max_iter=50, random_state=0
    )


def _logistic(rng):
    return LogisticRegression(
        C=pick(rng, 0.1, 1.0, 100.0),
        fit_intercept=pick(rng, True, False),
        class_weight=pick(rng, None, "balanced"),
        tol=pick(rng, 1e-4, 1e-2),
    )


def _member(rng):
    return pick(rng, DecisionTreeClassifier(**_tree_params(rng)), RandomForestClassifier(**_forest_params(rng)))


def _tree(rng):
    return DecisionTreeClassifier(**_tree_params(rng))


def _ada_boost(rng):
    member = rarely(rng, pick(rng, None, _tree(rng)), LogisticRegression(), _member(rng))
    return AdaBoostClassifier(member, n_estimators=int(rng.integers(1, 7)), learning_rate=pick(rng, 0.5, 1.0, 2.0))


def _bagging(rng):
    how = {"max_samples": pick(rng, 0.3, 1.0), "max_features": pick(rng, 0.6, 1.0), "bootstrap": pick(rng, True, False)}
    member = rarely(rng, _member(rng), LogisticRegression(), Perceptron())
    return BaggingClassifier(member, int(rng.integers(1, 6)), random_state=int(rng.integers(99)), **how)


def _voting(rng):
    voting, n = pick(rng, "soft", "hard"), int(rng.integers(1, 4))
    members = [(str(at), rarely(rng, pick(rng, _tree, _member)(rng), LogisticRegression())) for at in range(n)]
    return VotingClassifier(members, voting=voting, weights=pick(rng, None, [*range(1, n + 1)]))


def _calibrated(rng):
    linear = pick(rng, LogisticRegression(), LinearSVC(), GradientBoostingClassifier(n_estimators=4))
    inner = pick(rng, linear, _member(rng), rarely(rng, _ada_boost(rng), MLPClassifier((4,), max_iter=30)))
    method = rarely(rng, pick(rng, "sigmoid", "isotonic"), "temperature")
    return CalibratedClassifierCV(inner, method=method, cv=2, ensemble=rarely(rng, False, True))


def _threshold(rng):
    inner = pick(rng, LogisticRegression(), _member(rng), LinearSVC(), xgboost.XGBClassifier(n_estimators=4, n_jobs=1))
    if rng.random() < 0.3:
        how = pick(rng, "auto", "predict_proba")
        return TunedThresholdClassifierCV(inner, cv=2, response_method=how if hasattr(inner, how) else "auto")
    return FixedThresholdClassifier(inner, threshold=rarely(rng, float(rng.uniform(0.05, 0.95)), "auto", 0.0, 1.0))


def _catboost(rng):
    return CatBoostClassifier(
        iterations=int(rng.integers(1, 9)),
        depth=int(rng.integers(1, 5)),
        learning_rate=pick(rng, 0.1, 0.7),
        grow_policy=pick(rng, "SymmetricTree", "Lossguide", "Depthwise"),
        nan_mode=pick(rng, "Min", "Max"),
        loss_function=rarely(rng, None, "MultiClassOneVsAll", "CrossEntropy"),
        boost_from_average=pick(rng, None, False),
        verbose=0,
        allow_writing_files=False,
        thread_count=1,
        random_seed=int(rng.integers(99)),
    )


ESTIMATORS = {
    "LogisticRegression": _logistic,
    "RidgeClassifier": lambda rng: RidgeClassifier(pick(rng, 0.1, 10.0), class_weight=pick(rng, None, "balanced")),
    "SGDClassifier": _sgd,
    "Perceptron": lambda rng: Perceptron(penalty=pick(rng, None, "l2"), random_state=int(rng.integers(99))),
    "LinearSVC": lambda rng: LinearSVC(C=pick(rng, 0.1, 5.0), multi_class=pick(rng, "ovr", "crammer_singer")),
    "LinearDiscriminantAnalysis": lambda rng: LinearDiscriminantAnalysis(solver=pick(rng, "svd", "lsqr")),
    "DecisionTreeClassifier": lambda rng: DecisionTreeClassifier(
        splitter=pick(rng, "best", "random"), **_tree_params(rng)
    ),
    "RandomForestClassifier": lambda rng: RandomForestClassifier(**_forest_params(rng)),
    "ExtraTreesClassifier": lambda rng: ExtraTreesClassifier(**_forest_params(rng)),
    "GradientBoostingClassifier": _gradient_boosting,
    "HistGradientBoostingClassifier": _hist,
    "XGBClassifier": _xgboost,
    "LGBMClassifier": _lightgbm,
    "MLPClassifier": _network,
    "AdaBoostClassifier": _ada_boost,
    "BaggingClassifier": _bagging,
    "VotingClassifier": _voting,
    "CalibratedClassifierCV": _calibrated,
    "FixedThresholdClassifier": _threshold,
    "CatBoostClassifier": _catboost,
}


class Case:
    """A random table, a fitted model, and the questions asked about some rows."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.name = pick(rng, *ESTIMATORS)
        width = int(rng.integers(3, 5))
        low = rng.integers(-3, 1, width)
        self.values = [np.arange(at, at + int(rng.integers(4, 9))) for at in low]
        table = pd.DataFrame({f"c{at}": rng.choice(values, 80) for at, values in enumerate(self.values)})
        for at, values in enumerate(self.values):  # the ends are fitted values
            table.loc[[0, 1], f"c{at}"] = values[[0, -1]]
        score = (table - table.mean()) / table.std()
        score = score.to_numpy() @ rng.normal(size=width) + np.prod(score.to_numpy()[:, :2], axis=1) * rng.normal()
        score = score + rng.normal(0, 0.3, len(table))
        cuts = pick(rng, [0.5], [0.5], [0.3, 0.7], [0.15, 0.5, 0.9])
        codes = np.digitize(score, np.quantile(score, cuts))
        names = pick(rng, np.arange(4), np.array(["d", "a", "c", "b"]), np.array([3, -1, 7, 4]))
        if self.name == "XGBClassifier":
            names = np.arange(4)
        self.table, self.y = table, names[codes]
        given = table.copy()
        if self.name in MISSING_TAKEN and rng.random() < 0.25:
            given = given.astype(float).mask(rng.random(given.shape) < 0.05)
        self.given = given
        self.estimator = ESTIMATORS[self.name](rng)
        self.steps = [*pick(rng, (), (), (StandardScaler(),), (MinMaxScaler(),), (RobustScaler(),), _one_hot(rng))]
        self.weight = pick(rng, None, None, rng.random(len(table)) + 0.1)
        self.wrapping = rarely(rng, "", "function", "threshold")
        self.cut = float(rng.uniform(0.15, 0.85))
        self.metric = pick(rng, *METRICS)
        self.least = rarely(rng, 0.0, *ENDS)
        self.target = pick(rng, None, *np.unique(self.y))
        self.columns_fixed = rarely(rng, [], ["c0"])
        self.is_sparse = rng.random() < 0.2
        self.rows = table.iloc[2 : 2 + N_ROWS].copy()
        self.rows.iloc[-1, int(rng.integers(width))] += int(pick(rng, -9, 9))  # beyond the fitted range
        self.inner = self._fitted()

    def _fitted(self):
        model = make_pipeline(*self.steps, self.estimator) if self.steps else self.estimator
        name = type(self.estimator).__name__
        key = f"{name.lower()}__sample_weight" if self.steps else "sample_weight"
        how = {key: self.weight} if self.weight is not None and name in WEIGHTED else {}
        if getattr(self.estimator, "early_stopping_rounds", None):
            model, how = self.estimator, how and {"sample_weight": self.weight}
            self.steps = []
            how |= {"eval_set": [(self.given[:20], self.y[:20])], "verbose": False}
        model.fit(self.given, self.y, **how)
        if self.is_sparse and hasattr(self.estimator, "sparsify"):
            self.estimator.sparsify()
        return model

    @property
    def asked(self):
        """The model that is explained, and what `prove` is given."""
        classes = self.inner.classes_
        if len(classes) == 2 and hasattr(self.inner, "predict_proba") and self.wrapping:
            if self.wrapping == "threshold":
                wrapped = FixedThresholdClassifier(self.inner, threshold=self.cut, response_method="predict_proba")
                return wrapped.fit(self.given, self.y), self.inner
            return (lambda rows: classes[(self.inner.predict_proba(rows)[:, 1] >= self.cut).astype(int)]), self.inner
        return self.inner, True


def _one_hot(rng):
    return (SimpleImputer(), OneHotEncoder(handle_unknown="ignore")) if rng.random() < 0.5 else (SimpleImputer(),)


WEIGHTED = ("LogisticRegression", "DecisionTreeClassifier", "RandomForestClassifier", "XGBClassifier", "LGBMClassifier")
MISSING_TAKEN = (
    "DecisionTreeClassifier",
    "RandomForestClassifier",
    "HistGradientBoostingClassifier",
    "BaggingClassifier",
    "CatBoostClassifier",
    "XGBClassifier",
    "LGBMClassifier",
)


def check_case(seed, counts=None):
    """Explain some rows of a drawn model; return what is wrong, one line each. `counts` is told what was proven."""
    counts = Counter() if counts is None else counts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = Case(seed)
            model, prove = case.asked
        except (ValueError, TypeError, NotImplementedError, *REFUSING):
            counts["parameters that the library refuses"] += 1
            return []
        return _checked(case, model, prove, seed, counts)


def _checked(case, model, prove, seed, counts):
    rows = case.rows
    how = {"min_probability": case.least} if case.least and hasattr(model, "predict_proba") else {}
    how |= {} if case.target is None else {"target": case.target}
    try:
        explainer = ONBMACF(plausibility=0, metric=case.metric).fit(case.given, model)
        answers = explainer.explain(rows, prove=prove, immutable=case.columns_fixed, **how)
    except OnbmacfError as error:
        counts[f"{case.name}: refused"] += 1
        return [] if str(error) else [f"seed {seed}: an error without a sentence"]
    known, wrong = Answers(case, model, explainer, how.get("min_probability", 0.0)), []
    for place, answer in enumerate(answers):
        one = answer.certificate
        if one is None:
            continue
        rests_on = "read" if one.how.startswith("for this") else "asked" if one.how else "abstained"
        counts[f"{case.name}: {one.kind}, {rests_on}"] += 1
        nearest = known.nearest(rows.iloc[place], "labels of the fitted rows" in one.how)
        if nearest < one.bound * (1 - 1e-9) or (one.kind == CertificateKind.NONE_EXISTS and np.isfinite(nearest)):
            wrong.append(f"seed {seed} ({case.name}), row {place}: {one.sentence()} but there is one at {nearest:.6g}")
    return wrong


class Answers:
    """What the model itself says of every row that a row may become."""

    def __init__(self, case, model, explainer, least):
        self.case, self.model, self.least = case, model, least
        self.encode = lambda rows: explainer.fitted_.space.encode(rows.astype(case.given.dtypes))
        self.seen = np.unique(self._labels(case.given))

    def _labels(self, rows):
        rows = rows.astype(self.case.given.dtypes)
        return np.asarray(self.model(rows) if callable(self.model) else self.model.predict(rows)).ravel()

    def nearest(self, row, is_of_seen):
        """Return the distance of the nearest row with a wanted label; infinite if there is none."""
        case = self.case
        values = [
            [own] if name in case.columns_fixed else np.arange(min(all_[0], own), max(all_[-1], own) + 1)
            for (name, own), all_ in zip(row.items(), case.values, strict=True)
        ]
        grid = pd.DataFrame(list(itertools.product(*values)), columns=case.table.columns)
        labels, own = self._labels(grid), self._labels(row.to_frame().T)[0]
        wanted = (labels != own) if case.target is None else (labels == case.target)
        if is_of_seen:
            wanted &= np.isin(labels, self.seen)
        if self.least:
            sure = self.model.predict_proba(grid.astype(case.given.dtypes))
            sure = sure[np.arange(len(grid)), np.searchsorted(self.model.classes_, labels)]
            wanted &= np.round(sure, 12) >= self.least
        apart = self.encode(grid[wanted]) - self.encode(row.to_frame().T)
        return np.linalg.norm(apart, ord=METRICS[case.metric], axis=1).min(initial=np.inf)
