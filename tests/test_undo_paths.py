"""The questions that undoing asks ahead: the two ways to list them agree, and so does where they lead."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onbmacf._search.undo import Path, Undoing, ranks_in_turn, ranks_of_lines


@st.composite
def undoings(draw):
    """Lines in the middle of undoing, each with something left to ask; what is likely; a source of chance."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    shape = (draw(st.integers(1, 4)), draw(st.integers(2, 6)))
    start = Undoing(np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool), np.zeros(shape[0], dtype=np.intp))
    for _ in range(draw(st.integers(0, 5))):
        rank, is_asked = start.next()
        after = start.after(rank, is_asked, rng.random(shape[0]) < 0.3)
        start = after if after.next()[1].all() else start
    return start, rng.random(shape) < 0.4, rng


@settings(max_examples=200)
@given(undoings(), st.integers(1, 12))
def test_lines_asked_one_by_one_ask_what_they_ask_together(case, length):
    start, is_likely, _ = case
    one_by_one, together = ranks_of_lines(start, is_likely, length), ranks_in_turn(start, is_likely, length)
    np.testing.assert_array_equal(one_by_one, together)


@settings(max_examples=200)
@given(undoings(), st.integers(1, 12))
def test_a_path_ends_where_its_answers_lead_one_after_the_other(case, length):
    start, is_likely, rng = case
    path = Path.of(start, is_likely, length)
    is_hit = path.is_likely ^ (rng.random(path.rank.shape) < 0.2)  # most answers are the likely ones
    end = path.walked(is_hit)
    for line in range(len(start.at)):
        state = Undoing(*(column[[line]] for column in start))
        for turn, rank in enumerate(path.rank[line]):
            asked, is_asked = state.next()
            if not is_asked[0] or rank < 0:
                break
            assert asked[0] == rank
            np.testing.assert_array_equal(path.is_kept[line, turn], state.is_kept[0])
            state = state.after(asked, is_asked, is_hit[line, [turn]])
            if is_hit[line, turn] != is_likely[line, rank]:
                break
        for found, expected in zip(end, state, strict=True):
            np.testing.assert_array_equal(found[line], expected[0])
