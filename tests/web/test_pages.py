"""The pages as a browser without script uses them: forms, redirects and links; they say what the library says."""

import contextlib
import csv
import datetime
import html
import io
import json
import logging
import re
import threading
import time

import numpy as np
import pandas as pd
import pytest

from commands import PATIENCE, wait_for
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._text.wording import shown
from serving import serving

CASE = "/case/r0"


@pytest.fixture
def browser(running):
    with running.browser() as found:
        yield found


def post(browser, path, page=CASE, **fields):
    """Send a form of a page; what the page already holds in it stays as it is."""
    token = re.search(r'name="csrf_token" value="(\w+)"', browser.get(page).text)[1]
    return browser.post(path, data={"csrf_token": token, **fields})


def until(event):
    """Wait, and leave the service time to work."""
    wait_for(lambda: event() or time.sleep(0.5))


def text_of(answer):
    assert answer.status_code == 200, answer.text[:3000]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.text)))


def plans_of(browser, path=CASE):
    """Return the changes that a page shows: per plan, the value after by feature."""
    document = json.loads(browser.get(f"{path}/plans.json").text)
    return [
        {change["feature"]: change["after"] for change in found["changes"]}
        for found in document["answers"][0]["counterfactuals"]
    ]


def test_a_row_is_picked_and_its_plans_are_the_librarys(browser, heart_explainer, heart):
    assert f'href="{CASE}"' in browser.get("/").text
    said = text_of(browser.get(CASE))
    assert "The model says at risk with probability 87 %" in said
    expected = heart_explainer.explain(heart.iloc[[0]], "healthy", n=3, immutable=["age"])
    assert browser.get(f"{CASE}/plans.json").text == expected.to_json(indent=1)
    for found in expected[0].counterfactuals:
        for name in found.changed:
            assert f"{name} from {shown(found.factual[name])} → to {shown(found.values[name])}" in said


def test_ranges_follow_the_plans(browser, heart_explainer, heart):
    expected = heart_explainer.explain(heart.iloc[[0]], "healthy", n=3, immutable=["age"], ranges=True)
    said = text_of(browser.get(CASE, params={"ranges": "1"}))
    for found in expected[0].counterfactuals:
        for own in found.box.values():
            assert f"works: {own}" in said


def test_search_and_pages_find_rows_without_loading_them_all():
    rng = np.random.default_rng(0)
    n_rows = 100_000
    table = pd.DataFrame({"a": rng.random(n_rows).round(6), "b": rng.integers(0, 9, n_rows)})
    table["city"] = np.where(np.arange(n_rows) == 77_777, "Ystad", "Lund")
    explainer = ONBMACF().fit(table.head(300).assign(city=["Ystad", "Lund"] * 150), lambda rows: rows["a"] > 0.5)
    with serving(explainer, table) as running, running.browser() as browser:
        first = browser.get("/")
        assert "100,000 of 100,000 rows, page 1 of 5,000" in text_of(first)
        assert len(first.content) < 20_000
        assert first.text.count("see plans") == 20
        assert "page 4,321 of 5,000" in text_of(browser.get("/", params={"page": 4321}))
        found = browser.get("/", params={"q": "ysTAD"})
        assert "1 of 100,000 rows" in text_of(found)
        assert 'href="/case/r77777"' in found.text
        assert browser.get("/case/r77777").status_code == 200
        assert "No row holds all these words" in text_of(browser.get("/", params={"q": "nowhere"}))


def test_rows_are_found_by_what_the_model_says(browser, heart_explainer):
    n_risk = int((heart_explainer.classes_[heart_explainer.labels_] == "at risk").sum())
    assert f"{n_risk} of 462 rows" in text_of(browser.get("/", params={"label": "at risk"}))


def test_a_typed_row_is_opened(browser, heart_explainer):
    values = [160, 12, 5.73, 23.11, "Present", 49, 25.3, 97.2, 60]
    said = post(browser, "/type", "/type", **{f"f{place}": str(value) for place, value in enumerate(values)})
    row = pd.DataFrame([values], columns=heart_explainer.schema_.names, index=["typed"])
    assert f"The model says {heart_explainer.explain(row)[0].label}" in text_of(said)
    assert str(said.url).split("/case/")[1] not in ("", "r0")


def test_a_pasted_row_is_opened(browser, heart):
    row = json.loads(heart.iloc[[5]].to_json(orient="records"))[0]
    for text in (json.dumps(row), json.dumps([row])):
        said = post(browser, "/paste", "/type", json=text)
        assert "Your row" in text_of(said)


def test_the_example_to_paste_is_json_as_it_stands(browser):
    shown = re.search(r"<textarea[^>]*>(.*?)</textarea>", browser.get("/type").text, re.DOTALL)[1]
    assert "Your row" in text_of(post(browser, "/paste", "/type", json=html.unescape(shown)))
    said = post(browser, "/paste", "/type", json='{"sbp":\n 1}')
    assert said.status_code == 422
    assert html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", said.text, re.DOTALL)[1]) == '{"sbp":\n 1}'


WRONG = [
    ({"f0": "tall"}, "'sbp' must be a number, got 'tall'."),
    ({"f4": "Maybe"}, "'famhist' must be one of"),
    ({"f0": "1.5"}, "whole number"),
]


@pytest.mark.parametrize("fields, words", WRONG)
def test_a_wrong_value_is_named_and_what_was_typed_stays(browser, fields, words):
    typed = {f"f{place}": "7" for place in range(9)} | {"f4": "Absent"} | fields
    said = post(browser, "/type", "/type", **typed)
    assert said.status_code == 422
    assert words in html.unescape(said.text)
    assert 'name="f1" value="7"' in said.text


def test_a_lock_gives_plans_that_keep_the_feature(browser, heart_explainer, heart):
    first = plans_of(browser)
    assert "tobacco" in first[0]
    post(browser, f"{CASE}/lock", feature="f1")
    locked = plans_of(browser)
    assert all("tobacco" not in plan for plan in locked)
    expected = heart_explainer.explain(heart.iloc[[0]], "healthy", n=3, immutable=["tobacco", "age"])
    assert [set(plan) for plan in locked] == [set(found.changed) for found in expected[0].counterfactuals]
    post(browser, f"{CASE}/lock", feature="f1", unlock="1")
    assert plans_of(browser) == first


def test_wishes_are_rules_of_the_call(browser, heart_explainer, heart):
    wishes = {"f8-lock": "on", "f1-low": "5", "f2-high": "4", "f6-direction": "down", "n": "5", "dial": "0.2"}
    said = post(browser, f"{CASE}/ask", **wishes, target="healthy")
    assert said.status_code == 200
    rules = Rules({"tobacco": Rule(low=5), "ldl": Rule(high=4), "obesity": Rule(direction="down")})
    expected = heart_explainer.explain(
        heart.iloc[[0]], "healthy", n=5, immutable=["age"], rules=rules, plausibility=0.2
    )
    assert browser.get(f"{CASE}/plans.json").text == expected.to_json(indent=1)
    for plan in plans_of(browser):
        assert plan.get("tobacco", 9) >= 5
        assert plan.get("ldl", 0) <= 4
    assert 'name="f1-low" value="5"' in said.text


def shown_plans(answer):
    return answer.text.count('class="plan"')


def test_wishes_without_an_answer_show_that_and_no_plans_and_the_old_ones_are_kept(browser):
    before = plans_of(browser)
    said = post(browser, f"{CASE}/ask", **{"f1-low": "9", "f1-high": "3"})
    assert said.status_code == 422
    assert "'tobacco': nothing is at least 9 and at most 3." in html.unescape(said.text)
    assert 'name="f1-low" value="9"' in said.text  # to be corrected
    assert (shown_plans(said), "walk.svg" in said.text) == (0, False)
    said = post(browser, f"{CASE}/ask", **{f"f{place}-lock": "on" for place in range(9)})
    assert "every feature is locked" in said.text
    assert shown_plans(said) == 0
    said = post(browser, f"{CASE}/ask", n="77")
    assert "There may be 1 to 5 plans" in said.text
    assert (said.status_code, shown_plans(said)) == (422, 0)
    assert plans_of(browser) == before
    assert shown_plans(browser.get(CASE)) == len(before)


def test_plans_that_come_too_late_are_not_those_of_before(heart):
    """503 while a kept feature is asked about: the page says so in the place of the plans."""
    late, let_go = threading.Event(), threading.Event()

    def model(rows):
        if late.is_set():
            let_go.wait(PATIENCE)
        return np.where(rows["tobacco"] + rows["ldl"] > 9, "high", "low")

    explainer = ONBMACF(read_model=False).fit(heart, model)
    with serving(explainer, heart, timeout=2.0) as running, running.browser() as browser:
        until(lambda: shown_plans(browser.get(CASE)) > 0)
        late.set()
        said = post(browser, f"{CASE}/lock", feature="f1")
        assert said.status_code == 503
        assert (shown_plans(said), "No answer within 2 s" in said.text) == (0, True)
        late.clear()
        let_go.set()
        until(lambda: post(browser, f"{CASE}/lock", feature="f1").status_code == 200)
        assert all("tobacco" not in plan for plan in plans_of(browser))


def test_levels_that_are_allowed_are_chosen(browser):
    said = post(browser, f"{CASE}/ask", **{"f4-only0": "on", "f1-lock": "on", "n": "5"})  # of famhist: Absent
    assert re.search(r'name="f4-only0" checked', said.text)
    absent = [plan["famhist"] for plan in plans_of(browser) if "famhist" in plan]
    assert absent
    assert set(absent) == {"Absent"}
    post(browser, f"{CASE}/ask", **{"f4-only1": "on", "f1-lock": "on", "n": "5"})  # Present, as it is
    assert not any("famhist" in plan for plan in plans_of(browser))


def test_the_printed_page_says_when_and_on_what_conditions(browser):
    post(browser, f"{CASE}/ask", **{"f8-lock": "on", "f1-low": "5", "f4-only0": "on", "f6-direction": "down"})
    said = text_of(browser.get(f"{CASE}/print"))
    assert datetime.date.today().isoformat() in said
    for line in ("Wanted: healthy", "Kept as they are: age", "tobacco: at least 5", "famhist: one of 'Absent'"):
        assert line in said, line
    assert "obesity: only down" in said


def test_a_way_that_is_seen_is_drawn(browser):
    assert "walk.svg" in browser.get(CASE).text
    changed = plans_of(browser)[0]
    others = [place for place, name in enumerate(["sbp", "tobacco", "ldl", "adiposity"]) if name not in changed]
    post(browser, f"{CASE}/view", x=f"f{others[0]}", y=f"f{others[1]}", plan="0")  # it does not move there
    assert "walk.svg" not in browser.get(CASE).text


def test_facts_of_a_wide_row_fold():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 9, (60, 36)), columns=[f"c{place}" for place in range(36)])
    explainer = ONBMACF().fit(table, lambda rows: rows["c0"] > 4)
    with serving(explainer, table) as running, running.browser() as browser:
        page = browser.get(CASE).text
        head = page[: page.index('id="plans"')]
        seen, folded = head.split("<details")
        assert (seen.count("<dt>"), folded.count("<dt>"), "24 more values" in folded) == (12, 24, True)
        assert "<details" not in browser.get(f"{CASE}/print").text
        assert shown_plans(browser.get(CASE)) > 0
        assert "walk.svg" not in page  # a plane in one colour with the person in it says nothing
        assert "the regions of one label each fill the whole plane" in page
        assert "front.svg" in page


def test_hard_features_come_last(browser):
    assert "tobacco" in plans_of(browser)[0]
    post(
        browser, f"{CASE}/ask", **{"f8-lock": "on", "f1-ease": "hard", "f4-ease": "easy", "n": "3", "target": "healthy"}
    )
    plans = plans_of(browser)
    assert "famhist" in plans[0]
    assert "tobacco" not in plans[0]
    assert len(plans) == 3


def test_what_if_says_what_the_model_would_say(browser, heart_explainer, heart):
    row = heart.iloc[[0]].assign(tobacco=0.5, ldl=2.0)
    fields = {f"f{place}": str(row.iloc[0, place]) for place in range(9)}
    said = text_of(post(browser, f"{CASE}/what-if", **fields))
    answer = heart_explainer.explain(row, "healthy")[0]
    assert f"The model would say {answer.label}" in said
    assert answer.status == "already"
    assert "That is what is wanted: no plan is needed." in said
    assert "The model would say" not in text_of(post(browser, f"{CASE}/what-if", **fields, reset="1"))


def test_what_if_says_which_values_are_beyond_the_known_ones_and_asks_all_the_same(browser, heart):
    fields = {f"f{place}": str(heart.iloc[0, place]) for place in range(9)}
    said = text_of(post(browser, f"{CASE}/what-if", **{**fields, "f1": "99", "f2": "0.1"}))
    assert "Outside the known range: tobacco 99 (known: 0 to 31.2)." in said
    assert "Outside the known range: ldl 0.1 (known: 0.98 to 15.33)." in said
    assert said.count("Outside the known range") == 2
    assert "The model would say" in said
    assert "Outside the known range" not in text_of(post(browser, f"{CASE}/what-if", **fields))


@pytest.fixture
def named_columns():
    """A service about columns whose names say something, and what the page asks about them."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 70, 200), "debt": rng.integers(0, 90, 200)})
    table["sex"] = rng.choice(["f", "m"], 200)
    model = lambda rows: np.where(rows["age"] + rows["debt"] + 20 * (rows["sex"] == "f") > 80, "no", "yes")  # noqa: E731
    refused = table[model(table) == "no"].reset_index(drop=True)
    with serving(ONBMACF().fit(table, model), refused, "yes") as running:
        yield running


SUGGESTION = "Going by the names of the columns, age only goes up, and sex stays as it is."


def test_what_names_suggest_is_asked_once_and_holds_for_every_row_of_the_browser(named_columns):
    with named_columns.browser() as browser, named_columns.browser() as other:
        assert SUGGESTION in text_of(browser.get(CASE))
        assert any("sex" in plan for plan in plans_of(browser))  # nothing is imposed
        browser.get("/case/r1")
        said = post(browser, f"{CASE}/suggested", keep="1")
        assert "Going by the names" not in said.text
        for path in (CASE, "/case/r1", "/case/r2"):  # open ones, and one that is opened now
            page = browser.get(path)
            assert "Going by the names" not in page.text
            assert re.search(r'name="f0-direction".*?<option value="up" selected', page.text, re.DOTALL)
            row = json.loads(browser.get(f"{path}/plans.json").text)["answers"][0]["factual"]
            plans = plans_of(browser, path)
            assert plans
            assert all(plan.get("age", 99) >= row["age"] and "sex" not in plan for plan in plans)
        assert SUGGESTION in text_of(other.get(CASE))  # another browser has not answered


def test_what_names_suggest_can_be_turned_down_and_is_not_asked_again(named_columns):
    with named_columns.browser() as browser:
        before = plans_of(browser)
        assert "Going by the names" not in post(browser, f"{CASE}/suggested").text
        assert plans_of(browser) == before
        assert "Going by the names" not in browser.get("/case/r1").text


def test_what_a_person_said_before_goes_before_what_names_suggest(named_columns):
    with named_columns.browser() as browser:
        post(browser, f"{CASE}/ask", **{"f0-direction": "down"})
        page = post(browser, f"{CASE}/suggested", keep="1").text
        assert re.search(r'name="f0-direction".*?<option value="down" selected', page, re.DOTALL)
        assert re.search(r'name="f2-lock"[^>]* checked', page)


def test_nothing_is_asked_where_names_suggest_nothing(browser):
    assert "Going by the names" not in browser.get(CASE).text


def test_plans_are_saved_compared_exported_and_removed(browser):
    for place in (0, 1):
        post(browser, f"{CASE}/save", plan=str(place))
    page = browser.get("/saved")
    assert "Row 0, plan 1" in text_of(page)
    assert "Row 0, plan 2" in text_of(page)
    document = browser.get("/saved.json").json()
    assert len(document["answers"]) == 2
    assert [len(answer["counterfactuals"]) for answer in document["answers"]] == [1, 1]
    lines = list(csv.DictReader(io.StringIO(browser.get("/saved.csv").text)))
    assert [line["plan"] for line in lines] == ["Row 0, plan 1", "Row 0, plan 2"]
    plan = re.search(r'name="plan" value="([^"]+)"', page.text)[1]
    assert "plan 1" not in text_of(post(browser, "/saved/remove", "/saved", plan=plan)).replace("plan 1</", "")
    assert browser.get(f"{CASE}/save").status_code == 405
    assert post(browser, f"{CASE}/save", plan="9").status_code == 404


def test_saved_plans_are_of_one_browser(running, browser):
    post(browser, f"{CASE}/save", plan="0")
    with running.browser() as other:
        assert "Nothing is saved yet" in text_of(other.get("/saved"))


def test_plans_can_be_taken_away(browser):
    lines = list(csv.DictReader(io.StringIO(browser.get(f"{CASE}/plans.csv").text)))
    assert len(lines) == len(plans_of(browser)) == 3
    assert "attachment" in browser.get(f"{CASE}/plans.csv").headers["content-disposition"]
    assert "Plan 3" in text_of(browser.get(f"{CASE}/print"))


def test_pictures_are_drawn(browser):
    for name in ("walk", "front"):
        drawn = browser.get(f"{CASE}/{name}.svg")
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert "<svg" in drawn.text
        assert len(drawn.text) > 5_000
    post(browser, f"{CASE}/view", x="f0", y="f7", plan="1")
    assert ">alcohol<" in browser.get(f"{CASE}/walk.svg").text
    assert post(browser, f"{CASE}/view", x="f4", y="f7", plan="1").status_code == 404


def test_a_row_without_a_plan_says_what_stands_in_the_way(browser, heart_explainer, heart):
    held = [name for name in heart.columns if name != "alcohol"]
    fields = {f"f{place}-lock": "on" for place, name in enumerate(heart.columns) if name in held}
    said = text_of(post(browser, f"{CASE}/ask", **fields, target="healthy"))
    answer = heart_explainer.explain(heart.iloc[[0]], "healthy", n=3, immutable=held)[0]
    assert not answer.counterfactuals
    assert answer.reason in said
    for need in answer.would_need:
        assert need in said
    assert answer.would_need


def test_a_row_that_has_the_label_already_says_so(browser, heart_explainer):
    healthy = int(np.flatnonzero(heart_explainer.classes_[heart_explainer.labels_] == "healthy")[0])
    assert "The model says 'healthy' already." in text_of(browser.get(f"/case/r{healthy}"))


def test_an_audit_runs_in_the_background_and_can_be_browsed(browser, client, heart_explainer):
    page = post(browser, "/audit", "/audit", target="healthy", most="24", **{"f4-by": "on"})
    address = str(page.url.path)
    until(lambda: 'id="progress"' not in browser.get(address).text)
    page = browser.get(address)
    said = text_of(page)
    assert "Audit of 24 rows" in said
    cases = re.findall(r'href="/case/r(\d+)"', page.text)
    assert len(cases) == 20
    labels = heart_explainer.classes_[heart_explainer.labels_]
    assert {labels[int(place)] for place in cases} == {"at risk"}
    some = browser.get(address, params={"feature": "f1"}).text
    assert 0 < some.count(": see plans") <= 20
    assert "tobacco: " in some
    picture = re.search(rf'src="({address}/picture/\w+\.svg)"', page.text)[1]
    assert browser.get(picture).headers["content-type"] == "image/svg+xml"
    report = browser.get(f"{address}/report.html")
    assert report.text.startswith("<!DOCTYPE html>")
    assert "attachment" in report.headers["content-disposition"]
    name = address.split("/")[-1]
    state = client.get(f"/v1/audit/{name}").json()
    assert (state["status"], state["n_done"], state["n_rows"]) == ("done", 24, 24)
    assert state["findings"]
    assert client.get(f"/v1/audit/{name}/report").text == report.text


def test_the_report_of_an_audit_is_the_librarys(client, heart_explainer, heart):
    from onbmacf.report import audit_report

    name = client.post("/v1/audit", json={"most": 10, "by": ["famhist"]}).json()["id"]
    until(lambda: client.get(f"/v1/audit/{name}").json()["status"] != "running")
    labels = heart_explainer.classes_[heart_explainer.labels_]
    places = np.sort(np.random.default_rng(0).choice(np.flatnonzero(labels == "at risk"), 10, replace=False))
    answers = heart_explainer.explain(heart.iloc[places], "healthy")
    expected = audit_report(heart_explainer, answers, target="healthy", by=["famhist"]).content["findings"]
    assert client.get(f"/v1/audit/{name}").json()["findings"] == [str(one) for one in expected]


def test_an_audit_can_be_cancelled_and_only_one_runs(heart, tmp_path):
    import threading

    hold = threading.Event()

    def model(rows):
        wait_for(lambda: not hold.is_set())
        return np.where(rows["age"] > 40, "old", "young")

    explainer = ONBMACF().fit(heart, model)
    with serving(explainer, heart, "young", folder=tmp_path) as running, running.client() as client:
        hold.set()
        name = client.post("/v1/audit", json={"most": 40}).json()["id"]
        refused = client.post("/v1/audit", json={"most": 40})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
        assert client.get(f"/v1/audit/{name}/report").status_code == 409
        assert client.delete(f"/v1/audit/{name}").json()["status"] == "cancelled"
        hold.clear()
        assert client.post("/v1/audit", json={"most": 5}).status_code == 202
        assert client.get(f"/v1/audit/{name}").json()["n_done"] <= 8


def test_two_services_on_one_table_agree_about_an_audit(heart, tmp_path):
    """One runs it; both say how far it is, and either can cancel it."""
    import threading

    hold = threading.Event()

    def model(rows):
        wait_for(lambda: not hold.is_set())
        return np.where(rows["age"] > 40, "old", "young")

    explainer = ONBMACF().fit(heart, model)
    with (
        serving(explainer, heart, "young", folder=tmp_path) as first,
        serving(explainer, heart, "young", folder=tmp_path) as second,
        first.client() as client,
        second.client() as other,
        contextlib.ExitStack() as at_the_end,
    ):
        at_the_end.callback(hold.clear)
        hold.set()
        name = client.post("/v1/audit", json={"most": 40, "by": []}).json()["id"]
        assert other.get(f"/v1/audit/{name}").json()["status"] == "running"
        assert other.post("/v1/audit", json={"most": 40}).status_code == 429
        assert [list(one.service().jobs.tasks) for one in (first, second)] == [[name], []]
        with serving(explainer, heart, "young", folder=tmp_path) as third, third.client() as late:
            assert late.get(f"/v1/audit/{name}").json()["status"] == "running"
            assert not third.service().jobs.tasks
            assert other.delete(f"/v1/audit/{name}").json()["status"] == "cancelled"
            for one in (client, other, late):
                assert one.get(f"/v1/audit/{name}").json()["status"] == "cancelled"
            hold.clear()
            wait_for(lambda: not first.service().jobs.tasks)
            states = [one.get(f"/v1/audit/{name}").json() for one in (client, other, late)]
            assert states == states[:1] * 3
            assert states[0]["n_done"] <= 8


def test_an_audit_whose_service_has_ended_goes_on_in_another(heart, tmp_path):
    explainer = ONBMACF().fit(heart, lambda rows: np.where(rows["age"] > 40, "old", "young"))
    with serving(explainer, heart, "young", folder=tmp_path) as other, other.client() as client:
        with serving(explainer, heart, "young", folder=tmp_path) as first, first.client() as asking:
            name = asking.post("/v1/audit", json={"most": 200, "by": []}).json()["id"]
        until(lambda: client.get(f"/v1/audit/{name}").json()["status"] != "running")
        assert client.get(f"/v1/audit/{name}").json()["status"] == "done"


def test_an_audit_that_cannot_be_kept_is_told_at_the_start_and_when_asked_for(heart_explainer, heart, tmp_path, caplog):
    caplog.set_level("WARNING")
    logging.getLogger("onbmacf.web").propagate = True
    (tmp_path / "file").touch()
    with serving(heart_explainer, heart, "healthy", folder=tmp_path / "file") as running:
        assert "audits cannot be kept in" in caplog.text
        with running.client() as client:
            said = client.post("/v1/audit", json={"most": 10})
            assert (said.status_code, said.json()["title"]) == (507, "Store error")
            assert said.json()["detail"].endswith("Not a directory. Start the service with another --folder.")
            assert client.get("/v1/schema").status_code == 200
        with running.browser() as browser:
            page = post(browser, "/audit", "/audit", most="10")
            assert page.status_code == 422
            assert "Start the service with another --folder." in page.text
    assert [record for record in caplog.records if record.levelno > logging.WARNING] == []


@pytest.mark.parametrize(
    "body, status", [({"most": 0}, 422), ({"by": ["x"]}, 422), ({"target": "ill"}, 422), ({"more": 1}, 422)]
)
def test_a_wrong_audit_is_a_problem(client, body, status):
    assert client.post("/v1/audit", json=body).status_code == status


def test_missing_values_are_shown_typed_and_tried():
    """An empty field is an unknown value, where the table has such."""
    table = pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0] * 10, "k": ["a", None, "b", "c"] * 10, "y": range(40)})
    model = lambda rows: np.where(rows["x"].isna() | (rows["y"] > 30), "yes", "no")  # noqa: E731
    explainer = ONBMACF(2).fit(table, model)
    with serving(explainer, table) as running, running.browser() as browser:
        page = browser.get("/case/r2").text
        assert re.search(r"<dt>x</dt><dd>unknown</dd>", page)
        assert "The model says yes" in re.sub(r"\s+", " ", re.sub(r"<.*?>", "", page))
        said = text_of(post(browser, "/case/r1/what-if", "/case/r1", f0="", f1="", f2="1"))
        assert "The model would say yes" in said
        assert 'placeholder="1"' in page  # the smallest known value
        said = text_of(post(browser, "/case/r2/what-if", "/case/r2", f0="3", f1="a", f2="1"))
        assert "The model would say no" in said
        said = post(browser, "/type", "/type", f0="", f1="", f2="")
        assert said.status_code == 422
        assert "'y' must be a number, got ''" in html.unescape(said.text)


def test_of_hundreds_of_levels_the_form_names_a_few_so_that_the_rest_of_it_is_in_reach():
    table = pd.DataFrame({"name": [f"person {place}" for place in range(200)], "x": np.arange(200) % 40})
    explainer = ONBMACF().fit(table, lambda rows: rows["x"] > 20)
    with serving(explainer, table) as running, running.browser() as browser:
        page = browser.get(CASE).text
    form = html.unescape(page[page.index('<table class="wishes">') : page.index('id="dial"')])
    assert "person 104 and 192 others</td>" in form
    assert "person 99" not in form


def test_a_table_of_seventy_columns_of_which_one_may_change_has_its_pages():
    values = np.random.default_rng(0).integers(0, 7, (40, 70))
    table = pd.DataFrame(values, columns=[f"c{at}" for at in range(70)])
    schema = Schema.infer(table, immutable=[f"c{at}" for at in range(1, 70)])
    explainer = ONBMACF().fit(table, lambda rows: rows["c0"] > 3, schema=schema)
    row = int(np.flatnonzero(table["c0"] <= 3)[0])
    with serving(explainer, table) as running, running.browser() as browser:
        page = browser.get(f"/case/r{row}")
        plans = browser.get(f"/case/r{row}/plans.json").json()["answers"][0]
    assert page.status_code == 200
    assert plans["status"] == "found"
    assert plans["counterfactuals"]
