"""The formats of answers: what each of them writes, also for names and values that are easy to get wrong."""

import html
import io
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._text.wording import COLUMNS
from onbmacf.cli.outputs import WRITERS, summary, tidy, written
from reading import markdown_cells


@pytest.fixture(scope="module")
def close():
    """A model whose label turns at 1.00001, and points as the paper's walk finds them: four digits hide the change."""
    table = pd.DataFrame({"x": np.r_[np.linspace(1, 1.00002, 21), 3.0], "y": np.arange(22.0) % 5})
    model = lambda rows: np.where(rows["x"] > 1.00001, "far", "near")  # noqa: E731
    explainer = ONBMACF(strategy="paper").fit(table, model)
    return explainer.explain(table.head(2))


@pytest.mark.parametrize("kind", ["table", "markdown"])
def test_a_change_that_four_digits_hide_is_shown_with_all_its_digits(close, kind):
    after = close[0].counterfactuals[0].values["x"]
    assert 1.00001 < after < 1.00002
    assert f"x: 1 \u2192 {after} " in written(close, kind, width=200)


def test_the_notebook_shows_the_same_columns_and_cells(close):
    page = close._repr_html_()
    head, _, *body = [markdown_cells(line) for line in written(close, "markdown").splitlines()]
    assert re.findall("<th(?: [^>]*)?>(.*?)</th>", page) == head == list(COLUMNS)
    cells = [html.unescape(cell) for cell in re.findall("<td(?: [^>]*)?>(.*?)</td>", page)]
    assert cells == [cell for line in body for cell in line]


def test_json_is_the_document_of_the_library(close):
    assert written(close, "json") == close.to_json()


def test_the_summary_counts_rows_answers_and_what_was_asked_of_the_model(close):
    counted = replace(close, n_calls=1200, n_questions=34567, n_model_rows=614400)
    assert summary(counted) == (
        "2 rows: 2 found; 2 counterfactuals; 34,567 questions to the model in 1,200 calls (614,400 rows with padding)."
    )
    assert summary(close[:0]).startswith("0 rows: none; 0 counterfactuals; ")
    one = replace(close[:1], n_calls=1, n_questions=1, n_model_rows=1)
    assert summary(one) == "1 row: 1 found; 1 counterfactual; 1 question to the model in 1 call (1 row with padding)."


def test_csv_of_a_table_with_columns_called_like_ours():
    table = pd.DataFrame({"status": np.arange(20.0), "row": np.arange(20.0)[::-1], "reason": [0.0, 1.0] * 10})
    table["row"] %= 7
    table["status"] %= 11
    answers = ONBMACF().fit(table, lambda rows: rows["status"] > 5).explain(table.head(8), target=False)
    frame = tidy(answers)
    assert frame.columns.is_unique
    assert list(frame.columns[:3]) == ["row_", "status_", "reason_"]
    assert list(frame["status_"]) == ["already"] * 6 + ["found"] * 2
    assert list(frame["row_"]) == list(range(8))
    assert frame["status"].isna().tolist() == [True] * 6 + [False] * 2
    named = replace(answers, rows=answers.rows.rename_axis("reason"))
    assert list(tidy(named).columns[:3]) == ["reason__", "status_", "reason_"]
    assert list(pd.read_csv(io.StringIO(WRITERS["csv"](answers))).columns) == list(frame.columns)
