"""What names of columns suggest, and the file in which `onbmacf schema` writes it down to be edited."""

import re
import tomllib

import numpy as np
import pandas as pd
import pytest

from cli.conftest import run  # noqa: F401 - a fixture
from commands import one_line
from onbmacf import Rule, Schema
from onbmacf.errors import ParameterError


def dirty(n=60):
    """A table with everything that a schema may say of a column."""
    place = np.arange(n)
    return pd.DataFrame(
        {
            "policy_id": [f"P{row}" for row in place],
            "zip": 10_000 + place * 991 % 70_000,
            "signed": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "age": 20 + place % 41,
            "years insured": place % 9,
            "n_past_claims": place % 4,
            "discount": place % 5 * 5,
            "income": 100.5 + place * 7 % 31,
            'odd "name"\n#': place % 3,
            "sex": (["f", "m", "m"] * n)[:n],
            "size": pd.Categorical((["S", "L", "M"] * n)[:n], ["S", "M", "L"], ordered=True),
            "answer": np.where(place % 41 + place % 4 > 20, "yes", "no"),
        }
    )


@pytest.fixture
def file(tmp_path, monkeypatch, run):  # noqa: F811
    """The table as a file, in the working folder."""
    monkeypatch.chdir(tmp_path)
    dirty().to_csv("dirty.csv", index=False)
    return tmp_path / "dirty.csv"


def test_directions_are_suggested_and_not_imposed():
    schema = Schema.infer(dirty(), immutable=["zip"])
    assert schema.suggested == {"age": "up", "years insured": "up", "n_past_claims": "up", "sex": "immutable"}
    assert not schema.rules
    assert schema.immutable == ("policy_id", "zip", "signed")
    assert re.search(r"age +integer +yes \(only up\?\)", repr(schema))
    assert re.search(r"sex +binary +yes \(immutable\?\)", repr(schema))
    said = Schema.infer(dirty(), immutable=["sex"], rules={"features": {"age": {"direction": "down"}}})
    assert set(said.suggested) == {"years insured", "n_past_claims"}


def test_the_file_of_a_schema_changes_nothing_until_it_is_edited(run, file):  # noqa: F811
    code, out, err = run("schema", file, "--target-column", "answer")
    assert code == 0, err
    assert tomllib.loads(out) == {}
    file.with_suffix(".toml").write_text(out, encoding="utf-8")
    table = pd.read_csv(file).drop(columns="answer")
    assert Schema.from_toml(file.with_suffix(".toml"), table) == Schema.infer(table)


def test_every_line_of_it_may_be_let_hold(run, file):  # noqa: F811
    """With all suggestions taken, each has its effect, whatever the columns are called."""
    _, out, _ = run("schema", file, "--target-column", "answer", "--out", "dirty.toml")
    text = (file.parent / "dirty.toml").read_text(encoding="utf-8")
    assert out == ""
    lines = [line[2:] if re.match(r"# \S+ = |# \w+\.", line) else line for line in text.splitlines()]
    lines = [line for line in lines if not line.startswith("kinds.signed")]  # it becomes a date
    (file.parent / "all.toml").write_text("\n".join(lines), encoding="utf-8")
    found = tomllib.loads("\n".join(lines))
    assert found["immutable"] == ["sex"]
    assert found["dates"] == ["signed"]
    assert found["features"]["discount"] == {"step": 5}
    table = pd.read_csv(file, parse_dates=["signed"]).drop(columns="answer")
    schema = Schema.from_toml("all.toml", table)
    assert schema.rules.features["age"] == Rule(direction="up")
    assert schema.held == ()
    assert "sex" in schema.immutable
    assert 'odd "name"\n#' in found["kinds"]
    code, _, err = run("explain", file, "--target-column", "answer", "--rules", "all.toml", "--rows", "0-9")
    assert code == 0, err
    assert "dates as text" not in err


def test_kinds_in_a_file_of_rules_hold_on_the_command_line(run, file):  # noqa: F811
    rules = 'kinds.zip = "continuous"\nordinal.size = ["S", "M", "L"]\nfeatures.age.direction = "up"\n'
    (file.parent / "rules.toml").write_text(rules, encoding="utf-8")
    words = ("--target-column", "answer", "--rules", "rules.toml", "--out", "dirty.onb")
    assert run("map", "build", file, *words)[0] == 0
    _, out, _ = run("map", "info", "dirty.onb")
    assert re.search(r"column zip +continuous\n", out)
    assert re.search(r"column size +ordinal\n", out)
    _, _, err = run("explain", file, *words[:4], "--map", "dirty.onb", "--rows", "0")
    assert "a map keeps those it was built with" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kinds = 3", "kinds must be a table, got 3"),
        ('kinds.zipp = "integer"', "kinds names 'zipp', which is not a column. Did you mean 'zip'"),
        ('kindz.zip = "integer"', "unknown key 'kindz'. Did you mean 'kinds'"),
        ('dates = ["signed"]', r"column 'signed' is no date yet.* read_table\(..., dates=\['signed'\]\)"),
        ('dates = ["sgned"]', "dates names 'sgned', which is not a column"),
    ],
)
def test_a_file_that_says_something_wrong_is_refused(text, message, tmp_path):
    (tmp_path / "wrong.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match=message):
        Schema.from_toml(tmp_path / "wrong.toml", dirty())


def test_a_table_that_is_not_there_is_told(run):  # noqa: F811
    code, _, err = run("schema", "none.csv")
    one_line(code, err, "none.csv")
