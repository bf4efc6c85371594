"""Long work: how far it is, stopped, killed, and gone on with."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import PATIENCE, command, wait_for
from onbmacf import ONBMACF, Schema

# With a file `wait` there it hangs once two parts are kept, so that the work is never over before it is stopped.
PATIENT = """
import time
from pathlib import Path
import numpy as np
def predict(rows):
    while Path("wait").exists() and len(list(Path().glob("a.csv.parts/*.onb"))) == 2:
        Path("waiting").touch()
        time.sleep(0.01)
    return np.where(rows["pay"] > 50, "high", "low")
"""


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL])
def test_stopped_work_goes_on_and_ends_as_if_it_had_not_been_stopped(run, people, how):
    table = pd.read_csv(people)
    pd.concat([table] * 2, ignore_index=True).to_csv("long.csv", index=False)
    Path("patient.py").write_text(PATIENT, encoding="utf-8")
    words = ("explain", "long.csv", "--model", "patient:predict", "--target-column", "income", "--rows", "all")
    Path("wait").touch()
    started = command(*words, "--out", "a.csv")
    wait_for(Path("waiting").exists, started)
    started.send_signal(how)
    _, err = started.communicate(timeout=PATIENCE)
    assert len(list(Path().glob("a.csv.parts/*.onb"))) == 2
    assert not Path("a.csv").exists()
    if how == signal.SIGINT:
        assert started.returncode == 130, err
        assert "Stopped after 200 of 320 rows. To go on: onbmacf explain long.csv" in err
        assert "Traceback" not in err
    Path("waiting").unlink()
    Path("wait").unlink()
    again = command(*words, "--out", "a.csv")
    assert again.communicate(timeout=PATIENCE)[1].splitlines()[-1].startswith("320 rows: ")
    assert run(*words, "--out", "b.csv")[0] == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert not Path("a.csv.parts").exists()


def test_parts_that_are_there_are_not_explained_again(people, tmp_path, monkeypatch):
    from onbmacf.cli import outputs

    table = pd.concat([pd.read_csv(people).drop(columns="income")] * 2, ignore_index=True)
    explainer = ONBMACF().fit(table, lambda rows: np.where(rows["pay"] > 50, "high", "low"))
    place, asked = outputs.parts_beside(tmp_path / "x", explainer, None), []

    def explain(rows, target=None):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(rows.index[0])
        return ONBMACF.explain(explainer, rows, target=target)

    monkeypatch.setattr(explainer, "explain", explain)
    with pytest.raises(outputs.StoppedError, match="stopped after 200 of 320 rows"):
        outputs.explain_in_parts(explainer, table, None, place)
    asked.clear()
    answers = outputs.explain_in_parts(explainer, table, None, place)
    assert asked == [200, 300]
    monkeypatch.undo()
    pd.testing.assert_frame_equal(answers.to_frame(), explainer.explain(table).to_frame())


def test_a_copy_of_another_part_is_explained_again(people, tmp_path):
    from onbmacf.cli import outputs

    table = pd.read_csv(people).drop(columns="income")
    table = pd.concat([table, table.assign(pay=table["pay"] / 2)], ignore_index=True).head(300)
    explainer = ONBMACF().fit(table, lambda rows: np.where(rows["pay"] > 50, "high", "low"))
    place = outputs.parts_beside(tmp_path / "x", explainer, None)
    expected = outputs.explain_in_parts(explainer, table, None, place)
    first, second, third = (chunk.path for chunk in place.of(table))
    shutil.copy(first, second)
    third.unlink()
    answers = outputs.explain_in_parts(explainer, table, None, place)
    pd.testing.assert_frame_equal(answers.to_frame(), expected.to_frame())
    pd.testing.assert_frame_equal(answers.status_frame(), expected.status_frame())


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
    from onbmacf._disk.answer_file import read_answers, write_answers
    from onbmacf.cli import outputs

    table = pd.read_csv(people).drop(columns="income")
    model = lambda rows: np.where(rows["pay"] > 50, "high", "low")  # noqa: E731
    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table, immutable=["sex"]))
    rows = table.head(250).astype({"town": object})
    rows.loc[3, "town"] = "nowhere"
    place = outputs.parts_beside(tmp_path / "x", explainer, None)
    whole, form = explainer.explain(rows), explainer.fitted_.space.form
    for half in (rows.iloc[:70], rows.iloc[70:]):
        answers = explainer.explain(half)
        path = place.path(half, 0)
        path.parent.mkdir(exist_ok=True)
        write_answers(path, answers, form)
        back = read_answers(path, half, form)
        pd.testing.assert_frame_equal(back.to_frame(), answers.to_frame())
        pd.testing.assert_frame_equal(back.status_frame(), answers.status_frame())
        assert back.sentences() == answers.sentences()
    both = type(whole).concat([explainer.explain(rows.iloc[:70]), explainer.explain(rows.iloc[70:])])
    pd.testing.assert_frame_equal(both.to_frame(), whole.to_frame())
    assert both.sentences() == whole.sentences()
    path.write_bytes(b"junk")
    assert read_answers(path, half, form) is None


def test_ranges_proofs_and_a_committee_come_back_as_they_were(people, tmp_path):
    from sklearn.tree import DecisionTreeClassifier

    from onbmacf._disk.answer_file import read_answers, write_answers

    table = pd.read_csv(people).drop(columns=["income", "sex"])
    table["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(table["age"] * 7 % 300, unit="D")
    coded = lambda rows: rows.assign(since=rows["since"].astype("int64") / 1e15, town=rows["town"] == "B")  # noqa: E731
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(coded(table), table["pay"] > 40 + table["age"] % 20)
    model = lambda rows: np.where(tree.predict(coded(rows)), "high", "low")  # noqa: E731
    explainer = ONBMACF(2, committee=[model, lambda rows: np.full(len(rows), "high")]).fit(table, model)
    form, path = explainer.fitted_.space.form, tmp_path / "part.onb"
    for asked in ({"vary": ["town", "age"], "prove": True}, {"ranges": True}, {"ranges": True, "prove": True}):
        answers = explainer.explain(table.head(20), "high", **asked)
        write_answers(path, answers, form)
        back = read_answers(path, table.head(20), form)
        assert back.to_json() == answers.to_json()
        assert back.sentences() == answers.sentences()
        pd.testing.assert_frame_equal(back.to_frame(), answers.to_frame())
        pd.testing.assert_frame_equal(back.ranges(), answers.ranges())
        pd.testing.assert_frame_equal(back.status_frame(), answers.status_frame())
        assert (back.n_members, back.n_member_questions) == (2, answers.n_member_questions)
    assert any(" of 2 retrained models agree" in said for said in back.sentences())
    assert {str(one.kind) for one in back.certificates if one is not None} == {"unproven"}


def test_a_part_that_the_time_cuts_short_is_not_kept(people, tmp_path, monkeypatch):
    from onbmacf.cli import outputs

    table = pd.concat([pd.read_csv(people).drop(columns="income")] * 2, ignore_index=True)
    explainer, calls = ONBMACF().fit(table, lambda rows: np.where(rows["pay"] > 50, "high", "low")), []

    def explain(rows, target=None, max_seconds=None):
        calls.append(max_seconds)
        answers = ONBMACF.explain(explainer, rows, target=target)
        monkeypatch.setattr(outputs, "is_over", lambda deadline: len(calls) >= 2)
        monkeypatch.setattr(outputs, "seconds_left", lambda deadline, most: 50.0 if len(calls) < 2 else 0.0)
        return answers

    monkeypatch.setattr(explainer, "explain", explain)
    asked = {"max_seconds": 100.0}
    place = outputs.parts_beside(tmp_path / "x", explainer, None, asked)
    outputs.explain_in_parts(explainer, table, None, place, asked)
    assert [part.is_there for part in place.of(table)] == [True, False, False, False]
    assert calls[0] > 99
    assert calls[1:] == [50.0, outputs.LEAST_SECONDS, outputs.LEAST_SECONDS]


def test_what_is_asked_is_in_the_names_of_parts(people):
    from onbmacf.cli import outputs

    table = pd.read_csv(people).drop(columns="income")
    explainer = ONBMACF().fit(table, lambda rows: (rows["pay"] > 50).astype(int))
    every = ({}, {"ranges": True}, {"prove": True}, {"prove": True, "prove_seconds": 3.0}, {"front": True})
    every += ({"min_probability": 0.6}, {"min_probability": "lasting"})
    names = {outputs.parts_beside(Path("x"), explainer, 1, asked).path(table, 0) for asked in every}
    assert len(names) == len(every)
    timed = [outputs.parts_beside(Path("x"), explainer, 1, {"max_seconds": n}).path(table, 0) for n in (1.0, 2.0)]
    assert timed[0] == timed[1]  # a part is kept only where its time was not over


def test_parts_of_another_question_are_not_taken(people):
    from onbmacf.cli import outputs

    table = pd.read_csv(people).drop(columns="income")
    explainer = ONBMACF().fit(table, lambda rows: (rows["pay"] > 50).astype(int))
    names = {
        outputs.parts_beside(Path("x"), explainer, target).path(rows, 0)
        for target in (None, 1)
        for rows in (table.head(5), table.head(6))
    }
    assert len(names) == 4
