"""A real cluster of two worker processes gives what one process gives, also when a worker dies on the way."""

import hashlib
import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

from commands import PATIENCE, wait_for
from onbmacf import ONBMACF, Causes
from onbmacf._balls import cover
from onbmacf._balls.cover import build_cover
from onbmacf._base.executor import run_all, shares
from onbmacf.errors import ModelError, OnbmacfWarning, ParameterError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.xdist_group("dask")


def new_cluster(n_workers):
    """A cluster on this machine; workers neither pause nor stop for what else is in its memory."""
    how = {"threads_per_worker": 1, "processes": True, "memory_limit": 0}
    return distributed.LocalCluster(n_workers=n_workers, host="127.0.0.1", dashboard_address="127.0.0.1:0", **how)


@pytest.fixture(scope="module", autouse=True)
def patient():
    """A busy machine may take its time to start a worker or to answer."""
    comm, long = "distributed.comm.timeouts", f"{PATIENCE}s"
    with dask.config.set({f"{comm}.connect": long, f"{comm}.tcp": long, "distributed.scheduler.worker-ttl": None}):
        yield


@pytest.fixture(scope="module")
def client(patient):
    with new_cluster(2) as cluster, distributed.Client(cluster, timeout=PATIENCE) as client:
        yield client


def folded(rows):
    score = np.sin(9 * rows["a"]) + rows["b"] + 0.3 * (rows["c"] == "x")
    return np.where(score > 1.2, "high", np.where(score > 0.6, "middle", "low"))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    numbers = pd.DataFrame(rng.random((1200, 2)).round(3), columns=list("ab"))
    return numbers.assign(c=rng.choice(list("xyz"), 1200)).set_index(pd.Index(np.arange(1200) % 700, name="person"))


@pytest.fixture(scope="module")
def explainer(table):
    return ONBMACF(2).fit(table, folded)


def digest(answers):
    written = answers.to_frame().to_csv() + answers.status_frame().to_csv()
    return hashlib.sha256(written.encode()).hexdigest()


def smooth(rows, columns, classes, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((rows, columns)).round(2)
    score = Z @ rng.normal(size=columns) + 0.3 * np.sin(7 * Z[:, 0])
    return Z, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)).astype(np.intp)


def assert_same_cover(left, right):
    for name in ("centers", "radii", "labels", "owner", "reach"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


def test_results_come_in_the_order_of_the_pieces(client):
    assert run_all(lambda piece: piece**2, list(range(50)), client=client) == [n**2 for n in range(50)]
    assert run_all(lambda piece: piece, [], client=client) == []


def test_shares_hold_every_item_once(client):
    for total in (0, 1, 5, 1000):
        assert [n for place in shares(total, client, least=3, most=7) for n in range(total)[place]] == [*range(total)]


@pytest.mark.parametrize("metric", ["manhattan", "euclidean", "chebyshev"])
@pytest.mark.parametrize("competitors", ["uncovered", "all"])
def test_the_cover_is_the_same_to_the_bit(client, metric, competitors):
    Z, labels = smooth(2500, 5, 3)
    labels[::50] = (labels[::50] + 1) % 3  # some balls of radius zero
    alone = build_cover(Z, labels, metric, competitors, fast=True)
    assert_same_cover(build_cover(Z, labels, metric, competitors, fast=True, client=client), alone)


def test_fit_with_a_client_is_fit(client, table, explainer, monkeypatch):
    monkeypatch.setattr(cover, "FEW", 0)  # the compiled cover: the one that is shared out
    assert_same_cover(ONBMACF(2).fit(table, folded, client=client).cover_, explainer.cover_)


@pytest.mark.parametrize("target", [pytest.param(None, marks=pytest.mark.long), "high", ["high", "low"]])
def test_explaining_on_workers_is_explaining(client, explainer, table, target):
    rows = table.head(60).copy()
    rows.iloc[7, 0] = np.nan
    alone, there = explainer.explain(rows, target), explainer.explain(rows, target, client=client)
    pd.testing.assert_frame_equal(there.to_frame(), alone.to_frame())
    pd.testing.assert_frame_equal(there.status_frame(), alone.status_frame())
    assert there.sentences() == alone.sentences()


@pytest.mark.parametrize("rows", [slice(0, 0), slice(4, 5)], ids=["no row", "one row"])
def test_small_batches(client, explainer, table, rows):
    assert digest(explainer.explain(table[rows], client=client)) == digest(explainer.explain(table[rows]))


@pytest.mark.long
def test_a_worker_killed_in_the_middle_changes_nothing(client, table, tmp_path):
    victim, asked = client.submit(os.getpid, pure=False).result(), tmp_path / "asked"

    def folded_unless_on_the_victim(rows):
        while os.getpid() == victim:  # at work until it is killed
            asked.touch()
            time.sleep(0.01)
        return folded(rows)

    explainer = ONBMACF(2).fit(table, folded_unless_on_the_victim)
    rows, expected = table.head(80), digest(ONBMACF(2).fit(table, folded).explain(table.head(80)))

    def kill():
        wait_for(asked.exists)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    answers = explainer.explain(rows, client=client)
    killer.join()
    assert asked.exists()
    assert digest(answers) == expected
    client.wait_for_workers(2, timeout=PATIENCE)
    assert victim not in client.run(os.getpid).values()


@pytest.mark.parametrize(
    "given", [pytest.param(True, marks=pytest.mark.long), False], ids=["client given", "client found"]
)
def test_a_dask_frame_in_gives_a_dask_frame_out(client, explainer, table, given):
    rows = table.head(50).sort_index()
    answers = explainer.explain(dd.from_pandas(rows, npartitions=3), "low", client=client if given else None)
    alone = explainer.explain(rows, "low")
    assert isinstance(answers, dd.DataFrame)
    lines = answers.compute()
    assert list(answers.columns) == list(lines.columns) == ["status", "reason", *alone.to_frame().columns]
    found = lines[lines["status"] == "found"].drop(columns=["status", "reason"])
    pd.testing.assert_frame_equal(found, alone.to_frame(), check_dtype=False)
    assert [*lines[lines["rank"].fillna(1) == 1].index] == [*rows.index]


def test_rows_of_a_dask_frame_without_an_answer_have_a_status_line(explainer, table):
    rows = table.head(12).sort_index()
    rows.iloc[3, 2] = "nowhere"
    alone = explainer.explain(rows, "low")
    lines = explainer.explain(dd.from_pandas(rows, npartitions=2), "low").compute()
    without = lines[lines["status"] != "found"]
    assert sorted(without["status"]) == sorted(str(s) for s in alone.statuses if s != "found")
    assert set(without["status"]) == {"already", "invalid_row"}
    assert without[["rank", "to", "a", "b", "c"]].isna().all(axis=None)
    invalid = without[without["status"] == "invalid_row"]
    assert [*invalid.index] == [rows.index[3]]
    assert invalid["reason"].iloc[0] == alone[3].reason
    assert without.loc[without["status"] == "already", "from"].eq("low").all()


def test_a_partition_without_answers_has_the_same_columns_and_dtypes(client, explainer, table):
    labels = explainer.explain(table).labels
    lows = table[labels == "low"].head(6).sort_index()
    answers = explainer.explain(dd.from_pandas(lows, npartitions=2), "low").compute()
    some = explainer.explain(dd.from_pandas(table.head(3), npartitions=1, sort=False)).compute()
    assert [*answers["status"]] == ["already"] * 6
    pd.testing.assert_series_equal(answers.dtypes, some.dtypes)


def test_a_closed_client_is_refused(client, explainer, table):
    closed = distributed.Client(client.scheduler.address)
    closed.close()
    for work in (lambda: explainer.explain(table.head(3), client=closed), lambda: run_all(str, [1], client=closed)):
        with pytest.raises(ParameterError, match="client must be connected, got one that is closed"):
            work()
    with pytest.raises(ParameterError, match=r"client must be a dask\.distributed\.Client, got str"):
        explainer.explain(table.head(3), client="tcp://127.0.0.1:8786")


def test_a_cluster_without_workers_is_refused(explainer, table):
    refused = pytest.raises(ParameterError, match="client must have workers, got none")
    with new_cluster(0) as empty, distributed.Client(empty) as lonely, refused:
        explainer.explain(table.head(3), client=lonely)


def test_a_model_that_a_worker_cannot_import_is_an_error_that_says_which(client, table, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def rule(rows):\n    return (rows['a'] > 0.5).astype(int)\n")
    monkeypatch.syspath_prepend(tmp_path)
    from only_here import rule

    explainer = ONBMACF().fit(table.head(200), rule)
    with pytest.raises(ModelError, match=r"worker tcp://127.* cannot load the model .*No module named 'only_here'"):
        explainer.explain(table.head(3), client=client)


def test_a_model_that_cannot_be_pickled_is_asked_here_with_a_warning(client, table):
    lock = threading.Lock()

    def held(rows):
        with lock:
            return folded(rows)

    explainer = ONBMACF().fit(table, held)
    with pytest.warns(OnbmacfWarning, match="cannot be sent to other processes"):
        answers = explainer.explain(table.head(5), client=client)
    assert list(answers.statuses) == ["found"] * 5


def test_workers_let_effects_follow(client):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 20, 200), "b": rng.integers(0, 20, 200)})
    table["both"] = table["a"] + table["b"]
    model = lambda rows: np.where(rows["both"] > 20, "high", "low")  # noqa: E731 - travels by cloudpickle, as causes do
    causes = Causes({"both": lambda rows: rows["a"] + rows["b"]})
    explainer = ONBMACF().fit(table, model, causes=causes)
    rows = table.iloc[:20]
    assert explainer.explain(rows, client=client).to_json() == explainer.explain(rows).to_json()
    frame = explainer.explain(dd.from_pandas(rows, npartitions=2), client=client).compute()
    assert (frame["a"] + frame["b"] == frame["both"]).all()
