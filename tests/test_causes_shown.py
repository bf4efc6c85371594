"""Wherever people look at an answer, they see what to do and what follows; and audits count what would break."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Causes, Schema, audit
from onbmacf.errors import ParameterError


def bmi(rows):
    return rows["weight"] / rows["height"] ** 2


def model(rows):
    return np.where(rows["bmi"] > 26, "no", "yes")


def people():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"height": np.round(rng.normal(1.72, 0.1, 200), 2), "weight": rng.integers(50, 110, 200)})
    return table.assign(bmi=bmi(table).round(1))


TABLE = people()
CAUSES = Causes({"bmi": bmi})
SCHEMA = Schema.infer(TABLE, immutable=["height"], labels={"bmi": {"name": "body mass index"}})


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF().fit(TABLE, model, schema=SCHEMA, causes=CAUSES)


@pytest.fixture
def row():
    return TABLE[model(TABLE) == "no"].iloc[[0]]


def test_plans_say_what_follows(explainer, row):
    from onbmacf._views.plans import plan_views

    answer = explainer.explain(row, "yes")[0]
    found = answer.counterfactuals[0]
    plan = plan_views(answer, {name: str(name) for name in TABLE})[0]
    assert [change["feature"] for change in plan["changes"]] == ["weight"]
    before, after = str(found.factual["bmi"]), str(found.values["bmi"]).removesuffix(".0")
    assert plan["effects"] == [{"said": "body mass index", "before": before, "after": after}]
    assert "body mass index" in plan["even_if"]


@pytest.mark.parametrize("language, words", [("en", "body mass index, which follows"), ("es", ", que resulta de ello")])
def test_a_notice_lists_what_follows(explainer, row, language, words):
    pytest.importorskip("jinja2")
    from onbmacf.report import notice

    paper = notice(explainer, row, target="yes", language=language)
    assert words in paper.html()
    assert words in paper.markdown()
    assert paper.facts["answer"]["counterfactuals"][0]["effects"][0]["feature"] == "bmi"
    assert "bmi" not in [reason["feature"] for reason in paper.facts["reasons"]]
    assert "bmi" not in paper.facts["no_help"]


def test_the_report_and_the_plot_show_what_follows(explainer, row):
    pytest.importorskip("matplotlib")
    from onbmacf.report.elements import _changes, _in_words

    answer = explainer.explain(row, "yes", ranges=True)[0]
    found = answer.in_words().counterfactuals[0]
    assert _changes(found)["feature"].tolist() == ["weight", "body mass index (follows)"]
    assert "then body mass index from" in _in_words(found)
    ticks = [tick.get_text() for tick in answer.plot().get_yticklabels()]
    assert ticks[0] == "weight"
    assert ticks[1].endswith("(follows)")


def test_the_service_and_its_page_say_what_follows(explainer, row, tmp_path):
    for library in ("fastapi", "uvicorn", "httpx", "multipart", "prometheus_client"):
        pytest.importorskip(library)
    from serving import serving

    with (
        serving(explainer, TABLE, "yes", "people.csv", folder=tmp_path) as running,
        running.client() as client,
        running.browser() as browser,
    ):
        record = {name: float(value) for name, value in row.iloc[0].items()}
        answer = client.post("/v1/explain", json={"rows": [record]}).json()["answers"][0]
        assert answer["counterfactuals"][0]["effects"][0]["feature"] == "bmi"
        place = int(TABLE.index.get_loc(row.index[0]))
        page = browser.get(f"/case/r{place}").text
        assert "body mass index" in page
        assert '<span class="note">(follows)</span>' in page


def test_the_widget_says_what_follows(explainer, row):
    pytest.importorskip("anywidget")
    from importlib.resources import files

    widget = explainer.widget(row, "yes")
    assert widget.view["plans"][0]["effects"][0]["said"] == "body mass index"
    assert "plan.effects.map" in (files("onbmacf.widget") / "static" / "widget.js").read_text()


def test_an_audit_counts_the_answers_that_causes_would_break(explainer, row):
    rows = TABLE[model(TABLE) == "no"].iloc[:30]
    without = ONBMACF().fit(TABLE, model, schema=SCHEMA)
    answers = without.explain(rows, "yes")
    frame = audit.broken_by_causes(answers, without, CAUSES)
    assert frame["effect"].tolist() == ["bmi", "all"]
    assert frame["n_answers"].tolist() == [30, 30]
    assert frame["n_broken"].tolist() == [30, 30], "bmi alone was changed, and nobody can do that"
    assert frame["n_lost"].tolist() == [27, 27], "others change weight, too"
    assert frame["share"].tolist() == [1.0, 1.0]
    with pytest.raises(ParameterError, match="causes are needed"):
        audit.broken_by_causes(answers, without)
    kept = audit.broken_by_causes(explainer.explain(rows, "yes"), explainer)
    assert kept["n_broken"].tolist() == [0, 0]
    assert audit.broken_by_causes(answers[:0], without, CAUSES)["n_answers"].tolist() == [0, 0]


def test_actions_for_many_rows_take_their_effects_along(explainer):
    rows = TABLE[model(TABLE) == "no"]
    found = audit.actions(explainer.explain(rows, "yes"), explainer, 1)
    assert found.effectiveness > 0.9
    assert "weight" in str(found.to_frame())
    assert "bmi" not in str(found.to_frame())
