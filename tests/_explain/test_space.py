"""Points of the caller's own: balls, neighbours and donors live there, rows and changes in the table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from onbmacf import ONBMACF, Blocks
from onbmacf.errors import OnbmacfError, ParameterError

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(300, 4)).round(2), columns=["a", "b", "c", "d"])
TABLE["town"] = RNG.choice(["x", "y", "z"], 300)
MODEL = lambda rows: (rows["a"] + rows["b"] > 0.3).astype(int)  # noqa: E731


def seen(rows):
    """Two of the columns, turned and stretched: c, d and the town are of no account."""
    return np.column_stack([rows["a"] + rows["b"], 0.5 * (rows["a"] - rows["b"])])


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF().fit(TABLE, MODEL, space=seen)


def by_brute_force(values, label):
    """Return the share of the 5 nearest fitted rows, where they are seen, that have a label."""
    apart = ((seen(TABLE) - seen(values.to_frame().T.astype(TABLE.dtypes))) ** 2).sum(axis=1)
    return (MODEL(TABLE).to_numpy()[np.argsort(apart, kind="stable")[:5]] == label).mean()


WAYS = {
    "default": {},
    "bound": {"min_neighbours": 5},
    "interior": {"plausibility": 1},
    "front": {"front": True},
    "several": {"n": 3},
    "proof": {"prove": True},
}


@pytest.mark.parametrize("asked", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("blocks", [None, {"both": ["a", "b"]}], ids=["features", "blocks"])
def test_neighbours_are_those_of_the_points(explainer, asked, blocks):
    if blocks is not None:
        if "prove" in asked:
            pytest.skip("refused with blocks")
        explainer = ONBMACF().fit(TABLE, MODEL, space=seen, blocks=blocks)
    answers = explainer.explain(TABLE.iloc[:12], **asked)
    assert (answers.statuses == "found").all()
    for one in answers:
        for found in one.counterfactuals:
            assert found.plausibility == by_brute_force(found.values, found.label)
            assert found.plausibility == 1.0 or "min_neighbours" not in asked
            assert explainer.cover_.labels[found.ball] == found.label
            if blocks is not None:
                donor = TABLE.iloc[found.donor]
                assert all(found.values[name] == donor[name] for name in found.changed)
    assert answers[5].to_dict() == explainer.explain(TABLE.iloc[[5]], **asked)[0].to_dict()


def test_balls_are_those_of_the_points(explainer):
    points, cover, labels = seen(TABLE), explainer.cover_, explainer.labels_
    for ball in range(len(cover)):
        apart = np.abs(points - points[cover.centers[ball]]).sum(axis=1)
        inside = apart < cover.radii[ball] - 1e-7
        assert (labels[inside] == cover.labels[ball]).all()
        assert cover.radii[ball] == pytest.approx(apart[labels != cover.labels[ball]].min())
    far = TABLE.iloc[:1].assign(c=1e6, town="y")  # what is not seen moves no neighbour
    found = [explainer.explain(rows)[0].counterfactuals[0] for rows in (TABLE.iloc[:1], far)]
    assert found[0].plausibility == found[1].plausibility
    assert found[0].changed == found[1].changed


def test_distances_and_changes_stay_in_the_table(explainer):
    plain = ONBMACF().fit(TABLE, MODEL)
    near = [one.explain(TABLE.iloc[:20], plausibility=0) for one in (plain, explainer)]
    span = TABLE[["a", "b"]].max() - TABLE[["a", "b"]].min()
    for one in near[1]:
        found = one.counterfactuals[0]
        moved = sum(abs(found.values[name] - found.factual[name]) / span[name] for name in found.changed)
        assert found.distance == pytest.approx(moved)
    assert np.allclose(near[0].batch.distance, near[1].batch.distance, atol=0.02)


def test_donors_are_the_nearest_where_the_network_sees_them():
    pixels, digits = load_digits(return_X_y=True)
    net = MLPClassifier((32,), max_iter=300, random_state=0).fit(pixels[:600], digits[:600])

    def last_layer(rows):
        return np.maximum(0, np.asarray(rows) @ net.coefs_[0] + net.intercepts_[0])

    explainer = ONBMACF().fit(pixels[:600], net, blocks=Blocks.grid((8, 8), 4), space=last_layer)
    answers = explainer.explain(pixels[1000:1020], min_neighbours=4)
    layer = last_layer(pixels[:600])
    for place, one in enumerate(answers):
        found = one.counterfactuals[0]
        apart = ((layer - last_layer(found.values.to_numpy(float)[np.newaxis])) ** 2).sum(axis=1)
        nearest = np.argsort(apart, kind="stable")[:5]
        assert (net.predict(pixels[:600])[nearest] == found.label).mean() == found.plausibility >= 0.8
        own = net.predict(pixels[[1000 + place]])[0]
        others = np.flatnonzero(net.predict(pixels[:600]) != own)
        away = np.abs(layer[others] - last_layer(pixels[[1000 + place]])).sum(axis=1)
        assert found.donor in others[np.argsort(away, kind="stable")[:96]]  # those that are looked at with a bound
        same = explainer.explain(pixels[[1000 + place]], min_neighbours=4)[0].counterfactuals[0]
        assert same.values.tolist() == found.values.tolist()


def test_a_saved_map_wants_its_space_again(explainer, tmp_path):
    explainer.save(tmp_path / "map.onb")
    with pytest.raises(ParameterError, match=r"live in space=seen, which is not in the file.*space=space"):
        ONBMACF.load(tmp_path / "map.onb", MODEL)
    again = ONBMACF.load(tmp_path / "map.onb", MODEL, space=seen)
    assert again.explain(TABLE.iloc[:8]).to_json() == explainer.explain(TABLE.iloc[:8]).to_json()
    with pytest.raises(ParameterError, match="space is not the one that the map was saved with, seen"):
        ONBMACF.load(tmp_path / "map.onb", MODEL, space=lambda rows: rows[["c", "d"]].to_numpy())
    ONBMACF().fit(TABLE, MODEL).save(tmp_path / "plain.onb")
    with pytest.raises(ParameterError, match="saved without space"):
        ONBMACF.load(tmp_path / "plain.onb", MODEL, space=seen)


def test_last_digits_that_differ_with_the_rows_of_a_call_change_no_point():
    explainer = ONBMACF().fit(TABLE, MODEL, space=lambda rows: seen(rows) + 1e-13 * len(rows))
    N = explainer.fitted_.space.decode_numbers(explainer.Z_)
    points = explainer.fitted_.embedding.points(N)
    assert all((explainer.fitted_.embedding.points(N[[at]]) == points[at]).all() for at in range(50))


CALLS = iter(range(1000))
FAULTS = {
    "no function": (3, "space must be a function from rows to points, got 3"),
    "one number": (lambda rows: rows["a"].to_numpy(), r"returned an array of shape \(300,\) and dtype float64 for 300"),
    "too few": (lambda rows: np.zeros((2, 2)), r"shape \(2, 2\)"),
    "words": (lambda rows: rows[["town"]].to_numpy(), "one row of numbers each is due"),
    "not finite": (lambda rows: np.log(rows[["a"]].to_numpy()), "points that are not finite"),
    "by chance": (
        lambda rows: np.full((len(rows), 1), next(CALLS)),
        "other points of the same rows when it is asked again",
    ),
}


@pytest.mark.parametrize("space, words", FAULTS.values(), ids=FAULTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_no_space_says_so(space, words):
    with pytest.raises(OnbmacfError, match=words):
        ONBMACF().fit(TABLE, MODEL, space=space)


def test_the_papers_strategy_and_pictures_of_balls_are_refused(explainer):
    with pytest.raises(ParameterError, match="space needs strategy='refined'"):
        ONBMACF(strategy="paper").fit(TABLE, MODEL, space=seen)
    with pytest.raises(ParameterError, match="space needs strategy='refined'"):
        explainer.with_options(strategy="paper").explain(TABLE.iloc[:1])
    plots = pytest.importorskip("onbmacf.plots")
    pytest.importorskip("matplotlib")
    with pytest.raises(ParameterError, match="balls lie in the points that space makes of rows"):
        plots.cover(explainer, "a", "b")


def test_points_of_missing_values_and_arrays_are_the_callers():
    table = TABLE.copy()
    table.loc[::9, "c"] = np.nan
    explainer = ONBMACF().fit(table, MODEL, space=lambda rows: rows[["a", "b", "c"]].fillna(0).to_numpy())
    assert (explainer.explain(table.iloc[:10]).statuses == "found").all()
    X = TABLE[["a", "b", "c", "d"]].to_numpy(np.float32)
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    shapes = []
    ONBMACF().fit(X, model, space=lambda rows: shapes.append((type(rows), rows.dtype)) or rows[:, :2])
    assert {*shapes} == {(np.ndarray, np.dtype(np.float32))}
