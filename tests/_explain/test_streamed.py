"""A map of partitions: pure among all rows, the same to the bit however the table is cut, with a sentence per fault."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

from _explain.test_distributed import new_cluster, patient  # noqa: F401 - a fixture
from commands import PATIENCE
from onbmacf import ONBMACF
from onbmacf._balls.distance import distances
from onbmacf._base.arrays import hashed
from onbmacf._disk.map_file import read_map
from onbmacf._explain import streamed
from onbmacf._explain.streamed import witnesses
from onbmacf.cli.maps import map_text
from onbmacf.errors import InvalidFileError, ModelError, ParameterError, TableError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.xdist_group("dask")
N_ROWS, N_COVERED = 3000, 300


@pytest.fixture(scope="module")
def client(patient):  # noqa: F811
    """A client that is used where it is given, and nowhere else."""
    with new_cluster(2) as cluster, distributed.Client(cluster, timeout=PATIENCE, set_as_default=False) as client:
        yield client


def model(rows):
    score = rows["a"].to_numpy() + np.sin(5 * rows["b"].to_numpy()) + (rows["c"] == "x").to_numpy(dtype=float)
    return np.where(score > 1, "yes", "no")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((N_ROWS, 2)).round(3), columns=["a", "b"])
    return frame.assign(c=rng.choice(["x", "y", "z"], N_ROWS), n=rng.integers(0, 9, N_ROWS))


def parted(table, n=4, seed=None):
    table = table if seed is None else table.sample(frac=1, random_state=seed)
    return dd.from_pandas(table.reset_index(drop=True), npartitions=n, sort=False)


def pieces(table, n):
    return [table.iloc[at] for at in np.array_split(np.arange(len(table)), n)]


def fit(table, model=model, n=4, **arguments):
    return ONBMACF(cover_rows=N_COVERED).fit(parted(table, n), model, **{"coverage": 0.95, **arguments})


@pytest.fixture(scope="module")
def fitted(table):
    return fit(table)


def bits(explainer):
    fitted = explainer.fitted_
    cover = fitted.cover
    arrays = (fitted.Z, fitted.labels, cover.centers, cover.radii, cover.labels, cover.owner, cover.reach)
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


# What it keeps.


def test_balls_are_pure_among_all_rows_and_cover_the_share_that_is_told(table, fitted):
    explainer = fitted
    cover, space = explainer.cover_, explainer.fitted_.space
    Z, said = space.encode(table), explainer.classes_.tolist()
    labels = np.array([said.index(label) for label in model(table)])
    apart = distances(explainer.Z_[cover.centers], Z, "manhattan")
    is_own = labels == cover.labels[:, np.newaxis]
    radii = np.broadcast_to(cover.radii[:, np.newaxis], apart.shape)
    assert (apart[~is_own] >= radii[~is_own]).all()
    nearest_enemy = np.where(is_own, np.inf, apart).min(axis=1)
    np.testing.assert_array_equal(cover.radii, nearest_enemy)
    whole = explainer.fitted_.whole
    assert whole.share == ((apart < radii) & is_own).any(axis=0).mean() >= 0.95
    assert whole.n_rows == N_ROWS
    assert N_COVERED <= whole.n_sampled <= N_COVERED + 20
    assert (cover.owner >= 0).all()


@pytest.mark.parametrize("n, seed", [(1, None), (7, 1), (13, 2)])
def test_neither_partitions_nor_order_change_a_bit(table, fitted, n, seed):
    other = ONBMACF(cover_rows=N_COVERED).fit(parted(table, n, seed), model, coverage=0.95)
    assert bits(other) == bits(fitted)


def test_one_sample_or_every_row(table):
    one, every = fit(table, coverage=0), fit(table, coverage=1)
    assert len(one.Z_) == one.fitted_.whole.n_sampled
    assert 0.4 < one.fitted_.whole.share < every.fitted_.whole.share == 1


def test_a_cluster_gives_the_same_bits(table, fitted, client):
    assert bits(fit(table, n=5, client=client)) == bits(fitted)


def test_copies_change_only_what_is_counted(table, fitted):
    copies = pd.concat([table, table.head(400), table.head(400)])
    other, n_sampled = fit(copies), fitted.fitted_.whole.n_sampled
    assert other.fitted_.whole.n_sampled == n_sampled
    np.testing.assert_array_equal(other.Z_[:n_sampled], fitted.Z_[:n_sampled])
    assert other.fitted_.whole.n_rows == N_ROWS + 800


def test_answers_are_those_of_a_map_of_all_rows_or_nearly(table, fitted):
    rows = table[model(table) == "no"].head(60)
    whole = ONBMACF().fit(table, model).explain(rows, "yes").to_frame()
    found = fitted.explain(rows, "yes").to_frame()
    assert (model(found) == "yes").all()
    assert found["distance"].mean() < 1.05 * whole["distance"].mean()


def test_a_saved_map_says_what_it_stands_for(table, fitted, tmp_path):
    fitted.save(tmp_path / "map.onb")
    loaded = ONBMACF.load(tmp_path / "map.onb", model)
    rows = table.head(10)
    assert loaded.explain(rows).sentences() == fitted.explain(rows).sentences()
    n_sampled = fitted.fitted_.whole.n_sampled
    assert f"fitted on 3,000 rows of 4 features, with 2 labels, neighbours among {n_sampled} of them" in repr(loaded)
    text = map_text(read_map(tmp_path / "map.onb"), "map.onb")
    assert "stands for" in text
    assert "3,000 rows, " in text
    assert f"among {n_sampled} of these rows" in text


def test_a_forged_reach_is_refused(fitted, tmp_path, monkeypatch):
    cover = fitted.cover_
    reach = cover.reach * 2
    fitted.save(tmp_path / "map.onb")
    read = read_map(tmp_path / "map.onb")
    assert read.whole == fitted.fitted_.whole
    object.__setattr__(cover, "reach", reach), object.__setattr__(cover, "radii", reach[cover.centers])
    try:
        fitted.save(tmp_path / "forged.onb")
        with pytest.raises(InvalidFileError, match="nearest row of another label"):
            read_map(tmp_path / "forged.onb")
    finally:
        object.__setattr__(cover, "reach", reach / 2), object.__setattr__(cover, "radii", reach[cover.centers] / 2)


# Columns and labels of which few rows tell.


def test_ends_levels_and_missing_values_of_one_row_are_known(table):
    late = table.copy()
    late.loc[2990, "a"], late.loc[2991, "b"], late.loc[2992, "n"], late.loc[2993, "c"] = 7.25, np.nan, -3, "rare"
    late["c"] = late["c"].astype(object)

    def lenient(rows):
        return np.where(np.nan_to_num(rows["b"].to_numpy(dtype=float)) + rows["a"].to_numpy(dtype=float) > 1, 1, 0)

    explainer = fit(late, lenient)
    levels = {feature.name: feature.levels for feature in explainer.schema_.features}
    assert levels["c"] == ("rare", "x", "y", "z")
    np.testing.assert_array_equal(explainer.fitted_.ranges[[0, 3]], [[0.0, 7.25], [-3, 8]])
    assert [feature.missing for feature in explainer.schema_.features] == [False, True, False, False]
    assert explainer.explain(late.iloc[[2993]])[0].status in ("found", "not_found")


def test_witnesses_of_parts_are_those_of_the_whole(table):
    late = table.assign(d=np.where(table.index == 7, 0.5, np.floor(table["a"] * 5)), w=table["n"] > 3)
    late.loc[11, "d"] = np.nan
    whole = witnesses(late)
    parts = [witnesses(part) for part in pieces(late.sample(frac=1, random_state=3), 5)]
    pd.testing.assert_frame_equal(witnesses(pd.concat(parts)).reset_index(drop=True), whole.reset_index(drop=True))
    assert 0.5 in whole["d"].tolist()
    assert whole["d"].isna().sum() == 1
    assert len(whole) < 20


def test_a_label_of_one_row_is_in_the_map(table):
    odd = table.assign(a=np.where(table.index == 1234, 0.77777, table["a"]))

    def rare(rows):
        return np.where(rows["a"].to_numpy() == 0.77777, "odd", model(rows))

    explainer = fit(odd, rare)
    assert explainer.classes_.tolist() == ["no", "odd", "yes"]
    assert (explainer.labels_ == 1).sum() == 1
    assert 0.77777 in explainer.fitted_.map.table.N[explainer.labels_ == 1]


def test_categories_that_dask_does_not_know_are_looked_for(table):
    lots = dd.concat([parted(table.iloc[1000:], 2), parted(table.iloc[:1000], 1)]).astype({"c": "category"})
    explainer = ONBMACF(cover_rows=N_COVERED).fit(lots, model, coverage=0.9)
    assert dict(zip(explainer.schema_.names, explainer.schema_.features, strict=True))["c"].levels == ("x", "y", "z")


# Faults.


def broken(table, at, what):
    """A table whose partition `at` is made by a function."""
    parts = pieces(table, 4)
    return dd.from_map(lambda i: what(parts[i]) if i == at else parts[i], range(4), meta=table.iloc[:0])


def lost(part):
    raise OSError("the disk is gone")


def test_a_partition_that_cannot_be_read_is_named(table, client):
    for where in (None, client):
        with pytest.raises(TableError, match="partition 2 cannot be read: OSError: the disk is gone"):
            ONBMACF(cover_rows=100).fit(broken(table, 2, lost), model, client=where)


@pytest.mark.parametrize(
    "what, said",
    [
        (lambda part: part.assign(a=np.inf), "infinite values or values that are not numbers in column 'a'"),
        (
            lambda part: part.drop(columns="b"),
            "partition 1: it has the columns 'a', 'c', 'n' in place",
        ),
        (
            lambda part: part.assign(n=part["n"].astype(float)),
            "partition 1: column 'n' has dtype float64 in place of int64",
        ),
    ],
    ids=["infinite", "lacks", "dtype"],
)
def test_a_partition_with_other_rows_is_an_error_of_one_sentence(table, what, said):
    with pytest.raises(TableError, match=said):
        ONBMACF(cover_rows=100).fit(broken(table, 1, what), model)


def test_a_model_that_fails_on_some_rows_names_them(table):
    def fails(rows):
        if (rows["a"] == 0.5).any():
            raise ValueError("no half")
        return model(rows)

    def is_nan(rows):
        return np.where(rows["a"] == 0.5, np.nan, rows["a"] > 0.3)

    for wrong, said in ((fails, "raised ValueError on row .*no half"), (is_nan, "returned NaN for row")):
        with pytest.raises(ModelError, match=rf"partition \d: the model {said}"):
            fit(table, wrong)


def test_more_labels_than_a_map_may_have_are_an_error(table, monkeypatch):
    monkeypatch.setattr(streamed, "MOST_LEVELS", 40)
    for n in (1, 60):  # too many in one partition, and only in all together
        with pytest.raises(ModelError, match="the model gives more than 40 labels"):
            fit(table.sort_values("a"), lambda rows: np.floor(rows["a"].to_numpy() * 50).astype(int), n=n)


def test_a_model_that_a_worker_cannot_get_is_an_error(table, client):
    lock = threading.Lock()

    def held(rows):
        with lock:
            return model(rows)

    with pytest.raises(ModelError, match="the model cannot be sent to the workers: TypeError: cannot pickle"):
        fit(table, held, client=client)


def test_one_label_is_no_map(table):
    with pytest.raises(ModelError, match="predicts only 1 on these 3,000 rows"):
        fit(table, lambda rows: np.ones(len(rows), dtype=int))


def test_a_text_of_each_rows_own_has_too_many_levels(table):
    many = pd.DataFrame({"a": np.arange(40_000) % 7, "name": [f"p{at}" for at in range(40_000)]})
    with pytest.raises(TableError, match=r"partition \d: column 'name' has more than 32,767 levels"):
        ONBMACF(cover_rows=100).fit(parted(many, 1), lambda rows: rows["a"] > 3)


@pytest.mark.parametrize(
    "options, arguments, said",
    [
        ({"cover_rows": None}, {}, "cover_rows=None covers all rows in one process"),
        ({"strategy": "paper"}, {}, "strategy='paper' covers all rows in one process"),
        ({"private": 5}, {}, "private makes groups of all rows in one process"),
        ({}, {"causes": {"a": "b"}}, "causes needs all rows in one process"),
        ({}, {"space": len}, "space needs all rows in one process"),
        ({}, {"coverage": 1.5}, "coverage must be"),
        ({}, {"schema": "a"}, "schema must be a Schema"),
        ({}, {"client": "tcp://127.0.0.1:1"}, "client must be a dask.distributed.Client"),
    ],
)
def test_what_needs_all_rows_is_refused(table, options, arguments, said):
    with pytest.raises(ParameterError, match=said):
        ONBMACF(**options).fit(parted(table), model, **arguments)


def test_the_papers_strategy_is_refused_on_such_a_map(table, fitted):
    with pytest.raises(ParameterError, match="needs balls that cover every row"):
        fitted.with_options(strategy="paper").explain(table.head(1))


class DiesOnce:
    """A model that ends the first worker that asks it."""

    def __init__(self, path):
        self.path, self.home = str(path), os.getpid()

    def predict(self, rows):
        if os.getpid() != self.home and not os.path.exists(self.path):
            with open(self.path, "w") as mark:
                mark.write(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return model(rows)


@pytest.mark.long
def test_a_worker_that_dies_while_it_asks_the_model_changes_nothing(table, fitted, tmp_path):
    with new_cluster(2) as cluster, distributed.Client(cluster, timeout=PATIENCE) as own:
        workers = set(own.run(os.getpid).values())
        explainer = fit(table, DiesOnce(tmp_path / "died"), n=8, client=own)
    assert int((tmp_path / "died").read_text()) in workers
    assert bits(explainer) == bits(fitted)


@pytest.mark.long
@pytest.mark.parametrize("name", ["_reach_in", "_uncovered_in", "_left_below", "_rows_below", "_columns_of"])
def test_a_worker_that_dies_in_another_pass_changes_nothing(table, fitted, tmp_path, monkeypatch, name):
    monkeypatch.setattr(streamed, name, DyingWork(getattr(streamed, name), tmp_path / "died"))
    with new_cluster(2) as cluster, distributed.Client(cluster, timeout=PATIENCE) as own:
        explainer = fit(table, n=8, client=own)
    assert (tmp_path / "died").exists()
    assert bits(explainer) == bits(fitted)


class DyingWork(DiesOnce):
    """Work on a partition that ends the first worker that does it."""

    def __init__(self, work, path):
        super().__init__(path)
        self.work = work

    def __call__(self, *arguments):
        self.predict(SOME_ROWS)
        return self.work(*arguments)


SOME_ROWS = pd.DataFrame({"a": [0.0], "b": [0.0], "c": ["x"]})


# Stopped, and gone on with.


def test_a_fit_that_was_stopped_or_is_to_cover_more_goes_on_from_finished_passes(table, fitted, tmp_path):
    asked = []

    def counting(rows):
        asked.append(len(rows))
        return model(rows)

    fit(table, counting, passes=tmp_path / "passes", coverage=0.5)
    once = len(asked)
    kept = sorted((tmp_path / "passes").iterdir())
    kept[-1].unlink()  # as if it had been stopped before this pass
    more = fit(table, counting, passes=tmp_path / "passes")
    assert len(asked) - once < once - N_ROWS // 512
    assert bits(more) == bits(fitted)
    assert len(list((tmp_path / "passes").iterdir())) > len(kept)
    other = fit(table, lambda rows: (rows["a"] > 0.5).astype(int), passes=tmp_path / "passes")
    assert other.classes_.tolist() == [0, 1]


def test_a_kept_pass_that_cannot_be_read_says_so(table, tmp_path):
    fit(table, passes=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(b"PK")
    with pytest.raises(OSError, match=r"labels\.npz cannot be read: .* Delete it to make it again"):
        fit(table, passes=tmp_path)


def test_hashes_are_spread_evenly():
    values = np.arange(20_000, dtype=np.float64)[:, np.newaxis]
    hashes = hashed(values, np.zeros(20_000, dtype=np.intp))
    counts = np.histogram(hashes.astype(float), bins=20, range=(0, 2.0**64))[0]
    assert np.abs(counts - 1000).max() < 150
