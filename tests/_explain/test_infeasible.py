"""What a row without an answer would need is asked of the model before it is said."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema
from onbmacf._explain import run

TABLE = pd.DataFrame({name: np.random.default_rng(at).integers(0, 10, 80) for at, name in enumerate("abcd")})
ROWS = pd.DataFrame({"a": [1, 2], "b": [2, 1], "c": [5, 5], "d": [5, 5]})


def both_are_high(rows):
    """Return labels that neither of a and b can change alone."""
    return ((rows["a"] > 5) & (rows["b"] > 5)).astype(int)


@pytest.fixture
def asked(monkeypatch):
    """Which features were free in each search, by the names of those that find nothing."""
    seen, lost = [], []
    search_all = run.search_all

    def searched(request, *others):
        names = "".join(request.fitted.space.schema.names[at] for at in sorted(request.freed))
        seen.append(names)
        return search_all(replace(request, freed=frozenset()) if names in lost else request, *others)

    monkeypatch.setattr(run, "search_all", searched)
    return seen, lost


def explained():
    schema = Schema.infer(TABLE, immutable=["a", "b", "c"])
    return ONBMACF().fit(TABLE, both_are_high, schema=schema).explain(ROWS)


def test_the_features_named_are_those_that_were_free_in_a_search_that_found_one(asked):
    answers = explained()
    assert {answer.would_need for answer in answers} == {("a", "b")}
    assert asked[0] == ["b", "a", "c", "abc", "ab"]  # what tells the labels apart first


def test_features_with_which_none_is_found_are_not_named(asked):
    """The search with all free changed these alone, and the one with these free went another way."""
    asked[1].append("ab")
    answers = explained()
    assert {answer.would_need for answer in answers} == {("a", "b", "c")}
    assert all("One is found if a, b and c may change." in answer.reason for answer in answers)
