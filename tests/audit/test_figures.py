"""Group figures against tables worked out on paper, to 1e-12. Every number in a comment was computed by hand.

row  group  selected  truth  cost          row  group  selected  truth  cost
0    a      yes       1      0             6    b      yes       1      0
1    a      yes       0      0             7    b      no        1      0.4
2    a      no        1      0.2           8    b      no        1      0.8
3    a      no        1      0.6           9    b      no        1      none found
4    a      no        0      0.5           10   b      no        0      0.3
5    a      yes       ?      0             11   ?      yes       1      0
"""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, audit
from onbmacf.errors import ParameterError

GROUPS = ["a"] * 6 + ["b"] * 5 + [None]
SELECTED = [1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1]
TRUTH = [1, 0, 1, 1, 0, np.nan, 1, 1, 1, 1, 0, 1]
COSTS = [0, 0, 0.2, 0.6, 0.5, 0, 0, 0.4, 0.8, np.inf, 0.3, 0]
near = lambda value: pytest.approx(value, abs=1e-12, nan_ok=True)  # noqa: E731


def test_selection_rates_and_impact_ratios_have_the_unknown_counted_apart():
    frame = audit.selection_rates(SELECTED, GROUPS, least=5).set_index("group")
    assert frame.loc["a"].tolist() == near([6, 3, 1 / 2, 1.0])
    assert frame.loc["b"].tolist() == near([5, 1, 1 / 5, (1 / 5) / (1 / 2)])
    assert frame.loc["(missing)"].tolist() == near([1, 1, 1.0, np.nan])  # its rate of 1 is not the highest: left out


def test_no_ratio_is_against_a_group_that_is_too_small():
    groups = ["few"] * 3 + ["many"] * 20 + ["more"] * 40
    frame = audit.selection_rates([1] * 3 + [1] * 10 + [0] * 10 + [1] * 10 + [0] * 30, groups).set_index("group")
    assert frame["impact_ratio"].tolist() == near([1 / 0.5, 1.0, 0.5])
    assert audit.selection_rates([1, 0], ["a", "b"])["impact_ratio"].isna().all()


def test_dates_are_banded_by_years_or_by_days():
    born = pd.Series(pd.date_range("1950-03-01", "2001-09-30", periods=400))
    assert audit.as_groups(born).cat.categories.tolist() == [
        "before 1963",
        "1963 to before 1976",
        "1976 to before 1988",
        "1988 and later",
    ]
    days = pd.Series(pd.date_range("2024-03-01", periods=40, tz="Europe/Madrid"))
    assert audit.as_groups(days).cat.categories[0] == "before 2024-03-11"
    assert audit.as_groups(days[:4]).tolist()[0] == "2024-03-01"
    told = audit.bands(born.where(born.index > 0), ["1990-01-01", "1970-01-01"])
    assert told.cat.categories.tolist() == ["before 1970", "1970 to before 1990", "1990 and later"]
    assert told.isna().sum() == 1
    assert (told[1:] == "before 1970").equals(born[1:] < "1970")
    with pytest.raises(ParameterError, match="edges of a column of dates must be dates such as 1980-01-01"):
        audit.bands(born, ["soon"])


def test_stated_bands_are_those_of_the_table_and_of_the_rows(heart):
    explainer = ONBMACF(effort="quarter").fit(heart, lambda rows: (rows["ldl"] > 4).astype(int))
    answers, decisions = explainer.explain(heart.head(30), target=0), audit.Decisions.of(explainer, 0)
    (group,) = audit.grouped(answers, ["age"], decisions, {"age": [30, 60]})
    assert (
        list(group.table.cat.categories)
        == list(group.rows.cat.categories)
        == ["below 30", "30 to below 60", "60 and above"]
    )
    with pytest.raises(ParameterError, match=r"bands names 'agee', by which nothing is grouped. Did you mean 'age'"):
        audit.grouped(answers, ["age"], decisions, {"agee": [30]})


def test_true_and_false_positive_rates():
    frame = audit.error_rates(SELECTED, TRUTH, GROUPS).set_index("group")
    # a: known rows 0-4; right are 0 (yes, 1) and 4 (no, 0); of 0, 2, 3 one is selected; of 1, 4 one is
    assert frame.loc["a"].tolist() == near([5, 1, 2 / 5, 1 / 3, 1 / 2])
    # b: right are 6 and 10; of 6 to 9 one is selected; of 10 none
    assert frame.loc["b"].tolist() == near([5, 0, 2 / 5, 1 / 4, 0.0])
    assert np.isnan(frame.loc["(missing)", "false_positive_rate"])


def test_burden_is_the_mean_cost_of_the_refused():
    frame = audit.mean_burden(COSTS, GROUPS).set_index("group")
    assert frame.loc["a"].tolist() == near([3, 0, (0.2 + 0.6 + 0.5) / 3])
    assert frame.loc["b"].tolist() == near([4, 1, (0.4 + 0.8 + 0.3) / 3])


def test_nawb_is_the_burden_of_the_false_negatives_times_their_rate_over_the_features():
    frame = audit.accuracy_weighted_burden(COSTS, TRUTH, GROUPS, n_features=4).set_index("group")
    assert frame.loc["a"].tolist() == near([3, 2 / 3, 0.4, 2 / 3 * 0.4 / 4])
    assert frame.loc["b"].tolist() == near([4, 3 / 4, 0.6, 3 / 4 * 0.6 / 4])
    assert frame.loc["(missing)", "nawb"] == 0


def test_social_burden_is_the_cost_of_those_who_should_get_it():
    frame = audit.social_burden(COSTS, TRUTH, GROUPS).set_index("group")
    assert frame.loc["a"].tolist() == near([3, 0, (0 + 0.2 + 0.6) / 3])
    assert frame.loc["b"].tolist() == near([3, 1, (0 + 0.4 + 0.8) / 3])


def test_shares_without_recourse_are_proven_or_not_found():
    statuses = ["already", "found", "infeasible", "none_found", "none_found", "invalid_row"]
    (line,) = audit.without_recourse(statuses, ["a"] * 6).itertuples()
    assert (line.n_refused, line.share_proven, line.share_none_found) == (4, 1 / 4, 2 / 4)


# Actions: three of them on four rows of group x and three rows of group y.
#          flips          costs
FLIPS_X = [[1, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 1]]
COSTS_X = [[1, 2, 4], [1, 2, 4], [3, 2, 4], [3, 2, np.nan]]
FLIPS_Y = [[0, 1, 0], [0, 0, 0], [0, 1, 1]]
COSTS_Y = [[2, 1, 5], [2, 1, 5], [2, 4, 5]]
X, Y = (np.array(FLIPS_X, bool), np.array(COSTS_X, float)), (np.array(FLIPS_Y, bool), np.array(COSTS_Y, float))


def test_cheapest_actions_and_mean_costs():
    assert audit.cheapest(*X).tolist() == [1, 4, np.inf, 2]  # the last row may not take the third action
    assert audit.mean_costs(X[1]).tolist() == near([2, 2, 4])  # (1+1+3+3)/4; 2; (4+4+4)/3
    assert audit.mean_costs(Y[1]).tolist() == near([2, 2, 5])


def test_equal_effectiveness():
    assert audit.effectiveness(X[0]) == near(3 / 4)
    assert audit.effectiveness(X[0], "macro") == near(3 / 4)  # the third action
    assert audit.effectiveness(Y[0]) == near(2 / 3)
    assert audit.effectiveness(Y[0], "macro") == near(2 / 3)  # the second


def test_equal_choice_for_recourse():
    assert audit.choices(X[0], 0.5) == 2  # shares 2/4, 1/4, 3/4
    assert audit.choices(Y[0], 0.5) == 1  # shares 0, 2/3, 1/3


def test_effectiveness_within_a_budget():
    assert audit.within_budget(*X, 2) == near(2 / 4)
    assert audit.within_budget(*Y, 2) == near(1 / 3)
    assert audit.within_budget(*X, 2, "macro") == near(2 / 4)  # of the first two actions the first
    assert audit.within_budget(*X, 1.5, "macro") == 0
    assert audit.within_budget(*Y, 2, "macro") == near(2 / 3)


def test_cost_of_effectiveness():
    assert audit.cost_of_effectiveness(*X, 0.5) == 2
    assert audit.cost_of_effectiveness(*X, 0.75) == 4
    assert audit.cost_of_effectiveness(*X, 1.0) == np.inf
    assert audit.cost_of_effectiveness(*X, 0.75, "macro") == near(4)
    assert audit.cost_of_effectiveness(*Y, 0.5, "macro") == near(2)
    assert audit.cost_of_effectiveness(*Y, 0.9, "macro") == np.inf


def test_mean_recourse_is_over_the_rows_that_have_one():
    assert audit.mean_recourse(*X) == near((1 + 4 + 2) / 3)
    assert audit.mean_recourse(*Y) == near((1 + 4) / 2)


def test_the_trade_off_is_the_largest_gap_over_all_budgets():
    # micro, budgets 1, 2, 4: x helps 1/4, 2/4, 3/4; y helps 1/3, 1/3, 2/3
    assert audit.trade_off(X, Y) == near(2 / 4 - 1 / 3)
    # macro, budgets 2, 4, 5: x has 2/4, 3/4, 3/4; y has 2/3 throughout
    assert audit.trade_off(X, Y, "macro") == near(2 / 3 - 2 / 4)


def test_the_frame_has_every_figure_for_every_group():
    groups = ["x"] * 4 + ["y"] * 3
    frame = audit.recourse_fairness([*FLIPS_X, *FLIPS_Y], [*COSTS_X, *COSTS_Y], groups, budget=2)
    value = frame.set_index(["figure", "viewpoint", "group"])["value"]
    assert value["effectiveness", "micro", "x"] == 3 / 4
    assert value["choices", "macro", "y"] == 1
    assert value["trade_off", "macro", "x"] == near(1 / 6)
    assert len(frame) == 2 * (4 * 2 + 1)


def test_own_counterfactuals_are_a_case_of_actions():
    flips, costs = audit.individual([0.2, 0.6, np.inf])
    assert audit.effectiveness(flips) == near(2 / 3)
    assert audit.cost_of_effectiveness(flips, costs, 0.5) == near(0.6)
    assert audit.trade_off(audit.individual([1, 2, 3]), audit.individual([2, 3, np.inf])) == near(1 / 3)


def test_groups_without_rows_or_helping_actions_give_nan_and_no_error():
    empty = np.zeros((0, 2), bool), np.zeros((0, 2))
    assert np.isnan(audit.effectiveness(empty[0]))
    assert np.isnan(audit.within_budget(*empty, 1))
    assert np.isnan(audit.trade_off(empty, X))
    assert np.isnan(audit.mean_recourse([[0]], [[1]]))
    with pytest.raises(ParameterError, match=r"share must be in \[0, 1\], got 3"):
        audit.choices([[1]], 3)


@pytest.fixture
def explainer(heart):
    return ONBMACF().fit(heart, lambda rows: np.where(rows["ldl"] > 4, "risk", "fine"))


def test_decisions_know_rows_labels_and_truth(explainer, heart):
    truth = pd.Series(["fine", "risk", None] * 154, index=heart.index)
    decisions = audit.Decisions.of(explainer, "fine", truth)
    assert decisions.selected.tolist() == (heart["ldl"] <= 4).tolist()
    assert decisions.truth[:2].tolist() == [1, 0]
    assert np.isnan(decisions.truth[2])
    measures = decisions.measures()
    assert np.isnan(measures["true_positive"][1])
    assert measures["false_positive"][1] == decisions.selected[1]
    pd.testing.assert_frame_equal(decisions.rows, heart, check_dtype=False, check_index_type=False)


@pytest.mark.parametrize(
    "truth, pattern",
    [
        (["fine"], "truth has 1 labels for 462 fitted rows."),
        ([0, 1] * 231, "truth has none of the model's labels: it has 0, 1, the model says"),
    ],
)
def test_truth_that_does_not_fit_is_said(explainer, truth, pattern):
    with pytest.raises(ParameterError, match=pattern):
        audit.Decisions.of(explainer, "fine", truth)


def test_costs_are_those_of_the_first_counterfactuals(explainer, heart):
    answers = explainer.explain(heart.head(20), target="fine")
    costs = audit.recourse_costs(answers)
    for answer, cost in zip(answers, costs, strict=True):
        assert cost == (answer.counterfactuals[0].distance if answer.counterfactuals else 0)
