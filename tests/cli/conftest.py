"""A table of people, and a way to run a command in this process."""

import sys

import numpy as np
import pandas as pd
import pytest

from onbmacf import cli

PEOPLE = 160


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; return exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["onbmacf", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A table with a target column, in a folder whose name has a space; the working folder is that one."""
    folder = tmp_path / "my data"
    folder.mkdir()
    monkeypatch.chdir(folder)
    random = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": random.integers(20, 70, PEOPLE),
            "pay": random.normal(50, 15, PEOPLE).round(1),
            "sex": random.choice(["f", "m"], PEOPLE),
            "town": random.choice(["A", "B", "C"], PEOPLE),
        }
    )
    score = table["pay"] + 10 * (table["sex"] == "m") - 0.2 * table["age"] + 5 * (table["town"] == "B")
    table["income"] = np.where(score > 50, "high", "low")
    path = folder / "people.csv"
    table.to_csv(path, index=False)
    return path
