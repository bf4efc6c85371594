"""Kinds of models beyond single estimators: certificates against all values, copies against the model, abstentions."""

import numpy as np
import pandas as pd
import pytest
import sklearn
import xgboost
from catboost import CatBoostClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from _prove.test_brute_force import Problem, check, steps_for
from _prove.test_copies import check_same, copied, labels, numbers, with_missing
from amounts import IS_ALL
from onbmacf import ONBMACF
from onbmacf._prove.columns import NotKnownError
from onbmacf._prove.copies import ModelCopy
from onbmacf._prove.readers import read
from onbmacf._table.form import TableForm
from onbmacf.io import load_model

pytestmark = pytest.mark.filterwarnings("ignore")
EACH = 15 if IS_ALL else 1  # problems per kind: 345 over all, of which some give one label only


def tree(seed=0, depth=3):
    return DecisionTreeClassifier(max_depth=depth, random_state=seed)


def forest(seed=0):
    return RandomForestClassifier(4, max_depth=3, random_state=seed)


def calibrated(estimator, method):
    return CalibratedClassifierCV(estimator, method=method, ensemble=False, cv=2)


def voting(*members, **how):
    return VotingClassifier([(str(place), member) for place, member in enumerate(members)], **how)


def interpret(seed=0, **how):
    glassbox = pytest.importorskip("interpret.glassbox")
    how = {"outer_bags": 2, "max_rounds": 60, "n_jobs": 1, "random_state": seed} | how
    return glassbox.ExplainableBoostingClassifier(**how)


def imodels(name, **how):
    return getattr(pytest.importorskip("imodels"), name)(**how)


def catboost(**how):
    return CatBoostClassifier(iterations=6, verbose=0, allow_writing_files=False, thread_count=1, **how)


MODELS = {
    "AdaBoost": lambda seed: AdaBoostClassifier(n_estimators=6, random_state=seed),
    "AdaBoost of trees": lambda seed: AdaBoostClassifier(tree(), n_estimators=4, random_state=seed),
    "bagging": lambda seed: BaggingClassifier(tree(), 5, max_features=0.7, max_samples=0.4, random_state=seed),
    "bagging of forests": lambda seed: BaggingClassifier(forest(), 2, random_state=seed),
    "soft voting": lambda seed: voting(tree(seed), forest(), weights=[1, 2], voting="soft"),
    "hard voting": lambda seed: voting(tree(seed), tree(1, 2), tree(2, 4), weights=[1, 2, 2]),
    "catboost": lambda seed: catboost(depth=3, random_seed=seed),
    "catboost by leaf": lambda seed: catboost(grow_policy="Lossguide", max_leaves=5, random_seed=seed),
    "boosting machine": lambda seed: interpret(seed, interactions=0),
    "boosting machine of pairs": lambda seed: interpret(seed, interactions=2, max_bins=8),
    "FIGS": lambda seed: imodels("FIGSClassifier", max_rules=6, random_state=seed),
    "rule list": lambda seed: imodels("GreedyRuleListClassifier", max_depth=4),
    "RuleFit": lambda seed: imodels("RuleFitClassifier", n_estimators=8, include_linear=False, random_state=seed),
    "sigmoid": lambda seed: calibrated(LogisticRegression(C=10.0), "sigmoid"),
    "sigmoid of a forest": lambda seed: calibrated(forest(seed), "sigmoid"),
    "isotonic": lambda seed: calibrated(LinearSVC(random_state=seed), "isotonic"),
    "isotonic of boosting": lambda seed: calibrated(GradientBoostingClassifier(n_estimators=5), "isotonic"),
    "fixed threshold": lambda seed: FixedThresholdClassifier(LogisticRegression(), threshold=0.35),
    "tuned threshold": lambda seed: TunedThresholdClassifierCV(forest(seed), cv=2, random_state=seed),
}
BINARY = {"rule list", "RuleFit", *(name for name in MODELS if name.split()[0] in ("sigmoid", "isotonic"))}
BINARY |= {"fixed threshold", "tuned threshold"}


# --- models that are asked in other ways than through a pipeline ------------------------------------------------------


class Behind:
    """A model behind steps, as a caller writes it: it is asked for labels alone."""

    def __init__(self, steps, label_of):
        self.steps, self.label_of = steps, label_of

    def predict(self, rows):
        return self.label_of(self.steps.transform(rows))


class Unfitted(Problem):
    """A problem whose model no pipeline can train."""

    def fit_model(self, y, make):
        steps = steps_for(self.table, self.kinds, sparse_output=False).set_output(transform="pandas").fit(self.table)
        inner, label_of = make(steps.transform(self.table), y)
        self.model, self.proof = Behind(steps, label_of), make_pipeline(steps, inner)


def network_of(columns, y, seed, layers=(5, 3)):
    trained = MLPClassifier(layers, solver="lbfgs", max_iter=60, random_state=seed).fit(columns.to_numpy(), y)
    return trained.coefs_, trained.intercepts_


def torch_network(coefs, intercepts):
    torch = pytest.importorskip("torch")
    parts = []
    for weights, bias in zip(coefs, intercepts, strict=True):
        layer = torch.nn.Linear(*weights.shape)
        layer.weight.data, layer.bias.data = torch.tensor(weights.T).float(), torch.tensor(bias).float()
        parts += [layer, torch.nn.ReLU()]
    parts[-1] = torch.nn.Sigmoid() if len(bias) == 1 else torch.nn.Identity()
    return torch.nn.Sequential(*parts)


def torch_problem(columns, y, seed):
    torch = pytest.importorskip("torch")

    network = torch_network(*network_of(columns, y, seed))

    def label_of(rows):
        with torch.no_grad():
            scores = network(torch.tensor(rows.to_numpy(dtype=np.float32))).numpy()
        return scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0.5).astype(int)

    return network, label_of


def onnx_file(path, coefs, intercepts, is_gemm=True):
    onnx = pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    nodes, numbers, given = [], [], "given"
    for at, (weights, bias) in enumerate(zip(coefs, intercepts, strict=True)):
        made, last = weights.T if is_gemm else weights, at == len(coefs) - 1
        numbers += [numpy_helper.from_array(made.astype(np.float32), f"w{at}")]
        numbers += [numpy_helper.from_array(bias.astype(np.float32), f"b{at}")]
        if is_gemm:
            nodes.append(helper.make_node("Gemm", [given, f"w{at}", f"b{at}"], [f"s{at}"], transB=1))
        else:
            nodes.append(helper.make_node("MatMul", [given, f"w{at}"], [f"m{at}"]))
            nodes.append(helper.make_node("Add", [f"m{at}", f"b{at}"], [f"s{at}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"s{at}"], [f"r{at}"]))
            given = f"r{at}"
    output = helper.make_tensor_value_info(f"s{at}", onnx.TensorProto.FLOAT, [None, len(bias)])
    entry = helper.make_tensor_value_info("given", onnx.TensorProto.FLOAT, [None, len(coefs[0])])
    graph = helper.make_graph(nodes, "network", [entry], [output], numbers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))
    return load_model(path)


def onnx_problem(path):
    def make(columns, y, seed):
        coefs, intercepts = network_of(columns, y, seed)
        if len(intercepts[-1]) == 1:
            coefs[-1], intercepts[-1] = np.pad(coefs[-1], ((0, 0), (1, 0))), np.pad(intercepts[-1], (1, 0))
        model = onnx_file(path, coefs, intercepts, is_gemm=seed % 2 == 0)
        return model, lambda rows: model.predict(rows).argmax(axis=1)

    return make


def ripper(columns, y, seed):
    wittgenstein = pytest.importorskip("wittgenstein")
    kind = wittgenstein.RIPPER if seed % 2 else wittgenstein.IREP
    model = kind(random_state=seed)
    model.fit(columns, pd.Series(y == 1, name="label"), pos_class=True)
    return model, lambda rows: np.array(model.predict(rows))


class Read(Problem):
    """A problem whose model is read with a threshold and names of classes."""

    def __init__(self, seed, make):
        self.threshold = 0.2 + 0.6 * np.random.default_rng(seed).random()
        self.how = {"threshold": self.threshold, "classes": ("no", "yes")}
        super().__init__(seed, make, is_binary=True)

    def says(self, rows):
        return np.array(["no", "yes"])[(self.model.predict_proba(rows)[:, 1] >= self.threshold).astype(int)]


def problem_of(name, seed, folder):
    if name in MODELS:
        return Problem(seed, MODELS[name], name in BINARY)
    if name.startswith("threshold"):
        makes = [lambda seed: LogisticRegression(), forest, lambda seed: catboost(depth=2)]
        return Read(seed, makes[seed % 3])
    makes = {"torch": torch_problem, "ONNX": onnx_problem(folder / f"{seed}.onnx"), "RIPPER": ripper}
    return Unfitted(seed, lambda seed: lambda *given: makes[name](*given, seed))


@pytest.mark.parametrize("seed", range(1000, 1000 + EACH))
@pytest.mark.parametrize("name", [*MODELS, "torch", "ONNX", "RIPPER", "threshold"])
def test_certificates_agree_with_a_search_over_all_values(name, seed, tmp_path):
    try:
        problem = problem_of(name, seed, tmp_path)
    except ValueError as error:  # of libraries that do not train on such a table
        pytest.skip(f"the model does not train on this table: {error}")
    check(problem)


# --- copies -----------------------------------------------------------------------------------------------------------

HAS_COPY = [name for name in MODELS if name not in ("hard voting", "isotonic", "isotonic of boosting")]
HAS_COPY = [name for name in HAS_COPY if "threshold" not in name]


@pytest.mark.parametrize("name", HAS_COPY)
def test_a_copy_answers_as_the_model_does(name):
    table, n_classes = numbers(), 2 if name in BINARY else 3
    model = make_pipeline(StandardScaler(), MODELS[name](0))
    check_same(model, *copied(model, table, labels(table, n_classes)))


@pytest.mark.parametrize("name", sorted({*MODELS} - {*HAS_COPY}))
def test_of_others_only_proofs_make_use(name):
    """They have no probabilities, or such as are no simple function of the scores: the labels are the model's."""
    table = numbers()
    columns, y = table.to_numpy(), labels(table)
    model = MODELS[name](0).fit(columns, y)
    structure = read(model, columns, np.abs(columns).max(axis=0))
    scores = structure.scores(columns)
    is_sure = np.abs(scores[:, 1] - scores[:, 0]) > 8 * structure.error
    assert is_sure.mean() > 0.9
    np.testing.assert_array_equal(scores.argmax(axis=1)[is_sure], model.predict(columns)[is_sure])


@pytest.mark.parametrize("name", ["bagging", "catboost", "catboost by leaf", "boosting machine of pairs"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_missing_values_go_where_the_model_sends_them(name, n_classes):
    if name == "boosting machine of pairs" and n_classes == 3:
        pytest.skip("it has pairs for two classes only")
    table = with_missing(numbers())
    y = np.where(table["c"].isna(), n_classes - 1, labels(table.fillna(table.mean()), n_classes))
    check_same(model := MODELS[name](0), *copied(model, table, y))


def test_a_number_on_a_cut_of_a_boosting_machine_belongs_to_the_piece_above():
    table = pd.DataFrame({"a": np.repeat([0.0, 1.0, 2.0], 40), "b": np.tile([0.0, 1.0, 5.0], 40)})
    model = interpret(interactions=1).fit(table.to_numpy(), ((table.a > 0.5) ^ (table.b > 2)).astype(int))
    cuts = np.concatenate([model.bins_[0][0], np.nextafter(model.bins_[0][0], -np.inf)])
    columns = np.column_stack([cuts, np.full(len(cuts), model.bins_[1][0][0])])
    structure = read(model, columns, np.full(2, 9.0))
    np.testing.assert_allclose(structure.scores(columns)[:, 1], model.decision_function(columns), rtol=1e-12)
    assert len(np.unique(structure.scores(columns)[:, 1])) > 1


# --- what is not read -------------------------------------------------------------------------------------------------


def trained(estimator, n_classes=2, columns=None):
    columns = numbers().to_numpy() if columns is None else columns
    return estimator.fit(columns, labels(numbers(), n_classes))


def reason_of(model):
    columns = numbers().to_numpy()
    with pytest.raises(NotKnownError) as raised:
        read(model, columns, np.abs(columns).max(axis=0))
    return str(raised.value)


def deaf(model, **parts):
    """Return a model with some of its fitted parts replaced."""
    for name, part in parts.items():
        setattr(model, name, part)
    return model


def with_categories(estimator):
    columns = numbers().assign(d=np.array(["x", "y", "z"])[np.arange(240) % 3])
    return estimator.fit(columns, labels(numbers()))


LINEAR = LogisticRegression()
NOT_READ = {
    "AdaBoost": (
        lambda: trained(AdaBoostClassifier(LINEAR, n_estimators=3)),
        "boosting of other members than trees and forests is not known",
    ),
    "AdaBoost of forests": (
        lambda: trained(AdaBoostClassifier(forest(), n_estimators=3)),
        "votes of other members than single trees are not known",
    ),
    "bagging": (lambda: trained(BaggingClassifier(LINEAR, 3)), "bagging of other members than trees and forests"),
    "soft voting": (
        lambda: trained(voting(LINEAR, tree(), voting="soft")),
        "voting of other members than trees and forests is not known",
    ),
    "voting of pipelines": (
        lambda: trained(voting(make_pipeline(StandardScaler(), tree()), tree(), voting="soft")),
        "this kind of model is not known",
    ),
    "hard voting": (
        lambda: trained(voting(forest(), tree())),
        "votes of other members than single trees are not known",
    ),
    "several folds": (
        lambda: trained(CalibratedClassifierCV(LINEAR, cv=3, ensemble=True)),
        "a calibration of several classes, or an average of several, is not known",
    ),
    "calibration of classes": (
        lambda: trained(calibrated(LINEAR, "sigmoid"), 3),
        "a calibration of several classes, or an average of several, is not known",
    ),
    "calibration of a network": (
        lambda: trained(calibrated(MLPClassifier((4,), max_iter=9), "isotonic")),
        "a calibration of such probabilities is not known",
    ),
    "calibration of FIGS": (
        lambda: trained(calibrated(imodels("FIGSClassifier", max_rules=4), "isotonic")),
        "what the decision values of FIGSClassifier are is not known",
    ),
    "threshold behind a threshold": (
        lambda: trained(
            FixedThresholdClassifier(
                FixedThresholdClassifier(LINEAR, threshold=0.4), threshold=0.1, response_method="decision_function"
            )
        ),
        "what the decision values of FixedThresholdClassifier are is not known",
    ),
    "temperature": (
        lambda: trained(calibrated(LINEAR, "temperature")),
        "the calibration 'temperature' is not known",
    ),
    "threshold": (
        lambda: trained(FixedThresholdClassifier(LINEAR, threshold=0.4, pos_label=0)),
        "a threshold for the first class, or one that is not given, is not known",
    ),
    "catboost": (lambda: with_categories(catboost(cat_features=["d"])), "parameter 'cat_features' of CatBoost"),
    "catboost of one class each": (
        lambda: trained(catboost(loss_function="MultiClassOneVsAll"), 3),
        "this kind of catboost model is not known",
    ),
    "catboost with a threshold": (
        lambda: (model := trained(catboost()), model.set_probability_threshold(0.3))[0],
        "catboost with another threshold than 0.5 is not known",
    ),
    "boosting machine": (
        lambda: with_categories(interpret(interactions=0)),
        "boosting with categories of its own is not known",
    ),
    "FIGS": (
        lambda: deaf(trained(imodels("FIGSClassifier")), _encoder=None),
        "a sum of trees with categories of its own is not known",
    ),
    "rule list": (
        lambda: deaf(trained(imodels("GreedyRuleListClassifier")), rules_=[{"depth": 0}, {"val": 0.5}]),
        "the model could not be read: it raised",
    ),
    "RuleFit": (
        lambda: trained(imodels("RuleFitClassifier", n_estimators=5, alpha=0.01)),
        "rules beside linear terms are not known",
    ),
}


@pytest.mark.parametrize("kind", NOT_READ)
def test_what_a_reader_does_not_know_is_named(kind):
    make, reason = NOT_READ[kind]
    if kind == "temperature" and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("scikit-learn before 1.8 has no such calibration")
    assert reason in reason_of(make())


@pytest.mark.parametrize("name", MODELS)
def test_a_parameter_that_no_reader_has_looked_at_is_named(name):
    model = trained(MODELS[name](0))
    known = model.get_params(deep=False)
    model.get_params = lambda deep=True: known | {"turn_around": True}
    assert "what the parameter 'turn_around' of" in reason_of(model)


def test_rules_about_levels_are_not_read():
    wittgenstein = pytest.importorskip("wittgenstein")
    table = numbers().assign(d=np.where(numbers()["a"] > 5, "x", "y"))
    model = wittgenstein.RIPPER(random_state=0)
    model.fit(table, pd.Series(table["d"] == "x", name="label"), pos_class=True)
    assert reason_of(model) == "rules about levels of their own are not known"


def torch_parts():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    hooked = nn.Sequential(nn.Linear(4, 2))
    hooked[0].register_forward_hook(lambda *given: None)
    return {
        "the layer Tanh of a torch network": nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)),
        "sums and rectified units in turn": nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)),
        "2 outputs that ends in 'sigmoid'": nn.Sequential(nn.Linear(4, 2), nn.Sigmoid()),
        "2 outputs that ends in 'relu'": nn.Sequential(nn.Linear(4, 2), nn.ReLU()),
        "numbers of this kind": nn.Sequential(nn.Linear(4, 2).half()),
        "with hooks": hooked,
    }


@pytest.mark.parametrize("place", range(6))
def test_torch_networks_of_other_layers_are_not_read(place):
    reason, network = [*torch_parts().items()][place]
    assert reason in reason_of(network)


def test_onnx_graphs_of_other_nodes_are_not_read(tmp_path):
    onnx = pytest.importorskip("onnx")
    made = network_of(numbers(), labels(numbers()), 0)
    model = onnx_file(tmp_path / "known.onnx", *made)
    columns = numbers().to_numpy()
    assert read(model, columns, np.abs(columns).max(axis=0)).words == "network"
    content = onnx.load(tmp_path / "known.onnx")
    content.graph.node[1].op_type = "Tanh"
    onnx.save(content, str(tmp_path / "other.onnx"))
    assert reason_of(load_model(tmp_path / "other.onnx")) == "the node Tanh of an ONNX graph is not known"
    onnx.save(content, str(tmp_path / "known.onnx"))  # the file was changed since it was loaded
    assert "not known" in reason_of(model)


def test_a_file_that_was_changed_since_it_was_loaded_is_not_believed(tmp_path):
    coefs, intercepts = network_of(numbers(), labels(numbers()), 0)
    model = onnx_file(tmp_path / "network.onnx", coefs, intercepts)
    onnx_file(tmp_path / "network.onnx", [coefs[0], *coefs[1:-1], -coefs[-1]], intercepts)
    assert reason_of(model) == "the model's answers are not those of its structure"


def test_a_calibration_of_a_frozen_model_is_read():
    columns, y = numbers().to_numpy(), labels(numbers())
    model = CalibratedClassifierCV(FrozenEstimator(trained(LogisticRegression()))).fit(columns, y)
    structure = read(model, columns, np.abs(columns).max(axis=0))
    np.testing.assert_allclose(1 / (1 + np.exp(-structure.scores(columns)[:, 1])), model.predict_proba(columns)[:, 1])


def test_a_torch_network_is_read_as_it_is_asked():
    network = torch_network(*network_of(numbers(), labels(numbers()), 0, layers=(4,)))
    explainer = ONBMACF(plausibility=0).fit(numbers(), network[:-1], threshold=0.4, classes=("no", "yes"))
    found = explainer.explain(numbers().iloc[:2], prove=True, prove_seconds=600)
    assert {one.certificate.kind for one in found} == {"nearest"}


def test_rules_over_columns_of_single_precision_are_not_proven():
    """They are compared with rounded numbers, which may lie on the other side of a value."""
    table = numbers().astype(np.float32)
    model = MODELS["RuleFit"](0).fit(table, labels(numbers()))
    answers = ONBMACF(plausibility=0).fit(table, model).explain(table.iloc[:2], prove=True)
    assert all("over columns of single precision" in answer.certificate.sentence() for answer in answers)


# --- models from files ------------------------------------------------------------------------------------------------


def test_a_model_from_a_file_is_read_with_its_columns_in_its_own_order(tmp_path):
    table, y = numbers(), labels(numbers())
    trained = catboost(depth=3).fit(table[["c", "a", "d", "b"]], y)
    trained.save_model(str(tmp_path / "trees.cbm"))
    model = load_model(tmp_path / "trees.cbm", table)
    form = TableForm.fit(table, None)
    N = form.numbers(table)
    copy = ModelCopy.of(model, form, N, [0, 1])
    np.testing.assert_allclose(copy.probabilities(N), trained.predict_proba(table[["c", "a", "d", "b"]]), rtol=1e-9)
    answers = ONBMACF(plausibility=0).fit(table, model).explain(table.iloc[:2], prove=True, prove_seconds=60)
    assert {answer.certificate.kind for answer in answers} == {"nearest"}


def test_a_model_from_a_file_that_takes_text_is_not_read(tmp_path):
    table = numbers().assign(d=np.array(["x", "y", "z"])[np.arange(240) % 3])
    trained = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True)
    trained.fit(table.astype({"d": "category"}), labels(numbers()))
    trained.save_model(tmp_path / "trees.ubj")
    model = load_model(tmp_path / "trees.ubj", table)
    form = TableForm.fit(table, None)
    with pytest.raises(NotKnownError, match="takes text as categories"):
        ModelCopy.of(model, form, form.numbers(table), [0, 1])
