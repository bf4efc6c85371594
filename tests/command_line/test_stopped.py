"""Long work: how far it is, stopped, killed, and gone on with."""

import re
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import command
from onbmacf import ONBMACF, Schema

SLOW = """
import time, numpy as np
def predict(rows):
    time.sleep({pause})
    return np.where(rows["pay"] > 50, "high", "low")
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_work_goes_on_and_ends_as_if_it_had_not_been_stopped(people, how):
    table = pd.read_csv(people)
    pd.concat([table] * 4, ignore_index=True).to_csv("long.csv", index=False)
    Path("slow.py").write_text(SLOW.format(pause=0.01), encoding="utf-8")
    words = ("explain", "long.csv", "--model", "slow:predict", "--target-column", "income", "--rows", "all")
    started = command(*words, "--out", "a.csv")
    deadline = time.monotonic() + 90
    while len(list(Path().glob("a.csv.parts/*.onb"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(how)
    _, err = started.communicate(timeout=60)
    n_kept = len(list(Path().glob("a.csv.parts/*.onb")))
    assert n_kept >= 2
    assert not Path("a.csv").exists()
    if how == signal.SIGINT:
        assert started.returncode == 130, err
        assert re.search(r"Stopped after \d+ of 640 rows\. To go on: onbmacf explain long\.csv", err)
        assert "Traceback" not in err
    Path("slow.py").write_text(SLOW.format(pause=0), encoding="utf-8")
    again = command(*words, "--out", "a.csv")
    assert again.communicate(timeout=120)[1].splitlines()[-1].startswith("640 rows: ")
    whole = command(*words, "--out", "b.csv")
    whole.communicate(timeout=120)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert not Path("a.csv.parts").exists()


def test_long_work_says_how_far_it_is(monkeypatch, capsys):
    from onbmacf.cli import terminal

    clock = iter([0.0, 5.0, 6.0, 20.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    progress = terminal.Progress(1000)
    progress.advance(100)
    progress.advance(100)
    progress.advance(200)
    assert capsys.readouterr().err.splitlines() == [
        "100 of 1,000 rows explained, about 45 s left",
        "400 of 1,000 rows explained, about 30 s left",
    ]


def test_parts_come_back_as_they_were(people, tmp_path):
    from onbmacf.cli import parts

    table = pd.read_csv(people).drop(columns="income")
    model = lambda rows: np.where(rows["pay"] > 50, "high", "low")  # noqa: E731
    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table, immutable=["sex"]))
    rows = table.head(250).astype({"town": object})
    rows.loc[3, "town"] = "nowhere"
    place = parts.parts_beside(tmp_path / "x", explainer, None)
    whole = explainer.explain(rows)
    for half in (rows.iloc[:70], rows.iloc[70:]):
        answers = explainer.explain(half)
        path = place.path(half, 0)
        parts._write(path, answers, explainer)
        back = parts._read(path, half, explainer)
        pd.testing.assert_frame_equal(back.to_frame(), answers.to_frame())
        pd.testing.assert_frame_equal(back.status_frame(), answers.status_frame())
        assert back.sentences() == answers.sentences()
    both = type(whole).concat([explainer.explain(rows.iloc[:70]), explainer.explain(rows.iloc[70:])])
    pd.testing.assert_frame_equal(both.to_frame(), whole.to_frame())
    assert both.sentences() == whole.sentences()
    path.write_bytes(b"junk")
    assert parts._read(path, half, explainer) is None


def test_parts_of_another_question_are_not_taken(people):
    from onbmacf.cli import parts

    table = pd.read_csv(people).drop(columns="income")
    explainer = ONBMACF().fit(table, lambda rows: (rows["pay"] > 50).astype(int))
    names = {
        parts.parts_beside(Path("x"), explainer, target).path(rows, 0)
        for target in (None, 1)
        for rows in (table.head(5), table.head(6))
    }
    assert len(names) == 4
