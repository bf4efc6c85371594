"""Names, identifiers and free text: kept as they are, which fit says, unless the caller names the column."""

import warnings

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Feature, Schema
from onbmacf._base import limits
from onbmacf._columns.kinds import OWN_ROWS
from onbmacf._table import scales
from onbmacf.errors import NotEnoughMemoryError, OnbmacfWarning

WARNING = "nearly every row has a text of its own in column"


def people(n=60, n_different=60):
    """Rows with a name, a size and a job."""
    names = [f"person {row % n_different}" for row in range(n)]
    return pd.DataFrame({"name": names, "size": np.arange(n) % 7, "job": (["cook", "clerk", "nurse"] * n)[:n]})


def decision(rows):
    """Return a label that another name would change at once."""
    return np.where((rows["size"] > 3) | (rows["name"] == "person 0"), "yes", "no")


def fitted(table, schema=None):
    """Return the explainer, and what fit said about text of each row's own."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", OnbmacfWarning)
        explainer = ONBMACF(3).fit(table, decision, schema=schema)
    said = [str(one.message) for one in seen if WARNING in str(one.message)]
    assert said == [message for message in explainer.warnings_ if WARNING in message]
    return explainer, said


def changed(explainer, **asked):
    """Return every feature that some counterfactual of some row changes."""
    answers = explainer.explain(people().iloc[10:20], **asked)
    return {name for answer in answers for found in answer.counterfactuals for name in found.changed}


def test_a_name_is_kept_and_fit_says_so_once():
    explainer, said = fitted(people())
    assert explainer.schema_.held == explainer.schema_.immutable == ("name",)
    assert changed(explainer) == {"size"}
    assert len(said) == 1
    assert "kinds={'name': 'categorical'}" in said[0]
    assert "--kinds name=categorical" in said[0]
    assert not any("identifier explains nothing" in message for message in explainer.warnings_)


@pytest.mark.parametrize(
    "schema",
    [
        Schema.infer(people(), kinds={"name": "categorical"}),
        Schema.infer(people(), ordinal={"name": people()["name"].tolist()}),
        Schema.infer(people(), fillable=["name"]),
        Schema.infer(people(), rules={"features": {"name": {"weight": 1.0}}}),
        Schema((Feature("name", "categorical"), Feature("size", "integer"), Feature("job", "categorical"))),
        Schema.infer(people().astype({"name": "category"})),
    ],
    ids=["kinds", "ordinal", "fillable", "rules", "spelled out", "category"],
)
def test_a_column_that_the_caller_names_may_change(schema):
    explainer, said = fitted(people(), schema)
    assert said == []
    assert "name" in changed(explainer)


def test_a_column_that_the_caller_keeps_is_not_warned_of():
    explainer, said = fitted(people(), Schema.infer(people(), immutable=["name"]))
    assert (explainer.schema_.held, said) == ((), [])


def many(n=1200):
    return people(n, n).assign(size=np.arange(n) % 7)


@pytest.mark.parametrize("schema", [None, Schema.infer(many(), immutable=["name"])], ids=["held", "immutable"])
def test_very_many_identifiers_are_kept_in_one_column_next_to_no_distance_apart(schema):
    """20,000 of them took 40 seconds and 10 GB, and 100,000 were refused."""
    table = many()
    explainer, _ = fitted(table, schema)
    assert explainer.fitted_.Z.shape[1] == 1 + 1 + 3
    assert explainer.schema_.immutable == ("name",)
    pd.testing.assert_frame_equal(explainer.fitted_.space.decode(explainer.fitted_.Z), table)
    answers = explainer.explain(table.iloc[10:40])
    assert set(answers.statuses) == {"found"}
    for found in (one for answer in answers for one in answer.counterfactuals):
        assert found.values["name"] == found.factual["name"]
        assert found.changed == ("size",)
        assert found.distance <= 1.0
    row = table.iloc[[8]]  # of size 1
    assert {one.changed for one in explainer.explain(row, vary=["name"])[0].counterfactuals} == {("name",)}


def test_a_map_saved_when_every_level_had_a_column_is_loaded(monkeypatch, tmp_path):
    table = many()
    monkeypatch.setattr(scales, "is_aside", lambda feature: False)
    before, _ = fitted(table, None)
    before.save(tmp_path / "old.onb")
    monkeypatch.undo()
    loaded = ONBMACF.load(tmp_path / "old.onb", decision)
    assert loaded.Z_.shape == before.Z_.shape == (len(table), 1200 + 1 + 3)
    found, expected = (one.explain(table.iloc[10:20]).to_frame() for one in (loaded, before))
    pd.testing.assert_frame_equal(found, expected)


def test_a_column_that_fills_the_memory_is_named(monkeypatch):
    table = many()
    monkeypatch.setattr(limits, "available_bytes", lambda: 1_000_000)
    with pytest.raises(NotEnoughMemoryError, match=r"Column 'name' has 1,200 levels: .* immutable=\['name'\]"):
        ONBMACF().fit(table, decision, schema=Schema.infer(table, kinds={"name": "categorical"}))


def test_one_call_may_change_it_by_vary_only():
    explainer, _ = fitted(people())
    assert "name" not in changed(explainer, immutable=["job"])
    assert "name" not in changed(explainer, immutable=[])
    assert changed(explainer, vary=["name"]) == {"name"}


@pytest.mark.parametrize(
    ("table", "held"),
    [
        (people(OWN_ROWS, OWN_ROWS), True),
        (people(OWN_ROWS - 1, OWN_ROWS - 1), False),
        (people(60, 57), True),
        (people(60, 56), False),
        (people().astype({"name": "string"}), True),
        (people().assign(name=lambda rows: rows["name"].where(rows.index < OWN_ROWS)), True),
        (people().assign(name=lambda rows: rows["name"].where(rows.index < OWN_ROWS - 1)), False),
    ],
    ids=["20", "19", "95 %", "93 %", "string", "20 present", "19 present"],
)
def test_where_the_line_is(table, held):
    assert Schema.infer(table).held == (("name",) if held else ())


def test_numbers_are_never_held():
    assert Schema.infer(pd.DataFrame({"income": np.arange(100), "rate": np.arange(100) / 7})).held == ()


def test_nothing_is_held_where_nothing_else_could_change():
    assert Schema.infer(people()[["name"]]).held == ()
    assert Schema.infer(people(), immutable=["size", "job"]).held == ()


def test_a_map_remembers(tmp_path):
    explainer, _ = fitted(people())
    explainer.save(tmp_path / "people.onb")
    loaded = ONBMACF.load(tmp_path / "people.onb", decision)
    assert loaded.schema_ == explainer.schema_
    assert "name" not in changed(loaded, immutable=[])


def test_several_columns_are_told_together_and_the_option_can_be_pasted_into_a_shell():
    table = people().rename(columns={"name": "full name"})
    table["note"] = [f"note {row}" for row in range(len(table))]
    with pytest.warns(OnbmacfWarning) as seen:
        ONBMACF().fit(table, lambda rows: rows["size"] > 3)
    (said,) = [str(one.message) for one in seen if WARNING in str(one.message)]
    assert "in columns 'full name', 'note': taken for identifiers or free text, they are kept as they are." in said
    assert "as in --kinds 'full name=categorical'; in Python, Schema.infer(" in said


def dirty(n=60):
    """People with codes that look like numbers, and dates that are text."""
    days = pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d")
    numbers = {"postcode": 10_000 + np.arange(n) * 991 % 70_000, "customer": 4000 + np.arange(n)[::-1]}
    return people(n).assign(**numbers, signed=days, plant=[f"{row % 7:03d}" for row in range(n)])


def test_codes_that_look_like_numbers_are_asked_about_and_not_walked():
    """ "If your postcode were 12 lower" is no advice."""
    explainer, _ = fitted(dirty())
    kinds = {"postcode": "integer", "customer": "integer", "plant": "categorical", "signed": "categorical"}
    assert {name: explainer.schema_.kinds[name] for name in kinds} == kinds
    assert set(explainer.schema_.held) == {"name", *kinds}
    said = [message for message in explainer.warnings_ if "codes that look like numbers" in message]
    assert len(said) == 1
    assert "'postcode', 'customer', 'plant'" in said[0]
    assert "--kinds postcode=integer" in said[0]
    answers = explainer.explain(dirty().iloc[10:20])
    assert {name for answer in answers for found in answer.counterfactuals for name in found.changed} == {"size"}


def test_a_code_that_the_caller_calls_a_number_may_change():
    free = Schema.infer(dirty(), kinds={"postcode": "integer", "customer": "continuous"})
    assert set(free.held) == {"name", "signed", "plant"}


def test_dates_in_text_are_offered_with_what_to_type():
    days = pd.to_datetime(dirty()["signed"]).dt.strftime("%d/%m/%Y")
    table = dirty().assign(born=dirty()["signed"], called=days)
    explainer, said = fitted(table)
    dates = [message for message in explainer.warnings_ if "dates as text" in message]
    assert len(dates) == 2
    assert "column 'called' holds dates as text, e.g. '01/01/2020', in a form that is not read" in dates[1]
    assert "called" in explainer.schema_.held
    assert "--dates signed,born; in Python, read_table(..., dates=['signed', 'born'])" in dates[0]
    assert "signed" not in said[0]  # a date is no identifier


@pytest.mark.parametrize(
    ("name", "values", "is_held"),
    [
        ("age", range(20, 60), False),
        ("income", np.arange(40) * 517 + 12_000, False),  # of one width and all different, but far apart
        ("zip", np.arange(40) % 7, True),
        ("regionCode", np.arange(40) % 5, True),
        ("code", np.arange(40) % 2, False),
        ("year", np.arange(40) % 20 + 1990, False),
        ("n", np.arange(40) + 1000.0, True),
    ],
)
def test_what_looks_like_a_code(name, values, is_held):
    table = people(40).drop(columns="name").assign(**{name: values})
    assert Schema.infer(table).held == ((name,) if is_held else ())


def test_a_few_identifiers_add_nothing_to_a_distance():
    """With fewer than 1,000 of them, each had a column of its own, and everybody was 1 farther from everybody."""
    explainer, _ = fitted(people())
    assert explainer.fitted_.Z.shape[1] == 1 + 1 + 3


def test_a_new_row_with_a_name_of_its_own_is_told_to_fit_without_the_column():
    """It got the names of a dozen others, and was asked whether it meant one of them."""
    explainer, _ = fitted(people())
    (answer,) = explainer.explain(people().iloc[[10]].assign(name="person 61"))
    assert answer.status == "invalid_row"
    assert "To explain new rows, fit without it (--drop)" in answer.reason
    assert "person 1" not in answer.reason
