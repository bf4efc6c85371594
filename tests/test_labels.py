"""Names for people: in sentences, tables, pages, notices and widgets; frames, JSON and the model have the data."""

import html
import re

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema
from onbmacf.errors import ParameterError
from onbmacf.report import notice

LABELS = {
    "A6": {"name": "savings", "levels": {"A61": "below <100>", "A62": "100 to 500", "A63": "more"}},
    "dur": {"name": "duration", "unit": "months"},
    "amount": {"unit": "EUR"},
}
TOML = """
sex = "gender"
[A6]
name = "savings"
levels = { A61 = "below <100>", A62 = "100 to 500", A63 = "more" }
[dur]
name = "duration"
unit = "months"
"""


def table():
    rng = np.random.default_rng(3)
    columns = {"A6": rng.choice(["A61", "A62", "A63"], 120), "dur": rng.integers(6, 60, 120)}
    return pd.DataFrame({**columns, "amount": rng.integers(5, 90, 120) * 100, "sex": rng.choice([1, 2], 120)})


def decision(rows):
    return np.where(rows["dur"] / 60 + rows["amount"] / 9000 + (rows["A6"] == "A61") < 1.1, "granted", "refused")


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF(2).fit(table(), decision, schema=Schema.infer(table(), labels=LABELS, immutable=["sex"]))


@pytest.fixture(scope="module")
def plain():
    return ONBMACF(2).fit(table(), decision, schema=Schema.infer(table(), immutable=["sex"]))


@pytest.fixture(scope="module")
def refused():
    rows = table()
    return rows[(decision(rows) == "refused") & (rows["A6"] == "A61")].head(3)


def assert_in_words(text):
    text = html.unescape(text)
    assert re.search(r"savings|duration", text)
    assert not re.search(r"\bA6[123]?\b|\bdur\b", text), text
    assert "below <100>" in text or "months" in text


def test_data_are_the_same_with_and_without(explainer, plain, refused):
    named, bare = explainer.explain(refused, ranges=True), plain.explain(refused, ranges=True)
    assert named.to_json() == bare.to_json()
    pd.testing.assert_frame_equal(named.to_frame(), bare.to_frame())
    assert named[0].factual.index.tolist() == ["A6", "dur", "amount", "sex"]


def test_sentences_and_tables_say_what_people_do(explainer, refused):
    answers = explainer.explain(refused, ranges=True)
    for answer in answers:
        assert_in_words(" ".join(answer.sentences()))
        assert_in_words(answer._repr_html_())
        assert_in_words(repr(answer))
        assert "<100>" not in answer._repr_html_()  # data, never markup
    assert_in_words(answers._repr_html_())


def test_a_notice_has_them_and_its_facts_do_not(explainer, refused):
    paper = notice(explainer, refused.iloc[[0]], target="granted")
    assert_in_words(paper.markdown())
    assert '"A6"' in paper.to_json()
    assert "savings" not in paper.to_json()


def test_the_rows_of_a_report_have_them(explainer, refused):
    from onbmacf.report import audit_report

    report = audit_report(explainer, explainer.explain(refused, "granted"), target="granted", n_cases=2)
    (cases,) = [section["cases"] for section in report.content["sections"] if section.get("cases")] or [[]]
    for case in cases or report.content["cases"]:
        assert_in_words(" ".join(case["sentences"]))
        assert_in_words(" ".join(str(table["rows"]) for table in case["tables"]))


CODES = {**LABELS, "sex": {"name": "gender", "levels": {"1": "women", "2": "men"}}}


@pytest.fixture(scope="module")
def coded():
    """An explainer whose labels have words for codes that are numbers, too, and answers that show them."""
    rules = {"dur": {"direction": "down"}}
    schema = Schema.infer(table(), labels=CODES, immutable=["sex"], rules={"features": rules})
    explainer = ONBMACF(2, plausibility=0).fit(table(), decision, schema=schema)
    rows = table()[decision(table()) == "refused"]
    return explainer, explainer.explain(rows, "granted")


def texts_in(content):
    """Yield every text that a report shows, but for the option list and the columns' names in the table."""
    if isinstance(content, dict):
        content = [part for key, part in content.items() if key not in ("again", "columns", "body")]
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for part in content:
            yield from texts_in(part)


def drawn(ax):
    axes = [ax.get_xlabel(), ax.get_ylabel(), *(text.get_text() for text in ax.texts)]
    return " ".join([*axes, *(tick.get_text() for axis in (ax.xaxis, ax.yaxis) for tick in axis.get_ticklabels())])


def test_every_table_finding_and_picture_of_a_report_has_them(coded):
    from onbmacf.report import audit_report

    explainer, answers = coded
    other = ("another", explainer, answers)
    report = audit_report(explainer, answers, target="granted", by=["sex", "A6"], n_actions=2, against=other)
    shown = list(texts_in(report.content))
    for text in shown:
        assert not re.search(r"\bA6[123]?\b|\bdur\b|\bsex\b", text), text
    everything = " ".join(shown)
    for word in ("savings", "duration", "gender", "women", "men", "below <100>", "months"):
        assert word in everything, word
    columns = report.content["columns"]["rows"]
    assert columns[1] == ["duration", "dur", "integer", "no", "7 to 58 months"]
    assert columns[3] == ["gender", "sex", "integer", "yes", "women, men"]
    words = dict(report.content["words"])
    assert all(re.search("EUR|months|savings", words[word]) for word in ("Counterfactual", "Semifactual", "Distance"))
    svg = " ".join(html.unescape(one["body"]) for part in report.content["sections"] for one in part["pictures"])
    assert not re.search(r">\s*(A6[123]?|dur|sex)\b", svg)
    assert "women (n = " in svg


def test_figures_of_a_report_are_those_without_them(coded):
    from onbmacf.report import audit_report

    explainer, answers = coded
    bare = ONBMACF(2, plausibility=0).fit(
        table(), decision, schema=Schema(explainer.schema_.features, explainer.schema_.rules)
    )
    named = audit_report(explainer, answers, target="granted", by=["sex"]).content
    plain = audit_report(bare, bare.explain(answers.rows, "granted"), target="granted", by=["sex"]).content
    figures = [re.findall(r"[\d.]+ %|p = [\d.]+", " ".join(one["findings"])) for one in (named, plain)]
    assert figures[0]
    assert figures[0] == figures[1]


def test_findings_have_them_and_frames_do_not(coded):
    from onbmacf import audit

    explainer, answers = coded
    gaps = {"sex": audit.burden_gaps(answers, "sex")}
    said = " ".join(audit.findings(answers, explainer.schema_, gaps, "granted"))
    assert_in_words(said)
    assert "By gender: " in said
    assert "features (gender)" in said
    assert {"A6", "dur"} <= set(audit.changes_by_feature(answers, explainer.schema_)["feature"])


def test_pictures_have_them(coded):
    plots = pytest.importorskip("onbmacf.plots")
    pytest.importorskip("matplotlib", reason="needs the extra 'plot'")
    explainer, answers = coded
    found = next(one for one in answers if one.counterfactuals and "dur" in one.counterfactuals[0].changed)
    for ax in (found.plot(), found.counterfactuals[0].plot()):
        assert_in_words(drawn(ax))
        assert " months" in drawn(ax)
        assert any(patch.get_width() > 0 for patch in ax.patches)  # numbers have bars
    for ax in (answers.plot(), plots.pair_heatmap(answers), plots.burden(answers, by="A6")):
        assert re.search("savings|duration|below <100>", drawn(ax))
        assert not re.search(r"\bA6|\bdur\b", drawn(ax))
    assert "women (n = " in drawn(plots.burden(answers, by="sex"))
    for ax in (plots.cover(explainer, "dur", "amount"), plots.walk(found, "dur", "amount")):
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("duration (months)", "amount (EUR)")


def test_reasons_have_them_and_what_would_be_needed_is_said_on_pages(refused):
    rules = {"A6": {"allowed": ["A62"]}, "dur": {"low": 6, "high": 8}, "amount": {"high": 1000}}
    schema = Schema.infer(table(), labels=LABELS, rules={"features": rules})
    explainer = ONBMACF().fit(table(), lambda rows: np.where(rows["A6"] == "A63", "granted", "refused"), schema=schema)
    held = explainer.explain(refused, "granted")[0]
    assert held.would_need == ("the rule for 'savings' (one of '100 to 500')",)
    assert "without the rule for 'savings' (one of '100 to 500')" in held.reason
    assert "The row itself breaks the rules for 'savings', 'duration' and 'amount'." in held.reason
    kept = explainer.explain(refused, "granted", rules={}, immutable=["A6"])[0]
    assert "One is found if savings may change." in kept.reason
    assert kept.would_need == ("A6",)  # data
    assert kept.in_words().would_need == ("savings",)
    schema = Schema.infer(table(), labels=LABELS, immutable=["A6"])
    paper = notice(ONBMACF().fit(table(), explainer.fitted_.black_box.model, schema=schema), refused.iloc[[0]])
    assert "ruled out: savings." in paper.markdown()


def test_what_a_row_would_need_and_what_a_form_refuses_are_said_with_them(refused):
    pytest.importorskip("fastapi", reason="needs the extra 'web'")
    from onbmacf.widget.person import Person, shown
    from serving import serving

    schema = Schema.infer(table(), labels=LABELS, immutable=["A6"])
    explainer = ONBMACF().fit(table(), lambda rows: np.where(rows["A6"] == "A63", "granted", "refused"), schema=schema)
    assert shown(Person.of(explainer, refused.iloc[[0]], "granted"), ["A6"], False).view["would_need"] == ["savings"]
    with serving(explainer, refused.reset_index(drop=True), "granted") as running, running.browser() as browser:
        page = browser.get("/case/r0").text
        assert "<li>savings</li>" in page
        token = re.search(r'name="csrf_token" value="(\w+)"', page)[1]
        for typed, words in (
            ({"f0": "A9"}, "'savings' must be one of 'below <100>'"),
            ({"f1": "x"}, "'duration' must"),
        ):
            form = {"f0": "A61", "f1": "6", "f2": "500", "f3": "1", "csrf_token": token}
            assert words in html.unescape(browser.post("/type", data=form | typed).text)


def test_two_codes_with_one_word_stay_two():
    from onbmacf._text.labels import Labels

    words = Labels.of({"a": {"levels": {"1": "low", "2": "low", "3": "high"}}})
    rows = pd.DataFrame({"a": [1, 2, 3]})
    assert words.table(rows, words.codes_in(rows))["a"].tolist() == ["low (1)", "low (2)", "high"]
    rows = pd.DataFrame({"a": [1, 2, 9]})  # not all of them have words: these are numbers
    assert words.table(rows, words.codes_in(rows))["a"].tolist() == [1, 2, 9]
    rows = pd.DataFrame({"a": pd.Categorical(["1", "3", None])})
    assert words.table(rows, words.codes_in(rows))["a"].tolist()[:2] == ["low (1)", "high"]


def test_a_saved_map_keeps_them(explainer, tmp_path, refused):
    explainer.save(tmp_path / "map.onb")
    loaded = ONBMACF.load(tmp_path / "map.onb", decision)
    assert loaded.schema_ == explainer.schema_
    assert_in_words(loaded.explain(refused)[0].sentences()[0])


def test_pages_show_them_and_forms_send_the_codes(explainer, refused):
    pytest.importorskip("fastapi", reason="needs the extra 'web'")
    from serving import serving

    rows = refused.reset_index(drop=True)
    with serving(explainer, rows, "granted") as running, running.browser() as browser:
        for path in ("/", "/type", "/case/r0", "/case/r0/print", "/case/r0?ranges=1", "/audit"):
            page = browser.get(path).text
            assert "<100>" not in page
            seen = re.sub(r"<script.*?</script>|<textarea.*?</textarea>|<[^>]*>", " ", page, flags=re.S)
            assert re.search("savings|duration", seen), path
            assert not re.search(r"\bA6[123]?\b|\bdur\b", seen), path
        assert '<option value="A61" selected>below &lt;100&gt;</option>' in browser.get("/type").text
        assert "2 months" in browser.get("/case/r0").text or "months" in browser.get("/case/r0").text
        assert browser.get("/", params={"q": "below"}).text.count('class="row"') == 3
        assert '"A6"' in browser.get("/case/r0/plans.json").text


def test_a_widget_shows_them(explainer, refused):
    from onbmacf.widget.person import Person, shown

    view = shown(Person.of(explainer, refused.iloc[[0]]), ["sex"], ranges=True).view
    assert [field["said"] for field in view["fields"]] == ["savings", "duration", "amount", "sex"]
    assert view["fields"][0]["levels"][0] == ["A61", "below <100>"]
    changes = [change for plan in view["plans"] for change in plan["changes"]]
    assert {"savings", "duration", "amount"} >= {change["said"] for change in changes}


def test_a_file_of_labels_is_read_on_the_command_line(tmp_path, monkeypatch, capsys):
    from onbmacf.cli import app

    table().to_csv(tmp_path / "credit.csv", index=False)
    (tmp_path / "labels.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "credit_model.py").write_text(
        "import numpy as np\ndef predict(rows):\n"
        "    return np.where(rows['dur'] / 60 + (rows['A6'] == 'A61') < 0.7, 'granted', 'refused')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    words = [
        "explain",
        "credit.csv",
        "--model",
        "credit_model:predict",
        "--labels",
        "labels.toml",
        "--immutable",
        "sex",
    ]
    app(args=[*words, "--predicted", "refused", "--rows", "all", "--format", "markdown"], standalone_mode=False)
    assert_in_words(capsys.readouterr().out)


@pytest.mark.parametrize(
    "labels, words",
    [
        ({"durr": "duration"}, "labels name 'durr', which is not a column. Did you mean 'dur'"),
        ({"dur": {"unitt": "months"}}, "unknown key 'unitt'. Did you mean 'unit'"),
        ({"dur": {"name": 3}}, "name must be text, got 3"),
        ({"A6": {"levels": {"A61": 1}}}, "'A61' must be text, got 1"),
        ({"dur": "amount"}, "labels give two columns the name 'amount'"),
        (["dur"], "labels must be a table"),
    ],
)
def test_wrong_labels_are_named(labels, words):
    with pytest.raises(ParameterError, match=re.escape(words)):
        Schema.infer(table(), labels=labels)
