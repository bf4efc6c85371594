"""Conditions that counterfactuals cross: what is printed is true of the rows, and what the models' own code says."""

import operator
import pickle
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from _prove.test_copies import labels, mixed, numbers, with_missing
from _prove.test_kinds import catboost, imodels, interpret
from amounts import IS_ALL
from onbmacf import ONBMACF, Schema
from onbmacf._explain.crossed import conditions_of, of_explanations
from onbmacf.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore")
N_ROWS = 40 if IS_ALL else 4  # per kind, with two answers for each: 1,000 answers and more over all
SIGNS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
LEVELS, NUMBERS = ["town", "kind", "is_new"], ["a", "b", "c"]


def steps(kind="scaled", **how):
    """Return steps for the mixed table: levels as columns of 0 and 1 or as codes, numbers as they are or scaled."""
    if kind == "codes":
        return make_column_transformer((OrdinalEncoder(), LEVELS), (MinMaxScaler(), NUMBERS))
    numbers = {"scaled": StandardScaler(), "plain": "passthrough", "filled": SimpleImputer()}[kind]
    how = {"handle_unknown": "ignore"} | how
    return make_column_transformer((OneHotEncoder(**how), LEVELS), (numbers, NUMBERS))


MODELS = {
    "tree": (steps, lambda: DecisionTreeClassifier(max_depth=6, random_state=0)),
    "forest": (steps, lambda: RandomForestClassifier(30, random_state=0)),
    "forest of codes": (lambda: steps("codes"), lambda: RandomForestClassifier(30, random_state=0)),
    "forest, filled": (lambda: steps("filled"), lambda: RandomForestClassifier(30, random_state=0)),
    "bagging": (steps, lambda: BaggingClassifier(n_estimators=9, max_features=0.7, random_state=0)),
    "AdaBoost": (steps, lambda: AdaBoostClassifier(n_estimators=12, random_state=0)),
    "boosting": (steps, lambda: GradientBoostingClassifier(n_estimators=20, random_state=0)),
    "hist boosting": (steps, lambda: HistGradientBoostingClassifier(max_iter=20, random_state=0)),
    "xgboost": (lambda: steps(sparse_output=False), lambda: XGBClassifier(n_estimators=20, n_jobs=1)),
    "xgboost, sparse": (lambda: steps("plain"), lambda: XGBClassifier(n_estimators=20, n_jobs=1)),
    "lightgbm": (steps, lambda: LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)),
    "catboost": (lambda: steps(sparse_output=False), lambda: catboost(depth=4)),
    "boosting machine": (lambda: steps(sparse_output=False), lambda: interpret(interactions=1, max_bins=16)),
    "FIGS": (lambda: steps(sparse_output=False), lambda: imodels("FIGSClassifier", max_rules=8, random_state=0)),
    "rule list": (lambda: steps(sparse_output=False), lambda: imodels("GreedyRuleListClassifier", max_depth=6)),
    "RuleFit": (
        lambda: steps(sparse_output=False),
        lambda: imodels("RuleFitClassifier", n_estimators=8, include_linear=False, random_state=0),
    ),
}
TAKE_MISSING = ["tree", "forest", "forest, filled", "hist boosting", "xgboost", "xgboost, sparse", "lightgbm"]


def asked(name, table):
    """Return a fitted explainer, its answers for some rows, and the pipeline that was asked."""
    before, estimator = MODELS[name]
    y = labels(table.fillna({name: table[name].mode()[0] for name in table}))
    model = make_pipeline(before(), estimator()).fit(table, y)
    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table))
    return explainer, explainer.explain(table.sample(N_ROWS, random_state=1)), model


def is_true(text, feature, value):
    """Say whether a printed condition is true of a value: read here, with none of the package's code."""
    said, is_missing = text.removeprefix(f"{feature} "), value is None or value is pd.NA or value != value
    if said in ("is missing", "is known"):
        return is_missing == (said == "is missing")
    first, *others = said.split(" or ") if said[0] in "<>" else [said]
    shown = "missing" if is_missing else str(value).removesuffix(".0")
    if numeric := re.fullmatch(r"([<>]=?) (\S+?)((?: but not \S+)*)", first):
        sign, number, without = numeric.groups()
        if shown in others:
            return True
        return not is_missing and SIGNS[sign](value, float(number)) and f" but not {shown}" not in without
    is_not = next((word for word in ("is not ", "is neither ", "is none of ") if said.startswith(word)), "")
    words = said.removeprefix(is_not or "is ").removeprefix("one of ")
    return (shown in re.split(r", | or | nor ", words)) != bool(is_not)


def check_printed(frame, answers):
    """Each line says of its values what its condition says of them, and its values are those of the rows."""
    changed = {(row, rank) for row, rank in zip(frame.index, frame["rank"], strict=True)}
    assert changed
    for one in frame.to_dict("records"):
        now = [is_true(one["condition"], one["feature"], one[when]) for when in ("before", "after")]
        assert now == {"now": [False, True], "no longer": [True, False], "still": [now[0]] * 2}[one["holds"]], one
    for at, place in enumerate(answers.batch.factual):
        rank = int((answers.batch.factual[:at] == place).sum()) + 1
        lines = frame[(frame.index == answers.rows.index[place]) & (frame["rank"] == rank)]
        values = answers.batch.values.iloc[at]
        for one in lines.to_dict("records"):
            for value, row in ((one["before"], answers.rows.iloc[place]), (one["after"], values)):
                assert value == row[one["feature"]] or (pd.isna(value) and pd.isna(row[one["feature"]]))


def check_added(explainer, answers, model, name):
    """The effects of each counterfactual add up to what the model's own scores change by."""
    found = of_explanations(answers)
    total = np.zeros(len(answers.batch.factual))
    np.add.at(total, found.crossings.line, found.effects())
    before, after = (answers.rows.iloc[answers.batch.factual], answers.batch.values)
    is_second = answers.batch.label == model.classes_[1]
    if found.conditions.structure.link == "share":
        change = model.predict_proba(after)[:, 1] - model.predict_proba(before)[:, 1]
    elif hasattr(model, "decision_function") and name != "FIGS":
        change = model.decision_function(after) - model.decision_function(before)
    else:
        odds = [np.log(p[:, 1] / p[:, 0]) for p in map(model.predict_proba, (before, after))]
        change = odds[1] - odds[0]
    change = np.where(is_second, change, -change)
    np.testing.assert_allclose(total, change, rtol=1e-4, atol=2e-5)


def leaves_of(model, rows):
    """Return the leaf of each tree, from the libraries' own code; None where they do not tell."""
    columns, last = model[:-1].transform(rows), model[-1]
    if isinstance(last, (RandomForestClassifier, XGBClassifier)):
        return last.apply(columns)
    if isinstance(last, DecisionTreeClassifier):
        return last.apply(columns)[:, np.newaxis]
    return last.predict(columns, pred_leaf=True) if isinstance(last, LGBMClassifier) else None


@pytest.mark.parametrize("lacks", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_conditions_are_true_and_those_that_the_model_answers_otherwise(name, lacks):
    if lacks and name not in TAKE_MISSING:
        pytest.skip("it takes no missing values")
    table = with_missing(mixed()).assign(is_new=mixed()["is_new"]) if lacks else mixed()
    explainer, answers, model = asked(name, table)
    check_printed(answers.rules(), answers)
    check_added(explainer, answers, model, name)
    own = [leaves_of(model, rows) for rows in (answers.rows.iloc[answers.batch.factual], answers.batch.values)]
    if own[0] is not None:
        found = of_explanations(answers).crossings
        expected = {(line, tree) for line, tree in np.argwhere(own[0] != own[1]).tolist()}
        assert set(zip(found.line.tolist(), found.unit.tolist(), strict=True)) == expected


# --- rules, by the models' own words ----------------------------------------------------------------------------------


def test_the_rules_of_a_list_fire_as_the_list_itself_says():
    table = numbers()
    model = imodels("GreedyRuleListClassifier", max_depth=5).fit(table, labels(table))
    answers = ONBMACF(2).fit(table, model).explain(table.head(4 * N_ROWS))
    fired = []
    for rows in (answers.rows.iloc[answers.batch.factual], answers.batch.values):
        each = []
        for _, row in rows.iterrows():
            hold = [(row.iloc[r["index_col"]] < r["cutoff"]) == bool(r["flip"]) for r in model.rules_[:-1]]
            each.append(hold.index(True) + 1 if any(hold) else None)
        fired.append(each)
    assert len({*fired[0], *fired[1]}) > 2
    frame = answers.rules()
    for at, (was, now) in enumerate(zip(*fired, strict=True)):
        rank = int((answers.batch.factual[:at] == answers.batch.factual[at]).sum()) + 1
        lines = frame[(frame.index == answers.rows.index[answers.batch.factual[at]]) & (frame["rank"] == rank)]
        told = {(one["rule"], one["fires"]) for one in lines.to_dict("records")}
        assert told == {(was, "no longer")} - {(None, "no longer")} | {(now, "now")} - {(None, "now")}


def test_the_rules_of_a_set_fire_as_ripper_itself_says():
    wittgenstein = pytest.importorskip("wittgenstein")
    table = numbers()
    model = wittgenstein.RIPPER(random_state=1)
    model.fit(table, pd.Series(labels(table) == 1, name="label"), pos_class=True)
    answers = ONBMACF(2).fit(table, model.predict).explain(table.head(4 * N_ROWS))
    names = [str(rule) for rule in model.ruleset_.rules]
    fired = []
    for rows in (answers.rows.iloc[answers.batch.factual], answers.batch.values):
        reasons = model.predict(rows.reset_index(drop=True), give_reasons=True)[1]
        fired.append([{names.index(str(rule)) + 1 for rule in some} for some in reasons])
    frame, n_told = answers.rules(), 0
    for at, (was, now) in enumerate(zip(*fired, strict=True)):
        rank = int((answers.batch.factual[:at] == answers.batch.factual[at]).sum()) + 1
        lines = frame[(frame.index == answers.rows.index[answers.batch.factual[at]]) & (frame["rank"] == rank)]
        told = {(one["rule"], one["fires"]) for one in lines.to_dict("records")}
        assert told == {(one, "no longer") for one in was - now} | {(one, "now") for one in now - was}
        n_told += len(told)
    assert n_told >= len(answers.batch.factual)
    check_printed(frame, answers)


def test_thresholds_and_numbers_of_trees_are_those_of_scikit_learn():
    """Over columns as they are: each line is the condition of so many trees, at nodes on the way of the answer."""
    table = numbers()
    model = RandomForestClassifier(25, random_state=0).fit(table, labels(table))
    answers = ONBMACF().fit(table, model).explain(table.head(2 * N_ROWS))
    for at, place in enumerate(answers.batch.factual):
        before, after = answers.rows.iloc[[place]], answers.batch.values.iloc[[at]]
        expected = Counter()
        for one in model.estimators_:
            tree, mine = one.tree_, set()
            for node in one.decision_path(after.to_numpy()).indices:
                column, limit = tree.feature[node], tree.threshold[node]
                sides = [np.float32(row.iloc[0, column]) <= limit for row in (before, after)]
                if tree.children_left[node] >= 0 and sides[0] != sides[1]:
                    mine.add(f"{table.columns[column]} {'<=' if sides[1] else '>'} {limit:.6g}")
            expected.update(mine)
        lines = answers.rules().iloc[lambda frame, row=before.index[0]: (frame.index == row).nonzero()[0]]
        # A number on a threshold may be on its other side in single precision: then there is another sign, and rightly.
        told = dict(zip(lines["condition"], lines["used_by"], strict=True))
        assert without_equals(told) == without_equals(expected)
    check_printed(answers.rules(), answers)


def without_equals(told):
    return {condition.replace("=", ""): n for condition, n in told.items()}


def test_a_single_tree_says_its_conditions_from_the_root_on(heart):
    table = heart.drop(columns="famhist")
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(table, heart["famhist"])
    answers = ONBMACF().fit(table, model).explain(table.head(20))
    for answer in answers:
        row, found = answer.factual.to_frame().T, answer.counterfactuals[0].values.to_frame().T
        path = model.decision_path(found.to_numpy(dtype=float)).indices
        nodes = [node for node in path if model.tree_.children_left[node] >= 0]
        columns, limits = model.tree_.feature[nodes], model.tree_.threshold[nodes]
        is_crossed = [
            (np.float32(row.iloc[0, column]) <= limit) != (np.float32(found.iloc[0, column]) <= limit)
            for column, limit in zip(columns, limits, strict=True)
        ]
        assert answer.rules()["feature"].tolist() == table.columns[columns[is_crossed]].tolist()


# --- words ------------------------------------------------------------------------------------------------------------


def test_a_threshold_has_the_digits_that_tell_its_values_apart():
    table = pd.DataFrame({"a": np.repeat([0.123456, 0.123457, 0.9], 20)})
    model = make_pipeline(FunctionTransformer(), DecisionTreeClassifier(random_state=0)).fit(table, np.arange(60) < 20)
    answers = ONBMACF(plausibility=0).fit(table, model).explain(table.iloc[[0, 20]])
    check_printed(answers.rules(), answers)
    assert set(answers.rules()["condition"]) == {"a < 0.123457", "a >= 0.123457"}


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler])
def test_thresholds_are_taken_back_through_scalers_to_the_bit(scaler):
    table = numbers()
    model = make_pipeline(scaler(), GradientBoostingClassifier(n_estimators=9, random_state=0))
    explainer = ONBMACF().fit(table, model.fit(table, labels(table)))
    conditions = conditions_of(explainer.fitted_)
    assert len(conditions.cuts) > 30
    for at in range(4):
        expected = np.unique(np.concatenate([thresholds(one, at) for one in model[-1].estimators_.ravel()]))
        ends = np.array([cut.at for cut in conditions.cuts if cut.feature == at])
        assert len(ends) == len(expected)
        for end, limit in zip(np.sort(ends), expected, strict=True):
            rows = pd.DataFrame(np.repeat([[end], [np.nextafter(end, np.inf)]], 4, axis=1), columns=table.columns)
            scaled = model[:-1].transform(rows).astype(np.float32)[:, at]
            assert (scaled <= limit).tolist() == [True, False]
    printed = explainer.explain(table.head(N_ROWS)).rules()["condition"]
    assert not printed.str.contains(" or | but ").any()


def thresholds(tree, at):
    inner = (tree.tree_.children_left >= 0) & (tree.tree_.feature == at)
    return tree.tree_.threshold[inner]


def test_a_0_that_counts_as_missing_in_a_sparse_matrix_is_named():
    random = np.random.default_rng(5)
    table = pd.DataFrame({"n": random.integers(0, 7, 400), "town": random.choice(list("abcdefghijkl"), 400)})
    steps = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough", sparse_threshold=1.0)
    model = make_pipeline(steps, XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1))
    model.fit(table, ((table["n"] == 0) | (table["n"] > 3)).astype(int))
    answers = ONBMACF(2, plausibility=0).fit(table, model).explain(table.head(60))
    check_printed(answers.rules(), answers)
    check_added(None, answers, model, "xgboost")
    of_n = set(answers.rules().query("feature == 'n'")["condition"])
    assert any(condition.endswith((" or 0", "but not 0")) for condition in of_n)


def test_what_is_missing_goes_where_the_model_sends_it_and_the_condition_says_so():
    table = pd.DataFrame({"a": [1.0, 2.0, None, 8.0, 9.0, None] * 10, "b": np.arange(60.0) % 7})
    y = (table["a"] > 5) | table["a"].isna()
    model = HistGradientBoostingClassifier(min_samples_leaf=5, max_iter=3).fit(table, y)
    explainer = ONBMACF(plausibility=0).fit(table, model, schema=Schema.infer(table, fillable=["a"]))
    answers = explainer.explain(table.iloc[[2]], target=False)
    line = answers.rules().iloc[0]
    assert np.isnan(line["before"])
    assert line["after"] <= 5
    assert line["condition"] == "a <= 5"
    assert answers[0].sentences(rules=True)[0].endswith("now hold: a <= 5 (in 3).")
    back = explainer.explain(table.iloc[[0]], target=True).rules()
    assert back["condition"].tolist() == ["a > 5 or missing"]


def test_sentences_name_rules_by_number_and_in_the_words_of_people(heart):
    schema = Schema.infer(heart[["ldl", "age"]], labels={"ldl": {"name": "cholesterol", "unit": "mmol/l"}})
    table = heart[["ldl", "age"]]
    model = imodels("GreedyRuleListClassifier", max_depth=2).fit(table, (table["ldl"] > 4.2).astype(int))
    answer = ONBMACF().fit(table, model, schema=schema).explain(table.iloc[[0]])[0]
    assert answer.rules()["feature"].tolist() == ["ldl"]
    assert "Rule 1, cholesterol > " in answer.sentences(rules=True)[0]
    assert "no longer fires. No other rule of the rule list fires instead." in answer.sentences(rules=True)[0]
    (said,) = answer.to_dict(rules=True)["counterfactuals"]
    assert [one["fires"] for one in said["rules"]] == ["no longer"]
    assert "rules" not in answer.to_dict()["counterfactuals"][0]


# --- where the model is -----------------------------------------------------------------------------------------------


def test_answers_that_travelled_need_an_explainer_and_say_the_same(heart):
    model = make_pipeline(steps_of_heart(), RandomForestClassifier(9, random_state=0)).fit(heart, heart["age"] > 40)
    explainer = ONBMACF(2).fit(heart, model)
    answers = explainer.explain(heart.head(6))
    sent = pickle.loads(pickle.dumps(answers))
    assert len(pickle.dumps(answers)) < 100_000
    with pytest.raises(ParameterError, match="answers that were saved, sent or put into words do not know"):
        sent.rules()
    assert sent.rules(explainer).equals(answers.rules())
    assert sent[0].rules(explainer).equals(answers[0].rules())
    assert pd.concat([answer.rules() for answer in answers]).equals(answers.rules())
    assert answers[2:4].rules().equals(answers.rules()[answers.rules().index.isin([2, 3])])
    assert sent.to_json(rules=explainer) == answers.to_json(rules=True)
    with pytest.raises(ParameterError, match="explainer must be a fitted ONBMACF, got ONBMACF"):
        sent.rules(ONBMACF())
    with pytest.raises(ParameterError, match="explainer must be a fitted ONBMACF, got DataFrame"):
        sent.rules(heart)


def steps_of_heart():
    return make_column_transformer((OneHotEncoder(), ["famhist"]), remainder=StandardScaler())


NOT_READ = {
    "a linear model has no conditions": lambda heart: make_pipeline(steps_of_heart(), LogisticRegression()),
    "this kind of model is not known": lambda heart: make_pipeline(steps_of_heart(), KNeighborsClassifier()),
}


@pytest.mark.parametrize("why", NOT_READ)
def test_of_other_models_a_sentence_says_why_there_are_no_rules(heart, why):
    model = NOT_READ[why](heart).fit(heart, heart["age"] > 40)
    explainer = ONBMACF().fit(heart, model)
    with pytest.raises(ParameterError, match=f"the rules of this model cannot be told: {why}"):
        explainer.explain(heart.head(2)).rules()


def test_a_function_is_not_read(heart):
    explainer = ONBMACF().fit(heart, lambda rows: rows["age"] > 40)
    with pytest.raises(ParameterError, match="a function cannot be read: fit with the model in it"):
        explainer.explain(heart.head(2)).rules()


def test_rows_without_an_answer_have_no_lines(heart):
    table = heart[["ldl", "age"]]
    explainer = ONBMACF().fit(table, DecisionTreeClassifier(max_depth=2).fit(table, table["age"] > 40))
    none = explainer.explain(table.head(2), immutable=["age"])
    assert none.statuses.tolist() != ["found"] * 2
    assert len(none.rules()) == 0
    assert list(none.rules().columns) == list(explainer.explain(table.head(2)).rules().columns)
    assert none[0].to_dict(rules=True)["counterfactuals"] == []
