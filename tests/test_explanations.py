"""What a notebook and a prompt show of the objects, the frames of changes, and the importance of features."""

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Feature, Rule, Rules, Schema, audit
from onbmacf.audit.arguments import as_answers
from onbmacf.errors import ParameterError

ATTACK = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def table(heart):
    return heart[["tobacco", "ldl", "famhist", "age"]]


def model(rows):
    return np.where(rows["tobacco"] + rows["ldl"] + 2 * (rows["famhist"] == "Present") > 10, "risk", "fine")


@pytest.fixture(scope="module")
def explainer(table):
    return ONBMACF(3).fit(table, model, schema=Schema.infer(table, immutable=["age"]))


@pytest.fixture(scope="module")
def answers(explainer, table):
    return explainer.explain(table.head(40), target="fine")


@pytest.fixture(scope="module")
def wide():
    """Answers that change 30 features at once."""
    rows = pd.DataFrame(np.repeat([[0.0], [1.0]], 30, axis=1), columns=[f"feature {place:02}" for place in range(30)])
    rows = pd.concat([rows] * 10, ignore_index=True)
    explainer = ONBMACF(plausibility=0).fit(rows, lambda given: np.where(given.min(axis=1) > 0.5, "in", "out"))
    return explainer.explain(rows.head(1), target="in")


class Cells(HTMLParser):
    """The texts of a table's cells, and every tag."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.tags = [], set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, text):
        self.texts.append(text)


def test_a_schema_reads_as_a_table():
    limits = {"dose": Rule(direction="down", high=6, weight=2)}
    features = (
        Feature("age", "integer", immutable=True),
        Feature("dose", "continuous", decimals=1),
        Feature("size", "ordinal", levels=("S", "M", "L")),
        Feature("town", "categorical", levels=tuple(f"town {place}" for place in range(40))),
    )
    schema = Schema(features, Rules(limits, at_most=[("dose", "age")], max_changes=2))
    assert repr(schema).splitlines() == [
        "Schema of 4 features, 1 immutable; dose <= age; at most 2 changes",
        "feature  kind         may change                     values",
        "age      integer      no",
        "dose     continuous   only down, at most 6, costs 2  1 decimal",
        "size     ordinal      yes                            S < M < L",
        "town     categorical  yes                            town 0, town 1, town 2, town 3, town 4 and 35 others",
    ]
    cells = Cells(schema._repr_html_()).texts
    assert {
        "only down, at most 6, costs 2",
        "S < M < L",
        "town 0, town 1, town 2, town 3, town 4 and 35 others",
    } <= set(cells)


def test_a_schema_of_many_features_says_how_many_are_not_shown():
    schema = Schema(tuple(Feature(place, "integer") for place in range(300)))
    assert len(repr(schema).splitlines()) == 43
    assert repr(schema).endswith("... and 260 more")
    assert "... and 260 more" in schema._repr_html_()


def test_features_and_rules_print_what_is_set():
    assert repr(Feature("age", "integer")) == "Feature('age', 'integer')"
    levels = tuple("ABCDEFGHIJ")
    assert repr(Feature("town", "categorical", immutable=True, levels=levels)) == (
        "Feature('town', 'categorical', immutable=True, levels=('A', 'B', 'C', 'D', 'E', ... 5 more))"
    )
    assert repr(Rule()) == "Rule()"
    assert repr(Rule("up", low=2, forbidden=[("a", "b")])) == "Rule(direction='up', low=2, forbidden=(('a', 'b'),))"
    assert repr(Rules()) == "Rules()"
    assert repr(Rules({"ldl": Rule(low=2)}, max_changes=1)) == "Rules\n  ldl: at least 2\n  at most 1 change"


def test_a_cover_prints_its_numbers(explainer):
    assert repr(explainer.cover_).startswith(f"<BallCover of 462 rows: {len(explainer.cover_)} balls, radii from ")


def test_one_explanation_prints_only_what_changes(answers):
    answer = next(answer for answer in answers if len(answer.counterfactuals) == 3)
    lines = repr(answer).splitlines()
    assert len(lines) == 4
    assert lines[0] == f"<Explanation of row {answer.factual.name}: the model says 'risk'; found"
    for line, found in zip(lines[1:], answer.counterfactuals, strict=True):
        told = "; ".join(f"{n} {_shown(found.factual[n])} -> {_shown(found.values[n])}" for n in found.changed)
        assert line.rstrip(">") == f"  it would say 'fine' if {told}; distance {found.distance:.4g}"
        assert repr(found) == f"<Counterfactual 'fine': {told}; distance {found.distance:.4g}>"
        assert str(answer).isascii()
    kept = answer.counterfactuals[0].semifactual
    assert repr(kept).startswith(f"<Semifactual: {kept.changed[0]} ")


def _shown(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_a_row_without_a_counterfactual_prints_why(answers):
    answer = next(answer for answer in answers if not answer.counterfactuals)
    assert (
        repr(answer) == f"<Explanation of row {answer.factual.name}: the model says 'fine'; already: {answer.reason}>"
    )


def test_a_batch_prints_its_size_and_a_position_outside_says_how_many_rows_there_are(answers):
    n_found = sum(bool(answer.counterfactuals) for answer in answers)
    assert repr(answers.batch) == f"<Batch of {len(answers.to_frame())} counterfactuals of {n_found} rows>"
    with pytest.raises(IndexError, match="answers for 40 rows, got position 40"):
        answers[40]
    assert answers[-40].factual.name == answers[0].factual.name


def test_many_changes_and_many_answers_are_counted(wide):
    assert wide[0].counterfactuals[0].n_changes == 30
    assert "and 22 others; distance 30" in repr(wide[0].counterfactuals[0])
    assert repr(wide[0]).count("->") == 8


def test_names_and_levels_are_text_in_every_view():
    levels = [ATTACK, "line\nbreak"]
    table = pd.DataFrame({ATTACK: levels * 10, "x": np.tile(np.arange(10.0), 2)})
    fitted = ONBMACF().fit(table, lambda rows: np.where(rows[ATTACK] == ATTACK, ATTACK, "plain"))
    answers = fitted.explain(table.head(2))
    assert "script" not in Cells(fitted.schema_._repr_html_()).tags
    for shown in (fitted.schema_, answers[0], answers[0].counterfactuals[0]):
        assert "line\\nbreak" in repr(shown)
        assert "line\nbreak" not in repr(shown)


def test_the_wide_frame_of_only_changes_has_the_changed_values_and_nothing_else(answers):
    frame, whole = answers.to_frame(only_changes=True), answers.to_frame()
    changed = answers.batch.changed
    names = [name for place, name in enumerate(answers.rows.columns) if changed[:, place].any()]
    assert list(frame.columns) == ["rank", "from", "to", "distance", "n_changes", *names]
    assert frame.index.equals(whole.index)
    for place, name in enumerate(answers.rows.columns):
        if name in names:
            kept = [value for value, is_changed in zip(whole[name], changed[:, place], strict=True) if is_changed]
            assert [value for value in frame[name] if value != ""] == kept
            assert (frame[name] != "").tolist() == changed[:, place].tolist()
    assert (frame[names] != "").sum(axis=1).tolist() == frame["n_changes"].tolist()


def test_whole_numbers_stay_whole_where_others_are_blank():
    table = pd.DataFrame({"n": [1, 5] * 10, "rank": [1.5, 2.5, 3.5, 4.5] * 5})
    answers = ONBMACF(2).fit(table, lambda rows: rows["n"] > 3).explain(table.head(2))
    frame = answers.to_frame(only_changes=True)
    assert {type(value) for value in frame["n"] if value != ""} == {int}
    assert "rank_" in frame.columns
    none = answers[:0].to_frame(only_changes=True)
    assert len(none) == 0


def test_the_long_frame_holds_the_same_changes(answers):
    wide, long = answers.to_frame(only_changes=True), answers.changes()
    assert wide["n_changes"].sum() == len(long)
    for (row, rank), own in long.groupby([long.index, "rank"]):
        line = wide[(wide.index == row) & (wide["rank"] == rank)].iloc[0]
        assert [line[name] for name in own["feature"]] == own["after"].tolist()


def test_an_explanation_becomes_the_answers_for_its_row(answers):
    for place in range(len(answers)):
        one, sliced = as_answers(answers[place]), answers[place : place + 1]
        assert json.loads(one.to_json())["answers"] == json.loads(sliced.to_json())["answers"]
        pd.testing.assert_frame_equal(one.to_frame(), sliced.to_frame(), check_dtype=False)
        pd.testing.assert_frame_equal(one.status_frame(), sliced.status_frame(), check_dtype=False)
    with pytest.raises(ParameterError, match=r"give what explain returned, .* got DataFrame"):
        as_answers(answers.rows)


def naive_importance(answers, name):
    """Return the mean over rows of the share of counterfactuals that change a feature, in plain Python."""
    shares = [
        sum(name in found.changed for found in answer.counterfactuals) / len(answer.counterfactuals)
        for answer in answers
        if answer.counterfactuals
    ]
    return sum(shares) / len(shares)


def test_importance_is_the_mean_share_over_rows(answers, explainer):
    frame = audit.importance(answers, explainer).set_index("feature")
    for name in answers.rows.columns:
        assert frame.loc[name, "importance"] == pytest.approx(naive_importance(answers, name))
    assert frame["importance"].is_monotonic_decreasing
    assert frame.loc["age", "importance"] == 0
    assert np.isnan(frame.loc["age", "part_of_range"])
    assert (frame["alone"] <= frame["importance"]).all()
    local = audit.local_importance(answers)
    assert local.index.equals(answers.rows.index)
    assert frame["importance"].to_dict() == pytest.approx(local.mean().to_dict())
    has_none = [not answer.counterfactuals for answer in answers]
    assert local.isna().all(axis=1).tolist() == has_none


def test_a_row_with_many_counterfactuals_counts_once():
    table = pd.DataFrame({"a": [0, 1, 2, 3] * 5, "b": [0, 3, 1, 2] * 5})
    explainer = ONBMACF(8).fit(table, lambda rows: (rows["a"] > 1) | (rows["b"] > 2))  # 10 exist, or 6
    answers = explainer.explain(table.head(4))
    numbers = [len(answer.counterfactuals) for answer in answers]
    assert len(set(numbers)) > 1
    assert naive_importance(answers, "a") != pytest.approx(answers.batch.changed[:, 0].mean())
    frame = audit.importance(answers).set_index("feature")
    assert frame.loc["a", "importance"] == pytest.approx(naive_importance(answers, "a"))


def test_how_much_is_in_the_features_own_unit_and_as_a_part_of_its_range(table):
    schema = Schema.infer(table, immutable=["age"], rules=Rules({"tobacco": Rule(weight=3)}))
    explainer = ONBMACF(3).fit(table, model, schema=schema)
    answers = explainer.explain(table.head(40), target="fine")
    frame = audit.importance(answers, explainer).set_index("feature")
    changes = answers.changes()
    for name in ("tobacco", "ldl"):
        own = changes[changes["feature"] == name]
        sizes = (own["after"].astype(float) - own["before"].astype(float)).abs()
        assert frame.loc[name, "median_change"] == pytest.approx(sizes.median())
        assert frame.loc[name, "part_of_range"] == pytest.approx(sizes.mean() / np.ptp(table[name]))
    assert frame.loc["famhist", "part_of_range"] == 1
    assert np.isnan(frame.loc["famhist", "median_change"])
    assert "part_of_range" not in audit.importance(answers)


def test_ranks_of_an_order_are_parts_of_it():
    table = pd.DataFrame({"size": ["S", "M", "L"] * 8})
    schema = Schema.infer(table, ordinal={"size": ["S", "M", "L"]})
    explainer = ONBMACF().fit(table, lambda rows: rows["size"] == "L", schema=schema)
    answers = explainer.explain(pd.DataFrame({"size": ["S"]}))
    assert audit.importance(answers, explainer)["part_of_range"].tolist() == [1.0]
    assert audit.importance(explainer.explain(pd.DataFrame({"size": ["M"]})), explainer)["part_of_range"].tolist() == [
        0.5
    ]


def test_importance_to_one_row_and_to_none(answers, explainer):
    answer = next(answer for answer in answers if len(answer.counterfactuals) == 3)
    frame = audit.importance(answer).set_index("feature")
    for name in answers.rows.columns:
        assert frame.loc[name, "importance"] == pytest.approx(naive_importance([answer], name))
    empty = audit.importance(answers[:0], explainer)
    assert empty["importance"].isna().all()
    with pytest.raises(ParameterError, match="fitted without 'tobacco'"):
        audit.importance(answers, ONBMACF().fit(answers.rows[["ldl"]], lambda rows: rows["ldl"] > 4))
