"""Ctrl-C ends fit and explain at once, as KeyboardInterrupt, and leaves no process behind."""

import os
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from commands import PATIENCE, hears_ctrl_c, kill_group, members, wait_for
from onbmacf import ONBMACF, audit
from one_call import InOneCall

# The work does not end by itself: a model that hangs from some question on, or a cover of many rows. "ready" is said
# from within it, "went on" after it. Each is a process of its own, so that `make test` runs some: the model's part in
# the others is held by the test below, which interrupts each question.
PREAMBLE = """
import os, sys, threading, time
from pathlib import Path
import numpy as np, pandas as pd
from onbmacf import ONBMACF
from onbmacf._balls.cover import build_cover

HANG = Path(__file__).with_name("hang")

def model(rows):
    if HANG.exists():
        time.sleep(0.2)  # whoever hands out the work to processes is done with that
        ready()
        while True:
            time.sleep(0.05)
    return (rows["a"] + rows["b"] > 1).astype(int)

def ready():
    os.write(1, b"ready\\n")  # at once: two processes may say it

def ready_when_at_work():
    begun = time.process_time()
    while time.process_time() < begun + 0.3:
        time.sleep(0.01)
    ready()

said = []
def ready_once():
    if not said:
        said.append(1)
        ready()

rng = np.random.default_rng(0)
table = pd.DataFrame(rng.random((600, 2)), columns=list("ab"))
"""
WORK = {
    "asking the model": """
asked = []
def model_that_hangs_at_the_third(rows):
    asked.append(len(rows))
    if len(asked) == 3:
        HANG.touch()
    return model(rows)
ONBMACF(predict_chunk=1).fit(table, model_that_hangs_at_the_third)
""",
    "compiled cover": """
Z = rng.random((200_000, 12))
labels = (Z.sum(axis=1) > 6).astype(np.intp)
build_cover(Z[:500], labels[:500], fast=True)
threading.Thread(target=ready_when_at_work, daemon=True).start()
build_cover(Z, labels)
""",
    "explain": "e = ONBMACF(predict_chunk=8).fit(table, model); HANG.touch(); e.explain(table)",
    "explain a wide table": """
wide = pd.DataFrame(rng.random((200, 1000))).add_prefix("c")
weights = rng.normal(size=1000)
e = ONBMACF().fit(wide, lambda rows: (rows.to_numpy() @ weights > weights.sum() / 2).astype(int))
threading.Thread(target=ready_when_at_work, daemon=True).start()
e.explain(wide.head(3))
""",
    "fit with many levels": """
t = [f"L{level}" for level in rng.integers(0, 4000, 20_000)]
levels = pd.DataFrame({"a": rng.random(20_000), "b": rng.random(20_000), "t": t})
threading.Thread(target=ready_when_at_work, daemon=True).start()
while True:
    ONBMACF().fit(levels, model)
""",
    "a slow model": """
def slow(rows):
    if len(asked):
        ready_once()
        time.sleep(0.3)
    return model(rows)
asked = []
e = ONBMACF(predict_chunk=64).fit(table, slow)
asked.append(1)
e.explain(table)
""",
    "an audit": """
from onbmacf.report import audit_report
e = ONBMACF().fit(table, model)
answers = e.explain(table.head(60), target=1)
threading.Thread(target=ready_when_at_work, daemon=True).start()
while True:
    audit_report(e, answers, target=1)
""",
    "explain in two processes": """
e = ONBMACF(predict_chunk=64, n_jobs=2).fit(table, model)
e.explain(table.head(4))
HANG.touch()
e.explain(table)
""",
}


LONG = ("asking the model", "explain", "fit with many levels", "a slow model", "an audit")


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
@pytest.mark.parametrize(
    "work", [pytest.param(code, id=name, marks=[pytest.mark.long] * (name in LONG)) for name, code in WORK.items()]
)
def test_ctrl_c_ends_it_and_leaves_no_process(work, tmp_path):
    script = tmp_path / "work.py"
    script.write_text(PREAMBLE + work + "\nprint('went on')")
    running = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_ctrl_c,
    )
    try:
        assert running.stdout.readline() == "ready\n", running.stderr.read()
        out, err = pressed_until_it_ends(running)
        assert "KeyboardInterrupt" in err
        assert "went on" not in out
        assert running.returncode not in (0, None)
        wait_for(lambda: not members(running.pid))
    finally:
        kill_group(running.pid)


def pressed_until_it_ends(running):
    """Press Ctrl-C, and again after a minute where Python has ignored it: it came while a weak reference went away."""
    for _ in range(PATIENCE // 60):
        running.send_signal(signal.SIGINT)
        try:
            return running.communicate(timeout=60)
        except subprocess.TimeoutExpired as late:
            said = str(late.stderr)
        if "Exception ignored in" not in said:
            break
    raise AssertionError("Ctrl-C was pressed, and it goes on")


def pressed():
    raise KeyboardInterrupt


QUESTIONS = {
    "fit": lambda explainer, answers: explainer.fit(answers.rows, explainer.fitted_.black_box.model),
    "explain": lambda explainer, answers: explainer.explain(answers.rows),
    "the paper's strategy": lambda explainer, answers: explainer.with_options(strategy="paper").explain(answers.rows),
    "actions": lambda explainer, answers: audit.actions(answers, explainer),
}


@pytest.fixture(scope="module")
def asked():
    table, model = (
        pd.DataFrame(np.random.default_rng(0).random((40, 2)), columns=list("ab")),
        InOneCall(lambda rows: rows["a"] + rows["b"] > 1, pressed),
    )
    explainer = ONBMACF(predict_chunk=8).fit(table, model)
    return explainer, explainer.explain(table, target=1), model


@pytest.mark.parametrize("n_calls", [1, 2, 4])
@pytest.mark.parametrize("work", QUESTIONS.values(), ids=QUESTIONS)
def test_ctrl_c_during_a_question_is_not_taken_for_a_fault_of_the_model(asked, work, n_calls):
    explainer, answers, model = asked
    model.calls_left = n_calls
    with pytest.raises(KeyboardInterrupt):
        work(explainer, answers)
    assert model.calls_left == 0  # not asked again


def many_levels():
    rng = np.random.default_rng(0)
    names = [f"L{level}" for level in rng.integers(0, 2500, 5000)]
    table = pd.DataFrame({"a": rng.random(5000), "b": rng.random(5000), "t": names})
    return table, lambda rows: (rows["a"] + rows["b"] > 1).astype(int)


def many_columns():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=300)
    table = pd.DataFrame(rng.random((150, 300))).add_prefix("c")
    return table, lambda rows: (rows.to_numpy() @ weights > weights.sum() / 2).astype(int)


# Ctrl-C waits for the step that is at work, and a step is as long as the arrays that it goes through are large. Their
# size can be measured on a busy machine too; three times the rows took 3 and 1.4 times the memory without limits.
@pytest.mark.parametrize("case, few", [pytest.param(many_levels, 130, marks=pytest.mark.long), (many_columns, 11)])
def test_no_step_grows_with_the_number_of_rows(case, few):
    table, model = case()
    explainer = ONBMACF().fit(table, model)
    explainer.explain(table.head(2))
    assert memory_of(explainer, table.head(3 * few)) < 1.25 * memory_of(explainer, table.head(few))


def memory_of(explainer, rows):
    """Return the peak less what is kept of each row: its point, the answer, the semifactual, and one at work."""
    tracemalloc.start()
    explainer.explain(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - 4 * 8 * explainer.fitted_.space.width * len(rows)
