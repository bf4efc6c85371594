"""The widget: what is set on either side is answered, in Python alone and with its script in a real browser."""

import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("anywidget", reason="needs the extra 'widget'")

from browsing import launched
from onbmacf import ONBMACF, Schema
from onbmacf.errors import ParameterError, RowsError
from onbmacf.widget import person_widget

TRAITS = ("view", "locked", "tried", "answered", "error")


def table():
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "dose": random.integers(0, 40, 120),
            "age": random.integers(20, 70, 120),
            "rate": random.normal(5, 2, 120).round(1),
            "town": random.choice(["A", "B", "C"], 120),
        }
    )


class Scores:
    """A model that says how sure it is."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        score = rows["dose"] / 20 + rows["rate"].fillna(0) / 5 + (rows["town"] == "A") - rows["age"] / 100 - 2
        share = 1 / (1 + np.exp(-score.to_numpy(dtype=float)))
        return np.column_stack([1 - share, share])

    def predict(self, rows):
        return self.classes_[(self.predict_proba(rows)[:, 1] > 0.5).astype(int)]


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF().fit(table(), Scores(), schema=Schema.infer(table(), immutable=["age"]))


@pytest.fixture
def row():
    return table()[Scores().predict(table()) == "no"].iloc[[0]]


@pytest.fixture
def widget(explainer, row):
    return explainer.widget(row, "yes")


def changed(widget):
    return {change["feature"] for plan in widget.view["plans"] for change in plan["changes"]}


def test_it_shows_what_explain_answers(explainer, row, widget):
    [answer] = explainer.explain(row, "yes", n=3, ranges=True)
    assert widget.answer.to_dict() == answer.to_dict()
    assert widget.view["label"] == "no"
    assert widget.view["probability"] == f"{100 * Scores().predict_proba(row)[0, 0]:.0f} %"
    assert [[c["feature"] for c in plan["changes"]] for plan in widget.view["plans"]] == [
        list(found.changed) for found in answer.counterfactuals
    ]
    assert all(change["range"] for plan in widget.view["plans"] for change in plan["changes"])
    assert widget.locked == ["age"]
    json.dumps({name: getattr(widget, name) for name in TRAITS})


def test_an_explanation_in_hand_shows_its_row_with_what_it_was_asked(explainer, row):
    [answer] = explainer.explain(row, "yes", n=2, ranges=True)
    shown = answer.widget(explainer)
    assert shown.view == explainer.widget(row, ["yes"]).view
    assert answer.widget(explainer, n=2).answer.to_dict() == answer.to_dict()
    assert len(explainer.explain(row, "yes", n=5)[0].widget(explainer).view["plans"]) > len(shown.view["plans"])
    assert answer.widget(explainer, "no").view["reason"] == explainer.explain(row, "no")[0].reason
    [already] = explainer.explain(row, "no")
    assert already.widget(explainer).answer.status == already.status == "already"


def test_without_its_explainer_an_explanation_says_what_to_pass(explainer, row):
    [answer] = explainer.explain(row, "yes")
    with pytest.raises(
        ParameterError, match=r"pass the explainer that gave it, as in explanation.widget\(explainer\)\."
    ):
        answer.widget()
    with pytest.raises(ParameterError, match=r"explanation.widget\(explainer\), got Scores"):
        answer.widget(Scores())


def test_a_feature_that_is_kept_gives_other_plans(explainer, row, widget):
    [first, *_] = changed(widget)
    widget.locked = [*widget.locked, first]
    assert changed(widget)
    assert not {first, "age"} & changed(widget)
    vary = [name for name in row.columns if name not in ("age", first)]
    assert widget.answer.to_dict() == explainer.explain(row, "yes", n=3, vary=vary, ranges=True)[0].to_dict()
    widget.locked = []
    assert widget.answer.to_dict() == explainer.explain(row, "yes", n=3, immutable=[], ranges=True)[0].to_dict()


def test_values_that_are_tried_are_answered(row, widget):
    widget.tried = {"dose": "39", "town": "A", "rate": "8"}
    asked = row.assign(dose=39, town="A", rate=8.0)
    assert widget.answered["label"] == Scores().predict(asked)[0] == "yes"
    assert widget.answered["probability"] == f"{100 * Scores().predict_proba(asked)[0, 1]:.0f} %"
    assert widget.answered["plans"] == []
    assert widget.answered["reason"] == "That is what is wanted: no plan is needed."
    widget.tried = {"dose": "1"}
    assert (widget.answered["label"], len(widget.answered["plans"])) == ("no", 1)
    assert not {"age"} & {change["feature"] for change in widget.answered["plans"][0]["changes"]}
    widget.tried = {}
    assert widget.answered == {}


def test_values_beyond_the_known_ones_are_said_to_be(widget):
    first = widget.view["fields"][0]
    widget.tried = {first["name"]: "1e6"}
    assert f"Outside the known range: {first['said']} 1000000 (known: " in widget.answered["outside"][0]
    widget.tried = {first["name"]: first["low"]}
    assert widget.answered["outside"] == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dose": "x"}, "'dose' must be a number, got 'x'"),
        ({"dose": "1.5"}, "whole"),
        ({"town": "Z"}, "'town' must be one of 'A', 'B', 'C', got 'Z'"),
        ({"sise": "1"}, "'sise' is not a feature"),
    ],
)
def test_a_fault_is_a_sentence_and_the_rest_stays(widget, values, words):
    before = widget.view
    widget.tried = values
    assert words in widget.answered["reason"]
    assert widget.view == before


def test_wishes_that_cannot_be_fulfilled_are_a_sentence(widget):
    before = widget.view
    widget.locked = ["dose", "age", "rate", "town"]
    assert "every feature is kept" in widget.error
    assert widget.view == before
    widget.locked = ["age"]
    assert widget.error == ""


def test_what_cannot_be_a_widget_is_an_error(explainer):
    with pytest.raises(RowsError, match="a widget shows one row, got 2"):
        explainer.widget(table().iloc[:2])
    with pytest.raises(ParameterError, match="from 1 to 5 plans, got 6"):
        explainer.widget(table().iloc[[0]], n=6)
    with pytest.raises(ParameterError, match="not fitted"):
        ONBMACF().widget(table().iloc[[0]])


def test_a_missing_value_is_shown_tried_and_left(row):
    lacking = table()
    lacking.loc[::5, "rate"] = np.nan
    lacking.loc[::7, "town"] = None
    row = lacking[lacking["rate"].isna()].iloc[[0]]
    widget = ONBMACF().fit(lacking, Scores()).widget(row)
    rate = next(field for field in widget.view["fields"] if field["name"] == "rate")
    assert (rate["value"], rate["may_lack"]) == ("", True)
    widget.tried = {"dose": "39"}
    assert widget.answered["label"] == Scores().predict(row.assign(dose=39))[0]
    widget.tried = {"rate": "9", "town": ""}
    assert widget.answered["label"] == Scores().predict(row.assign(rate=9.0, town=None))[0]


def test_a_notebook_gets_a_view_of_it_with_script_and_style_from_the_package(widget):
    bundle = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in (bundle[0] if isinstance(bundle, tuple) else bundle)
    state = widget.get_state()
    assert state["_esm"] == (files("onbmacf.widget") / "static" / "widget.js").read_text("utf-8")
    assert ".plans {" in state["_css"]
    assert ":root" not in state["_css"]
    assert "http" not in state["_esm"] + state["_css"]


HOST = """<!doctype html><html lang="en"><head><title>host</title><style>%s</style></head>
<body><main><h1>Notebook</h1><h2>Cell</h2>
<div id="cell"></div></main><script type="module">%s
const state = %s, heard = {};
window.model = {
  get: (name) => state[name],
  set: (name, value) => { (model.changed ||= {})[name] = value; state[name] = value; },
  on: (event, call) => (heard[event] ||= new Set()).add(call),
  off: (event, call) => heard[event].delete(call),
  async save_changes() {
    const changed = model.changed; model.changed = {};
    for (const name of Object.keys(changed)) for (const call of heard[`change:${name}`] || []) call();
    for (const [name, value] of Object.entries(await window.kernel(changed))) {
      if (JSON.stringify(state[name]) === JSON.stringify(value)) continue;
      state[name] = value;
      for (const call of heard[`change:${name}`] || []) call();
    }
  },
};
window.shownWidget = shownWidget;
shownWidget.render({ model, el: document.getElementById("cell") });
</script></body></html>"""


@pytest.fixture(scope="module")
def chromium():
    with launched() as browser:
        yield browser


def opened(chromium, widget, **how):
    """A page that stands for a notebook: it holds the traits and hands changes to the real widget, as a kernel does."""
    context = chromium.new_context(**how)
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))

    def kernel(changed):
        for name, value in changed.items():
            setattr(widget, name, value)
        return {name: getattr(widget, name) for name in TRAITS}

    page.expose_function("kernel", kernel)
    state = json.dumps({name: getattr(widget, name) for name in TRAITS}).replace("</", "<\\/")
    script = widget._esm.replace("export default", "const shownWidget =")
    page.set_content(HOST % (widget._css, script, state))
    page.wait_for_selector(".onbmacf-person")
    return page


@pytest.mark.xdist_group("chromium")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 390)])
def test_the_script_in_a_browser_with_the_keyboard_alone(chromium, widget, scheme, width):
    page = opened(chromium, widget, color_scheme=scheme, viewport={"width": width, "height": 900})
    first = page.locator(".plan").first.locator(".feature").first.inner_text()
    page.locator("h1").evaluate("one => { one.tabIndex = -1; one.focus(); }")
    button = page.get_by_role("button", name=f"Keep {first}").first
    reach(page, button)
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name=first).and_(page.locator(":checked")).wait_for()
    page.wait_for_function(
        "name => ![...document.querySelectorAll('.plan .feature')].some(one => one.textContent === name)", arg=first
    )
    assert page.evaluate("document.activeElement.tagName") == "H4"  # the button that was pressed is gone
    assert first in widget.locked
    reach(page, page.get_by_label("dose", exact=True).and_(page.locator("input[type=number]")))
    page.keyboard.press("Control+a")
    page.keyboard.type("39")
    page.locator("[aria-live]", has_text="The model would say").wait_for()
    assert widget.tried == {"dose": "39"}
    assert page.locator("[aria-live]").inner_text().startswith(f"The model would say {widget.answered['label']}")
    box = page.get_by_role("checkbox", name=first)
    reach(page, box)
    page.keyboard.press("Space")
    page.wait_for_function(
        "name => [...document.querySelectorAll('.plan .feature')].some(one => one.textContent === name)", arg=first
    )
    assert page.get_by_label("dose", exact=True).and_(page.locator("input[type=number]")).input_value() == "39"
    reach(page, page.get_by_role("button", name="Start again"))
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('[aria-live]').textContent === ''")
    assert widget.tried == {}
    assert_accessible(page, width)
    assert page.said == []
    page.context.close()


def reach(page, place):
    """Tab until a place has the focus."""
    for _ in range(80):
        if place.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"{place} cannot be reached with Tab")


def assert_accessible(page, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.xdist_group("chromium")
def test_it_is_dark_where_the_notebook_is_and_keeps_the_focus_in_a_shadow_root(chromium, widget):
    """The system prefers light; the notebook has a theme of its own, which changes while the widget is shown."""
    page = opened(chromium, widget, color_scheme="light")
    assert ground(page) == "rgb(255, 255, 255)"
    page.evaluate("document.body.style.background = 'oklch(0.2 0.02 260)'")
    page.wait_for_function(f"({GROUND}) === 'rgb(21, 24, 28)'")
    page.evaluate(
        """() => {
        const root = document.getElementById('cell').attachShadow({ mode: 'open' });
        root.append(document.querySelector('style').cloneNode(true));
        const el = root.appendChild(document.createElement('div'));
        shownWidget.render({ model, el });
        }"""
    )
    page.get_by_role("button", name="Keep").first.press("Enter")
    page.wait_for_function("document.getElementById('cell').shadowRoot.activeElement?.tagName === 'H4'")
    page.context.close()


GROUND = "getComputedStyle(document.querySelector('.onbmacf-person')).backgroundColor"


def ground(page):
    return page.evaluate(GROUND)


@pytest.mark.xdist_group("chromium")
def test_names_and_levels_full_of_markup_are_text(chromium):
    from payloads import PAYLOADS

    name, level = PAYLOADS[0], PAYLOADS[1]
    evil = pd.DataFrame({name: np.arange(40), "k": [level, "b"] * 20})
    explainer = ONBMACF().fit(evil, lambda rows: np.where(rows[name] > 20, PAYLOADS[2], "no"))
    page = opened(chromium, explainer.widget(evil.iloc[[0]]))
    assert page.locator(".onbmacf-person :is(script, img, iframe, svg)").count() == 0
    assert page.said == []
    page.context.close()


def test_without_the_extra_the_error_names_it(monkeypatch, explainer):
    import sys

    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "onbmacf.widget.live", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'onbmacf\[widget\]'"):
        person_widget(explainer, table().iloc[[0]])


@pytest.mark.xdist_group("chromium")
def test_a_date_has_a_date_input(chromium):
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60) * 3, "D")
    rows = pd.DataFrame({"since": days, "fee": np.arange(60) % 5 / 2})
    explainer = ONBMACF().fit(rows, lambda rows: np.where(rows["since"] > "2024-03-01", "late", "early"))
    widget = person_widget(explainer, rows.iloc[[50]])
    page = opened(chromium, widget)
    control = page.locator("input[type=date]")
    assert control.input_value() == "2024-05-30"
    control.fill("2024-01-09")
    page.locator("[aria-live]", has_text="The model would say early").wait_for()
    assert widget.tried == {"since": "2024-01-09"}
    assert page.said == []
