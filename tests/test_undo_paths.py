"""The questions that undoing asks ahead: the two ways to list them agree, and so does where they lead."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onbmacf._search.undo import Path, Undoing, ranks_in_turn, ranks_of_lines


@st.composite
def undoings(draw):
    """Lines in the middle of undoing: every one has something left to ask."""
    shape = (draw(st.integers(1, 4)), draw(st.integers(2, 6)))
    start = Undoing(np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool), np.zeros(shape[0], dtype=np.intp))
    for _ in range(draw(st.integers(0, 6))):
        rank, is_asked = start.next()
        start = start.after(rank, is_asked, draw(arrays.arrays(bool, shape[0])))
    is_open = start.next()[1]
    start = Undoing(*(column[is_open] for column in start))
    return start, draw(arrays.arrays(bool, (len(start.at), shape[1])))


@given(undoings(), st.integers(1, 12))
def test_lines_asked_one_by_one_ask_what_they_ask_together(case, length):
    start, is_likely = case
    if len(start.at):
        np.testing.assert_array_equal(
            ranks_of_lines(start, is_likely, length), ranks_in_turn(start, is_likely, length)
        )


@given(undoings(), st.integers(1, 12), st.data())
def test_a_path_ends_where_its_answers_lead_one_after_the_other(case, length, data):
    start, is_likely = case
    if not len(start.at):
        return
    path = Path.of(start, is_likely, length)
    is_hit = data.draw(arrays.arrays(bool, path.rank.shape))
    end = path.walked(is_hit)
    for line in range(len(start.at)):
        state = Undoing(*(column[[line]] for column in start))
        for turn, rank in enumerate(path.rank[line]):
            asked, is_asked = state.next()
            if not is_asked[0] or rank < 0:
                break
            assert asked[0] == rank
            np.testing.assert_array_equal(path.is_kept[line, turn], state.is_kept[0])
            hit = is_hit[line, [turn]]
            state = state.after(asked, is_asked, hit)
            if hit[0] != is_likely[line, rank]:
                break
        for found, expected in zip(end, state, strict=True):
            np.testing.assert_array_equal(found[line], expected[0])
