"""What is printed: help without heavy imports, plain text without a terminal, commands that run as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from amounts import IS_ALL


def test_no_terminal_no_colour_and_a_narrow_encoding(people):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NO_COLOR": "1"}
    environment |= {"PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "100"}
    words = ["explain", "people.csv", "--target-column", "income", "--rows", "0-3"]
    done = subprocess.run([sys.executable, "-m", "onbmacf", *words], capture_output=True, env=environment, check=True)
    text = done.stdout.decode("ascii")
    assert "\x1b" not in text
    assert "\\u2192" in text
    assert "| row" in text.replace("  ", " ")


HEAVY = {"numpy", "pandas", "scipy", "sklearn", "joblib", "torch", "matplotlib", "jinja2", "dask"}
COMMANDS = ["", "explain", "audit", "map", "map build", "map info", "demo", "bench", "bench run", "bench report"]


HELP = """
import sys
from onbmacf.cli import main
for command in sys.argv[1:]:
    sys.argv = ["onbmacf", *command.split(), "--help"]
    try:
        main()
    except SystemExit:
        print("MODULES", *sys.modules)
        print("END")
"""


def test_help_imports_nothing_heavy():
    """One after the other in one process: what one has imported, the others have."""
    done = subprocess.run([sys.executable, "-c", HELP, *COMMANDS], capture_output=True, text=True, check=True)
    for command, said in zip(COMMANDS, done.stdout.split("END\n")[:-1], strict=True):
        printed, modules = said.split("MODULES")
        loaded = {name.split(".")[0] for name in modules.split()}
        assert f"Usage: onbmacf {command}".strip() in printed
        assert {"onbmacf", "typer"} <= loaded
        assert not HEAVY & loaded, command


@pytest.mark.long  # those of the README are run by every `make test`
def test_the_commands_of_the_help_run_as_printed(run, people, capsys):
    """Every line of --help that starts with `onbmacf` is run, on a table with the names that it uses."""
    pytest.importorskip("skops")
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    table = pd.read_csv(people).head(60)
    table.to_csv(people, index=False)
    encoder = make_column_transformer((OneHotEncoder(), ["sex", "town"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(max_iter=2000))
    skops.io.dump(model.fit(table.drop(columns="income"), table["income"]), "income.skops")
    Path("lake").mkdir()
    table.to_parquet("lake/people.parquet")
    Path("mymodule.py").write_text(
        "def predict(rows):\n    return (rows['pay'] > 50).map({True: 'granted', False: 'refused'})\n", encoding="utf-8"
    )
    commands = []
    for topic in (["explain"], ["audit"], ["map", "build"], ["map", "info"], ["demo"]):
        _, out, _ = run(*topic, "--help")
        commands += re.findall(r"^ *(?:Example: )?onbmacf (.+)$", out, flags=re.M)
    assert len(commands) >= 10
    for line in commands:
        few = ["--most", "20", "--actions", "0"] if line.startswith("audit") and not IS_ALL else []  # seconds each
        code, _, err = run(*line.split(), *few)
        assert code == 0, (line, err)


def test_the_commands_of_the_readme_run_as_printed(run, people):
    Path("people.csv").rename("TABLE.csv")
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(?:\$ )?onbmacf (.+)$", text, flags=re.M)
    assert any("audit TABLE.csv" in line for line in commands)
    for line in commands:
        code, _, err = run(*line.split())
        assert code == 0, (line, err)
