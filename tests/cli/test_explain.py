"""The options of the commands: each is declared once and reaches the commands that offer it."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from onbmacf.cli import preparation
from onbmacf.cli.explain import Arguments, offers
from onbmacf.cli.terminal import ARGUMENTS, flag, in_options
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


def test_arguments_that_become_options_are_options():
    assert set(ARGUMENTS) <= set(KINDS)


@pytest.mark.parametrize("topic", ["", *COMMANDS, "map", "map info", "demo", "bench", "bench run", "bench report"])
def test_the_help_is_in_plain_words(run, topic):
    code, shown, _ = run(*topic.split(), "--help")
    assert code == 0
    assert not re.search(r"\b(mend|said so|goes on|go on|by chance|at a time|plain|room|bears)\b", shown)
