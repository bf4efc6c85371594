"""The notice for one person: every field is there, every number holds when the model is asked again."""

import html
import json
import os
import re
import string

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
pytest.importorskip("jinja2", reason="reports need the extra 'report'")

from conftest import by_table
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._explain.alone import MOST_VALUES, values_of
from onbmacf._text.labels import Labels
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.datasets import heart_network, load_heart
from onbmacf.errors import ParameterError
from onbmacf.report import notice
from onbmacf.report.notice import catalogue, languages
from payloads import PAYLOADS

FIELDS = {"date", "wanted", "answer", "reasons", "no_help", "kept", "rules", "n_questions"}
N_ROWS = int(os.environ.get("ONBMACF_NOTICE_ROWS", "3"))  # per table; 50 takes some minutes
FIELDS |= {"table_digest", "model_digest", "made_by", "contact", "review"}


@pytest.fixture(scope="module")
def asked():
    table, chd = load_heart()
    model = heart_network().fit(table, chd.map({0: "healthy", 1: "at risk"}))
    rules = Rules({"tobacco": Rule(direction="down")})
    explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"], rules=rules))
    return table, model, explainer


def changed(row, changes, key="after"):
    """Return the row with some values exchanged, in its own dtypes."""
    other = row.copy()
    for change in changes:
        name = next(name for name in row.columns if str(name) == str(change["feature"]))
        other[name] = pd.Series([change[key]], index=row.index).astype(row[name].dtype)
    return other


def check(page, row, explainer, model, wanted):
    """Check a notice against the model itself, with nothing of the package but its facts."""
    facts = page.facts
    assert set(facts) == FIELDS
    label = model(row)[0]
    assert facts["answer"]["label"] == label
    assert len(facts["reasons"]) <= 4
    shares = [reason["n_reached"] / reason["n_asked"] for reason in facts["reasons"] if reason["alone"]]
    assert shares == sorted(shares, reverse=True)
    for reason in facts["reasons"]:
        assert reason["feature"] not in facts["kept"]
        if reason["alone"]:
            assert 0 < reason["n_reached"] <= reason["n_asked"] <= MOST_VALUES
            assert model(changed(row, [reason], "nearest"))[0] == wanted
    for found in facts["answer"]["counterfactuals"]:
        assert model(changed(row, found["changes"]))[0] == wanted
        for own in found.get("ranges", ()):
            others = [change for change in found["changes"] if change["feature"] != own["feature"]]
            for value in own["levels"] or (own["low"], own["high"]):
                moved = [*others, {"feature": own["feature"], "after": value}]
                assert model(changed(row, moved))[0] == wanted
        if found["semifactual"] is not None:
            assert model(changed(row, found["semifactual"]["changes"]))[0] == label
    for name in facts["no_help"]:
        assert str(name) not in {str(reason["feature"]) for reason in facts["reasons"] if reason["alone"]}


def test_every_number_holds_when_the_model_is_asked_again(asked):
    table, model, explainer = asked
    risky = table[model.predict(table) == "at risk"].head(6)
    for place in range(len(risky)):
        row = risky.iloc[[place]]
        page = notice(explainer, row, target="healthy", date="2026-05-04")
        check(page, row, explainer, model.predict, "healthy")


class Sum:
    """Says yes to a large sum."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        yes = np.clip((rows["a"] + rows["b"]) / 40 + 0.08, 0, 1).to_numpy()
        return np.column_stack([1 - yes, yes])

    def predict(self, rows):
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


def test_the_values_that_also_work_do_so_together_and_probabilities_are_rounded():
    model, rng = Sum(), np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(0, 20, (200, 2)).round(2), columns=["a", "b"])
    schema = Schema.infer(table, rules={"features": {"a": {"high": 12}, "b": {"high": 12}}})
    page = notice(ONBMACF(plausibility=1).fit(table, model, schema=schema), {"a": 1.0, "b": 1.0}, target="yes")
    pattern = r"\| a \| 1 \| [\d.]+ \| \D*([\d.]+).*\|\n\| b \| 1 \| [\d.]+ \| \D*([\d.]+).*\|"
    corners = np.array(re.findall(pattern, page.markdown()), dtype=float)
    assert len(corners)
    assert (model.predict(pd.DataFrame(corners, columns=["a", "b"])) == "yes").all()
    for found in page.facts["answer"]["counterfactuals"]:
        assert f"a probability of {round(100 * found['probability'])}\u00a0%" in page.html()


@by_table(DESCRIPTIONS)
def test_a_notice_holds_on_every_table(name, data_dir, network_of):
    task = load_task(name, data_dir=data_dir, paper_sizes=True)
    network = network_of(task)
    explainer = ONBMACF().fit(task.table, lambda rows: network.label_of(task.space.encode(rows)), schema=task.schema)

    def model(rows):
        return network.label_of(task.space.encode(rows))

    refused = task.table[model(task.table) != task.target].head(N_ROWS)
    for place in range(len(refused)):
        row = refused.iloc[[place]]
        check(notice(explainer, row, target=task.target, n_plans=2), row, explainer, model, task.target)


def test_responsiveness_counts_what_asking_each_value_counts(asked):
    table, model, explainer = asked
    row = table.iloc[[4]]
    frame = explainer.responsiveness(row, "healthy").set_index("feature")
    assert list(frame.index) == [name for name in table.columns if name != "age"]
    for name, line in frame.iterrows():
        values = pd.unique(table[name])
        if len(values) > MOST_VALUES:
            values = np.sort(values)[np.linspace(0, len(values) - 1, MOST_VALUES).round().astype(int)]
        values = [value for value in values if value != row[name].iloc[0]]
        if name == "tobacco":
            values = [value for value in values if value <= row[name].iloc[0]]
        trial = pd.concat([row] * len(values), ignore_index=True)
        trial[name] = pd.Series(values, dtype=table[name].dtype)
        reached = model.predict(trial) == "healthy"
        assert (line["n_asked"], line["n_reached"]) == (len(values), reached.sum())
        assert line["share"] == reached.mean()
        if reached.any() and name != "famhist":
            far = np.abs(trial[name][reached] - row[name].iloc[0])
            assert line["nearest"] == trial[name][reached].loc[far.idxmin()]


def test_rows_with_a_wanted_label_have_no_lines(asked):
    table, model, explainer = asked
    healthy = table[model.predict(table) == "healthy"].head(3)
    assert explainer.responsiveness(healthy, "healthy").empty


def test_many_values_are_spaced_and_keep_their_ends():
    seen = np.arange(1000.0)
    kept = values_of(np.append(seen, np.nan))
    assert len(kept) == MOST_VALUES
    assert (kept[0], kept[-1]) == (0.0, 999.0)
    assert values_of(seen[:5]).tolist() == seen[:5].tolist()


def placeholders(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


def test_all_languages_say_the_same_things():
    for language in languages():
        assert {key: placeholders(text) for key, text in catalogue(language).items()} == {
            key: placeholders(text) for key, text in catalogue("en").items()
        }


@pytest.mark.parametrize("language", languages())
def test_each_part_is_on_the_page_in_each_language(asked, language):
    table, _, explainer = asked
    page = notice(explainer, table.iloc[[4]], target="healthy", language=language, contact="Ms Ito", date="2026-05-04")
    words = catalogue(language)
    for text in (page.html(), page.markdown()):
        for key in ("title", "decision_title", "reasons_title", "plans_title", "not_title", "asked_title"):
            assert words[key] in text
        assert "Ms Ito" in text
        assert page.facts["model_digest"] in text
        assert "2026-05-04" in text
        count = f"{page.facts['n_questions']:,}".replace(",", words["thousands"])
        assert count.replace("\xa0", " ") in text.replace("\xa0", " ")
        assert re.search(r"\{\w+\}", text.split("</style>")[-1]) is None


def test_the_same_question_gives_the_same_bytes(asked):
    table, _, explainer = asked
    pages = [notice(explainer, table.iloc[[4]], target="healthy", date="2026-05-04") for _ in range(2)]
    assert pages[0].to_json() == pages[1].to_json()
    assert pages[0].html() == pages[1].html()
    assert json.loads(pages[0].to_json())["format"] == "onbmacf-notice"


def test_a_row_without_a_way_says_what_stands_in_the_way(asked):
    table, model, _ = asked
    held = [name for name in table.columns if name != "typea"]
    explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=held))
    row = table[model.predict(table) == "at risk"].iloc[[0]]
    page = notice(explainer, row, target="healthy")
    assert page.facts["answer"]["counterfactuals"] == []
    assert catalogue("en")[f"no_plan_{page.facts['answer']['status']}"] in page.markdown().replace("\\", "")


def test_names_and_values_are_data():
    name = PAYLOADS[0]
    table = pd.DataFrame({name: [0.0, 1, 2, 3, 4, 5], "b": [5.0, 4, 3, 2, 1, 0]})
    explainer = ONBMACF().fit(table, lambda rows: np.where(rows[name] > 2, PAYLOADS[1], "fine"))
    page = notice(explainer, table.iloc[[5]], target="fine", contact=PAYLOADS[2])
    assert "<script" not in page.html()
    assert page.html().count("<h1>") == 1


def test_wrong_questions_are_errors(asked, tmp_path):
    table, _, explainer = asked
    with pytest.raises(ParameterError, match="one row, got 2"):
        notice(explainer, table.head(2))
    with pytest.raises(ParameterError, match="language must be one of 'en', 'es', got 'xx'"):
        notice(explainer, table.head(1), language="xx")
    with pytest.raises(ParameterError, match=r"got 'notice.pdf'"):
        notice(explainer, table.iloc[[4]], target="healthy").save(tmp_path / "notice.pdf")


def test_an_explanation_gives_the_notice_of_its_row(asked):
    table, _, explainer = asked
    row = table.iloc[[3]]
    one = explainer.explain(row)[0]
    assert one.notice(explainer, date="2026-01-01").to_json() == notice(explainer, row, date="2026-01-01").to_json()


def test_a_notebook_gets_it_in_a_frame_without_script_so_that_its_style_stays_inside(asked):
    table, _, explainer = asked
    page = notice(explainer, table.iloc[[3]], date="2026-01-01")
    [(before, srcdoc, after)] = re.findall(
        r'^<iframe (.*?) srcdoc="(.*?)" sandbox (.*)></iframe>$', page._repr_html_(), re.S
    )
    assert html.unescape(srcdoc) == page.html()
    assert "<" not in before + srcdoc + after


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_notice_of_a_wanted_decision_says_that_nothing_was_looked_for(asked, language):
    table, model, explainer = asked
    row, words = table[model.predict(table) == "healthy"].head(1), catalogue(language)
    text = notice(explainer, row, target="healthy", language=language).markdown().replace("\\", "")
    assert words["reasons_already"] in text
    assert words["no_plan_already"] in text
    assert words["reasons_none"] not in text


def test_a_row_without_any_way_and_one_that_cannot_be_asked_get_a_sentence(asked):
    from onbmacf.report.notice import _no_plan, _no_reasons

    words = catalogue("en")
    nothing = {"status": "none_found", "would_need": [], "reason": ""}
    assert _no_plan(nothing, words, Labels()) == words["no_plan_none_found"]
    assert _no_reasons(nothing, words) == words["reasons_none"]
    needy = {**nothing, "would_need": ["age", "sex"], "factual": {"age": 60, "sex": "f"}}
    assert _no_plan(needy, words, Labels()).endswith("It would take a change that is ruled out: age and sex.")
    broken = {"status": "model_error", "would_need": [], "reason": "it raised."}
    assert _no_plan(broken, words, Labels()) == "The model could not be asked about this row: it raised."
    assert _no_reasons(broken, words) == words["reasons_unasked"]


@pytest.mark.parametrize("fillable", [[], ["debt"]])
def test_what_a_row_lacks_is_among_what_is_kept_unless_it_may_be_filled_in(fillable):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"debt": rng.normal(size=80), "pay": rng.normal(size=80), "sex": ["f", "m"] * 40})
    table.loc[:9, "debt"] = np.nan
    schema = Schema.infer(table, immutable=["sex"], fillable=fillable)
    explainer = ONBMACF().fit(table, lambda rows: rows["pay"] > rows["debt"].fillna(0), schema=schema)
    row = table[table["pay"] < 0].iloc[[0]]
    assert notice(explainer, row, target=True).facts["kept"] == (["sex"] if fillable else ["debt", "sex"])


def test_a_notice_of_a_decision_that_is_there_already_has_no_empty_parts(heart):
    explainer = ONBMACF().fit(heart, lambda rows: (rows["ldl"] > 5).map({True: "high", False: "low"}))
    row = heart[heart["ldl"] <= 5].head(1)
    for text in (
        notice(explainer, row, target="low").markdown(),
        notice(explainer, row, target="low").html(),
    ):
        assert "no reasons against it were looked for" in text
        assert "the strongest first" not in text
        assert "What would not" not in text
