"""Copies of models: the same scores as the model's own on points of any kind, or a reason why there is no copy."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from amounts import IS_ALL
from onbmacf import Schema
from onbmacf._columns.interop import as_frame
from onbmacf._prove import columns as recipes
from onbmacf._prove import sums
from onbmacf._prove.columns import NotKnownError, Program, Recipe, Stage
from onbmacf._prove.copies import ColumnsCopy, ModelCopy
from onbmacf._prove.kernels import evaluate
from onbmacf._prove.readers import read
from onbmacf._table.form import TableForm
from onbmacf._table.replies import margins_of

pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = {
    "logistic": lambda: LogisticRegression(),
    "LDA": lambda: LinearDiscriminantAnalysis(),
    "SGD logistic": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SVC": lambda: LinearSVC(random_state=0),
    "ridge": lambda: RidgeClassifier(),
    "perceptron": lambda: Perceptron(random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": lambda: RandomForestClassifier(12, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(12, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
    "hist boosting": lambda: HistGradientBoostingClassifier(max_iter=12, random_state=0),
    "xgboost": lambda: XGBClassifier(n_estimators=12, max_depth=4, n_jobs=1),
    "lightgbm": lambda: LGBMClassifier(n_estimators=12, verbose=-1, n_jobs=1),
    "relu": lambda: MLPClassifier((12, 8), max_iter=40, random_state=0),
    "tanh": lambda: MLPClassifier((12,), activation="tanh", max_iter=40, random_state=0),
    "sigmoid": lambda: MLPClassifier((12, 8), activation="logistic", max_iter=40, random_state=0),
}
OLD_SCALERS = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)
TAKE_MISSING = ["tree", "forest", "extra trees", "hist boosting", "xgboost", "lightgbm"]
SINGLE = {"xgboost"}


def numbers():
    """Return a table of numbers with many equal ones, so that values lie on the thresholds of boosted trees."""
    random = np.random.default_rng(1)
    return pd.DataFrame(np.round(random.normal(3, 20, (240, 4)), 1), columns=list("abcd"))


def integers():
    random = np.random.default_rng(2)
    kinds = {"a": np.int64, "b": np.int8, "c": np.uint16, "d": np.int32}
    return pd.DataFrame({name: random.integers(0, 90, 240).astype(kind) for name, kind in kinds.items()})


def mixed():
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "a": np.round(random.normal(0, 5, 240), 2),
            "b": random.integers(18, 90, 240),
            "town": random.choice(["Ayr", "Bow", "Cork", "Deal"], 240, p=[0.4, 0.4, 0.17, 0.03]),
            "kind": pd.Categorical(random.choice(["x", "y", "z"], 240), categories=["z", "y", "x"]),
            "is_new": random.random(240) < 0.4,
            "c": np.round(random.normal(40, 9, 240), 1).astype(np.float32),
        }
    )


def with_missing(table):
    random = np.random.default_rng(4)
    table = table.copy()
    for at, name in enumerate(table.columns):
        if at % 2 == 0:
            table[name] = table[name].astype(object if table[name].dtype == bool else table[name].dtype)
            table.loc[random.random(len(table)) < 0.15, name] = None
    return table


def labels(table, n=2):
    """Return labels that depend on all columns, as text."""
    codes = np.column_stack([pd.factorize(table[name], sort=True)[0] for name in table.columns]).astype(float)
    codes = (codes - codes.mean(axis=0)) / (codes.std(axis=0) + 1e-9)
    total = codes.sum(axis=1) + codes[:, 0] * codes[:, 1]
    return np.searchsorted(np.quantile(total, np.arange(1, n) / n), total)


def encoded(sparse=False):
    """Return steps for the mixed table: each scaler and each encoder once."""
    rare = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20, drop="first", sparse_output=sparse)
    steps = [
        ("rare", rare, ["town"]),
        ("spread", OneHotEncoder(handle_unknown="ignore", sparse_output=sparse), ["town", "kind"]),
        ("codes", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["kind", "is_new"]),
        ("target", TargetEncoder(random_state=0), ["town"]),
        ("standard", StandardScaler(), ["a", "b"]),
        ("single", MinMaxScaler(clip=True), ["c"]),
        ("both", FeatureUnion([("robust", RobustScaler()), ("largest", MaxAbsScaler())]), ["c", "a"]),
    ]
    return ColumnTransformer(steps, remainder="drop", sparse_threshold=1.0 if sparse else 0.0)


def filled():
    numbers_in = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    text_in = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    steps = [("numbers", numbers_in, make_column_selector(dtype_include="number")), ("text", text_in, ["town", "kind"])]
    return ColumnTransformer(steps, remainder="drop")


def points_of(form, N, n=300):
    """Return points between and beyond the rows, rows among them, some with missing values."""
    random = np.random.default_rng(5)
    first, second = N[random.integers(len(N), size=(2, n))]
    share = random.uniform(-0.3, 1.3, (n, 1)).round(1)
    points = np.where(random.random(first.shape) < 0.5, first, second)
    for at, feature in enumerate(form.schema.features):
        if feature.is_numeric:
            points[:, at] = recipes.cast((share * first + (1 - share) * second)[:, at], form.given_dtypes[at])
            points[:, at] = np.rint(points[:, at]) if feature.kind == "integer" else points[:, at]
        if feature.missing:
            points[random.random(n) < 0.1, at] = np.nan
    return points


def copied(model, table, y, schema=None):
    """Return a fitted model, its copy, points as numbers and as rows."""
    model = model.fit(table, y)
    form = TableForm.fit(table, schema)
    N = form.numbers(as_frame(table))
    points = points_of(form, N)
    return ModelCopy.of(model, form, N, sorted(set(np.asarray(y).tolist()))), points, form.rows_for_model(points)


def check_same(model, copy, points, rows, is_single=False):
    scores, labelled = copy.scores(points), np.asarray(copy.classes)[copy.scores(points).argmax(axis=1)]
    assert scores.shape == (len(points), len(copy.classes))
    lead = np.sort(scores, axis=1)
    tolerance = 1e-4 if is_single else 1e-9
    sure = lead[:, -1] - lead[:, -2] > tolerance
    assert sure.mean() > 0.5
    assert (labelled == np.ravel(model.predict(rows)))[sure].all()
    if not hasattr(model, "predict_proba"):
        own = model.decision_function(rows)
        own = np.column_stack([np.zeros(len(own)), own]) if own.ndim == 1 else own
        np.testing.assert_allclose(scores, own, rtol=tolerance, atol=tolerance)
        assert copy.probabilities(points) is None
        return
    own = model.predict_proba(rows)
    np.testing.assert_allclose(copy.probabilities(points), own, rtol=tolerance, atol=1e-6 if is_single else 1e-14)
    usual = (own > 1e-3).all(axis=1)  # beyond, probabilities say little of their odds
    odds, known = scores - scores[:, :1], margins_of(own) - margins_of(own)[:, :1]
    np.testing.assert_allclose(odds[usual], known[usual], rtol=1e-3 if is_single else 1e-9, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "make, n_classes",
    [
        (numbers, 2),
        (integers, 3),
        pytest.param(numbers, 3, marks=pytest.mark.long),
        pytest.param(integers, 2, marks=pytest.mark.long),
    ],
    ids=lambda own: getattr(own, "__name__", str(own)),
)
def test_scores_are_the_models_own(kind, make, n_classes):
    table = make()
    model = make_pipeline(StandardScaler(), KINDS[kind]())
    check_same(model, *copied(model, table, labels(table, n_classes)), kind in SINGLE)


IN_SPARSE = ("logistic", "forest", "xgboost", "relu")  # of each way to read a matrix one; with the others it is long
DENSE_OR_SPARSE = [
    pytest.param(matrix, kind, marks=[pytest.mark.long] * (matrix == "sparse" and kind not in IN_SPARSE))
    for matrix in ("dense", "sparse")
    for kind in KINDS
]


@pytest.mark.parametrize("matrix, kind", DENSE_OR_SPARSE)
def test_levels_and_scalers_are_copied_to_the_bit(kind, matrix):
    sparse = matrix == "sparse"
    if sparse and kind in ("hist boosting", "LDA"):
        pytest.skip("takes no sparse matrix")
    table = mixed()
    model = make_pipeline(encoded(sparse), KINDS[kind]())
    check_same(model, *copied(model, table, labels(table)), kind in SINGLE)


@pytest.mark.skipif(OLD_SCALERS, reason="scikit-learn before 1.8 scales float32 otherwise: such models are not read")
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_single_precision(kind):
    table = numbers().astype(np.float32)
    scalers = (StandardScaler(), "passthrough", MinMaxScaler(), RobustScaler(), MaxAbsScaler())
    for scaler in scalers if IS_ALL or kind == "logistic" else scalers[:2]:
        model = make_pipeline(scaler, KINDS[kind]())
        copy, points, rows = copied(model, table, labels(table))
        answer = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.decision_function(rows)
        is_single = np.float32 in (answer.dtype, getattr(model[-1], "coef_", answer).dtype)
        check_same(model, copy, points, rows, kind in SINGLE or is_single)


@pytest.mark.parametrize("kind", TAKE_MISSING)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_missing_values_go_where_the_model_sends_them(kind, n_classes):
    table = with_missing(numbers())
    y = np.where(table["c"].isna(), n_classes - 1, labels(table.fillna(table.mean()), n_classes))
    model = KINDS[kind]()
    copy, points, rows = copied(model, table, y)
    assert np.isnan(points).any()
    check_same(model, copy, points, rows, kind in SINGLE)
    other = with_missing(numbers().iloc[:, ::-1])[list("abcd")]  # missing where no row in training was
    if kind in ("hist boosting", "xgboost", "lightgbm"):
        form = TableForm.fit(other, None)
        N = form.numbers(other)
        points = points_of(form, N)
        copy = ModelCopy.of(model, form, N, sorted(set(y)))
        check_same(model, copy, points, form.rows_for_model(points), kind in SINGLE)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_that_are_filled_in(kind):
    table = with_missing(mixed())
    model = make_pipeline(filled(), KINDS[kind]())
    if kind in ("hist boosting", "LDA"):
        model.steps[0][1].set_params(sparse_threshold=0)
    check_same(model, *copied(model, table, labels(mixed())), kind in SINGLE)


@pytest.mark.parametrize("kind", ["logistic", "forest", "xgboost"])
def test_arrays_and_nested_models(kind):
    table = numbers().to_numpy()
    y = np.array(["no", "yes"])[labels(numbers())] if kind != "xgboost" else labels(numbers())
    steps = ColumnTransformer([("last", MinMaxScaler((-1, 1)), slice(2, 4)), ("first", "passthrough", [0])])
    inner = make_pipeline(steps, FunctionTransformer(), StandardScaler(), KINDS[kind]())
    model = GridSearchCV(inner, {"standardscaler__with_mean": [False]}, cv=2)
    check_same(model, *copied(model, table, y), kind in SINGLE)


def test_whole_numbers_are_cut_off_as_the_table_does_it():
    table = integers()
    copy, points, _ = copied(DecisionTreeClassifier(random_state=0), table, labels(table))
    np.testing.assert_array_equal(copy.scores(points + 0.75), copy.scores(points))


def test_a_zero_is_missing_to_xgboost_in_a_sparse_matrix_whatever_zeros_the_copy_was_made_from():
    table = mixed().assign(a=lambda t: t["a"].abs() + 1)
    low = table["a"] < table["a"].median()
    table["a"] = table["a"].where(np.arange(len(table)) % 3 != 0, np.where(low, 0.0, table["a"]))
    steps = [("spread", OneHotEncoder(), ["town"]), ("same", "passthrough", ["a", "b"])]
    model = make_pipeline(ColumnTransformer(steps, sparse_threshold=1.0), KINDS["xgboost"]()).fit(
        table, low.astype(int)
    )
    form = TableForm.fit(table[table["a"] > 0], None)
    N = form.numbers(table[table["a"] > 0])
    copy, points = ModelCopy.of(model, form, N, [0, 1]), points_of(form, N)
    points[:150, 0] = 0.0
    check_same(model, copy, points, form.rows_for_model(points), is_single=True)


def test_a_copy_may_be_read_only():
    """As it is where workers share it through a file."""
    for kind in ("relu", "forest"):
        copy, points, _ = copied(make_pipeline(encoded(), KINDS[kind]()), mixed(), labels(mixed()))
        before = copy.scores(points)
        for part in (*copy.program, *copy.sums):
            for array in part if isinstance(part, list) else [part]:
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        points.flags.writeable = False
        np.testing.assert_array_equal(copy.scores(points), before)


@pytest.mark.skipif(OLD_SCALERS, reason="scikit-learn before 1.8 scales float32 otherwise: such models are not read")
def test_numbers_are_rounded_as_the_table_does_it():
    table = numbers().astype(np.float32)
    copy, points, _ = copied(make_pipeline(StandardScaler(), KINDS["logistic"]()), table, labels(table))
    points = points * (1 + 1e-9)
    assert (points != points.astype(np.float32)).any()
    np.testing.assert_array_equal(copy.scores(points), copy.scores(points.astype(np.float32).astype(np.float64)))


def test_scores_do_not_depend_on_the_other_points():
    table = mixed()
    for kind in ("relu", "forest", "logistic"):
        copy, points, _ = copied(make_pipeline(encoded(), KINDS[kind]()), table, labels(table))
        every = copy.scores(points)
        for some in ([0], [7, 3], [5, 1, 2], range(11, 24), []):
            np.testing.assert_array_equal(copy.scores(points[[*some]]), every[[*some]])


def test_classes_are_in_the_order_asked_for():
    table = numbers()
    model = RandomForestClassifier(5, random_state=0).fit(table, labels(table, 3))
    form = TableForm.fit(table, None)
    N = form.numbers(table)
    plain, turned = (ModelCopy.of(model, form, N, classes) for classes in ([0, 1, 2], [2, 0, 1]))
    np.testing.assert_array_equal(turned.scores(N), plain.scores(N)[:, [2, 0, 1]])
    np.testing.assert_array_equal(turned.probabilities(N), model.predict_proba(table)[:, [2, 0, 1]])
    with pytest.raises(NotKnownError, match="labels that no fitted row has"):
        ModelCopy.of(model, form, N, [0, 2])


def test_shares_of_votes_are_the_forests_own_to_the_bit():
    table = numbers()
    for n_trees in (10, 49, 98):
        model = RandomForestClassifier(n_trees, random_state=0, n_jobs=1)
        copy, points, rows = copied(model, table, labels(table))
        np.testing.assert_array_equal(copy.probabilities(points), model.predict_proba(rows))


def refused(model, table, y):
    form = TableForm.fit(table, None)
    with pytest.raises(NotKnownError) as raised:
        ModelCopy.of(model.fit(table, y), form, form.numbers(table), [0, 1])
    return str(raised.value)


@pytest.mark.parametrize(
    "steps, reason",
    [
        ([PCA(2)], "the step PCA before the model is not known"),
        ([FunctionTransformer(np.sqrt)], "the step FunctionTransformer before the model is not known"),
        (
            [QuantileTransformer(n_quantiles=20)],
            "the step QuantileTransformer before the model is not read for numbers such as 'a'",
        ),
        ([KBinsDiscretizer(encode="ordinal"), StandardScaler()], "not read for numbers such as 'a'"),
        ([OneHotEncoder(handle_unknown="ignore")], "the step OneHotEncoder before the model is not read for numbers"),
    ],
    ids=lambda steps: type(steps[0]).__name__ if isinstance(steps, list) else "",
)
def test_steps_that_are_not_read_are_named(steps, reason):
    assert reason in refused(make_pipeline(*steps, LogisticRegression()), integers(), labels(integers()))


@pytest.mark.parametrize("model", [KNeighborsClassifier(), GaussianNB()])
def test_estimators_that_are_not_read_are_refused(model):
    assert (
        refused(make_pipeline(StandardScaler(), model), numbers(), labels(numbers()))
        == "this kind of model is not known"
    )


def test_a_loss_whose_probabilities_are_others_is_refused():
    reason = refused(SGDClassifier(loss="modified_huber", random_state=0), numbers(), labels(numbers()))
    assert reason == "the copy does not say what the model says"


@pytest.mark.parametrize("lie", ["probability", "label", "far away", "error"])
def test_a_model_that_lies_is_refused(lie):
    table, y = numbers(), labels(numbers())
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, y)
    proba, predict = model.predict_proba, model.predict

    def other_proba(rows):
        if lie == "error":
            raise ValueError("out of order")
        where = (rows["a"] > rows["a"].quantile(0.9)) if lie == "probability" else (rows["b"] > table["b"].max())
        shift = 0.01 * where.to_numpy()[:, np.newaxis] * (lie in ("probability", "far away"))
        return np.clip(proba(rows) + shift * [1, -1], 0, 1)

    model.predict_proba = other_proba
    model.predict = (lambda rows: 1 - predict(rows)) if lie == "label" else predict
    reason = refused_as_it_is(model, table)
    assert ("out of order" in reason) if lie == "error" else (reason == "the copy does not say what the model says")


def refused_as_it_is(model, table):
    form = TableForm.fit(table, None)
    with pytest.raises(NotKnownError) as raised:
        ModelCopy.of(model, form, form.numbers(table), [0, 1])
    return str(raised.value)


def test_steps_that_lie_are_refused():
    table, y = numbers(), labels(numbers())
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, y)
    model[0].transform = lambda rows: StandardScaler.transform(model[0], rows) + 1e-13
    assert refused_as_it_is(model, table) == "the steps before the model are not what their numbers say"


def test_xgboost_with_a_missing_value_of_its_own_is_refused():
    model = XGBClassifier(n_estimators=3, missing=0.0, n_jobs=1)
    assert refused(model, numbers(), labels(numbers())) == "xgboost that takes 0.0 for a missing value is not known"


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "estimator",
    [SVC(probability=True, random_state=0), KNeighborsClassifier(), SVC()],
    ids=["SVC", "neighbours", "margins"],
)
def test_an_estimator_that_is_not_read_is_asked_behind_its_steps(estimator, sparse):
    table = mixed()
    model = make_pipeline(encoded(sparse), estimator).fit(table, labels(table))
    form = TableForm.fit(table, None)
    copy = ColumnsCopy.of(model, form, form.numbers(table))
    points = points_of(form, form.numbers(table))
    rows, columns = form.rows_for_model(points), copy.columns(points)
    expected = model[:-1].transform(rows)
    assert hasattr(columns, "toarray") == sparse == hasattr(expected, "toarray")
    assert columns.dtype == expected.dtype
    plain, own = (part.toarray() if sparse else part for part in (columns, expected))
    np.testing.assert_array_equal(plain, own)
    np.testing.assert_array_equal(copy.estimator.predict(columns), model.predict(rows))


def test_an_estimator_that_knows_names_is_not_asked_behind_its_steps():
    table = numbers()
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), KNeighborsClassifier())
    form = TableForm.fit(table, None)
    with pytest.raises(NotKnownError, match="trained on columns with names"):
        ColumnsCopy.of(model.fit(table, labels(table)), form, form.numbers(table))


def test_nothing_of_the_model_is_changed():
    import pickle

    table = mixed()
    model = make_pipeline(encoded(), RandomForestClassifier(5, random_state=0)).fit(table, labels(table))
    before = pickle.dumps(model)
    form = TableForm.fit(table, None)
    ModelCopy.of(model, form, form.numbers(table), [0, 1])
    ColumnsCopy.of(model, form, form.numbers(table))
    assert pickle.dumps(model) == before


@pytest.fixture(scope="module")
def plain():
    """The kernels as Python."""
    path = Path(recipes.__file__).parent / "kernels" / "evaluate.py"
    loader = SourceFileLoader("plain_evaluate", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_kernels_say_the_same_as_the_python_that_they_are(plain, monkeypatch):
    table = with_missing(mixed())
    for kind in ("relu", "forest", "xgboost", "logistic", "tree"):
        copy, points, _ = copied(make_pipeline(filled(), KINDS[kind]()), table, labels(mixed(), 2))
        points = points[:41]
        compiled = copy.program.columns(points), copy.scores(points)
        with monkeypatch.context() as patch:
            patch.setattr(recipes, "fill_columns", plain.fill_columns)
            for name in ("add_trees", "add_leaves", "add_products"):
                patch.setattr(f"onbmacf._prove.sums.{name}", getattr(plain, name))
            np.testing.assert_array_equal(copy.program.columns(points), compiled[0])
            np.testing.assert_array_equal(copy.scores(points), compiled[1])


@pytest.mark.parametrize("kind", ["forest", "xgboost", "hist"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_of_few_leaves_add_up_to_the_same_by_leaves_and_by_nodes(kind, n_classes, monkeypatch):
    """On the thresholds, beside them, where values are missing, and for points that repeat those before them."""
    laid_out, table = [], with_missing(mixed())

    def kept(trees, n_columns):
        laid_out.append((trees, as_leaves(trees, n_columns)))
        return laid_out[-1][1]

    as_leaves = sums._as_leaves
    monkeypatch.setattr(sums, "_as_leaves", kept)
    models = {
        "forest": RandomForestClassifier(7, max_depth=4, random_state=0),
        "xgboost": XGBClassifier(n_estimators=7, max_depth=3),
        "hist": HistGradientBoostingClassifier(max_iter=7, max_leaf_nodes=20, min_samples_leaf=3),
    }
    copy, points, _ = copied(make_pipeline(filled(), models[kind]), table, labels(mixed(), n_classes))
    (nodes, leaves) = laid_out[-1]
    columns = copy.program.columns(np.repeat(points, 2, axis=0))
    rng = np.random.default_rng(0)
    for at in range(columns.shape[1]):
        own = leaves.threshold[leaves.start[at] : leaves.start[at + 1]]
        tried = np.concatenate([own, np.nextafter(own, np.inf), np.nextafter(own, -np.inf), [-np.inf, np.inf]])
        lines = rng.random(len(columns)) < 0.5
        columns[lines, at] = rng.choice(tried, lines.sum())
    np.testing.assert_array_equal(leaves.of(columns), nodes.of(columns))


def test_trees_of_many_leaves_are_added_up_by_nodes(monkeypatch):
    table = numbers()
    copy, _, _ = copied(RandomForestClassifier(3, random_state=0), table, np.arange(len(table)) % 2)
    assert isinstance(copy.sums, sums.TreeSums)
    copy, _, _ = copied(KINDS["xgboost"](), table, labels(table))
    assert isinstance(copy.sums, sums.LeafSums)
    monkeypatch.setattr(sums, "MOST_MASKS", 100)
    copy, _, _ = copied(KINDS["xgboost"](), table, labels(table))
    assert isinstance(copy.sums, sums.TreeSums)


@pytest.mark.parametrize("fill", [evaluate.fill_columns, "plain"], ids=["compiled", "plain"])
def test_a_stage_does_its_operations_in_order(fill, plain, monkeypatch):
    monkeypatch.setattr(recipes, "fill_columns", plain.fill_columns if fill == "plain" else fill)
    x = np.array([[-3.7], [0.0], [0.1], [1e9], [np.nan], [2.0], [7.0]])
    stage = Stage(minus=0.3, over=0.7, times=1.1, plus=0.2, low=-2.0, high=50.0)
    exact = np.clip((x[:, 0] - 0.3) / 0.7 * 1.1 + 0.2, -2.0, 50.0)
    single = x[:, 0].astype(np.float32)
    for act, number in ((np.subtract, 0.3), (np.divide, 0.7), (np.multiply, 1.1), (np.add, 0.2)):
        act(single, number, out=single, casting="same_kind", dtype=np.float64)
    found = [
        Recipe(0, (stage,)),
        Recipe(0, (Stage(is_single=1.0), stage._replace(is_single=1.0))),
        Recipe(0, (Stage(fill=4.0), Stage(zero=np.nan))),
        Recipe(0, table=np.array([5.0, 6.0, 8.0, 9.0])),
        Recipe(0, table=np.array([3.0])),
    ]
    columns = Program.of(found).columns(x)
    np.testing.assert_array_equal(columns[:, 0], exact)
    np.testing.assert_array_equal(columns[:, 1], np.clip(single, -2, 50))
    np.testing.assert_array_equal(columns[:, 2], [-3.7, np.nan, 0.1, 1e9, 4.0, 2.0, 7.0])
    np.testing.assert_array_equal(columns[:, 3], [5.0, 5.0, 5.0, 9.0, 9.0, 8.0, 9.0])
    np.testing.assert_array_equal(columns[:, 4], 3.0)


def test_a_feature_that_is_the_same_everywhere_is_still_copied():
    table = numbers().assign(d=5.0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    copy, points, _ = copied(model, table, labels(numbers()), Schema.infer(table, kinds={"d": "continuous"}))
    points[:, 3] = np.linspace(0, 9, len(points))
    rows = pd.DataFrame(points, columns=table.columns)
    np.testing.assert_allclose(copy.probabilities(points), model.predict_proba(rows), rtol=1e-9)


@pytest.mark.parametrize("kind", TAKE_MISSING)
def test_a_structure_sends_missing_values_where_the_model_does(kind):
    table = with_missing(numbers())
    y = np.where(table["c"].isna() | (table["a"].isna() & (table["b"] > 0)), 1, labels(numbers()))
    columns = table.to_numpy()
    structure = read(KINDS[kind]().fit(columns, y), columns, np.nanmax(np.abs(columns), axis=0))
    np.testing.assert_allclose(structure.scores(columns), structure.own_scores(columns), rtol=1e-5, atol=1e-5)
