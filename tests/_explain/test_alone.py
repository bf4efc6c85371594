"""What the model says of rows, without a search; a row that cannot be asked has a status and a reason."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF

ROWS = pd.DataFrame({"x": np.arange(40) / 4, "k": ["a", "b"] * 20}, index=[f"row {place}" for place in range(40)])


class Sure:
    """A model with probabilities."""

    classes_ = np.array(["low", "high"])

    def predict_proba(self, rows):
        share = np.clip(rows["x"].to_numpy() / 10, 0, 1)
        return np.column_stack([1 - share, share])

    def predict(self, rows):
        return self.classes_[(rows["x"].to_numpy() > 5).astype(int)]


def test_labels_and_probabilities_are_the_models_own_in_the_callers_index():
    found = ONBMACF().fit(ROWS, Sure()).predictions(ROWS)
    assert found.index.equals(ROWS.index)
    assert found["label"].tolist() == Sure().predict(ROWS).tolist()
    assert found["probability"].tolist() == pytest.approx(
        np.where(ROWS["x"] > 5, ROWS["x"] / 10, 1 - ROWS["x"] / 10).tolist()
    )
    assert set(found["status"]) == {"predicted"}
    assert set(found["reason"]) == {""}


def test_a_row_that_cannot_be_asked_says_why_and_the_others_are_answered():
    explainer = ONBMACF().fit(ROWS, Sure().predict)
    rows = pd.DataFrame({"x": [1.0, np.inf, 9.0], "k": ["a", "a", "z"]})
    found = explainer.predictions(rows)
    assert found["label"].tolist() == ["low", None, None]
    assert found["probability"].isna().all()
    assert found["status"].tolist() == ["predicted", "invalid_row", "invalid_row"]
    assert "'z'" in found["reason"].iloc[2]
    assert found["status"].tolist()[1:] == [str(status) for status in explainer.explain(rows).statuses[1:]]


def test_a_model_that_raises_and_a_label_never_seen():
    def model(rows):
        if (rows["x"] > 50).any():
            raise ValueError("too much")
        return np.where(rows["x"] < 0, "strange", Sure().predict(rows))

    found = ONBMACF().fit(ROWS, model).predictions(pd.DataFrame({"x": [99.0, -1.0, 2.0], "k": ["a"] * 3}))
    assert found["status"].tolist() == ["model_error", "predicted", "predicted"]
    assert "too much" in found["reason"].iloc[0]
    assert found["label"].tolist()[1:] == ["strange", "low"]


def test_no_rows_give_an_empty_frame_with_the_columns():
    found = ONBMACF().fit(ROWS, Sure()).predictions(ROWS.iloc[:0])
    assert found.columns.tolist() == ["label", "probability", "status", "reason"]
    assert len(found) == 0
