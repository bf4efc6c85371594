"""A map whose balls are made of a sample: what it keeps, what it says of itself, and where it is refused."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._balls.distance import distances
from onbmacf._disk.map_file import read_map
from onbmacf._search import options
from onbmacf.cli.maps import map_text
from onbmacf.errors import ParameterError

N_ROWS, N_COVERED = 1200, 300


def model(rows):
    return (rows["a"] + np.sin(5 * rows["b"]) + (rows["c"] == "x") > 1).astype(int)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((N_ROWS, 2)).round(3), columns=["a", "b"])
    return frame.assign(c=rng.choice(["x", "y", "z"], N_ROWS))


@pytest.fixture(scope="module")
def sampled(table):
    return ONBMACF(cover_rows=N_COVERED).fit(table, model)


def test_no_ball_holds_a_row_of_another_label(sampled):
    cover, Z, labels = sampled.cover_, sampled.Z_, sampled.labels_
    apart = distances(Z[cover.centers], Z, "manhattan")
    is_enemy = labels != cover.labels[:, np.newaxis]
    assert (apart[is_enemy] >= np.broadcast_to(cover.radii[:, np.newaxis], apart.shape)[is_enemy]).all()
    covered = ((apart < cover.radii[:, np.newaxis]) & ~is_enemy).any(axis=0)
    np.testing.assert_array_equal(covered, cover.owner >= 0)
    assert np.count_nonzero(~np.isnan(cover.reach)) == N_COVERED
    assert 0.5 < cover.share < 1


def test_the_same_rows_in_another_order_have_the_same_balls(table, sampled):
    other = ONBMACF(cover_rows=N_COVERED).fit(table.sample(frac=1, random_state=1), model)
    np.testing.assert_array_equal(other.Z_[other.cover_.centers], sampled.Z_[sampled.cover_.centers])
    np.testing.assert_array_equal(other.cover_.radii, sampled.cover_.radii)


def test_answers_hold_and_neighbours_are_among_all_rows(table, sampled):
    answers = sampled.explain(table.head(40), target=1)
    assert (model(answers.to_frame()[["a", "b", "c"]]) == 1).all()
    whole = ONBMACF(cover_rows=None).fit(table, model)
    N = sampled.fitted_.space.decode_numbers(sampled.Z_[:50])
    np.testing.assert_array_equal(
        sampled.fitted_.share(N, sampled.labels_[:50]), whole.fitted_.share(N, whole.labels_[:50])
    )


def test_a_saved_map_gives_the_same_answers_and_says_what_it_covers(table, sampled, tmp_path):
    sampled.save(tmp_path / "map.onb")
    loaded = ONBMACF.load(tmp_path / "map.onb", model)
    assert loaded.cover_rows == N_COVERED
    assert loaded.explain(table.head(20)).sentences() == sampled.explain(table.head(20)).sentences()
    text = map_text(read_map(tmp_path / "map.onb"), "map.onb")
    assert f"a sample of {N_COVERED} rows; {100 * sampled.cover_.share:.3g} % of all rows lie in a ball" in text
    assert f"{100 * sampled.cover_.share:.3g} % of the rows in one" in repr(sampled.cover_)


def test_auto_covers_all_rows_up_to_a_number_of_them(table, monkeypatch):
    assert not ONBMACF().fit(table, model).cover_.is_sampled
    monkeypatch.setattr(options, "ALL_UP_TO", N_ROWS - 1)
    monkeypatch.setattr(options, "MOST_COVERED", N_COVERED)
    assert np.count_nonzero(~np.isnan(ONBMACF().fit(table, model).cover_.reach)) == N_COVERED
    assert not ONBMACF(strategy="paper").fit(table, model).cover_.is_sampled
    assert not ONBMACF(cover_rows=None).fit(table, model).cover_.is_sampled


def test_copies_of_few_rows_are_covered_as_they_are(table):
    copies = pd.concat([table.head(100)] * 5, ignore_index=True)
    few, whole = (ONBMACF(cover_rows=rows).fit(copies, model).cover_ for rows in (N_COVERED, None))
    assert not few.is_sampled
    np.testing.assert_array_equal(few.centers, whole.centers)


def test_the_papers_strategy_is_refused_on_a_sample(table, sampled):
    with pytest.raises(ParameterError, match="'paper' needs balls that cover every row, and these cover a sample"):
        sampled.with_options(strategy="paper").explain(table.head(1))


@pytest.mark.parametrize("wrong", [1, 0, 2.5, "all", True])
def test_other_numbers_of_rows_are_refused(table, wrong):
    with pytest.raises(ParameterError, match="cover_rows must be"):
        ONBMACF(cover_rows=wrong).fit(table, model)


def test_points_of_the_callers_own_may_be_sampled(table, tmp_path):
    def space(rows):
        return rows[["a", "b"]].to_numpy() ** 2

    explainer = ONBMACF(cover_rows=N_COVERED).fit(table, model, space=space)
    assert explainer.cover_.is_sampled
    explainer.save(tmp_path / "map.onb")
    loaded = ONBMACF.load(tmp_path / "map.onb", model, space=space)
    assert loaded.explain(table.head(5)).sentences() == explainer.explain(table.head(5)).sentences()
