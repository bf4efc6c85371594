"""The command line of the benchmark: one library call each."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")

from onbmacf.bench.cells import Cell, collect, digest  # noqa: E402
from onbmacf.bench.run import Plan  # noqa: E402
from onbmacf.cli import app  # noqa: E402
from onbmacf.errors import ParameterError, StoreError  # noqa: E402


def call(*words):
    return typer_testing.CliRunner().invoke(app, ["bench", *words])


@pytest.mark.long  # `test_run.py` has a run, and `test_report.py` a report
def test_run_and_report(tmp_path):
    folder, out = str(tmp_path / "run"), str(tmp_path / "out")
    ran = call(
        "run",
        "--folder",
        folder,
        "--datasets",
        "saheart",
        "--methods",
        "NICE, GS",
        "--factuals",
        "3",
        "--retrainings",
        "1",
    )
    assert ran.exit_code == 0, ran.output
    assert "2 done" in ran.output
    lines, cells = collect(Path(folder))
    assert cells["method"].tolist() == ["NICE", "GS"]
    assert len(lines) == 6
    assert f"digest {digest(lines, cells)}" in ran.output
    reported = call("report", "--folder", folder, "--out", out, "--no-plots")
    assert reported.exit_code == 0, reported.output
    assert str(Path(out, "report.md")) in reported.output
    assert "NICE" in Path(out, "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "status, n_found, code", [("done", [0, 1], 0), ("done", [0, 0], 1), ("failed", [], 1), ("timeout", [], 1)]
)
def test_strict_fails_where_a_method_never_succeeds_or_a_cell_is_not_done(tmp_path, status, n_found, code):
    """The cell's file is there, so nothing is computed: only what it holds is looked at."""
    cell = Cell("saheart", "NICE", n_factuals=2)
    (path,) = Plan.of([cell], tmp_path, None).files.values()
    path.parent.mkdir()
    document = {**asdict(cell), "status": status, "error": "", "versions": {}, "warnings": []}
    if status == "done":
        lines = {"row": [0, 1], "n_found": n_found, "l0": [1.0, 1.0], "changed": [["age"], ["age"]]}
        document |= {"fit_seconds": 1.0, "explain_seconds": 1.0, "features": ["age"], "lines": lines}
    path.write_text(json.dumps(document))
    words = ("run", "--folder", str(tmp_path), "--datasets", "saheart", "--methods", "NICE", "--factuals", "2")
    assert call(*words).exit_code == 0
    strict = call(*words, "--strict")
    assert strict.exit_code == code
    assert ("methods without any success: NICE" in strict.output) == bool(code)


def test_ctrl_c_is_one_line_and_exit_code_130(tmp_path, monkeypatch):
    from onbmacf.bench import run

    def stopped(cells, folder, **settings):
        assert (settings["jobs"], settings["time_limit"], settings["retry"]) == (3, 7.0, True)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", stopped)
    ended = call("run", "--folder", str(tmp_path), "--jobs", "3", "--time-limit", "7", "--retry")
    assert ended.exit_code == 130
    assert ended.output == "Stopped. Finished cells are kept; the same command continues from there.\n"


@pytest.mark.parametrize(("option", "word"), [("--datasets", "iris"), ("--methods", "LIME")])
def test_an_unknown_name_is_said_with_the_known_ones(option, word, tmp_path):
    result = call("run", "--folder", str(tmp_path), option, word)
    assert isinstance(result.exception, ParameterError)
    assert str(result.exception).startswith(f"{option} must be among ")
    assert str(result.exception).endswith(f", got {word}.")


def test_a_report_without_a_run_is_one_line(tmp_path):
    failed = call("report", "--folder", str(tmp_path)).exception
    assert isinstance(failed, StoreError)
    assert "onbmacf bench run" in str(failed)
