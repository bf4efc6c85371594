"""What a table's columns are taken for, and how to say otherwise."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Feature, Rule, Rules, Schema
from onbmacf.errors import ParameterError

KINDS = {
    "int64": ([1, 2, 3], "integer"),
    "uint8": (np.array([1, 2, 255], dtype=np.uint8), "integer"),
    "whole floats": ([1.0, 2.0, 3.0], "integer"),
    "floats": ([1.0, 2.5, 3.0], "continuous"),
    "float32": (np.array([0.1, 2.5, 3.0], dtype=np.float32), "continuous"),
    "nullable Int64": (pd.array([1, 2, 3], dtype="Int64"), "integer"),
    "nullable Float64": (pd.array([1.5, 2, 3], dtype="Float64"), "continuous"),
    "bool": ([True, False, True], "binary"),
    "nullable boolean": (pd.array([True, False, True], dtype="boolean"), "binary"),
    "bool as objects": (np.array([True, False, True], dtype=object), "binary"),
    "two words": (["no", "yes", "no"], "binary"),
    "three words": (["a", "b", "c"], "categorical"),
    "string dtype": (pd.array(["a", "b", "c"], dtype="string"), "categorical"),
    "object text": (np.array(["a", "b", "c"], dtype=object), "categorical"),
    "category": (pd.Categorical(["a", "b", "c"]), "categorical"),
    "numbers as category": (pd.Categorical([1, 2, 3]), "categorical"),
    "ordered category": (pd.Categorical(["a", "b", "a"], ordered=True), "ordinal"),
    "numbers as objects": (np.array([1, 2, 3], dtype=object), "integer"),
    "words, some of them digits": (["1", "many", "few"], "categorical"),
    "names of groups of numbers": (["0", "1", "2+"], "categorical"),
}


@pytest.mark.parametrize("values, kind", KINDS.values(), ids=KINDS)
def test_inferred_kind(values, kind):
    assert Schema.infer(pd.DataFrame({"c": values, "free": [1, 2, 3]})).kinds["c"] == kind


def test_every_guess_can_be_overridden_by_name(mixed):
    schema = Schema.infer(
        mixed,
        immutable=["age"],
        kinds={"age": "continuous", "insured": "categorical"},
        ordinal={"city": ["C", "A", "B"]},
    )
    assert schema.kinds == {
        "age": "continuous",
        "dose": "continuous",
        "city": "ordinal",
        "smokes": "binary",
        "size": "ordinal",
        "insured": "categorical",
    }
    assert schema.immutable == ("age",)
    assert schema.features[2].levels == ("C", "A", "B")


def test_codes_that_are_names_can_be_called_categorical():
    table = pd.DataFrame({"zip": ["00123", "00456", "00123"], "n": [1, 2, 3]})
    assert Schema.infer(table, kinds={"zip": "categorical"}).kinds["zip"] == "categorical"


def test_a_single_name_is_one_immutable_not_its_letters(mixed):
    assert Schema.infer(mixed, immutable="age").immutable == ("age",)


def test_immutables_can_be_set_anew(mixed):
    schema = Schema.infer(mixed, immutable=["age"]).with_immutable(["city", "dose"])
    assert schema.immutable == ("dose", "city")


def test_a_schema_spelled_out_equals_the_inferred_one():
    table = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    spelled = Schema((Feature("a", "integer", immutable=True), Feature("b", "continuous")))
    assert Schema.infer(table, immutable=["a"]) == spelled


def test_array_columns_are_named_by_position():
    assert Schema.infer(np.array([[1, 2.5], [3, 4.5]]), immutable=["x0"]).kinds == {"x0": "integer", "x1": "continuous"}


MEASURED = {
    "date": pd.date_range("2020-01-01", periods=4),
    "day": pd.date_range("2020-01-01", periods=4).date,
    "zone": pd.date_range("2020-03-28", periods=4, tz="Europe/Berlin"),
    "time": pd.date_range("2020-01-01", periods=4, freq="h"),
    "duration": pd.to_timedelta([1, 2, 3, 4], unit="h"),
    "period": pd.period_range("2020", periods=4, freq="M"),
    "number": [1, 2, 3, 4],
}
SHOWN = ["date", "date", "date", "time", "duration", "period", "integer"]


def test_a_schema_shows_dates_and_times_as_such_and_counts_them_as_whole_numbers(tmp_path):
    table = pd.DataFrame(MEASURED)
    inferred = Schema.infer(table)
    spelled_out = Schema(tuple(Feature(name, "integer") for name in table))
    rule = lambda rows: rows["number"] > 2  # noqa: E731
    explainer = ONBMACF().fit(table, rule, schema=spelled_out)
    explainer.save(tmp_path / "m.onb")
    for schema in (inferred, explainer.schema_, ONBMACF.load(tmp_path / "m.onb", rule).schema_):
        assert schema.kinds == dict.fromkeys(table, "integer")
        assert [feature.shown_kind for feature in schema.features] == SHOWN
        assert [line.split()[1] for line in repr(schema).splitlines()[2:]] == SHOWN
        assert schema == spelled_out
    again = ONBMACF().fit(table.assign(date=[3, 4, 5, 6]), rule, schema=inferred)
    assert again.schema_.features[0].shown_kind == "integer"  # what the table of fit holds, not an earlier one
    with pytest.raises(ParameterError, match="what 'a' holds must be one of '', 'date'"):
        Feature("a", "integer", holds="day")


def in_steps(n=300):
    rng = np.random.default_rng(0)
    numbers = {"discount": rng.choice([0, 5, 10, 15], n), "km": rng.integers(5, 200, n) * 1000}
    return pd.DataFrame({**numbers, "age": rng.integers(18, 80, n), "region": rng.choice(list("abc"), n)})


def test_whole_numbers_keep_the_step_they_were_written_down_in(tmp_path):
    table = in_steps()
    schema = Schema.infer(table)
    assert [feature.step for feature in schema.features] == [5, 1000, None, None]
    assert "in steps of 1000" in repr(schema)

    def model(rows):
        return np.where(rows["km"] / 1000 * 2 + rows["discount"] * 3 - rows["age"] > 120, "high", "low")

    explainer = ONBMACF(3).fit(table, model)
    explainer.save(tmp_path / "m.onb")
    loaded = ONBMACF.load(tmp_path / "m.onb", model)
    rows = table.head(40).assign(km=lambda rows: rows["km"] + np.arange(40) % 3)  # some are off the grid themselves
    for answers in (
        explainer.explain(rows),
        loaded.explain(rows, rules=Rules({"age": Rule(direction="up")})),
        explainer.explain(rows, prove=True, plausibility=0),
    ):
        found = answers.to_frame()
        before = rows.loc[found.index]
        for name, step in (("km", 1000), ("discount", 5)):
            assert ((found[name] % step == 0) | (found[name] == before[name])).all()
        assert (found["km"] != before["km"]).any()
    own = explainer.explain(
        rows, rules=Rules({"km": Rule(step=500), "discount": Rule(low=2)}), plausibility=0
    ).to_frame()
    assert (own["km"] % 1000 == 500).any()


def test_a_step_is_no_rule_that_makes_answers_farther():
    """With a step alone, the search goes where it would without, and takes no longer."""
    table = in_steps()
    model = lambda rows: np.where(rows["km"] > 90_500, "high", "low")  # noqa: E731
    free = Schema(tuple(replace(feature, step=None) for feature in Schema.infer(table).features))
    stepped, plain = (
        ONBMACF(plausibility=0).fit(table, model, schema=schema).explain(table.head(60)) for schema in (None, free)
    )
    assert stepped.n_calls <= plain.n_calls + 1
    apart = stepped.to_frame()["km"] - plain.to_frame()["km"]
    assert (apart.abs() < 1000).all()
