"""The command line of the benchmark: one library call each."""

import pytest

typer_testing = pytest.importorskip("typer.testing")

from onbmacf.cli import app  # noqa: E402
from onbmacf.errors import ParameterError, StoreError  # noqa: E402


def call(*words):
    return typer_testing.CliRunner().invoke(app, ["bench", *words])


def test_run_and_report(tmp_path):
    folder, out = str(tmp_path / "run"), str(tmp_path / "out")
    ran = call("run", "--folder", folder, "--datasets", "saheart", "--methods", "NICE, GS", "--factuals", "3")
    assert ran.exit_code == 0, ran.output
    assert "2 done" in ran.output
    reported = call("report", "--folder", folder, "--out", out, "--no-plots")
    assert reported.exit_code == 0, reported.output
    assert "report.md" in reported.output


def test_strict_fails_when_a_method_never_succeeds(tmp_path, monkeypatch):
    from onbmacf.bench import cli

    monkeypatch.setattr(cli, "_conclude", lambda folder: False)
    words = ("run", "--folder", str(tmp_path), "--datasets", "saheart", "--methods", "NICE", "--factuals", "1")
    assert call(*words).exit_code == 0
    assert call(*words, "--strict").exit_code == 1


@pytest.mark.parametrize(("option", "word"), [("--datasets", "iris"), ("--methods", "LIME")])
def test_an_unknown_name_is_said_with_the_known_ones(option, word, tmp_path):
    result = call("run", "--folder", str(tmp_path), option, word)
    assert isinstance(result.exception, ParameterError)
    assert word in str(result.exception)


def test_a_report_without_a_run_is_one_line(tmp_path):
    assert isinstance(call("report", "--folder", str(tmp_path)).exception, StoreError)
