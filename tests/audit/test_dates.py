"""What audits and trained models make of dates, durations, periods and decimals: figures in days, no nanoseconds."""

import numpy as np
import pandas as pd
import pytest

from _table.test_kinds_of_columns import START, X, Z, made
from onbmacf import ONBMACF, audit
from onbmacf.audit.moves import AT_LEAST, AT_MOST, BY, Move, in_words
from onbmacf.audit.sentences import findings
from onbmacf.io import train_network, train_trees

SIZES = {"days in ns": 1, "days in s": 1, "date objects": 1, "pyarrow timestamp": 1, "pyarrow date": 1}
SIZES |= {
    "times": 3601 / 86400,
    "times of a time zone": 3601 / 86400,
    "durations": 1 / 1440,
    "months": 1,
    "decimals": 1,
}


@pytest.mark.parametrize("kind", SIZES)
def test_changes_are_measured_in_days(kind):
    table = pd.DataFrame({"c": made(kind), "z": Z})
    middle = sorted(table["c"].tolist())[30]
    model = lambda rows: np.array([bool(value > middle) for value in rows["c"].tolist()])  # noqa: E731
    explainer = ONBMACF().fit(table, model)
    answers = explainer.explain(table, vary=["c"])
    line = audit.changes_by_feature(answers).iloc[0]
    steps = audit.changes_by_feature(answers, explainer.schema_).iloc[0]
    found = audit.importance(answers, explainer).set_index("feature").loc["c"]
    assert line["median_size"] == steps["median_size"] == found["median_change"]
    expected = np.median([abs(_step(one.factual["c"], one.values["c"])) for a in answers for one in a.counterfactuals])
    assert found["median_change"] == pytest.approx(expected)
    assert 0 < line["median_size"] < 101 * SIZES[kind]
    assert 0 < found["part_of_range"] < 1
    assert line["up"] + line["down"] == 1
    said = " ".join(findings(answers, explainer.schema_))
    words = {"months": " periods)", "decimals": ")"}.get(kind, " days)")
    assert f"median change {found['median_change']:.4g}{words}" in said


def _step(before, after):
    difference = after - before
    if hasattr(difference, "n"):
        return difference.n
    return pd.Timedelta(difference) / pd.Timedelta(1, "D") if hasattr(difference, "days") else float(difference)


@pytest.mark.parametrize("train", [train_network, train_trees])
def test_a_trained_model_takes_dates_as_numbers(train):
    days = pd.Series(START + pd.to_timedelta(np.random.default_rng(2).permutation(600), "D"))
    table = pd.DataFrame({"since": days, "z": np.resize(Z, 600), "x": np.resize(X, 600)})
    y = pd.Series(np.where(days > START + pd.Timedelta(300, "D"), "late", "early"), name="y")
    trained = train(table, y)
    assert trained.accuracy > 0.95


def test_an_action_says_dates_as_dates_and_how_many_days():
    days = pd.Series(pd.date_range("2024-01-01", periods=60))
    table = pd.DataFrame({"since": days, "wait": pd.to_timedelta(np.arange(60) % 20, "D"), "x": np.resize(X, 60)})
    fitted = ONBMACF().fit(table, lambda rows: rows["since"] > "2024-02-01").fitted_
    said = {how: in_words(fitted, (Move(0, how, 19_754.0),)) for how in (AT_MOST, AT_LEAST)}
    assert said == {AT_MOST: "since no later than 2024-02-01", AT_LEAST: "since no earlier than 2024-02-01"}
    words = in_words(fitted, (Move(0, BY, 30.0), Move(1, BY, -1.0)))
    assert words == "since later by 30 days (not after 2024-02-29) and wait lower by 1 day (not below 0 days)"
    assert in_words(fitted, (Move(1, AT_MOST, 3.0),)) == "wait at most 3 days"
