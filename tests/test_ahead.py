"""Asking ahead: the answers of one question after the other, in a few calls; the size of calls; limits."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onbmacf._search.budget import Budget
from onbmacf._search.cut import cut_changes
from onbmacf._search.cut_plans import FEW, LEAST, PASSES, Cut, n_questions, plan_of, plans_of
from onbmacf._search.halving import NOT_ASKED, Bracket, halved
from onbmacf._search.memo import Memo
from onbmacf._search.problem import UNKNOWN, Asking, Features
from onbmacf._search.tighten import Segment, ask_ahead, first_shrinks, shrink_changes, shrink_segment
from onbmacf._search.undo import undo_changes, undone_together
from onbmacf._search.walk import look_back


def one_after_the_other(start, point, low, high, trial, accepts):
    """Halve a single line, one question at a time: what `halved` must agree with."""
    while high - low > 1:
        middle = 0 if low == NOT_ASKED else (low + high) // 2
        moved = trial(middle)
        if np.array_equal(moved, start):
            low = middle
        elif np.array_equal(moved, point) or accepts(moved):
            high, point = middle, moved
        else:
            low = middle
    return point, low, high


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0, 3, 10, 40, 200, 10_000]), st.booleans())
def test_halving_ahead_is_halving_in_turn(seed, places, from_zero):
    rng = np.random.default_rng(seed)
    n_lines = int(rng.integers(1, 8))
    high = rng.integers(1, 40, n_lines)
    holds = rng.random((n_lines, 41)) < 0.5  # no order in what is accepted
    start, point = np.zeros((n_lines, 1)), high[:, np.newaxis].astype(float)
    low = np.full(n_lines, NOT_ASKED if from_zero else 0)

    def trial(lines, step):
        return (step[:, np.newaxis] // 2 * 2.0) + (step == high[lines])[:, np.newaxis] * (step % 2)[:, np.newaxis]

    def accepts(points, lines):
        return holds[lines, points[:, 0].astype(int)]

    found = halved(start, Bracket(low, high, point), trial, accepts, places)
    for line in range(n_lines):
        own = lambda step, line=line: trial(np.array([line]), np.array([step]))[0]  # noqa: E731
        said = lambda moved, line=line: holds[line, int(moved[0])]  # noqa: E731
        expected = one_after_the_other(start[line], point[line], low[line], high[line], own, said)
        assert found.best[line].tolist() == expected[0].tolist()
        assert (found.low[line], found.high[line]) == expected[1:]


def stages(start, goal, features, asking):
    """Return the points after each stage that asks about lines of its own."""
    snap = lambda points, z, goals: points.round(2)  # noqa: E731
    cut = cut_changes(start, goal, features, asking, np.arange(len(goal)) % 2 == 0)
    ask_ahead(start, cut, features, asking, snap, 3)
    less = undo_changes(start, cut, features, asking)
    way = shrink_segment(start, Segment.of(less, 8), asking, snap)
    on = way.gone_on(np.arange(len(less)), way.at.best, 32)
    return cut, less, way.at.best, shrink_changes(start, on, features, asking, snap)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([20, 100, 500, 10_000]))
def test_every_stage_gives_the_same_points_with_and_without_asking_ahead(seed, places):
    rng = np.random.default_rng(seed)
    n_lines, n_features = int(rng.integers(1, 7)), int(rng.integers(1, 9))
    start, goal = rng.random((2, n_lines, n_features)).round(2)
    salt = rng.random(n_features) * 1000
    columns = np.arange(n_features)
    features = Features(columns, columns, np.zeros(n_features, dtype=bool))

    def holds(points, lines):  # a label without any order, but the same for the same point; the goals have it
        return (np.sin(points @ salt) > -0.3) | (points == goal[lines]).all(axis=1)

    def label_of(points, factual):
        return holds(points, factual).astype(np.intp)

    memo = Memo(label_of, 1, Budget(None, None, 10_000, 1))
    ahead = Asking(lambda points, lines: memo.label_of(points, lines) == 1, memo.ahead, places)
    in_turn = stages(start, goal, features, Asking(holds, lambda points, lines: None, 0))
    for asking in (ahead, ahead._replace(spare=places)):
        for one, other in zip(stages(start, goal, features, asking), in_turn, strict=True):
            np.testing.assert_array_equal(one, other)


def test_undoing_leaves_no_change_that_can_be_undone_alone():
    rng = np.random.default_rng(0)
    start, goal = rng.random((2, 40, 6))
    columns = np.arange(6)
    features = Features(columns, columns, np.zeros(6, dtype=bool))
    holds = lambda points, lines: (np.sin(points @ np.arange(1, 7) * 40) > 0) | (points == goal[lines]).all(axis=1)  # noqa: E731
    less = undo_changes(start, goal, features, Asking(holds, lambda points, lines: None, 0))
    for line in range(40):
        for column in np.flatnonzero(less[line] != start[line]):
            undone = np.where(columns == column, start[line], less[line])
            assert (undone == start[line]).all() or not holds(undone[np.newaxis], np.array([line]))[0]


def recorded(holds):
    """Return how lines ask in turn, and the points that each question was about."""
    asked = []

    def noted(points, lines):
        asked.append({(int(line), *point) for line, point in zip(lines, points, strict=True)})
        return holds(points, lines)

    return Asking(noted, lambda points, lines: False, 10_000), asked


def test_what_is_asked_ahead_of_shrinking_is_what_shrinking_asks():
    rng = np.random.default_rng(1)
    start, goal, columns = *rng.random((2, 5, 4)), np.arange(4)
    goal[:2, 1:] = start[:2, 1:]  # two lines with one change, three with four
    features, snap = Features(columns, columns, np.zeros(4, dtype=bool)), lambda points, z, goals: points
    asking, asked = recorded(lambda points, lines: points.sum(axis=1) % 0.1 < 0.05)
    shrink_changes(start, Segment.of(goal, 32), features, asking, snap)
    points, lines = first_shrinks(start, Segment.of(goal, 32), features, snap, asking.places)
    assert asked[0] <= {(int(line), *point) for line, point in zip(lines, points, strict=True)}


def test_sets_of_changes_undone_hold_every_question_of_undoing():
    rng = np.random.default_rng(2)
    start, goal, columns = *rng.random((2, 6, 4)), np.arange(4)
    goal[:2, 1:] = start[:2, 1:]
    features = Features(columns, columns, np.zeros(4, dtype=bool))
    asking, asked = recorded(lambda points, lines: points.sum(axis=1) % 0.1 < 0.05)
    undo_changes(start, goal, features, asking)
    points, lines = undone_together(start, goal, features, FEW)
    assert set.union(*asked) <= {(int(line), *point) for line, point in zip(lines, points, strict=True)}
    assert not len(undone_together(start, goal, features, 3)[0])


def test_what_has_no_room_is_asked_as_far_as_there_is_room():
    start, goal, columns = np.zeros((2, 4)), np.ones((2, 4)), np.arange(4)
    features, sizes = Features(columns, columns, np.zeros(4, dtype=bool)), []
    ahead = lambda points, lines: sizes.append(len(points)) or len(points) <= 30  # noqa: E731
    asking = Asking(lambda points, lines: None, ahead, 30)
    for spare, expected in ((30, 30), (0, 0)):
        ask_ahead(start, goal, features, asking._replace(spare=spare), lambda points, z, goals: points, 3)
        assert sizes[-1] == expected < sizes[-2]


def test_a_memo_asks_about_a_point_once_and_fills_one_call():
    asked = []

    def label_of(points, factual):
        asked.append(len(points))
        return points[:, 0].astype(np.intp)

    memo = Memo(label_of, 1, Budget(None, None, 64, 1))
    points, own = np.arange(6.0)[:, np.newaxis], np.zeros(6, dtype=np.intp)
    assert memo.ahead(points[:4], own[:4])
    assert memo.label_of(points[[3, 1, 5, 5]], own[:4]).tolist() == [3, 1, 5, 5]
    assert not memo.ahead(
        np.arange(100.0, 200.0)[:, np.newaxis], np.zeros(100, dtype=np.intp)
    )  # more than a call holds: not asked
    assert asked == [4, 1]
    assert memo.label_of(points[:1], np.ones(1, dtype=np.intp)).tolist() == [0]  # of another factual: asked
    assert asked == [4, 1, 1]


def test_many_factuals_ask_nothing_ahead():
    memo = Memo(lambda points, factual: np.zeros(len(points), dtype=np.intp), 100, Budget(None, None, 512, 1))
    assert memo.places == 0
    assert Memo(memo.label_of, 4, Budget(None, None, 512, 1)).places == 512


def test_a_semifactual_keeps_the_rules_and_the_margin_ends_at_the_first_other_label():
    problem = SimpleNamespace(
        z=np.zeros((1, 1)),
        codes=np.array([0]),
        snap=lambda points, z, goal: points,
        ask_again=lambda points, factual: np.where(points[:, 0] > 0.7, 1, 0),
        is_allowed=lambda points, factual: points[:, 0] < 0.4,
    )
    back = look_back(problem, np.array([0]), np.ones((1, 1)), np.array([1]))
    assert back.semifactual.tolist() == [[6 / 16]]  # 7 to 11 sixteenths have the label, too, and break the rule
    assert back.again.tolist() == [1]
    assert back.margin.tolist() == [4 / 16]  # 15 to 12 sixteenths hold


def in_turn(start, goal, order, holds):
    """Cut the changes of one line, one question at a time, as the module docstring of `cut` says."""
    n_needed, low, high = 0, 0, len(order)
    kept = lambda n: np.where(np.isin(np.arange(len(start)), order[:n]), goal, start)  # noqa: E731
    while high - low > 1:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(kept(middle)) else (middle, high)
        if high > n_needed:
            order = [*order[:n_needed], order[high - 1], *order[n_needed : high - 1], *order[high:]]
        n_needed += 1
        low = min(n_needed - 1, high) if n_needed < PASSES or high <= FEW + 1 else high
    return kept(high)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0, 2, 14, 60, 512]), st.floats(0.05, 0.6))
def test_cutting_ahead_is_cutting_in_turn(seed, places, share):
    rng = np.random.default_rng(seed)
    n_lines, n_features = int(rng.integers(1, 6)), int(rng.integers(2, 14))
    start, goal = rng.random((2, n_lines, n_features))
    salt, columns = rng.random(n_features) * 1000, np.arange(n_features)
    features = Features(columns, columns, np.zeros(n_features, dtype=bool))
    one_holds = lambda point: np.sin(point @ salt) > 1 - 2 * share  # noqa: E731
    asking = Asking(lambda points, lines: one_holds(points), lambda points, lines: None, places)
    known = lambda points, lines: np.where(np.cos(points @ salt) > 0, one_holds(points), -1)  # noqa: E731
    for own in (asking, asking._replace(known=known)):
        found = cut_changes(start, goal, features, own)
        for line in range(n_lines):
            order = np.argsort(np.abs(goal - start)[line])[::-1].tolist()  # the smallest go first: they are behind
            np.testing.assert_array_equal(found[line], in_turn(start[line], goal[line], order, one_holds))


def test_what_was_asked_ahead_of_cutting_is_followed_before_anything_is_asked():
    rng = np.random.default_rng(0)
    start, goal, salt = *rng.random((2, 3, 12)), rng.random(12) * 1000
    columns = np.arange(12)
    features = Features(columns, columns, np.zeros(12, dtype=bool))
    memo = Memo(lambda points, factual: (np.sin(points @ salt) > 0).astype(np.intp), 1, Budget(None, None, 400, 1))
    sizes: list[int] = []

    def holds(points, lines):
        sizes.append(int((memo.known(points, lines) == UNKNOWN).sum()))
        return memo.label_of(points, lines) == 1

    def known(points, lines):
        said = memo.known(points, lines)
        return np.where(said == UNKNOWN, -1, said)

    asking = Asking(holds, memo.ahead, 400, known=known)
    found = cut_changes(start, goal, features, asking)
    n_calls, sizes[:] = len(sizes), []
    again = cut_changes(start, goal, features, asking)  # all of it is known now
    np.testing.assert_array_equal(again, found)
    assert n_calls > 0
    assert not any(sizes)


def test_plans_leave_no_answer_out_and_fit_into_their_places():
    lines = [Cut(0, 0, size) for size in (2, 5, 9, 21)]
    for places in (4, 40, 400):
        assert sum(len(plan.then) for plan in plans_of(lines, places)) <= places
        every = ([plan_of(line, least) for line in lines] for least in LEAST)
        assert plans_of(lines, places) == next(own for own in every if sum(len(plan.then) for plan in own) <= places)
    assert plans_of(lines, 1) == [plan_of(line, LEAST[-1]) for line in lines]  # the first questions, in any case
    for line in [*lines, Cut(1, 0, 7), Cut(2, 3, 21), Cut(3, 2, 5)]:
        assert [n_questions(line, least) for least in LEAST] == [len(plan_of(line, least).then) for least in LEAST]
    plan = plan_of(Cut(0, 0, 9), 0.01)
    reached = {to for pair in plan.then for to in pair}
    assert reached == {*range(1, len(plan.then)), *range(-len(plan.ends), 0)}
    assert all(sorted(order) == list(range(9)) for _, order in plan.ends)


def test_what_is_returned_is_asked_twice_also_where_it_was_asked_ahead():
    said = iter(range(100))

    def label_of(points, factual):  # another label each time
        return np.full(len(points), next(said))

    memo = Memo(label_of, 1, Budget(None, None, 64, 1), label_of)
    points, own = np.arange(6.0)[:, np.newaxis], np.zeros(6, dtype=np.intp)
    assert memo.label_of(points[:3], own[:3]).tolist() == [0, 0, 0]
    memo.ahead(points[[3, 1, 4]], own[:3], 2)  # 3 is asked for the search; 1 and 4 for the answer, 1 once more
    assert memo.label_of(points[[1, 3]], own[:2]).tolist() == [0, 1]
    assert memo.again(points[[1, 4]], own[:2]).tolist() == [1, 1]
    assert memo.again(points[[1, 5]], own[:2]).tolist() == [2, 2]  # not known: asked now
    limited = Memo(label_of, 1, Budget(40, 5, 64, 1), label_of)
    limited.ahead(points[[1, 2]], own[:2], 1)  # what only describes an answer waits for what is left
    assert limited.again(points[[2]], own[:1]).tolist() == [4]
