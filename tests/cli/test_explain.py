"""The options of explain: each is declared once, reaches the commands that offer it, and asks what it says."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from commands import one_line
from onbmacf.cli import ARGUMENTS, WORDS, in_options, preparation
from onbmacf.cli.explain import Arguments, offers
from onbmacf.cli.terminal import flag
from onbmacf.errors import ParameterError
from onbmacf.io.models import LOADERS

COMMANDS = ("explain", "audit", "map build")
KINDS = {name: get_args(hint)[0] for name, hint in get_type_hints(Arguments, include_extras=True).items()}
# For each kind of value: words that follow the option, and what must arrive.
GIVEN = {
    str: (["a word"], "a word"),
    Path | None: (["some file"], Path("some file")),
    tuple[str, ...]: (["a,b"], ("a,b",)),
    int: (["3"], 3),
    int | None: (["3"], 3),
    float | None: (["0.25"], 0.25),
    bool: ([], True),
    bool | None: ([], True),
}


def offered_in(shown):
    """The names of the fields of Arguments whose options a help lists."""
    return {name for name in KINDS if re.search(rf"^  {flag(name)}[ \n]", shown, flags=re.M)}


@pytest.fixture
def asked(run, monkeypatch):
    """Run a command up to its preparation; return the request it was prepared with."""
    caught = []

    def prepare(request):
        caught.append(request)
        raise ParameterError("enough")

    monkeypatch.setattr(preparation, "prepare", prepare)

    def asked(*words):
        code, _, err = run(*words)
        assert (code, err) == (2, "onbmacf: enough\n")
        return caught.pop()

    return asked


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_the_help_reaches_the_request(run, asked, command):
    _, shown, _ = run(*command.split(), "--help")
    offered = offered_in(shown)
    assert {"model", "target_column", "immutable", "encoding", "header", "trust_pickle"} <= offered
    for name in offered:
        words, value = GIVEN[KINDS[name]]
        assert asked(*command.split(), flag(name), *words) == Arguments(**{name: value}), name
    assert asked(*command.split(), "a.csv") == Arguments(table=Path("a.csv"))
    assert asked(*command.split()) == Arguments()


def test_the_commands_offer_all_options_together(run):
    helps = "".join(run(*command.split(), "--help")[1] for command in COMMANDS)
    assert offered_in(helps) == {field.name for field in fields(Arguments)} - {"table"}


def test_lists_may_be_given_twice_and_flags_turned_off(asked):
    request = asked("explain", "--immutable", "a,b", "--immutable", "c", "--no-header")
    assert request == Arguments(immutable=("a,b", "c"), header=False)


def test_a_command_gets_a_request_and_its_own_options_in_the_order_of_the_help():
    got = []

    @offers("table", "by", "n", "most")
    def command(
        request: Arguments,
        most: Annotated[int, typer.Option(help="Most.")] = 7,
        by: Annotated[tuple[str, ...], typer.Option(help="By.")] = (),
    ) -> None:
        """A command."""
        got.append((request, most, by))

    app = typer.Typer(rich_markup_mode=None)
    app.command()(command)
    shown = CliRunner().invoke(app, ["--help"]).output
    assert re.findall(r"^  \[?(--\w+|table)", shown.lower(), flags=re.M)[:4] == ["table", "--by", "--n", "--most"]
    assert CliRunner().invoke(app, ["t.csv", "--by", "a", "--by", "b", "--n", "2"]).exit_code == 0
    assert CliRunner().invoke(app, []).exit_code == 0
    assert got == [(Arguments(table=Path("t.csv"), n=2), 7, ("a", "b")), (Arguments(), 7, ())]


def test_options_that_are_not_declared_are_an_error_at_once():
    with pytest.raises(KeyError, match="tabel"):
        offers("tabel")(lambda request: None)
    with pytest.raises(TypeError, match=r"does not offer its own \{'most'\}"):
        offers("table")(lambda request, most: None)


def test_every_model_format_is_in_the_help(run):
    shown = " ".join(run("explain", "--help")[1].split())
    for loader in LOADERS:
        assert f"{loader.name} ({', '.join(loader.suffixes)})" in shown


@pytest.mark.parametrize(
    "message, expected",
    [
        (
            "pass header=False (x0, x1, ...), or header=True if so.",
            "pass --no-header (x0, x1, ...), or --header if so.",
        ),
        ("Pass trust_pickle=True if you trust it.", "Pass --trust-pickle if you trust it."),
        ("Pass output='label' or output=\"probability\".", "Pass --output label or --output probability."),
        ("strategy must be one of 'paper', got 'x'.", "--strategy must be one of 'paper', got 'x'."),
        ("max_model_rows must be a whole number, got 0.", "--max-model-rows must be a whole number, got 0."),
        ("the strategy must be good.", "the strategy must be good."),
        ("max_header=True and header=3 stay.", "max_header=True and header=3 stay."),
    ],
)
def test_messages_of_the_library_name_options_on_the_command_line(message, expected):
    assert in_options(message) == expected


def test_an_option_is_an_argument_of_the_library_or_a_word():
    assert not WORDS - set(KINDS)
    assert set(ARGUMENTS) == set(KINDS) - WORDS
    assert "front" in ARGUMENTS


@pytest.mark.parametrize("topic", ["", *COMMANDS, "map", "map info", "demo", "bench", "bench run", "bench report"])
def test_the_help_is_in_plain_words(run, topic):
    code, shown, _ = run(*topic.split(), "--help")
    assert code == 0
    assert not re.search(r"\b(mend|said so|goes on|go on|by chance|at a time|plain|room|bears)\b", shown)


CODE = """
import numpy as np
def score(rows):
    return rows["pay"] - 0.2 * rows["age"] + 5.0 * (rows["town"] == "B") + 0.1
class Sure:
    classes_ = ["low", "high"]
    def predict_proba(self, rows):
        share = 1 / (1 + np.exp(-(score(rows).to_numpy() - 45) / 5))
        return np.column_stack([1 - share, share])
    def predict(self, rows):
        return np.array(self.classes_)[self.predict_proba(rows).argmax(axis=1)]
sure = Sure()
"""


@pytest.fixture
def answers(run, people, monkeypatch):
    """Explain some rows with a model in the working folder; return the answers."""
    (people.parent / "scores_of_people.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(people.parent))

    def answers(model, *words, table=people):
        words = (*words, "--drop", "income") if table == people else words
        rows = () if {"--rows", "--predicted"} & set(words) else ("--rows", "0-5")
        code, out, err = run(
            "explain", table, "--model", f"scores_of_people:{model}", *rows, "--format", "json", *words
        )
        assert code == 0, err
        return json.loads(out)["answers"]

    return answers


def labels(found):
    return {one["label"] for answer in found for one in answer["counterfactuals"]}


def test_scores_with_a_threshold_and_names(answers):
    assert labels(answers("score", "--threshold", "45", "--classes", "refused,granted")) <= {"refused", "granted"}
    assert labels(answers("score", "--between", "40,50")) == {"inside"}
    assert labels(answers("score", "--between", ",50", "--target", "above")) == {"above"}
    assert labels(answers("sure", "--threshold", "0.3", "--predicted", "low")) == {"high"}


def test_how_sure_the_model_must_be_and_what_may_be_given_up(answers):
    found = answers("sure", "--min-probability", "0.9")
    assert min(one["probability"] for answer in found for one in answer["counterfactuals"]) >= 0.9
    held = ("--immutable", "pay,age,town", "--rows", "0")
    assert answers("score", "--threshold", "45", *held)[0]["status"] != "found"
    (answer,) = answers("score", "--threshold", "45", *held, "--release", "immutable")
    assert answer["counterfactuals"][0]["released"]


def test_kinds_of_columns(answers, run, people):
    table = pd.read_csv(people).assign(zip=lambda t: t["age"] % 4, size=lambda t: np.array(list("SML"))[t["age"] % 3])
    path = people.parent / "more.csv"
    table.drop(columns="income").to_csv(path, index=False)
    kinds = ("--kinds", "zip=categorical,size=S<M<L")
    answers("score", "--threshold", "45", *kinds, table=path)
    run("map", "build", path, "--model", "scores_of_people:score", "--threshold", "45", *kinds)
    _, out, _ = run("map", "info", "map.onb")
    assert "column zip" in out
    assert "categorical, 4 levels" in out or "categorical" in out
    assert "ordinal" in out
    code, _, err = run("explain", path, "--model", "scores_of_people:score", "--kinds", "zip")
    one_line(code, err, "--kinds takes column=kind, or column=low<middle<high, got 'zip'")
    code, _, err = run("explain", path, "--model", "scores_of_people:score", "--kinds", "zap=binary")
    one_line(code, err, "--kinds names 'zap', which is not a column. Did you mean 'zip'")
    code, _, err = run("explain", path, "--model", "scores_of_people:score", "--between", "7")
    one_line(code, err, "--between takes two numbers such as 200,300")


def test_a_spreadsheet_and_text_in_another_encoding(answers, run, people):
    pytest.importorskip("openpyxl")
    table = pd.read_csv(people).drop(columns="income")
    table.to_excel(people.parent / "p.xlsx", index=False)
    table.to_csv(people.parent / "p16.csv", index=False, encoding="utf-16")
    expected = answers("score", "--threshold", "45")
    for name in ("p.xlsx", "p16.csv"):
        assert answers("score", "--threshold", "45", table=people.parent / name) == expected
    with pd.ExcelWriter(people.parent / "two.xlsx") as book:
        table.head(3).to_excel(book, sheet_name="first", index=False)
        table.to_excel(book, sheet_name="people", index=False)
    assert answers("score", "--threshold", "45", "--sheet", "people", table=people.parent / "two.xlsx") == expected


def test_csv_with_columns_called_like_ours_and_whole_numbers(run, people):
    table = pd.read_csv(people).drop(columns=["income", "sex", "town"])
    table = table.rename(columns={"age": "status", "pay": "label"}).assign(row=np.arange(len(table)) % 7)
    table.to_csv(people.parent / "odd.csv", index=False)
    (people.parent / "odd_model.py").write_text("def label(rows):\n    return rows['label'] > 50\n", encoding="utf-8")
    words = ("explain", people.parent / "odd.csv", "--model", "odd_model:label", "--rows", "0-20", "--format", "csv")
    code, out, err = run(*words, "--target", "True")
    assert code == 0, err
    (people.parent / "out.csv").write_text(out, encoding="utf-8")
    found = pd.read_csv(people.parent / "out.csv", dtype=str)
    assert {"row_", "status_", "row", "status", "label"} <= set(found.columns)
    assert set(found["status_"]) == {"already", "found"}
    assert not any(found[name].str.contains(r"\.").any() for name in ("status", "row"))
