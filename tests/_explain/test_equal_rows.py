"""Equal rows are searched once and answered alike: the answers are those of each row by itself."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema
from onbmacf._explain.searches import first_of

ASKED = [{}, {"front": True}, {"immutable": ["a", "c"]}, {"min_probability": 0.8}, {"ranges": True}]
OPTIONS = [{"n_counterfactuals": 3}, {"strategy": "paper"}, {"max_model_rows": 40}, {"max_model_calls": 3}]


class Counting:
    """Says 1 for a share of all combinations, and counts the rows it is asked about."""

    classes_ = np.array([0, 1])

    def __init__(self) -> None:
        self.n_rows = 0

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        self.n_rows += len(rows)
        return self.predict_proba(rows)[:, 1].round().astype(int)

    def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
        likely = 0.15 * rows["a"] + 0.3 * (rows["b"] == "y") + 0.2 * rows["c"]
        return np.column_stack([1 - likely, likely])


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": draw.integers(0, 4, 200), "b": draw.choice(list("xyz"), 200), "c": draw.integers(0, 3, 200) * 0.5}
    )


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_equal_rows_are_answered_as_each_by_itself(table, asked):
    explainer = ONBMACF().fit(table, Counting())
    _same_as_alone(explainer, table.head(60), asked)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_do_not_change_that(table, options):
    explainer = ONBMACF(**options).fit(table, Counting(), schema=Schema.infer(table, immutable=["c"]))
    _same_as_alone(explainer, table.head(60), {})


def _same_as_alone(explainer, rows, asked):
    together = explainer.explain(rows, target=1, **asked).to_dicts()
    assert len(rows.drop_duplicates()) < 0.6 * len(rows)
    assert together == [explainer.explain(rows.iloc[[at]], target=1, **asked).to_dicts()[0] for at in range(len(rows))]


def test_a_row_that_comes_again_is_not_searched_again(table):
    model = Counting()
    explainer = ONBMACF().fit(table, model)
    rows = table[model.predict(table) == 0].head(10)
    asked = []
    for own in (rows, pd.concat([rows] * 50)):
        before = model.n_rows
        explainer.explain(own, target=1)
        asked.append(model.n_rows - before)
    assert asked[1] < asked[0] + 3 * 49 * len(rows) + 512  # their own labels, and the answers asked again


def test_rows_are_equal_by_their_bits_as_numbers_and_encoded():
    numbers = np.array([[1.0, np.nan], [0.0, 2.0], [1.0, np.nan], [-0.0, 2.0], [1.0, np.nan]])
    encoded = np.array([[0.5], [0.0], [0.5], [0.0], [0.25]])
    assert first_of(numbers, encoded, np.array([0, 1, 2, 3, 4])).tolist() == [0, 1, 0, 3, 4]
    assert first_of(numbers, encoded, np.array([1, 2, 4])).tolist() == [1, 2, 4]
    assert first_of(numbers, encoded, np.array([], dtype=np.intp)).tolist() == []
