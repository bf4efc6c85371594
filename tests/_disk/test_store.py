"""Maps on disk: the same answers, only for the same model, and five different errors for five kinds of bad file."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from conftest import dose_model
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._disk import map_check
from onbmacf.errors import (
    CorruptFileError,
    EmptyFileError,
    ForeignFileError,
    ModelError,
    NewerVersionError,
    StoreError,
    TruncatedFileError,
)


@pytest.fixture
def explainer(mixed):
    rules = Rules({"dose": Rule(low=0.2, direction="down"), "city": Rule(forbidden=[("A", "C")])}, max_changes=4)
    schema = Schema.infer(mixed, immutable=["age"], rules=rules)
    return ONBMACF(2, metric="euclidean", plausibility=0.4).fit(mixed, dose_model, schema=schema)


@pytest.fixture
def saved(explainer, tmp_path):
    path = tmp_path / "a map with spaces.onb"
    explainer.save(path)
    return path


def test_a_loaded_map_gives_the_same_answers_and_writes_the_same_bytes(explainer, saved, mixed):
    loaded = ONBMACF.load(saved, dose_model)
    assert loaded.schema_ == explainer.schema_
    pd.testing.assert_frame_equal(loaded.explain(mixed).to_frame(), explainer.explain(mixed).to_frame())
    again = saved.with_name("again.onb")
    loaded.save(again)
    assert again.read_bytes() == saved.read_bytes()


def test_what_becomes_of_the_file_changes_no_answer_of_a_loaded_map(explainer, saved, mixed):
    loaded, raw = ONBMACF.load(saved, dose_model), saved.read_bytes()
    assert not loaded.Z_.flags.writeable
    with saved.open("rb+") as file:  # in place: another file under the same name would be another inode
        file.write(raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2))
    pd.testing.assert_frame_equal(loaded.explain(mixed).to_frame(), explainer.explain(mixed).to_frame())
    saved.write_bytes(b"")  # mapped memory beyond a file's end is a bus error
    pd.testing.assert_frame_equal(loaded.explain(mixed).to_frame(), explainer.explain(mixed).to_frame())


def test_a_map_of_an_array_and_of_odd_floats(tmp_path):
    table = np.random.default_rng(0).random((30, 2))
    model = lambda rows: (rows.sum(axis=1) > 1).astype(int)  # noqa: E731
    explainer = ONBMACF().fit(table, model)
    explainer.save(tmp_path / "m.onb")
    loaded = ONBMACF.load(tmp_path / "m.onb", model)
    pd.testing.assert_frame_equal(loaded.explain(table).to_frame(), explainer.explain(table).to_frame())


def test_another_model_is_refused_with_the_count(saved):
    with pytest.raises(ModelError, match=r"[1-9]\d* of 12 probe rows differ"):
        ONBMACF.load(saved, lambda rows: np.where(rows["age"] > 40, "risk", "fine"))


def break_file(path, how):
    raw = bytearray(path.read_bytes())
    if how == "empty":
        raw = bytearray()
    elif how == "foreign":
        raw = bytearray(b"PK\x03\x04 this is some other file" * 20)
    elif how == "truncated":
        raw = raw[:-100]
    elif how == "truncated header":
        raw = raw[:1000]
    elif how == "flipped":
        raw[-20] ^= 4
    elif how == "newer":
        raw = raw.replace(rb"\"version\": 1", rb"\"version\": 9")
    path.write_bytes(raw)


BROKEN = {
    "empty": EmptyFileError,
    "foreign": ForeignFileError,
    "truncated": TruncatedFileError,
    "truncated header": TruncatedFileError,
    "flipped": CorruptFileError,
    "newer": NewerVersionError,
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_gets_an_error_of_its_kind_that_names_it(saved, how):
    break_file(saved, how)
    with pytest.raises(BROKEN[how], match="a map with spaces"):
        ONBMACF.load(saved, dose_model)


def test_no_flipped_bit_changes_what_is_read(explainer, saved):
    raw = saved.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(raw), 150):
        broken = bytearray(raw)
        broken[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(broken)
        try:
            loaded = ONBMACF.load(saved, dose_model)
        except StoreError:
            continue
        for name in ("centers", "radii", "labels", "owner", "reach"):  # a bit that says nothing about the content
            np.testing.assert_array_equal(getattr(loaded.cover_, name), getattr(explainer.cover_, name))
        np.testing.assert_array_equal(loaded.Z_, explainer.Z_)


def test_a_missing_file_and_a_folder_that_cannot_be_written(explainer, tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        ONBMACF.load(tmp_path / "nowhere.onb", dose_model)
    with pytest.raises(StoreError, match="no folder"):
        explainer.save(tmp_path / "no folder" / "m.onb")


def test_a_failed_write_leaves_the_old_file(explainer, saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StoreError, match="No space left"):
        explainer.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


HOLDER = """
import sys, time
from pathlib import Path
from onbmacf._base.files import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_writer_is_told_and_a_killed_ones_lock_is_taken_over(explainer, saved):
    claim = saved.with_name(saved.name + ".writing")
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(saved)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another process"):
            explainer.save(saved)
    finally:
        holder.kill()
        holder.wait()
    assert claim.exists()
    explainer.save(saved)
    assert not claim.exists()


def test_what_cannot_be_saved_is_said(mixed, tmp_path):
    explainer = ONBMACF(metric=lambda a, b: float(np.abs(a - b).sum())).fit(mixed, dose_model)
    with pytest.raises(StoreError, match="parameter metric"):
        explainer.save(tmp_path / "m.onb")


def test_a_map_of_the_first_release_loads_and_answers():
    """The file was written before the package was rebuilt; its model is the rule below."""
    model = lambda rows: np.where(rows["pay"] + 10 * (rows["town"] == "a") > 50, "yes", "no")  # noqa: E731
    explainer = ONBMACF.load(Path(__file__).parent / "formats/map-1-first.onb", model)
    assert repr(explainer).startswith("<ONBMACF(n_counterfactuals=2, plausibility=0.25) fitted on ")
    rows = explainer.fitted_.space.decode(explainer.Z_).head(2)
    assert explainer.explain(rows).sentences()[0] == (
        "If pay were 50.5 instead of 12.27, the model would say 'yes' instead of 'no'. "
        "Even if pay were 48 instead of 12.27, it would still say 'no'."
    )


def test_a_map_with_an_option_that_is_gone_says_what_to_do(saved, monkeypatch):
    monkeypatch.setattr(map_check, "NAMES", tuple(name for name in map_check.NAMES if name != "plausibility"))
    with pytest.raises(
        StoreError, match=r"saved with the option 'plausibility', which this version lacks\. Build it again"
    ):
        ONBMACF.load(saved, dose_model)
