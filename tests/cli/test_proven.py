"""What may change, how sure, how far and how long: the arguments of `explain` as options, in every form of output."""

import io
import json

import pandas as pd
import pytest

from commands import one_line
from onbmacf import ONBMACF, Schema
from reading import markdown_cells

CODE = """
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
table = pd.read_csv("people.csv")
columns = make_column_transformer((OneHotEncoder(), ["sex", "town"]), (StandardScaler(), ["age", "pay"]))
linear = make_pipeline(columns, LogisticRegression(C=100)).fit(table.drop(columns="income"), table["income"])
def rule(rows):
    return linear.predict(rows)
def by_town(rows):
    return (rows["town"] == "B").map({True: "high", False: "low"})
"""
SOURCE = ("people.csv", "--drop", "income", "--target", "high")
FORMATS = ("table", "csv", "json", "sentences", "markdown")


@pytest.fixture
def asked(run, people, monkeypatch):
    """Explain rows with a linear model in the working folder; return what is printed."""
    (people.parent / "linear_of_people.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(people.parent))
    monkeypatch.setenv("COLUMNS", "300")

    def asked(*words, rows="0-9", model="linear", kind="json"):
        named = ("--model", f"linear_of_people:{model}", "--rows", rows, "--format", kind)
        code, out, err = run("explain", *SOURCE, *named, *words)
        assert code == 0, err
        return json.loads(out)["answers"] if kind == "json" else out

    yield asked
    monkeypatch.delitem(__import__("sys").modules, "linear_of_people", raising=False)


@pytest.fixture
def refused(run, asked):
    """Return the error of a command, which is one line."""

    def refused(pattern, *words, model="linear"):
        code, _, err = run("explain", *SOURCE, "--model", f"linear_of_people:{model}", *words)
        one_line(code, err, pattern)

    return refused


def found(answers):
    return [one for answer in answers for one in answer["counterfactuals"]]


def model_and_table():
    from linear_of_people import linear, table

    return linear, table.drop(columns="income")


def test_every_format_shows_what_is_proven_and_how_far_values_may_move(asked):
    (answer, *_) = [one for one in asked("--prove", "--ranges") if one["counterfactuals"]]
    row, (first,) = str(answer["row"]), answer["counterfactuals"]
    assert answer["certificate"]["kind"] == "nearest"
    works = first["box"][0]["text"]
    assert works.startswith(("at least", "between", "at most"))
    marks = {"csv": "nearest", "json": '"nearest"', "sentences": "no allowed change is nearer"}
    for kind in FORMATS:
        printed = asked("--prove", "--ranges", rows=row, kind=kind)
        text = json.dumps(printed) if kind == "json" else printed
        text = " ".join(markdown_cells(printed.splitlines()[2])) if kind == "markdown" else text
        assert works in text, kind
        assert marks.get(kind, "(nearest)") in text, kind
        assert works not in str(asked(rows=row, kind=kind)), kind


@pytest.mark.long
def test_that_none_exists_and_that_nothing_is_proven_is_said_everywhere(asked):
    (none,) = asked("--vary", "town", "--prove", rows="2")
    assert (none["status"], none["certificate"]["kind"]) == ("infeasible", "none_exists")
    words = {"csv": "unproven", "json": "'unproven'", "sentences": "Not proven (a function cannot be read"}
    for kind in FORMATS:
        assert "None exists" in str(asked("--vary", "town", "--prove", rows="2", kind=kind)), kind
        open_ = asked("--prove", rows="0-9", model="rule", kind=kind)
        assert words.get(kind, "(not proven)") in str(open_), kind


def test_csv_says_of_rows_without_an_answer_what_is_proven(asked):
    frame = pd.read_csv(io.StringIO(asked("--vary", "town", "--prove", kind="csv")))
    none = frame[frame["status"] == "infeasible"]
    assert len(none)
    assert set(none["certificate"]) == {"none_exists"}
    assert (none["bound"] == float("inf")).all()
    assert frame[frame["status"] == "already"]["certificate"].isna().all()


@pytest.mark.parametrize("kind", ["sentences", "table", "markdown"])
def test_rows_without_an_answer_say_why_nothing_is_proven(asked, kind):
    words = ("--prove", "--vary", "pay,age", "--target", "high")
    frame = pd.read_csv(io.StringIO(asked(*words, model="by_town", kind="csv")))
    row = frame.loc[frame["status"] == "none_found", "row"].iloc[0]
    said = asked(*words, model="by_town", rows=str(row), kind=kind)
    assert "Not proven (a function cannot be read" in said


def test_the_summary_counts_proofs_and_says_why_some_are_missing(run, asked):
    words = ("explain", *SOURCE, "--rows", "0-9", "--prove", "--format", "csv", "--model")
    assert run(*words, "linear_of_people:linear")[2].rstrip().endswith(" nearest.")
    last = run(*words, "linear_of_people:rule")[2].rstrip()
    assert "not proven (a function cannot be read" in last
    assert "Proofs" not in run(*(word for word in words if word != "--prove"), "linear_of_people:linear")[2]


def test_options_ask_what_the_arguments_of_explain_ask(asked):
    answers = asked()
    model, table = model_and_table()
    explainer, rows = ONBMACF().fit(table, model), table.head(10)
    assert answers == explainer.explain(rows, "high").to_dicts()
    for words, arguments in [
        (("--vary", "pay,town"), {"vary": ["pay", "town"]}),
        (("--min-probability", "0"), {"min_probability": 0}),
        (("--min-probability", "0.8"), {"min_probability": 0.8}),
        (("--min-neighbours", "4"), {"min_neighbours": 4}),
        (("--front",), {"front": True}),
        (("--ranges",), {"ranges": True}),
        (("--prove", "--prove-seconds", "30"), {"prove": True, "prove_seconds": 30}),
        (("--max-seconds", "600"), {"max_seconds": 600}),
    ]:
        expected = explainer.explain(rows, "high", **arguments).to_dicts()
        assert asked(*words) == expected, words
        if words[0] not in ("--ranges", "--prove", "--max-seconds"):
            assert expected != answers, words


def test_a_map_is_asked_with_the_options_given(run, asked):
    asked()
    model, table = model_and_table()
    words = ("--model", "linear_of_people:linear", "--immutable", "age", "--out", "people.onb")
    assert run("map", "build", *(word for word in SOURCE if word not in ("--target", "high")), *words)[0] == 0
    kept = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))
    for given, arguments in [((), {}), (("--vary", "age,pay"), {"vary": ["age", "pay"]})]:
        expected = kept.explain(table.head(10), "high", prove=True, ranges=True, **arguments)
        assert asked("--map", "people.onb", "--prove", "--ranges", *given) == expected.to_dicts()


def test_options_that_exclude_each_other_are_named_as_options(refused):
    refused("give --immutable or --vary: one is what the other leaves out", "--immutable", "age", "--vary", "pay")
    refused("--vary names 'pya', which is not a column. Did you mean 'pay'", "--vary", "pya")
    refused("--prove asks the model beyond --max-model-rows: leave one", "--prove", "--max-model-rows", "900")
    refused("--prove does nothing with --strategy paper: leave it out", "--prove", "--strategy", "paper")
    refused("--front does nothing with --strategy paper", "--front", "--strategy", "paper")
    refused("--prove-seconds must be at least 0, got -1.0", "--prove", "--prove-seconds", "-1")
    refused("--prove-seconds is the time for a proof: give --prove, too", "--prove-seconds", "3")
    refused("--max-seconds must be a number above 0, got 0.0", "--max-seconds", "0")
    refused(r"--min-probability must be in \[0, 1\], or 'lasting', got 'sure'", "--min-probability", "sure")
    refused(r"--min-probability must be in \[0, 1\], got 1.5", "--min-probability", "1.5")
    refused("--min-probability needs a model that gives prob", "--min-probability", "lasting", model="rule")


def test_rows_that_the_time_does_not_reach_say_so(asked):
    answers = asked("--max-seconds", "0.000001", rows="all")
    assert len(answers) == 160
    reasons = {one["reason"] for one in answers if one["status"] != "already"}
    assert reasons
    assert all("max_seconds" in reason for reason in reasons)


def test_a_notice_keeps_what_the_command_says_of_a_map(run, asked):
    asked()
    words = ("--model", "linear_of_people:linear")
    source = ("people.csv", "--drop", "income")
    run("map", "build", *source, *words, "--out", "people.onb")
    row = ("notice", *source, *words, "--rows", "0", "--target", "high", "--date", "2026-05-04", "--out", "n.json")
    for given, kept in [
        (("--map", "people.onb", "--immutable", "pay,sex"), ["pay", "sex"]),
        (("--map", "people.onb", "--vary", "town"), ["age", "pay", "sex"]),
        (("--vary", "town"), ["age", "pay", "sex"]),
    ]:
        assert run(*row, *given)[0] == 0
        with open("n.json", encoding="utf-8") as file:
            facts = json.load(file)
        assert facts["kept"] == kept
        assert not any(change["feature"] in kept for one in found([facts["answer"]]) for change in one["changes"])
        assert not {reason["feature"] for reason in facts["reasons"]} & set(kept)


def test_an_audit_compares_the_groups_that_the_command_calls_immutable_and_shows_proofs(run, asked):
    asked()
    words = ("people.csv", "--target-column", "income", "--model", "linear_of_people:linear")
    run("map", "build", *words, "--out", "people.onb")
    more = ("--map", "people.onb", "--immutable", "sex", "--target", "high", "--prove", "--ranges", "--actions", "0")
    more += ("--most", "20")
    code, _, err = run("audit", *words, *more, "--out", "report.md")
    assert code == 0, err
    with open("report.md", encoding="utf-8") as file:
        text = file.read()
    assert "no allowed change is nearer than" in text
    assert "label holds for" in text
    assert "sex" in text.split("label holds for")[0]
