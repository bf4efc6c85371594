"""`onbmacf map build FOLDER`: a map of parquet files that need not fit into memory, stopped and gone on with."""

import shutil
import signal
from pathlib import Path

import pandas as pd
import pytest

from commands import PATIENCE, command, one_line, wait_for

pytest.importorskip("dask.dataframe")
pytest.importorskip("pyarrow")

# With a file `wait` there it hangs once a pass is kept, so that the work is never over before it is stopped.
PATIENT = """
import time
from pathlib import Path
import numpy as np
def predict(rows):
    while Path("wait").exists():
        Path("waiting").touch()
        time.sleep(0.01)
    return np.where(rows["pay"] > 50, "high", "low")
"""
WORDS = ("map", "build", "lake", "--model", "patient:predict", "--target-column", "income", "--cover-rows", "50")


@pytest.fixture
def lake(people):
    """Four files in a folder, and a model."""
    table = pd.read_csv(people)
    Path("lake").mkdir()
    for at in range(4):
        table.iloc[at::4].to_parquet(f"lake/part-{at}.parquet", index=False)
    Path("patient.py").write_text(PATIENT, encoding="utf-8")
    return table


def test_a_folder_is_mapped_and_the_map_is_used(run, lake):
    code, _, err = run(*WORDS, "--immutable", "sex", "--coverage", "0.9", "--out", "lake.onb")
    assert code == 0, err
    assert " % of 160 rows, and none of another label; neighbours among " in err
    assert not Path("lake.onb.passes").exists()
    code, out, _ = run("map", "info", "lake.onb")
    assert "stands for" in out
    assert "160 rows, " in out
    assert "column sex" in out
    assert "income" not in out
    words = ("explain", "people.csv", "--model", "patient:predict", "--target-column", "income", "--map", "lake.onb")
    code, out, err = run(*words, "--rows", "0-9", "--predicted", "low", "--format", "sentences")
    assert code == 0, err
    assert "the model would say 'high'" in out


@pytest.mark.long
def test_a_stopped_map_goes_on_and_is_the_same(run, lake):
    Path("wait").touch()
    started = command(*WORDS, "--out", "a.onb")
    wait_for(Path("waiting").exists, started)
    started.send_signal(signal.SIGINT)
    Path("wait").unlink()
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 130, err
    assert "Finished passes are kept in a.onb.passes. To go on: onbmacf map build lake" in err
    assert "Traceback" not in err
    assert run(*WORDS, "--out", "a.onb")[0] == 0
    assert run(*WORDS, "--out", "b.onb")[0] == 0
    assert Path("a.onb").read_bytes() == Path("b.onb").read_bytes()


def test_what_a_folder_cannot_have_is_said_in_one_line(run, lake):
    for words, said in (
        (("map", "build", "lake", "--target-column", "income"), "lake is a folder: give a model"),
        ((*WORDS, "--id-column", "age"), "--id-column is for a table in one file"),
        ((*WORDS, "--private", "5"), "private makes groups of all rows"),
        ((*WORDS, "--coverage", "2"), "coverage must be"),
        ((*WORDS[:-4], "--drop", "nothing"), "--drop names 'nothing', which is not a column"),
    ):
        code, _, err = run(*words)
        one_line(code, err, said)
    Path("lake/part-2.parquet").write_bytes(b"PAR1 and no more")
    code, _, err = run(*WORDS)
    one_line(code, err, "lake holds no parquet files that can be read|partition 2 cannot be read")
    shutil.rmtree("lake")
    Path("lake").mkdir()
    code, _, err = run(*WORDS)
    one_line(code, err, "lake holds no parquet files that can be read")
