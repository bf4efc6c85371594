"""Results as people read them: sentences, frames, notebooks."""

import html
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from conftest import dose_model
from onbmacf import ONBMACF, Between, Schema
from onbmacf._disk.answer_file import read_answers, write_answers
from onbmacf._table.form import TableForm
from onbmacf._text.wording import html_table, shown, whole_percent
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations


@pytest.fixture
def answers(mixed):
    schema = Schema.infer(mixed, immutable=["age"])
    return ONBMACF(2).fit(mixed, dose_model, schema=schema).explain(mixed)


def test_a_counterfactual_tells_what_changes(answers):
    found = answers[0].counterfactuals[0]
    changes = found.changes()
    assert list(changes.columns) == ["feature", "before", "after"]
    assert tuple(changes["feature"]) == found.changed
    assert found.n_changes == len(changes) > 0
    for feature, before, after in changes.itertuples(index=False):
        assert before == found.factual[feature]
        assert after == found.values[feature]
        assert before != after
    untouched = [name for name in found.values.index if name not in found.changed]
    assert (found.values[untouched] == found.factual[untouched]).all()


def test_values_keep_the_type_of_their_column(answers):
    values = answers[0].counterfactuals[0].values
    assert isinstance(values["age"], int | np.integer)
    assert isinstance(values["insured"], bool | np.bool_)
    assert isinstance(values["city"], str)
    assert values.name == 9


def test_the_long_table_of_changes_agrees_with_the_single_ones(answers):
    single = [found.changes() for answer in answers for found in answer.counterfactuals]
    long = answers.changes()
    assert list(long["feature"]) == list(pd.concat(single)["feature"])
    assert list(long["after"]) == list(pd.concat(single)["after"])
    assert set(long.index) <= set(answers.rows.index)


def test_sentences_name_the_change_and_both_labels(answers):
    for answer in answers:
        for found, sentence in zip(answer.counterfactuals, answer.sentences(), strict=True):
            assert sentence.startswith(f"If {found.changed[0]} were ")
            sure = "" if found.probability is None else f" (probability {whole_percent(found.probability)} %)"
            assert f"the model would say '{found.label}' instead of '{answer.label}'{sure}." in sentence
            assert ("Even if" in sentence) == (found.semifactual is not None)
    assert len(answers.sentences()) == len(answers.to_frame())


def test_to_frame_has_one_line_per_counterfactual_ranked(answers):
    frame = answers.to_frame()
    assert list(frame.columns[:7]) == ["rank", "from", "to", "distance", "n_changes", "relaxation", "ball"]
    assert frame["rank"].tolist() == [rank for a in answers for rank in range(1, len(a.counterfactuals) + 1)]


def test_a_column_of_the_callers_that_is_called_like_ours_keeps_its_name():
    table = pd.DataFrame({"rank": [0.0, 1, 3, 4], "distance": [1, 2, 3, 4]})
    frame = ONBMACF().fit(table, lambda rows: (rows["rank"] > 2).astype(int)).explain(table).to_frame()
    assert list(frame.columns)[:5] == ["rank_", "from", "to", "distance_", "n_changes"]
    assert list(frame.columns)[-2:] == ["rank", "distance"]


def test_slices_and_negative_positions(answers):
    assert len(answers[2:5]) == 3
    assert answers[-1].factual.name == 8
    with pytest.raises(IndexError):
        answers[len(answers)]


def test_the_notebook_view_escapes_every_value():
    evil = "<script>alert(1)</script>"
    table = pd.DataFrame({evil: [0.0, 1, 3, 4], "k": ["<b>a</b>", "b&", "c", "c"]})
    model = lambda rows: np.where(rows[evil] > 2, "<i>yes</i>", "no")  # noqa: E731
    page = ONBMACF().fit(table, model).explain(table)._repr_html_()
    assert "<script>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    assert "<b>" not in html_table([ONBMACF().fit(table, model).explain(table)[0]])


def test_a_long_batch_is_cut_in_the_notebook(heart):
    answers = ONBMACF().fit(heart, lambda rows: (rows["ldl"] > 5).astype(int)).explain(heart.head(25))
    assert "and 5 more rows" in answers._repr_html_()
    assert repr(answers) == "<Explanations of 25 rows: 25 found; 25 counterfactuals>"


@pytest.mark.parametrize(
    "value, text",
    [
        (7.5, "7.5"),
        (0.123456, "0.123456"),
        (3, "3"),
        (True, "True"),
        ("a", "a"),
        (1234567.8, "1234567.8"),
        (12.0, "12"),
        (np.float32(12.78), "12.78"),
        (-0.0, "0"),
        (1e-7, "1e-07"),
        (2.5e20, "2.5e+20"),
    ],
)
def test_numbers_are_written_for_people(value, text):
    assert shown(value) == text


def test_values_that_look_the_same_are_written_out():
    table = pd.DataFrame({"x": [1.00001, 1.00002, 1.00003, 1.00004]})
    answers = ONBMACF().fit(table, lambda rows: (rows["x"] > 1.000025).astype(int)).explain(table.head(1))
    assert "instead of 1.00001" in answers.sentences()[0]


def test_a_slice_is_explanations_of_those_rows(answers):
    part = answers[2:7:2]
    assert isinstance(part, type(answers))
    assert [answer.factual.name for answer in part] == [answers[place].factual.name for place in (2, 4, 6)]
    assert part.sentences() == [sentence for place in (2, 4, 6) for sentence in answers[place].sentences()]
    assert len(answers[5:5]) == 0
    assert answers[::-1].sentences() == [s for answer in reversed(answers) for s in answer.sentences()]
    pd.testing.assert_frame_equal(answers[:].to_frame(), answers.to_frame())


def test_slices_put_together_are_the_whole(answers):
    whole = type(answers).concat([answers[:3], answers[3:3], answers[3:]])
    pd.testing.assert_frame_equal(whole.to_frame(), answers.to_frame())
    pd.testing.assert_frame_equal(whole.status_frame(), answers.status_frame())
    assert whole.sentences() == answers.sentences()
    assert (whole.n_calls, whole.warnings) == (3 * answers.n_calls, answers.warnings)
    with pytest.raises(ParameterError, match="at least one"):
        type(answers).concat([])


def test_what_is_not_looked_at_is_not_made(answers, monkeypatch):
    found = [answer for answer in answers if answer.counterfactuals]
    assert found
    lazily = answers[:]  # no frame of these rows was made yet

    def refused(*args):
        raise AssertionError("nobody asked for this")

    monkeypatch.setattr(TableForm, "frame", refused)
    for answer, own in zip(answers, lazily, strict=True):
        for expected, one in zip(answer.counterfactuals, own.counterfactuals, strict=True):
            pd.testing.assert_frame_equal(one.changes(), expected.changes())
            assert callable(one.__dict__["semifactual"])
    with pytest.raises(AssertionError, match="nobody asked"):
        lazily.batch.values  # noqa: B018


def test_answers_travel_with_their_values_and_without_the_table(answers):
    expected = answers.to_json()
    sent = pickle.dumps((answers[:], answers[0], answers[0].counterfactuals))
    assert b"TableForm" not in sent
    whole, one, found = pickle.loads(sent)
    assert whole.to_json() == expected
    assert one.to_dict() == answers[0].to_dict()
    pd.testing.assert_series_equal(found[0].values, answers[0].counterfactuals[0].values)


def test_answers_of_different_maps_are_put_together_by_their_values():
    first = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "c": ["x", "y", "x", "y"]})
    other = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "c": ["w", "x", "w", "x"]})  # another code for "x"
    model = lambda rows: (rows["a"] > 1).to_numpy().astype(int)  # noqa: E731
    parts = [ONBMACF().fit(table, model).explain(table.head(2)) for table in (first, other)]
    expected = pd.concat([part.batch.values for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(Explanations.concat(parts).batch.values, expected)


def test_dicts_hold_everything_as_plain_values(answers):
    answer, entry = answers[0], answers.to_dicts()[0]
    assert entry == answer.to_dict()
    assert set(entry) == {"row", "label", "status", "reason", "would_need", "factual", "counterfactuals"}
    assert (entry["row"], entry["label"], entry["status"]) == (9, answer.label, "found")
    found, first = entry["counterfactuals"][0], answer.counterfactuals[0]
    for name in ("label", "distance", "n_changes", "ball", "plausibility", "margin", "probability"):
        assert found[name] == getattr(first, name)
    assert found["relaxation"] == "none"
    assert found["changes"] == first.changes().to_dict("records")
    assert found["values"] == first.values.to_dict()
    assert entry["factual"] == answer.factual.to_dict()
    kept = first.semifactual
    assert found["semifactual"] == {
        "distance": kept.distance, "changes": kept.changes().to_dict("records"), "values": kept.values.to_dict(),
    }  # fmt: skip
    assert {type(value) for value in found["values"].values()} <= {int, float, str, bool}


def test_json_is_one_versioned_document_without_loss(answers):
    text = answers.to_json()
    document = json.loads(text)
    assert (document["format"], document["version"]) == ("onbmacf-explanations", 1)
    assert document["answers"] == answers.to_dicts()
    assert document["warnings"] == list(answers.warnings)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert json.loads(answers.to_json(indent=2)) == document


def test_json_does_not_depend_on_the_batch(answers, mixed):
    schema = Schema.infer(mixed, immutable=["age"])
    explainer = ONBMACF(2).fit(mixed, dose_model, schema=schema)
    alone = [explainer.explain(mixed.iloc[[place]]).to_dicts()[0] for place in range(3)]
    assert alone == answers.to_dicts()[:3]


def test_column_names_that_are_the_same_as_text_are_refused():
    table = pd.DataFrame({1: [0.0, 1, 3, 4], "1": [1.0, 2, 3, 4]})
    answers = ONBMACF().fit(table, lambda rows: (rows[1] > 2).astype(int)).explain(table)
    with pytest.raises(ParameterError, match="same as text"):
        answers.to_json()


def test_whole_days_are_written_as_days_and_times_with_their_time():
    """Also in a slice, joined, and of one row: what is written depends on the fitted column alone."""
    days = pd.date_range("2020-01-01", periods=40)
    hours = pd.date_range("2020-01-01", periods=40, freq="h")
    table = pd.DataFrame({"day": days, "zone": days.tz_localize("Europe/Berlin"), "at": hours, "x": np.arange(40.0)})
    explainer = ONBMACF().fit(table, lambda rows: (rows["day"] > days[20]).astype(int))
    answers = explainer.explain(table[:3], ranges=True)
    first = answers[0].to_dict()
    assert first["factual"] == {"day": "2020-01-01", "zone": "2020-01-01", "at": "2020-01-01 00:00:00", "x": 0.0}
    (found,) = first["counterfactuals"]
    assert found["changes"] == [{"feature": "day", "before": "2020-01-01", "after": "2020-01-22"}]
    assert (found["ranges"][0]["low"], found["semifactual"]["values"]["day"]) == ("2020-01-22", "2020-01-21")
    assert "00:00:00" not in json.dumps([found["changes"], found["ranges"], found["values"]["zone"]])
    joined = type(answers).concat([answers[:1], answers[1:]])
    assert joined.to_dicts() == answers.to_dicts() == [*answers[:1].to_dicts(), *answers[1:].to_dicts()]
    assert explainer.explain(first["factual"]).statuses.tolist() == ["found"]
    assert "00:00:00" not in explainer.explain(table[1:2])[0].notice(explainer).markdown()


def test_tables_and_sentences_say_how_sure_the_model_is(heart):
    from sklearn.linear_model import LogisticRegression

    numbers = heart.drop(columns="famhist")
    model = LogisticRegression(max_iter=1000).fit(numbers, np.where(heart["tobacco"] > 4, "yes", "no"))
    answers = ONBMACF().fit(numbers, model).explain(numbers.head(3))
    for answer in answers:
        sure = whole_percent(model.predict_proba(answer.counterfactuals[0].values.to_frame().T)[0].max())
        assert f"(probability {sure} %)." in answer.sentences()[0]
        assert f" ({html.escape(sure)} %)</td>" in answer._repr_html_()


def test_a_regressor_says_the_numbers_that_it_predicts(heart, tmp_path):
    """ "Below" and "inside" are labels that nobody has chosen."""
    weight = lambda rows: 100 + 10 * rows["tobacco"] + 3 * rows["ldl"]  # noqa: E731
    explainer = ONBMACF().fit(heart, weight, target=Between(high=160))
    rows = heart[weight(heart) > 200].head(3)
    answers = explainer.explain(rows)
    for answer in answers:
        found = answer.counterfactuals[0]
        before, after = weight(answer.factual), weight(found.values)
        assert found.predicted == pytest.approx((before, after))
        assert after <= 160 < before
        assert f"the model would predict {after:.4g} instead of {before:.4g}." in answer.sentences()[0]
        assert answer.sentences()[0].endswith("the number would still be above the range.")
        assert f"&#x27;inside&#x27; ({after:.4g})" in answer._repr_html_()
        assert answer.to_dict()["counterfactuals"][0]["predicted"] == list(found.predicted)
    frame = answers.to_frame()
    assert (frame["predicted_to"] <= 160).all()
    assert (frame["predicted_from"] > 160).all()
    form = explainer.fitted_.space.form
    write_answers(tmp_path / "part.onb", answers, form)
    assert read_answers(tmp_path / "part.onb", rows, form).sentences() == answers.sentences()
