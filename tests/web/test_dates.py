"""Columns of dates and the like on the pages: date inputs with dates in them, also for ranges, typed and tried."""

import html
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Schema
from serving import serving
from web.test_browser import Visit, chromium  # noqa: F401
from web.test_pages import plans_of, post, text_of

N = 60
PLACE = np.arange(N)
TABLE = pd.DataFrame(
    {
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(PLACE * 3, "D"),
        "seen": (pd.Timestamp("2024-01-01 05:00") + pd.to_timedelta(PLACE * 601, "s")).tz_localize("Europe/Berlin"),
        "wait": pd.to_timedelta(PLACE % 7, "h"),
        "month": pd.period_range("2020-01", periods=N, freq="M"),
        "fee": PLACE % 5 / 2,
    }
)
RULES = {"features": {"since": {"low": "2024-01-04"}}}


def model(rows):
    return np.where(rows["since"] > pd.Timestamp("2024-03-01"), "late", "early")


@pytest.fixture(scope="module")
def dated():
    explainer = ONBMACF(2).fit(TABLE, model, schema=Schema.infer(TABLE, rules=RULES))
    with serving(explainer, TABLE, name="dates.parquet") as running:
        yield running


@pytest.fixture
def browser(dated):
    with dated.browser() as found:
        yield found


def inputs(page):
    """Return type and value of each input of a page, by its name."""
    found = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in re.findall(r"<input [^>]*>", page)]
    return {one["name"]: (one["type"], one.get("value", "")) for one in found if "name" in one}


def test_the_example_for_programs_can_be_sent_as_it_is(browser, dated):
    command = re.search(r"<code>(curl .*?)</code>", browser.get("/service").text, flags=re.S)[1]
    body = shlex.split(html.unescape(command))[-1]
    assert '"since": "2024-01-01", "seen": "2024-01-01 05:00:00+01:00"' in body
    with dated.client() as program:
        (answer,) = program.post("/v1/explain", content=body).json()["answers"]
    assert (answer["status"], answer["label"]) == ("found", "early")


def test_each_kind_has_its_input_with_its_value_in_it(browser):
    page = browser.get("/case/r7").text
    expected = {
        "f0": ("date", "2024-01-22"),
        "f1": ("datetime-local", "2024-01-01T06:10:07"),
        "f2": ("text", "0 days"),
        "f3": ("text", "2020-08"),
        "f4": ("number", "1"),
    }
    found = inputs(page)
    assert {name: found[name] for name in expected} == expected
    assert {name: found[f"{name}-low"][0] for name in expected} == {name: kind for name, (kind, _) in expected.items()}
    assert "known: 2024-01-01 to 2024-06-26" in text_of(browser.get("/type"))


def test_wished_ranges_are_dates_and_narrow_the_rules(browser):
    wishes = {"f0-low": "2024-01-02", "f0-high": "2024-01-10", "f1-lock": "on", "f2-lock": "on", "f3-lock": "on"}
    said = post(browser, "/case/r50/ask", "/case/r50", **wishes, n="2")
    assert inputs(said.text)["f0-high"] == ("date", "2024-01-10")
    plans = plans_of(browser, "/case/r50")
    assert plans
    assert all("2024-01-04" <= plan["since"][:10] <= "2024-01-10" for plan in plans)
    said = post(browser, "/case/r50/ask", "/case/r50", **{"f0-low": "2024-02-03", "f0-high": "2024-02-01"})
    assert "nothing is at least 2024-02-03 and at most 2024-02-01" in html.unescape(said.text)
    said = post(browser, "/case/r50/ask", "/case/r50", **{"f0-low": "19000"})
    assert "'since' must be a date or a time such as '2024-05-31'" in html.unescape(said.text)


def test_dates_may_be_easy_or_hard_to_change(browser):
    kept = {f"f{place}-lock": "on" for place in (2, 3, 4)}
    for ease in ("easy", "hard"):
        said = post(browser, "/case/r50/ask", "/case/r50", **kept, **{"f0-ease": ease, "n": "2"})
        assert said.status_code == 200
        assert plans_of(browser, "/case/r50")


def test_dates_are_typed_tried_and_pasted(browser):
    values = {"f0": "2024-05-05", "f1": "2024-01-01T06:10", "f2": "90min", "f3": "2021-03", "f4": "1"}
    assert "The model says late" in text_of(post(browser, "/type", "/type", **values))
    said = text_of(post(browser, "/case/r50/what-if", "/case/r50", **{**values, "f0": "2024-01-05"}))
    assert "The model would say early" in said
    said = post(browser, "/type", "/type", **{**values, "f0": "soon", "f2": "90"})
    assert "'since' must be a date or a time such as '2024-05-31'" in html.unescape(said.text)
    example = html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", browser.get("/type").text, re.S)[1])
    assert '"since": "2024-01-01"' in example
    assert "The model says early" in text_of(post(browser, "/paste", "/type", json=example))


def test_the_service_takes_rules_and_rows_with_dates(dated):
    row = {"since": "2024-05-05", "seen": "2024-01-01T06:10:00+01:00", "wait": "2h", "month": "2021-03", "fee": 1}
    rules = {"features": {"since": {"high": "2024-02-02", "step": "7D"}}}
    with dated.client() as client:
        answer = client.post("/v1/explain", json={"rows": row, "rules": rules}).json()["answers"][0]
        assert answer["status"] == "found"
        assert all(found["values"]["since"][:10] <= "2024-02-02" for found in answer["counterfactuals"])
        said = client.post("/v1/explain", json={"rows": row, "rules": {"features": {"since": {"low": 5}}}})
        assert "rule for 'since': low must be a date or a time" in said.json()["detail"]
        since, seen = client.get("/v1/schema").json()["features"][:2]
        assert (since["kind"], since["holds"], since["rule"]) == ("integer", "date", "no earlier than 2024-01-04")
        assert (since["low"], since["high"], seen["holds"]) == ("2024-01-01", "2024-06-26", "time")


@pytest.mark.xdist_group("chromium")
def test_a_browser_shows_the_dates_and_sends_them(chromium, dated):  # noqa: F811
    with Visit(chromium, dated) as visit:
        visit.go("/case/r50")
        page = visit.page
        assert page.locator("#w-f0").input_value() == "2024-05-30"
        assert page.locator("#w-f1").input_value() == "2024-01-01T13:20:50"
        page.locator("#w-f0").fill("2024-01-09")
        page.locator("#what-if-said", has_text="The model would say early").wait_for()
        page.locator("#wishes > summary").click()
        page.get_by_label("since at most").fill("2024-02-10")
        page.locator("#wishes").get_by_role("button", name="Show plans").click()
        page.locator("input[name='f0-high'][value='2024-02-10']").wait_for()
