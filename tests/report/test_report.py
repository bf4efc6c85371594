"""The report: what it holds, that it stands alone, and that it comes out the same again."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
pytest.importorskip("jinja2", reason="reports need the extra 'report'")

from onbmacf import ONBMACF, Schema, audit
from onbmacf.errors import ParameterError, StoreError
from onbmacf.report import About, audit_report
from onbmacf.report.render import file_digest, model_digest, table_digest


def model(rows):
    return np.where(rows["tobacco"] + rows["ldl"] + (rows["age"] > 50) > 10, "risk", "fine")


@pytest.fixture(scope="module")
def explainer(heart):
    return ONBMACF(2).fit(heart, model, schema=Schema.infer(heart, immutable=["age"]))


@pytest.fixture(scope="module")
def answers(explainer, heart):
    return explainer.explain(heart.head(80), target="fine")


@pytest.fixture(scope="module")
def report(explainer, answers):
    about = About("Heart", "heart.csv", "a rule", {"heart.csv": "abc"}, "onbmacf audit heart.csv", ("A remark.",))
    return audit_report(explainer, answers, target="fine", by=["famhist", "age"], seed=3, about=about)


def test_the_findings_are_the_audits_and_come_first(report, answers, explainer):
    page = report.html()
    decisions = audit.Decisions.of(explainer, "fine")
    gaps = audit.group_gaps(answers, audit.grouped(answers, ["famhist", "age"], decisions), decisions, seed=3)
    sentences = audit.findings(answers, explainer.schema_, gaps, "fine")
    assert report.content["findings"] == ["A remark.", *sentences]
    places = [page.index(f'id="{name}"') for name in ("verdict", "findings", "asked", "burden-0", "limits")]
    assert places == sorted(places)


def test_it_says_what_was_asked_of_what_and_how_to_get_it_again(report, explainer):
    for text in (report.html(), report.markdown()):
        for part in (table_digest(explainer), model_digest(explainer), "heart.csv", "onbmacf audit heart.csv", "numpy"):
            assert part in text
        assert "not about causes" in text


def test_numbers_in_the_tables_are_those_of_the_frames(report, answers, explainer):
    counted = audit.changes_by_feature(answers, explainer.schema_)
    counted = counted[counted["count"] > 0]
    (section,) = [s for s in report.content["sections"] if s["id"] == "features"]
    rows = section["tables"][0]["rows"]
    assert [row[0] for row in rows] == counted["feature"].tolist()
    assert [row[2] for row in rows] == [f"{count:,}" for count in counted["count"]]


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.labelled, self.tags, self.open = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if attributes.get("href", "").startswith("#"):
            self.links.append(attributes["href"][1:])
        self.labelled += attributes.get("aria-labelledby", "").split()


def test_every_picture_has_a_text_alternative_and_every_link_a_place(report):
    outline = Outline()
    outline.feed(report.html())
    assert len(outline.ids) == len(set(outline.ids))
    assert set(outline.links) <= set(outline.ids)
    assert set(outline.labelled) <= set(outline.ids)
    drawings = [attributes for tag, attributes in outline.tags if tag == "svg"]
    assert len(drawings) >= 5
    assert all(attributes["role"] == "img" and attributes["aria-labelledby"] for attributes in drawings)
    assert [tag for tag, _ in outline.tags].count("desc") == len(drawings)


def test_it_stands_alone(report):
    page = report.html()
    assert "<script" not in page
    addresses = set(re.findall(r"https?://[^\"'\s<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "default-src 'none'" in page
    assert "@media print" in page
    assert 'lang="en"' in page
    outline = Outline()
    outline.feed(page)
    heads = [tag for tag, _ in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert heads[0] == "h1"
    assert heads.count("h1") == 1
    assert all(attributes.get("scope") == "col" for tag, attributes in outline.tags if tag == "th")


@pytest.mark.long
def test_the_same_report_comes_out_again(report, explainer, answers):
    about = About("Heart", "heart.csv", "a rule", {"heart.csv": "abc"}, "onbmacf audit heart.csv", ("A remark.",))
    again = audit_report(explainer, answers, target="fine", by=["famhist", "age"], seed=3, about=about)
    assert again.html() == report.html()
    assert again.markdown() == report.markdown()


def test_cases_show_released_rows_first(explainer, heart):
    def by_age(rows):
        return np.where(rows["age"] > 40, "old", "young")

    schema = Schema.infer(heart, immutable=["age"])
    fitted = ONBMACF(release="immutable").fit(heart, by_age, schema=schema)
    answers = fitted.explain(heart.head(30))
    report = audit_report(fitted, answers, n_cases=3)
    assert len(report.content["cases"]) == 3
    assert "keeps the immutable features was found, so they were released" in report.content["cases"][0]["sentences"][0]
    assert any(
        "For 30 of 30 rows (100 %), a counterfactual is found only if an immutable feature changes" in finding
        for finding in report.content["findings"]
    )


def test_rows_without_an_answer_are_shown_with_their_reason(explainer, heart):
    rows = heart.head(5).astype({"ldl": float})
    rows.loc[2, "ldl"] = np.nan
    report = audit_report(explainer, explainer.explain(rows), n_cases=5)
    assert any("column 'ldl': the value is missing" in case["sentences"][0] for case in report.content["cases"])
    nothing = audit_report(explainer, explainer.explain(heart.head(0)))
    assert "None of the 0 rows was searched" in nothing.html()


def test_other_models_are_set_beside(explainer, answers, heart):
    other = ONBMACF().fit(heart, lambda rows: (rows["ldl"] > 5).astype(int)).explain(heart.head(80))
    report = audit_report(explainer, answers, others={"a rule of ldl": other}, n_cases=1)
    assert "a rule of ldl" in report.html()
    assert report.content["sections"][-1]["id"] == "beside"


def test_save_writes_by_the_suffix_whole_or_not_at_all(report, tmp_path):
    assert report.save(tmp_path / "r.html").read_text(encoding="utf-8") == report.html()
    assert report.save(tmp_path / "r.md").read_text(encoding="utf-8") == report.markdown()
    with pytest.raises(ParameterError, match=r"'\.html'.*got 'r\.pdf'"):
        report.save(tmp_path / "r.pdf")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="could not write"):
        report.save(tmp_path / "file" / "r.html")


def test_digests_tell_tables_and_models_apart(explainer, heart, tmp_path):
    other = ONBMACF().fit(heart.head(400), model)
    assert table_digest(other) != table_digest(explainer)
    assert model_digest(other) != model_digest(explainer)
    again = ONBMACF().fit(heart, model, schema=Schema.infer(heart, immutable=["age"]))
    assert (table_digest(again), model_digest(again)) == (table_digest(explainer), model_digest(explainer))
    (tmp_path / "a").write_bytes(b"abc")
    assert file_digest(tmp_path / "a").startswith("ba7816bf")


EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def test_the_committed_audit_of_titanic_states_what_must_change_and_the_gap_by_gender():
    text = (EXAMPLES / "titanic.md").read_text(encoding="utf-8")
    assert re.search(r"For \d+ of 500 rows .* a counterfactual is found only if an immutable feature changes: ", text)
    assert re.search(r"country for \d+ and gender for \d+", text)
    fact = r"[\d.]+ % of the group 'female' get the favourable decision, against [\d.]+ % of 'male'"
    assert re.search(rf"^- By gender: {fact}: a large difference of [\d.]+ percentage points ", text, flags=re.M)
    assert re.search(rf"^- \*\*gender: clear difference\.\*\* {fact}", text, flags=re.M)


def test_a_model_made_unfair_on_purpose_is_found_and_a_fair_one_is_not_accused():
    unfair, fair = ((EXAMPLES / f"{name}.md").read_text(encoding="utf-8") for name in ("unfair", "fair"))
    assert "- **sex: clear difference.**" in unfair
    did = "of the group 'Female' get the favourable decision"
    assert re.search(rf"{did}, against .* of 'Male': a large difference", unfair)
    assert "- **sex: no clear difference.**" in fair
    assert not re.search(r"^- By sex: .*: a [a-z]+ difference of ", fair, flags=re.M)
    assert "- **race: clear difference.**" in fair  # education differs by race in the table, and education decides


def test_without_a_column_or_a_target_the_first_page_says_so(explainer, answers):
    content = audit_report(explainer, answers, n_cases=1).content
    assert content["verdicts"][0]["kind"] == "not compared"
    assert any("--target" in step for step in content["next"])
    one = audit_report(explainer, answers, target="fine", by={"site": ["a"] * len(answers)}, n_cases=1).content
    assert one["verdicts"][0]["kind"] == "one group"


def test_details_are_folded_unless_full(report, explainer, answers):
    assert "<details>" in report.html()
    assert "<details open>" not in report.html()
    assert "<details>" not in audit_report(explainer, answers, full=True, n_cases=1).html()


def test_true_labels_that_are_missing_for_some_are_counted(explainer, answers, heart):
    truth = ["fine", "risk", None] * 154
    content = audit_report(explainer, answers, target="fine", by=["famhist"], truth=truth, n_cases=1).content
    (section,) = [part for part in content["sections"] if part["id"] == "burden-0"]
    (rates,) = [part for part in section["tables"] if part["caption"].startswith("How often decisions are right")]
    assert sum(int(row[2]) for row in rates["rows"]) == 154
    said = (
        "How often decisions are right is counted on 308 of 462 rows: the true labels of the others are not known, or "
        "the model was trained on them."
    )
    assert said in content["findings"]
    truth = ["fine", "risk"] * 231
    whole = audit_report(explainer, answers, target="fine", by=["famhist"], truth=truth, n_cases=1).content
    assert not any("are not known" in sentence for sentence in whole["findings"])


def test_the_committed_audit_of_heart_lists_the_most_changed_features():
    text = (EXAMPLES / "heart.md").read_text(encoding="utf-8")
    assert re.search(r"The most changed features are ldl .*, tobacco .* and \w+", text)


@pytest.mark.long
def test_a_fresh_audit_of_titanic_says_the_same(data_dir, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("ONBMACF_DATA", str(data_dir))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from titanic_network import predict, task

    explainer = ONBMACF().fit(task.table, predict, schema=task.schema)
    died = task.table[predict(task.table) == "died"].iloc[::5]
    answers = explainer.explain(died, target="survived")
    report = audit_report(explainer, answers, target="survived", by=["gender"])
    found = audit.released(answers, explainer.schema_).set_index("feature")["n_rows"]
    assert found.sum() >= 1
    said = next(finding for finding in report.content["findings"] if "immutable feature changes" in finding)
    assert all(f"{name} for {count}" in said for name, count in found.items() if count)
    gap = audit.burden_gaps(answers, "gender").set_index("measure").loc["distance"]
    assert gap["low"] <= gap["gap"] <= gap["high"]


def test_ends_of_an_interval_are_written_as_the_share_they_belong_to():
    from onbmacf.report.elements import table

    own = table("", pd.DataFrame({"share": [0.5], "low": [0.25], "high": [0.75]}))
    assert own["rows"] == [["50.0 %", "25.0 %", "75.0 %"]]
    gap = table("", pd.DataFrame({"gap": [0.5], "low": [-6.9e-18], "high": [0.75]}))
    assert gap["rows"] == [["0.5", "0", "0.75"]]


def test_what_to_look_at_next_sends_nobody_to_figures_that_are_not_there(explainer, answers):
    without = audit_report(explainer, answers, target="fine", by=["famhist"]).content["next"]
    assert not any("right equally often" in step for step in without)
    assert any(step.startswith("Give true labels") for step in without)


@pytest.fixture(scope="module")
def loans():
    """A table with dates, and with values that some rows lack."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, 120), "D"),
            "debt": np.where(rng.random(120) < 0.1, np.nan, rng.integers(10, 90, 120)),
            "sex": rng.choice(["f", "m"], 120),
        }
    )
    days = (table["since"] - pd.Timestamp("2020-01-01")).dt.days
    granted = lambda rows: np.where(  # noqa: E731
        (rows["since"] < "2021-06-01") & ~(rows["debt"] > 60), "granted", "refused"
    )
    explainer = ONBMACF().fit(table, granted, schema=Schema.infer(table, immutable=["sex"]))
    return table, explainer, explainer.explain(table, target="granted"), days


def test_ends_of_columns_are_known_values_and_sizes_of_dates_have_a_unit(loans):
    table, explainer, answers, days = loans
    content = audit_report(explainer, answers, target="granted", by=["sex"], n_actions=1).content
    values = {row[0]: row[3] for row in content["columns"]["rows"]}
    known = table["debt"].dropna()
    assert values["debt"] == f"{known.min():g} to {known.max():g}, or unknown"
    assert "unknown" not in values["since"]
    tenth = float(f"{0.1 * (days.max() - days.min()):.2g}")
    assert f"{tenth:g} days of since" in dict(content["words"])["Distance"]
    (features,) = [section for section in content["sections"] if section["id"] == "features"]
    assert "of dates, times and durations in days" in features["intro"]
    heads = {head for section in content["sections"] for table in section["tables"] for head in table["heads"]}
    assert not [head for head in heads if "_" in head]


def test_where_no_groups_are_compared_nothing_is_said_about_immutable_features(loans):
    _, explainer, answers, _ = loans
    report = audit_report(explainer, answers)
    assert report.content["verdicts"][0]["text"].startswith("No column was named to compare groups by (by=..., --by): ")
    assert "no feature is immutable" not in report.html()
    assert len(repr(report)) < 100


def test_of_many_rows_it_is_said_how_many_were_tried_with_one_feature_alone(monkeypatch, loans):
    _, explainer, answers, _ = loans
    some = audit.responsiveness
    monkeypatch.setattr(audit, "responsiveness", lambda *given, **named: some(*given, **named, most_rows=7))
    content = audit_report(explainer, answers, target="granted", n_actions=1).content
    (section,) = [section for section in content["sections"] if section["id"] == "single"]
    n_asked = int((answers.statuses != "already").sum())
    assert f"One feature alone was tried for 7 of {n_asked} rows." in section["intro"]


def test_a_case_names_its_features_as_a_sentence_does(heart):
    explainer = ONBMACF().fit(heart, lambda rows: (rows["tobacco"] < 4) & (rows["ldl"] < 4))
    content = audit_report(explainer, explainer.explain(heart, target=True)).content
    assert any("changes tobacco and ldl." in case["kind"] for case in content["cases"])


def test_a_verdict_is_told_once_and_the_largest_other_difference_beside_it():
    """Burden may differ more than decisions: the card has a sentence on each, and none twice."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"group": rng.choice(["a", "b"], 400), "size": rng.integers(0, 100, 400)})

    def model(rows):
        return np.where(rows["size"] > 55 + 15 * (rows["group"] == "b"), "risk", "fine")

    fitted = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["group"]))
    answers = fitted.explain(table[model(table) == "risk"], target="fine")
    (card,) = audit_report(fitted, answers, target="fine", by=["group"], n_cases=1).content["verdicts"]
    assert card["kind"] == "clear difference"
    assert card["text"].count("get the favourable decision") == 1
    assert "Also: the mean distance to the first counterfactual is" in card["text"]


def test_a_mean_of_one_row_is_told_without_an_interval():
    from onbmacf.report.elements import bars

    groups = {"measure": "distance", "group": ["one", "many"], "n_rows": [1, 9], "estimate": [0.4, 0.2]}
    frame = pd.DataFrame({**groups, "low": [np.nan, 0.1], "high": [np.nan, 0.3]})
    said = bars(frame, "distance", "size", 0)["description"]
    assert said == "Mean and interval: one: 0.4, n = 1; many: 0.2 (0.1 to 0.3), n = 9."
