"""Causes that cannot be, and what each gets: the exact type, and a pattern that names the column."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import StandardScaler

from onbmacf import ONBMACF, Causes, Schema
from onbmacf.errors import OnbmacfWarning, ParameterError


def table():
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"a": rng.integers(0, 9, 60), "b": rng.normal(0, 1, 60), "town": rng.choice(["x", "y"], 60)})
    made["c"] = 2.0 * made["a"] + made["b"]
    made["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(made["a"], unit="D")
    return made


def model(rows):
    return (np.asarray(rows["a"]) > 4).astype(int)


def fails(rows):
    raise ZeroDivisionError("no rent")


REFUSED = {
    "no mapping": (lambda: Causes(["c"]), r"causes must map columns to what they follow from, got \['c'\]"),
    "nothing": (lambda: Causes({}), "causes must map columns"),
    "no form": (lambda: Causes({"c": 7}), "causes of 'c' must be a function of the rows, names of causes .* got 7"),
    "no causes": (lambda: Causes({"c": []}), r"causes of 'c' must be a function .* got \[\]"),
    "no regressor": (lambda: Causes({"c": (["a"], StandardScaler())}), "'c': StandardScaler.* has no predict"),
    "no Causes": (lambda: {"c": ["a"]}, "causes must be Causes, got {'c'"),
    "unknown effect": (lambda: Causes({"cc": ["a"]}), "causes of 'cc': there is no such column.* Columns: 'a', 'b'"),
    "unknown cause": (
        lambda: Causes({"c": ["a", "twon"]}),
        "'c': it follows from 'twon', no such column. Did you mean 'town'?",
    ),
    "circle": (lambda: Causes({"c": ["a"], "a": ["b"], "b": ["c"]}), "causes go in a circle: '.' <- '.' <- '.' <- '.'"),
    "from itself": (lambda: Causes({"c": ["c"]}), "causes go in a circle: 'c' <- 'c'"),
    "derived from itself": (lambda: Causes({"c": lambda rows: rows["c"] + 1}), "causes go in a circle: 'c' <- 'c'"),
    "category": (
        lambda: Causes({"town": ["a"]}),
        "'town': an effect must be a number, it is .*. Numbers are: 'a', 'b'",
    ),
    "fails": (lambda: Causes({"c": fails}), "the function for 'c' raised ZeroDivisionError: no rent"),
    "unknown in function": (lambda: Causes({"c": lambda rows: rows["rent"]}), "for 'c' raised KeyError: 'rent'"),
    "one number": (
        lambda: Causes({"c": lambda rows: rows["a"].sum()}),
        "'c' returned .* for 60 rows: one number per row",
    ),
    "other shape": (lambda: Causes({"c": lambda rows: rows[["a", "b"]]}), r"'c' returned shape \(60, 2\) for 60 rows"),
    "fewer": (lambda: Causes({"c": lambda rows: rows["a"].head(3)}), r"'c' returned shape \(3,\) for 60 rows"),
    "text": (
        lambda: Causes({"c": lambda rows: rows["town"]}),
        "the function returned '[xy]' for 'c', which is no number",
    ),
    "constant": (lambda: Causes({"c": lambda rows: np.zeros(len(rows))}), "for 'c' reads no column"),
    "not the same twice": (
        lambda: Causes({"c": lambda rows: rows["a"] + np.random.default_rng().normal(size=len(rows))}),
        "for 'c' says something else when it is asked again",
    ),
    "regressor on text": (
        lambda: Causes({"c": (["town"], RandomForestRegressor(5))}),
        "'c': RandomForestRegressor cannot be fitted to 'town'.* Categories need a pipeline",
    ),
    "dates as an effect": (lambda: Causes({"day": ["a"]}), "'day': it holds dates or durations, of which nothing"),
    "dates": (lambda: Causes({"c": ["day"]}), "'c': 'day' holds dates or durations, from which nothing is learned"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made, pattern", REFUSED.values(), ids=REFUSED)
def test_causes_that_cannot_be_are_refused_before_the_model_is_asked(made, pattern):
    asked = []
    with pytest.raises(ParameterError, match=pattern):
        ONBMACF().fit(table(), lambda rows: asked.append(1), causes=made())
    assert not asked


def test_too_few_rows_to_learn_from():
    few = table().assign(b=[1.0, 2.0] + [np.nan] * 58)
    with pytest.raises(ParameterError, match="'c': 2 rows have it and 'a', 'b', too few to learn from"):
        ONBMACF().fit(few, model, causes=Causes({"c": ["a", "b"]}))


def test_a_function_that_fails_on_other_rows_says_so_when_they_are_asked_about():
    limited = lambda rows: rows["a"].map(dict(zip(range(9), range(9), strict=True))).astype(int)  # noqa: E731
    explainer = ONBMACF().fit(table().assign(c=lambda t: t["a"]), model, causes=Causes({"c": limited}))
    row = table().iloc[[0]].assign(a=99, c=99)
    with pytest.raises(ParameterError, match=r"the function for 'c' raised .*(NaN|non-finite|NA)"):
        explainer.explain(row.assign(a=-5), rules={"features": {"a": {"low": -9, "high": -1}}}, vary=["a"])


def test_what_cannot_follow_makes_a_point_impossible_and_no_error():
    """The value follows a division that has no result for some; an answer avoids these."""
    made = table()
    made["c"] = (1 / (made["a"] + 1)).round(3)
    inverse = lambda rows: 1 / (rows["a"] - 5)  # noqa: E731
    with pytest.warns(OnbmacfWarning, match="'c' is not what its function says in .. of 60"):
        explainer = ONBMACF().fit(made, model, schema=Schema.infer(made), causes=Causes({"c": inverse}))
    rows = made[made["a"] < 4].iloc[:5]
    answers = explainer.explain(rows, 1)
    assert (answers.statuses == "found").all()
    frame = answers.to_frame()
    assert not (frame["a"] == 5).any()
    assert np.isfinite(frame["c"]).all()


def test_an_error_of_causes_ends_where_people_can_read_it():
    with pytest.raises(ParameterError) as caught:
        ONBMACF().fit(table(), model, causes=Causes({"c": fails}))
    assert not re.search(r"\n", str(caught.value))


def test_a_derived_column_cannot_be_asked_to_vary():
    explainer = ONBMACF().fit(table(), model, causes=Causes({"c": lambda rows: 2.0 * rows["a"] + rows["b"]}))
    with pytest.raises(ParameterError, match="vary names 'c' alone: derived, and so computed"):
        explainer.explain(table().iloc[[0]], vary=["c"])
