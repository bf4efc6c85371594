"""Rules between features: read as people state them, kept by every answer, and never proven wrong."""

import itertools
import operator

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._table.constraints import Constraints
from onbmacf._table.space import FeatureSpace
from onbmacf._table.values import Values
from onbmacf.errors import ParameterError
from onbmacf.rules import sentence

LEVELS = ["low", "mid", "high"]


def rows(n=90, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "education": pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True),
            "age": rng.integers(20, 26, n),
            "housing": rng.choice(["own", "let"], n),
            "rent": rng.integers(0, 4, n),
        }
    )


TABLE = rows()
LABELS = ((TABLE["education"].cat.codes + TABLE["rent"] + (TABLE["housing"] == "own")) > 3).to_numpy()
SCHEMA = Schema.infer(TABLE)
MODEL = DecisionTreeClassifier(random_state=0).fit(
    TABLE.assign(education=TABLE["education"].cat.codes, housing=TABLE["housing"] == "own"), LABELS
)


def model(rows):
    return MODEL.predict(rows[[*TABLE]].assign(education=rows["education"].cat.codes, housing=rows["housing"] == "own"))


# Each sentence, and what it means of a row after and before, written by hand.
MEANT = {
    "if education rises, age must rise by at least 2": lambda a, b: (
        not LEVELS.index(a["education"]) > LEVELS.index(b["education"]) or a["age"] >= b["age"] + 2
    ),
    "if housing is 'own', then rent is 0": lambda a, b: a["housing"] != "own" or a["rent"] == 0,
    "if housing is not own, rent must be at least 1": lambda a, b: a["housing"] == "own" or a["rent"] >= 1,
    "if rent changes, education stays": lambda a, b: a["rent"] == b["rent"] or a["education"] == b["education"],
    "if rent falls by at least 2, age falls": lambda a, b: b["rent"] - a["rent"] < 2 or a["age"] < b["age"],
    "if education is high, housing is not let": lambda a, b: a["education"] != "high" or a["housing"] != "let",
    "if rent is at most 1, age is at least 22": lambda a, b: a["rent"] > 1 or a["age"] >= 22,
    "age + rent = 25": lambda a, b: a["age"] + a["rent"] == 25,
    "age + rent <= 24": lambda a, b: a["age"] + a["rent"] <= 24,
    "age + rent >= 23": lambda a, b: a["age"] + a["rent"] >= 23,
    "rent moves with age": lambda a, b: a["rent"] - b["rent"] == a["age"] - b["age"],
    "age moves with rent times -2": lambda a, b: a["age"] - b["age"] == -2 * (a["rent"] - b["rent"]),
}


def named(text):
    return {word.strip("'") for word in text.replace(",", " ").split()} & {*TABLE}


def keeps(text, after, before):
    return all(after[name] == before[name] for name in named(text)) or MEANT[text](after, before)


def every_row():
    ends = [LEVELS, range(20, 26), ["own", "let"], range(4)]
    return pd.DataFrame(itertools.product(*ends), columns=list(TABLE)).astype(TABLE.dtypes)


EVERY = every_row()
SAID = model(EVERY)


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF(plausibility=0).fit(TABLE, model, schema=SCHEMA)


@pytest.mark.parametrize("strategy", ["refined", "paper"])
@pytest.mark.parametrize("text", MEANT)
def test_no_answer_breaks_a_rule_between_features(text, strategy):
    explainer = ONBMACF(strategy=strategy).fit(TABLE, model, schema=SCHEMA.with_rules({"relations": [text]}))
    answers = explainer.explain(TABLE.iloc[:40], n=2)
    n = 0
    for one in answers:
        for found in one.counterfactuals:
            n += 1
            assert keeps(text, found.values, one.factual)
            if found.semifactual is not None:
                assert keeps(text, found.semifactual.values, one.factual)
    assert n > 10


@pytest.mark.parametrize("text", MEANT)
def test_what_is_asked_and_proven_is_all_there_is(explainer, text):
    """Every allowed combination, by the hand-written meaning: there is an answer just where one of these is one."""
    answers = explainer.explain(TABLE.iloc[:25], rules={"relations": [text]}, prove=True)
    spans = {"age": 5, "rent": 3}
    n_none = 0
    for one in answers:
        before = one.factual
        good = [
            at
            for at, after in enumerate(EVERY.to_dict("records"))
            if keeps(text, after, before) and SAID[at] != one.label
        ]
        assert bool(good) == bool(one.counterfactuals), (text, before.to_dict())
        n_none += not good
        if not good:
            assert one.status == "infeasible"
            continue
        apart = [
            abs(LEVELS.index(after["education"]) - LEVELS.index(before["education"])) / 2
            + (after["housing"] != before["housing"])
            + sum(abs(after[name] - before[name]) / span for name, span in spans.items())
            for after in EVERY.iloc[good].to_dict("records")
        ]
        assert one.counterfactuals[0].distance == pytest.approx(min(apart))
        assert one.certificate.kind == "nearest"
        assert "by asking about all" in one.certificate.how


def test_a_proof_of_a_model_that_is_read_abstains():
    table = TABLE.assign(education=TABLE["education"].cat.codes.astype(int), housing=(TABLE["housing"] == "own") * 1)
    table["more"] = np.random.default_rng(0).normal(0, 1, len(table)).round(3)
    tree = DecisionTreeClassifier(random_state=0).fit(table, LABELS)
    explainer = ONBMACF(plausibility=0).fit(table, tree)
    free = explainer.explain(table.iloc[[0]], prove=True)[0]
    ruled = explainer.explain(table.iloc[[0]], prove=True, rules={"relations": ["age + rent = 25"]})[0]
    assert free.certificate.is_proven
    assert not ruled.certificate.is_proven
    assert "proofs do not read rules between features such as 'age + rent = 25'" in ruled.certificate.reason


def test_a_row_without_an_answer_says_which_rule_blocks_it(explainer):
    rules = {"relations": ["if housing is own, rent is 0", "if rent changes, education stays"], "max_changes": 1}
    answers = explainer.explain(TABLE, rules={**rules, "features": {"education": {"allowed": ["low"]}}})
    needs = {need for one in answers for need in one.would_need}
    assert "the rule 'if housing is own, rent is 0'" in needs or "the rule 'if rent changes, education stays'" in needs
    broken = [one.reason.partition("The row itself breaks the rule")[2].split(".")[0] for one in answers]
    assert [("'if housing is own, rent is 0'" in said) for said in broken] == [
        row["housing"] == "own" and row["rent"] != 0 for row in TABLE.to_dict("records")
    ]


def test_narrow_numbers_are_compared_as_they_are_written():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.dirichlet([2, 2, 2], 300), columns=["stocks", "bonds", "cash"]).mul(100).round(1)
    table["cash"] = (100 - table["stocks"] - table["bonds"]).round(1)
    explainer = ONBMACF().fit(table.astype(np.float32), lambda rows: (rows["stocks"] > 50).astype(int))
    rules = {"relations": ["stocks + bonds + cash = 100", "if stocks rises, cash is at most 20.1"]}
    answers = explainer.explain(table.iloc[:40], rules=rules)
    assert (answers.statuses == "found").mean() > 0.9
    for one in answers:
        for found in one.counterfactuals:
            written = [float(str(value)) for value in found.values.to_numpy()]
            assert sum(written) == pytest.approx(100, abs=1e-9)
            assert one.factual["stocks"] >= found.values["stocks"] or written[2] <= 20.1


def test_a_sum_of_narrow_numbers_is_no_sum_of_their_errors():
    table = pd.DataFrame([[20.1, 20.2, 59.7], [33.3, 33.3, 33.4], [1, 1.1, 97.9]], columns=["a", "b", "c"])
    space = FeatureSpace.fit(table.astype(np.float32))
    constraints = Constraints(space, Rules(relations=["a + b + c = 100", "if a changes, c is at most 33.4"]))
    N = space.form.numbers(table.astype(np.float32))
    assert constraints.allowed(N[[1, 0, 1]], N[[0, 1, 2]]).tolist() == [True, False, True]
    assert constraints.broken_by(N) == {}


def test_shares_stay_shares():
    rng = np.random.default_rng(0)
    parts = rng.dirichlet([2, 2, 2], 300)
    table = pd.DataFrame(parts, columns=["stocks", "bonds", "cash"]).mul(100).round(0)
    table["cash"] = 100 - table["stocks"] - table["bonds"]
    explainer = ONBMACF().fit(table, lambda rows: (rows["stocks"] > 50).astype(int))
    free = explainer.explain(table.iloc[:60])
    assert any(found.values.sum() != 100 for one in free for found in one.counterfactuals)
    answers = explainer.explain(table.iloc[:60], rules={"relations": ["stocks + bonds + cash = 100"]})
    assert (answers.statuses == "found").all()
    assert all(found.values.sum() == 100 for one in answers for found in one.counterfactuals)
    held = explainer.explain(table.iloc[:20], rules={"relations": ["stocks + bonds + cash = 100"]}, immutable=["cash"])
    assert (held.to_frame()["cash"] == table["cash"].iloc[:20].loc[held.to_frame().index]).all()


PLACED = {  # sentence: a proposed point, what becomes of it; from education mid, age 22, housing let, rent 2
    "if education rises, age must rise": ((2, 22, 1, 2), (2, 24, 1, 2)),
    "if education rises, age must rise by at least 2.5": ((2, 22, 1, 2), (2, 26, 1, 2)),
    "if education falls, age must fall": ((0, 22, 1, 2), (0, 20, 1, 2)),
    "if housing is own, rent is 0": ((1, 22, 0, 2), (1, 22, 0, 0)),
    "if housing is own, rent is at most 1": ((1, 22, 0, 2), (1, 22, 0, 1)),
    "if housing changes, rent is at least 3": ((1, 22, 0, 2), (1, 22, 0, 3)),
    "if housing changes, rent stays": ((1, 22, 0, 3), (1, 22, 0, 2)),
    "age + rent = 24": ((1, 24, 1, 2), (1, 24, 1, 0)),
    "rent moves with age times -0.5": ((1, 24, 1, 2), (1, 24, 1, 1)),
    "age moves with rent times 2": ((1, 24, 1, 2), (1, 24, 1, 3)),
    "if rent changes, age must rise by at least 9": ((1, 22, 1, 3), (1, 22, 1, 3)),  # beyond the end: as it is
    "if housing is own, rent is not 2": ((1, 22, 0, 2), (1, 22, 0, 2)),
}


@pytest.mark.parametrize("text, points", PLACED.items(), ids=PLACED)
def test_a_point_that_breaks_a_rule_is_mended_by_moving_one_more_feature(text, points):
    """Ages go in steps of 2 from 20, up to 26."""
    rules = Rules({"age": Rule(step=2, low=20, high=26)}, relations=[text])
    space = FeatureSpace.fit(TABLE.replace({"rent": {1: 3}}), SCHEMA)
    values = Values(space, Constraints(space, rules))
    raw, expected = (np.array([point], dtype=np.float64) for point in points)
    raw[0, 2], expected[0, 2] = 1 - raw[0, 2], 1 - expected[0, 2]  # levels are sorted: let, own
    before = np.array([[1.0, 22, 0, 2]])
    assert values.placed(raw, before).tolist() == expected.tolist()


def test_where_no_fitted_row_keeps_a_rule_answers_are_found_all_the_same():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(0, 10, (400, 6)).round(2), columns=list("abcdef"))
    above = lambda rows: (rows["a"] + rows["b"] > 5).astype(int)  # noqa: E731
    explainer = ONBMACF(plausibility=0).fit(table, above)
    answers = explainer.explain(table.iloc[:40], rules={"relations": ["b moves with a times 0.5"]})
    assert (answers.statuses == "found").mean() > 0.9
    for one in answers:
        for found in one.counterfactuals:
            assert found.values["b"] - one.factual["b"] == pytest.approx((found.values["a"] - one.factual["a"]) / 2)
            assert {*found.changed} == {"a", "b"}


def test_ranges_keep_rules_between_features(explainer):
    answers = explainer.explain(TABLE.iloc[:20], rules={"relations": ["age + rent <= 24"]}, ranges=True)
    for one in answers:
        for found in one.counterfactuals:
            if {"age", "rent"} <= {*found.changed}:
                continue
            for name, range_ in found.ranges.items():
                if name in ("age", "rent"):
                    other = found.values["rent" if name == "age" else "age"]
                    assert range_.high + other <= 24


# --- what is read -----------------------------------------------------------------------------------------------------

READ = {
    "if education rises, age must rise by at least 2": "if education rises, age rises by at least 2",
    "if  housing is 'own', then rent must be 0": "if housing is own, rent is 0",
    "if a is at least 1e3, 'b is it' must not be 'x, y'": 'if a is at least 1000, "b is it" is not x, y',
    "b + c <= -2.5": "b + c <= -2.5",
    "Present residence since moves with Age": "Present residence since moves with Age",
    '"times moves" moves with age times .5': '"times moves" moves with age times 0.5',
    "if Present employment since rises, Age must rise": "if Present employment since rises, Age rises",
}


@pytest.mark.parametrize("text, said", READ.items(), ids=READ)
def test_a_rule_reads_as_people_state_it_and_is_written_so_that_it_is_read_again(text, said):
    (rule,) = Rules(relations=[text]).relations
    assert sentence(rule) == said
    assert Rules(relations=[said]).relations == (rule,)


REFUSED = {
    "no rule": ("age must rise", r"relations\[0\]: 'age must rise' is no rule between features. Such are: 'if a rises"),
    "no text": (7, r"relations\[0\]: 7 is no rule between features"),
    "link of nothing": ("age moves with rent times 0", "is no rule between features"),
    "unknown": ("if educaton rises, age rises", "there is no feature 'educaton'. Did you mean 'education'?"),
    "twice": ("age + age = 3", "'age' is there twice"),
    "no order": ("if housing rises, age rises", "'housing' is .*: its levels have no order|no number"),
    "no number": ("if age is old, rent is 0", "'old' is no number, as 'age' is"),
    "no level": ("if housing is tent, rent is 0", "'housing' has no level 'tent'. Known: 'let', 'own'"),
    "sum of levels": ("housing + rent = 3", "needs numbers, 'housing' is"),
    "bound of levels": ("if education is at least 2, rent is 0", "'education' is ordinal, no number"),
}


@pytest.mark.parametrize("text, pattern", REFUSED.values(), ids=REFUSED)
def test_a_rule_that_cannot_be_is_refused_with_its_words(text, pattern):
    schema = Schema.infer(TABLE, kinds={"housing": "categorical"})
    with pytest.raises(ParameterError, match=pattern):
        ONBMACF().fit(TABLE, model, schema=schema.with_rules({"relations": [text]}))


def test_dates_may_rise_and_are_not_added_up():
    table = TABLE.assign(day=pd.Timestamp("2024-01-01") + pd.to_timedelta(TABLE["age"], unit="D"))
    explainer = ONBMACF().fit(table, model)
    answers = explainer.explain(table.iloc[:10], rules={"relations": ["if education rises, day must rise"]})
    for one in answers:
        for found in one.counterfactuals:
            if LEVELS.index(found.values["education"]) > LEVELS.index(one.factual["education"]):
                assert found.values["day"] > one.factual["day"]
    for text, words in (("day + age = 3", "'day' holds dates"), ("if rent rises, day is 3", "'3' is no number")):
        with pytest.raises(ParameterError, match=words):
            explainer.explain(table.iloc[:1], rules={"relations": [text]})
    with pytest.raises(ParameterError, match="'day' holds dates, of which only rises"):
        explainer.explain(table.iloc[:1], rules={"relations": ["if rent rises, day must rise by at least 3"]})


def test_they_come_from_toml_and_are_kept_in_maps(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('relations = ["if education rises, age must rise by at least 2", "\'age\' + rent <= 30"]\n')
    rules = Rules.from_toml(path)
    assert rules.in_words() == ["if education rises, age rises by at least 2", "age + rent <= 30"]
    explainer = ONBMACF().fit(TABLE, model, schema=SCHEMA.with_rules(rules))
    explainer.save(tmp_path / "map.onb")
    again = ONBMACF.load(tmp_path / "map.onb", model)
    assert again.schema_.rules.relations == rules.relations
    assert again.explain(TABLE.iloc[:9]).to_json() == explainer.explain(TABLE.iloc[:9]).to_json()


def test_columns_of_an_array_have_names():
    X = np.random.default_rng(0).integers(0, 5, (60, 3)).astype(float)
    explainer = ONBMACF().fit(X, lambda rows: (rows[:, 0] > 2).astype(int))
    answers = explainer.explain(X[:20], rules={"relations": ["x0 + x1 <= 5"]})
    for one in answers:
        for found in one.counterfactuals:
            assert found.values["x0"] + found.values["x1"] <= 5 or not {"x0", "x1"} & {*found.changed}


def test_they_read_as_people_call_columns():
    schema = Schema.infer(TABLE, labels={"age": {"name": "years"}}, rules={"relations": ["age + rent = 25"]})
    assert schema.labels.rules(schema.rules).in_words() == ["years + rent = 25"]
    assert operator.attrgetter("relations")(Rules(relations=["age + rent = 25"])) == schema.rules.relations


def test_a_step_and_an_end_hold_for_what_a_rule_moves():
    rules = Rules({"age": Rule(step=2, low=20, high=24)}, relations=["if rent falls, age must rise"])
    rows = TABLE[TABLE["rent"] > 1].iloc[:15]
    found = ONBMACF(plausibility=0).fit(TABLE, lambda rows: (rows["rent"] < 1).astype(int)).explain(rows, rules=rules)
    changed = [one.counterfactuals[0] for one in found if one.counterfactuals]
    assert len(changed) > 4
    assert all(one.values["age"] in (20, 22, 24) and one.values["age"] > one.factual["age"] for one in changed)


# --- command line and page --------------------------------------------------------------------------------------------


def test_the_command_line_takes_them_from_a_file_and_typed(tmp_path):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from onbmacf.cli import app

    TABLE.assign(said=LABELS).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "rules.toml").write_text('relations = ["if rent changes, housing stays"]\n')
    asked = ["explain", str(tmp_path / "table.csv"), "--target-column", "said", "--rows", "0-19", "--format", "csv"]
    typed = ["--rules", str(tmp_path / "rules.toml"), "--relations", "if rent falls, age must rise"]
    done = CliRunner().invoke(app, [*asked, *typed, "--out", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "out.csv").dropna(subset=["rank"])
    before = TABLE.loc[found["row"]].reset_index(drop=True)
    found = found.reset_index(drop=True)
    assert len(found) > 10
    assert not ((found["rent"] != before["rent"]) & (found["housing"] != before["housing"])).any()
    assert (found["age"] > before["age"])[found["rent"] < before["rent"]].all()
    wrong = CliRunner().invoke(app, [*asked, "--relations", "if rent fals, age must rise"])
    assert isinstance(wrong.exception, ParameterError), "one line and exit code 2, where the command is a process"
    assert "is no rule between features" in str(wrong.exception)


def test_a_wish_of_the_page_is_a_rule_between_features(tmp_path):
    for library in ("fastapi", "uvicorn", "httpx", "multipart", "prometheus_client"):
        pytest.importorskip(library)
    import html
    import json
    import re

    from serving import serving

    schema = Schema.infer(TABLE, labels={"rent": {"name": "monthly rent"}})
    explainer = ONBMACF().fit(TABLE, model, schema=schema)
    with serving(explainer, TABLE, None, "people.csv", folder=tmp_path) as running, running.browser() as browser:
        page = browser.get("/case/r0").text
        token = re.search(r'name="csrf_token" value="(\w+)"', page)[1]
        wish = {"csrf_token": token, "n": "5", "relations": "if monthly rent falls, age must rise\n\nage + rent <= 30"}
        answer = html.unescape(browser.post("/case/r0/ask", data=wish, follow_redirects=True).text)
        assert "if rent falls, age rises\nage + rent <= 30</textarea>" in answer
        document = json.loads(browser.get("/case/r0/plans.json").text)["answers"][0]
        for found in document["counterfactuals"]:
            if found["values"]["rent"] < document["factual"]["rent"]:
                assert found["values"]["age"] > document["factual"]["age"]
        assert "if monthly rent falls, age rises" in html.unescape(browser.get("/case/r0/print").text)
        wrong = browser.post("/case/r0/ask", data={**wish, "relations": "rent fals"}, follow_redirects=True)
        assert "is no rule between features" in html.unescape(wrong.text)
        asked = {"rows": [document["factual"]], "rules": {"relations": ["age + rent <= 30"]}}
        with running.client() as client:
            assert client.post("/v1/explain", json=asked).status_code == 200
