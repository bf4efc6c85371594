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
