"""The paper's figures as small worked examples, on the map of _search/test_paper_reference.py.

8 |   C             G          circles  A B C D    one ball: centre A, radius 6
  |                            squares  E F G H    one ball: centre E, radius 6
4 |   A   P         E          the model says square from x = 6 on
  |                   F        P lies in both balls, on A's side of their boundary x = 4
2 | B
  |     D
0 |                 H
  +--------------------
    0 1 2 3       7 8
"""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Feature, Relaxation, Schema
from onbmacf._balls.geometry import Balls, crossing

POINTS = pd.DataFrame(
    [(1, 4), (0, 2), (1, 8), (2, 1), (7, 4), (8, 3), (7, 8), (7, 0)], columns=["x", "y"], index=list("ABCDEFGH")
).astype(float)
P = {"x": 3.0, "y": 4.0}
REAL = Schema((Feature("x", "continuous"), Feature("y", "continuous")))


def square_from(x):
    return lambda rows: np.where(rows["x"] >= x, "square", "circle")


def mapped(model, schema=REAL, **options):
    return ONBMACF(strategy="paper", **options).fit(POINTS, model, schema=schema)


def names(rows):
    return "".join(POINTS.index[rows])


def test_figure_of_the_cover_two_balls_of_one_shape_each():
    cover = mapped(square_from(6)).cover_
    assert names(cover.centers) == "AE"
    assert (cover.radii * 8).tolist() == [6, 6]
    assert [names(cover.members(ball)) for ball in (0, 1)] == ["ABCD", "EFGH"]


def test_figure_of_the_association_p_is_in_both_balls_and_belongs_to_a():
    explainer = mapped(square_from(6))
    z = explainer.fitted_.space.encode(pd.DataFrame([P]))[0]
    apart = np.abs(explainer.Z_[explainer.cover_.centers] - z).sum(axis=1) * 8
    assert apart.tolist() == [2, 4]  # both less than 6
    assert explainer.explain(P)[0].counterfactuals[0].ball == 1  # so A was the home, E the ball of another class


def test_figure_of_the_boundary_it_is_halfway_between_the_surfaces():
    a, e, p = (np.array([point]) / 8 for point in ([1.0, 4], [7.0, 4], [3.0, 4]))
    radius, label = np.array([6 / 8]), np.array([0])
    share = crossing(p, e, Balls(a, radius, label), Balls(e, radius, label), "manhattan", "surface")
    assert (p + share * (e - p)) * 8 == pytest.approx(np.array([[4, 4]]))


def test_figure_of_the_candidates_the_walk_ends_where_the_class_changes():
    found = mapped(square_from(6)).explain(P)[0].counterfactuals[0]
    assert found.values.tolist() == pytest.approx([6.25, 4])  # C2; C0 = (4, 4) and C1 = (5.5, 4) are circles
    assert found.semifactual.values.tolist() == pytest.approx([5.5, 4])
    assert found.label == "square"
    assert found.changed == ("x",)
    assert found.distance == pytest.approx(3.25 / 8)


def test_a_boundary_point_that_flips_is_the_counterfactual_and_leaves_no_semifactual():
    found = mapped(square_from(3.5)).explain(P)[0].counterfactuals[0]
    assert found.values.tolist() == pytest.approx([4, 4])
    assert found.semifactual is None


def test_when_no_step_flips_the_goal_itself_is_taken():
    found = mapped(square_from(7)).explain(P)[0].counterfactuals[0]
    assert found.values.tolist() == [7, 4]
    assert found.semifactual.values["x"] == pytest.approx(7 - 3 / 1024)


def test_discrete_features_are_rounded_on_the_way():
    schema = Schema((Feature("x", "integer"), Feature("y", "integer")))
    found = mapped(square_from(6), schema).explain(P)[0].counterfactuals[0]
    assert found.values.tolist() == [6, 4]  # C1 = 5.5 is halfway: it goes towards E


def test_an_immutable_feature_is_kept_and_the_way_leads_to_the_projected_centre():
    schema = Schema((Feature("x", "continuous"), Feature("y", "continuous", immutable=True)))
    answer = mapped(square_from(6), schema).explain({"x": 3.0, "y": 3.0})[0]
    assert answer.counterfactuals[0].values["y"] == 3
    assert answer.counterfactuals[0].relaxation is Relaxation.NONE


def test_a_projection_that_leaves_its_ball_is_a_relaxation():
    schema = Schema((Feature("x", "continuous"), Feature("y", "continuous", immutable=True)))
    answer = mapped(square_from(6), schema).explain({"x": 3.0, "y": 20.0})[0]
    assert answer.counterfactuals[0].values["y"] == 20
    assert answer.counterfactuals[0].relaxation is Relaxation.PROJECTION


def test_an_immutable_feature_that_decides_alone_is_released_and_said():
    schema = Schema((Feature("x", "continuous", immutable=True), Feature("y", "continuous")))
    answer = mapped(square_from(6), schema).explain(P)[0]
    assert answer.counterfactuals[0].relaxation is Relaxation.IMMUTABILITY
    assert answer.counterfactuals[0].changed == answer.counterfactuals[0].released == ("x",)
    assert "keeps the immutable features was found, so they were released" in answer.sentences()[0]


def test_several_counterfactuals_come_from_different_balls():
    model = lambda rows: np.where((rows["x"] + rows["y"] > 5) & (rows["x"] + rows["y"] < 12), "band", "out")  # noqa: E731
    explainer = mapped(model, n_counterfactuals=3)
    found = explainer.explain(POINTS.loc[["A"]]).to_frame()
    assert found["ball"].is_unique
    assert len(found) > 1


def test_three_classes_and_a_target():
    model = lambda rows: np.select([rows["x"] > 6, rows["y"] > 3], ["right", "up"], "down")  # noqa: E731
    explainer = mapped(model)
    assert explainer.explain(POINTS.loc[["B"]], target="right")[0].counterfactuals[0].label == "right"
    assert explainer.explain(POINTS.loc[["B"]], target=["up", "right"])[0].counterfactuals[0].label == "up"


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", lambda a, b: float(np.abs(a - b).sum())])
def test_other_metrics_walk_too(metric):
    answer = mapped(square_from(6), metric=metric).explain(P)[0]
    assert answer.counterfactuals[0].label == "square"
    assert answer.counterfactuals[0].values["x"] >= 6
