"""Hand-worked cases of the reference itself, so that a misreading shared with the package is caught.

The figures' example, in raw units (both axes run from 0 to 8, so an encoded distance is the raw one / 8):

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

from collections import Counter

import pytest
from hypothesis import given, settings

from amounts import examples
from paper import Answer, Options, algorithm_1, algorithm_2, explain
from paper_space import Feature, distances, highest, nearest_integer
from strategies import ExplanationCase, LabelledGrid, explanation_cases, labelled_grids

A, B, C, D = (1.0, 4.0), (0.0, 2.0), (1.0, 8.0), (2.0, 1.0)
E, F, G, H = (7.0, 4.0), (8.0, 3.0), (7.0, 8.0), (7.0, 0.0)
P = (3.0, 4.0)
FIGURE = [A, B, C, D, E, F, G, H]
CONTINUOUS = Feature("continuous")


def square_from(x):
    return lambda row: "square" if row[0] >= x else "circle"


def cover(points, labels, competitors="uncovered"):
    """Each ball as (row of the centre, radius, rows covered), under Manhattan."""
    d = distances([(point,) for point in points], "manhattan")
    return [(ball.l, ball.r, set(ball.G)) for ball in algorithm_1(d, labels, competitors)]


def explain_one(rows, model, factual, features=None, target=None, **options) -> Answer:
    features = features or [CONTINUOUS] * len(rows[0])
    return explain(rows, features, model, [factual], target, Options(**options))[0]


def only(answer):
    (counterfactual,) = answer.counterfactuals
    return counterfactual


# ---------------------------------------------------------------- Algorithm 1


def test_the_figure_is_covered_by_the_balls_of_a_and_e():
    balls = cover(FIGURE, [0, 0, 0, 0, 1, 1, 1, 1])
    # B's ball (radius 9) would also cover all circles: the tie stays with A, the lower row
    assert balls == [(0, 6.0, {0, 1, 2, 3}), (4, 6.0, {4, 5, 6, 7})]


def test_balls_are_open_largest_first_and_classes_in_order():
    positions = [(0,), (1,), (2,), (3,), (4,), (5,)]
    balls = cover(positions, [0, 0, 1, 0, 0, 0])
    # 4 and 5 both cover {3, 4, 5}; 1's ball of radius 1 does not reach 0
    assert balls == [(4, 2.0, {3, 4, 5}), (0, 2.0, {0, 1}), (2, 1.0, {2})]


def test_a_covered_row_may_be_a_centre_only_when_all_rows_compete():
    stem = [(0, 0), (0, 2), (0, 3), (0, 3.5), (0, 4)]
    arms, enemies = [(2, 0), (-2, 0)], [(3, 0), (-3, 0), (0, 6)]
    labels = [0] * 7 + [1] * 3
    of_enemies = [(7, 1.0, {7}), (8, 1.0, {8}), (9, 2.0, {9})]
    first = (1, 4.0, {0, 1, 2, 3, 4})
    assert cover(stem + arms + enemies, labels) == [first, (5, 1.0, {5}), (6, 1.0, {6}), *of_enemies]
    assert cover(stem + arms + enemies, labels, "all") == [first, (0, 3.0, {5, 6}), *of_enemies]


def test_coincident_enemies_get_balls_of_radius_0_that_cover_their_twins():
    balls = cover([(0,), (0,), (0,), (1,)], [0, 0, 1, 0])
    assert balls == [(0, 0.0, {0, 1}), (3, 1.0, {3}), (2, 0.0, {2})]


def test_one_class_is_an_error():
    with pytest.raises(ValueError, match="every row is labelled 7"):
        cover([(0,), (1,)], [7, 7])


@examples(100, derandomize=True)
@given(labelled_grids())
def test_every_ball_is_pure_and_every_row_has_one_ball_of_its_class(grid: LabelledGrid):
    d = distances([(point,) for point in grid.points], grid.metric)
    balls = grid.balls()
    for ball in balls:
        enemies = [d[ball.l][j] for j, label in enumerate(grid.labels) if label != ball.c]
        assert min(enemies) == ball.r
        assert {grid.labels[u] for u in ball.G} == {ball.c}
    assert sorted(u for ball in balls for u in ball.G) == list(range(len(grid.points)))


# ---------------------------------------------------------------- Algorithm 2


def test_p_in_both_balls_belongs_to_a():
    d_from_a, d_from_e = 2.0, 4.0
    assert algorithm_2([d_from_a, d_from_e], [6.0, 6.0]) == 0
    assert algorithm_2([d_from_e, d_from_a], [6.0, 6.0]) == 1


@pytest.mark.parametrize(
    ("d_i", "r", "how", "home"),
    [
        ([2.0, 2.0], [6.0, 6.0], {}, 0),  # on the boundary: the first ball
        ([5.0, 1.0, 3.0], [4.0, 2.0, 2.0], {}, 1),  # one ball covers
        ([4.0, 4.0], [4.0, 3.0], {}, 0),  # on a surface is outside: none covers, nearest surface
        ([7.0, 3.5], [5.0, 1.0], {}, 0),  # none covers: 2 from the first surface, 2.5 from the second
        ([7.0, 3.5], [5.0, 1.0], {"association": "center"}, 1),
        ([4.0, 0.5], [8.0, 2.0], {}, 0),  # 4 deep in the first, 1.5 in the second
        ([4.0, 0.5], [8.0, 2.0], {"boundary": "ratio"}, 1),  # half way out, a quarter
        ([4.0, 0.5], [8.0, 2.0], {"association": "center"}, 0),  # covered: centres play no part
        ([1.0, 0.0], [1.0, 0.0], {}, 0),  # on a centre of radius 0, which does not cover
        ([1.0, 0.0], [1.0, 0.0], {"association": "center"}, 1),
        ([7.0, 3.5], [5.0, 1.0], {"boundary": "ratio"}, 0),  # none covers: as association says
    ],
)
def test_the_home_ball(d_i, r, how, home):
    assert algorithm_2(d_i, r, **how) == home


# ---------------------------------------------------------------- Algorithm 3


def test_candidates_walk_from_the_boundary_towards_e_until_the_class_changes():
    answer = explain_one(FIGURE, square_from(6), P)
    counterfactual = only(answer)
    c1, c2 = (5.5, 4.0), (6.25, 4.0)  # C0 = (4, 4); then half and three quarters of the way on to E
    assert (answer.status, answer.home, answer.recovered) == ("found", 0, False)
    assert counterfactual.candidate.proj == E
    assert counterfactual.candidate.s == pytest.approx(0.25)
    assert counterfactual.values == pytest.approx(c2)
    assert counterfactual.semifactual == pytest.approx(c1)
    assert counterfactual.distance == pytest.approx((6.25 - 3) / 8)
    assert (counterfactual.label, counterfactual.relaxation) == ("square", "NONE")


def test_a_boundary_point_that_flips_has_no_semifactual():
    counterfactual = only(explain_one(FIGURE, square_from(3.5), P))
    assert counterfactual.values == pytest.approx((4.0, 4.0))
    assert counterfactual.semifactual is None


def test_after_the_last_step_the_projection_is_taken():
    counterfactual = only(explain_one(FIGURE, square_from(6.9), P, max_steps=2))
    assert counterfactual.values == E
    assert counterfactual.semifactual == pytest.approx((6.25, 4.0))


def test_the_step_ratio_sets_the_pace():
    counterfactual = only(explain_one(FIGURE, square_from(6), P, step_ratio=0.25))
    assert counterfactual.values == pytest.approx((4 + 0.75 * 3, 4.0))
    assert counterfactual.semifactual == pytest.approx((4.0, 4.0))


def test_small_changes_the_class_does_not_need_are_put_back():
    counterfactual = only(explain_one(FIGURE, square_from(6), (3.0, 5.0)))
    assert counterfactual.candidate.proj == (7.0, 5.0)  # y from E's 4 back to 5
    assert counterfactual.values == pytest.approx((6.25, 5.0))


def test_a_reduced_projection_short_of_the_boundary_is_the_candidate():
    rows = [(2.0, 0.0), (0.0, 0.0), (8.0, 8.0)]
    counterfactual = only(explain_one(rows, square_from(5), (1.0, 0.0)))
    # at (8, 0) the first ball's surface is still nearer: -1 against -.75
    assert counterfactual.candidate.s == 1.0
    assert counterfactual.values == (8.0, 0.0)
    assert counterfactual.semifactual is None


def test_a_factual_on_the_boundary_starts_the_walk_and_is_no_semifactual():
    counterfactual = only(explain_one([(0.0,), (8.0,)], square_from(5), (4.0,)))
    assert counterfactual.candidate.s == 0.0
    assert counterfactual.values == pytest.approx((6.0,))
    assert counterfactual.semifactual is None


@pytest.mark.parametrize(("boundary", "x"), [("surface", 5.0), ("ratio", 64 / 14)])
def test_the_boundary_of_unequal_balls(boundary, x):
    # radii 8 and 6: x - 8 = (8 - x) - 6, or x / 8 = (8 - x) / 6
    answer = explain_one([(0.0,), (2.0,), (8.0,)], square_from(4), (1.0,), boundary=boundary)
    assert only(answer).values == pytest.approx((x,))


# immutables: two circles on the left, two squares on the right, y is immutable
CORNERS = [(0.0, 0.0), (8.0, 0.0), (0.0, 8.0), (8.0, 8.0)]
Y_IMMUTABLE = [CONTINUOUS, Feature("continuous", immutable=True)]


def test_a_projection_inside_its_ball_needs_no_relaxation():
    counterfactual = only(explain_one(CORNERS, square_from(5), (2.0, 6.0), Y_IMMUTABLE))
    assert counterfactual.relaxation == "NONE"
    assert counterfactual.candidate.proj == (8.0, 6.0)


def test_several_counterfactuals_come_from_several_balls_nearest_first():
    answer = explain_one(CORNERS, square_from(4.9), (0.0, 5.0), Y_IMMUTABLE, n=3)
    assert [x.candidate.l.l for x in answer.counterfactuals] == [3, 1]  # (8, 8) before (8, 0)
    assert [x.candidate.s for x in answer.counterfactuals] == pytest.approx([0.5, 0.625])
    assert [x.values for x in answer.counterfactuals] == [pytest.approx((6, 5)), pytest.approx((5, 5))]


def test_a_projection_outside_its_ball_is_taken_for_its_class():
    counterfactual = only(explain_one(CORNERS, square_from(5), (2.0, 20.0), Y_IMMUTABLE))
    assert counterfactual.relaxation == "PROJECTION"
    assert counterfactual.candidate.proj == (8.0, 20.0)


def test_immutability_is_withheld_when_no_projection_has_the_class():
    def model(row):
        return "square" if row[0] >= 5 and row[1] < 15 else "circle"

    counterfactual = only(explain_one(CORNERS, model, (2.0, 20.0), Y_IMMUTABLE))
    # towards (8, 8): the boundary at a third, then half of the rest
    assert counterfactual.relaxation == "IMMUTABILITY"
    assert counterfactual.semifactual == pytest.approx((4.0, 16.0))
    assert counterfactual.values == pytest.approx((6.0, 12.0))


def test_a_ball_of_the_wrong_class_is_covered_again_around_the_factual():
    rows = [(0.0,), (2.0,), (6.0,), (7.0,), (8.0,)]

    def model(row):
        return "circle" if row[0] < 5 or 6.3 < row[0] < 6.7 else "square"

    answer = explain_one(rows, model, (6.5,), n=5)
    balls = {(x.candidate.l.l, round(8 * x.candidate.l.r, 9)) for x in answer.counterfactuals}
    # {6, 7, 8} had one ball of radius 4; shrunk to 6.5 their radii are .5, .5, 1.5
    assert (answer.home, answer.recovered) == (1, True)
    assert balls == {(4, 1.5), (2, 0.5)}
    # the factual's own ball has radius .5, so both boundaries are .25 away
    assert sorted(x.values[0] for x in answer.counterfactuals) == pytest.approx([6.25, 6.75])


def test_a_target_class_is_sought_past_a_third_class():
    def model(row):
        return "a" if row[0] < 3 else "b" if row[0] < 5.5 else "c"

    rows = [(0.0,), (4.0,), (8.0,)]
    counterfactual = only(explain_one(rows, model, (1.0,), target={"c"}))
    assert counterfactual.values == pytest.approx((6.0,))  # after 4, which is "b"
    assert counterfactual.semifactual is None
    assert only(explain_one(rows, model, (1.0,))).label == "b"
    assert explain_one(rows, model, (1.0,), target={"a", "c"}) == Answer("already", 0, False, [])


# ---------------------------------------------------------------- rounding


@pytest.mark.parametrize(
    ("v", "goal", "rounded"),
    [
        (1.5, 3, 2),
        (1.5, 0, 1),
        (1.5 - 1e-10, 3, 2),
        (1.5 + 1e-10, 0, 1),
        (1.49, 3, 1),
        (1.51, 0, 2),
        (-0.5, 1, 0),
    ],
)
def test_halves_go_towards_the_goal(v, goal, rounded):
    assert nearest_integer(v, goal) == rounded


@pytest.mark.parametrize(
    ("x", "goal", "level"), [((0.25, 0.25, 0.0), 1, 1), ((0.3, 0.3, 0.0), 2, 0), ((0.3, 0.2, 0), 1, 0)]
)
def test_tied_categories_go_to_the_goal(x, goal, level):
    assert highest(x, goal) == level


@pytest.mark.parametrize(("factual", "value"), [(0, 2), (3, 1)])
def test_an_integer_half_way_is_rounded_towards_the_goal(factual, value):
    answer = explain_one([(0,), (3,)], square_from(2), (factual,), [Feature("integer")])
    assert only(answer).values == (value,)
    assert only(answer).distance == pytest.approx(2 / 3)


def test_an_integer_semifactual():
    counterfactual = only(explain_one([(0,), (4,)], square_from(3), (1,), [Feature("integer")]))
    assert (counterfactual.semifactual, counterfactual.values) == ((2,), (3,))


@pytest.mark.parametrize("metric", ["manhattan", "euclidean", "chebyshev"])
def test_a_changed_category_costs_1(metric):
    features = [Feature("categorical", levels=("p", "q", "r"))]
    counterfactual = only(explain_one([("p",), ("q",)], lambda row: row[0], ("p",), features, metric=metric))
    assert counterfactual.values == ("q",)
    assert counterfactual.distance == pytest.approx(1.0)


# ---------------------------------------------------------------- the cases


def events(answer: Answer):
    """Yield what happened to one factual, in words."""
    yield answer.status
    yield "covered again" if answer.recovered else "home of its class"
    for found in answer.counterfactuals:
        yield found.relaxation
        yield "semifactual" if found.semifactual else "no semifactual"
        yield {0.0: "starts at the factual", 1.0: "starts at the goal"}.get(found.candidate.s, "bisected")
    ranks = [found.candidate.d for found in answer.counterfactuals]
    yield "tie" if len(set(ranks)) < len(ranks) else "no tie"


@pytest.mark.long
def test_the_explanation_cases_reach_every_path():
    seen: Counter = Counter()

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(explanation_cases())
    def count(case: ExplanationCase):
        answers = explain(case.rows, case.features, case.model, case.factuals, case.target, case.options)
        seen.update({event for answer in answers for event in events(answer)})
        seen["cases"] += 1

    count()
    shares = {event: seen[event] / seen["cases"] for event in seen}
    assert set(shares) >= {"found", "already", "PROJECTION", "IMMUTABILITY", "covered again", "tie"}
    assert min(shares.values()) > 0.01, shares
