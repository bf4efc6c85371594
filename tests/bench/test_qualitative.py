"""Borderline answers, features beside the paper's, and its questions, counted by hand."""

import numpy as np
import pandas as pd
import pytest

from onbmacf.bench import qualitative


def lines(**columns):
    return pd.DataFrame({"dataset": "d", "method": "A", **columns})


def test_neighbours_with_the_factuals_label_are_counted_as_the_paper_does():
    shares = [1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.0, np.nan]
    counts = qualitative.borderline(lines(ynn=shares)).to_dict("records")
    assert counts == [{"dataset": "d", "method": "A", "inside": 2, "borderline": 2, "adversarial": 3}]


def test_questions_are_answered_in_shares_of_the_answers():
    (answer,) = qualitative.questions(lines(changed=[["x", "y"], ["x"], ["x", "y", "z"], ["z"], None])).to_dict(
        "records"
    )
    assert answer["answers"] == 4
    assert answer["changed most"] == "x 75%, y 50%, z 50%"
    assert answer["most frequent pair"] == "x + y 50%"
    assert answer["most frequent alone"] == "x 25%"
    assert answer["mean changes"] == 1.75


def test_our_counts_stand_beside_the_papers_in_its_order():
    names = ["Sex", "DVRT", "Educational_level", "Prestige_score", "Type_school"]
    ours = pd.DataFrame({"dataset": "irish", "feature": names, "GS": 0, "NICE": 1, "ONB-MACF": 2})
    both = qualitative.beside_paper(ours)
    assert both["feature"].tolist() == names
    assert both["GS_paper"].tolist() == [0, 200, 200, 200, 98]
    assert both["NICE_paper"].tolist() == [0, 0, 200, 1, 0]
    assert both["ONB-MACF_paper"].tolist() == [0, 0, 200, 0, 0]


def test_methods_that_change_the_same_features_agree():
    counts = pd.DataFrame(
        {"dataset": "d", "feature": list("wxyz"), "A": [4, 3, 2, 1], "B": [8, 6, 4, 2], "C": [1, 2, 3, 4]}
    )
    found = qualitative.agreement(counts).set_index("methods")["correlation"]
    assert found["A, B"] == pytest.approx(1.0)
    assert found["A, C"] == pytest.approx(-1.0)


def test_a_method_that_changes_all_features_alike_agrees_with_none():
    counts = pd.DataFrame({"dataset": "d", "feature": list("xyz"), "A": [4, 4, 4], "B": [8, 6, 4]})
    assert np.isnan(qualitative.agreement(counts)["correlation"].iloc[0])
