"""A person's whole way in a real browser: with a mouse, with the keyboard alone, and without script."""

import re

import pytest

pytest.importorskip("playwright", reason="needs playwright")
pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python")

from browsing import launched

pytestmark = pytest.mark.xdist_group("chromium")
FLAGS = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
TIMEOUT = 120_000  # milliseconds; reached only where nothing happens any more
SIZES = {"1280": (1280, 900), "390": (390, 844)}


@pytest.fixture(scope="module")
def chromium():
    with launched(FLAGS) as browser:
        yield browser


class Visit:
    """A page in a window of its own; what it asks for and what it says on the console is noted."""

    def __init__(self, chromium, running, **how):
        self.base, self.asked, self.said = running.base, [], []
        self.context = chromium.new_context(accept_downloads=True, **how)
        self.context.set_default_timeout(TIMEOUT)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(f"{running.base}/?token={running.token}")
        self.page.wait_for_url(f"{running.base}/")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
        if error[0] is None:
            assert [address for address in self.asked if not address.startswith(self.base)] == []
            assert self.said == []

    def go(self, path):
        return self.page.goto(f"{self.base}{path}")

    def go_and_wait(self, path):
        """Open a page and wait for what it asks for by itself: how far the values of plans may move."""
        if "data-load=" in self.go(path).text():
            self.page.wait_for_url("**?ranges=1")

    def changed(self):
        """The features that the first plan changes."""
        return self.page.locator("#plan-0 .feature").all_inner_texts()


def walk(visit, press):
    """Open, pick a row, read the plan, lock its feature, get another, set a range, what-if, save, compare, export."""
    page = visit.page
    page.get_by_label("Search").fill("present")
    press(page.get_by_role("button", name="Find"))
    page.locator("#rows", has_text="192 of 462").wait_for()
    press(page.locator("a.row").first)
    page.wait_for_selector("#plan-0")
    first = visit.changed()
    assert first
    press(page.locator("#plan-0").get_by_role("button", name=f"Keep {first[0]}"))
    page.get_by_text(f"{first[0]} is kept").wait_for()
    assert first[0] not in visit.changed()
    press(page.locator("#wishes > summary"))
    page.get_by_label("ldl at most").fill("6.1")
    press(page.locator("#wishes").get_by_role("button", name="Show plans"))
    page.locator("input[name$='-high'][value='6.1']").wait_for()
    page.wait_for_function("document.activeElement.id === 'plans-h'")  # above the form: it is brought into view
    page.locator("#w-f1").fill("0.1")
    press(page.get_by_role("button", name="Ask the model"))
    page.locator("#what-if-said", has_text="would say").wait_for()
    press(page.locator("#save-0"))
    page.locator("#n-saved", has_text="(1)").wait_for()
    with page.expect_download() as kept:
        press(page.get_by_role("link", name="Plans as CSV"))
    assert kept.value.suggested_filename == "plans.csv"
    press(page.get_by_role("link", name="Saved", exact=False).first)
    page.wait_for_selector("table.compare")
    assert "plan 1" in page.locator("table.compare").inner_text()
    with page.expect_download() as kept:
        press(page.get_by_role("link", name="Saved plans as JSON"))
    assert kept.value.suggested_filename == "saved.json"


@pytest.mark.long  # the next goes the same way, and that without script presses with the mouse
def test_the_whole_way(chromium, running):
    with Visit(chromium, running, viewport={"width": 1280, "height": 900}) as visit:
        walk(visit, lambda place: place.click())


def test_the_whole_way_with_the_keyboard_alone(chromium, running):
    """What is pressed is reached with Tab from where the focus is."""
    with Visit(chromium, running, viewport={"width": 1280, "height": 900}) as visit:
        page = visit.page

        def press(place):
            for _ in range(400):
                if place.evaluate("one => one === document.activeElement"):
                    break
                page.keyboard.press("Tab")
            else:
                pytest.fail(f"{place} cannot be reached with Tab")
            seen = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert seen != "none"
            page.keyboard.press("Enter")

        walk(visit, press)


def test_nothing_is_lost_when_ranges_arrive(chromium, running):
    """Focus, what is open and what is typed stay, and a feature locked elsewhere is ticked in the form."""
    from commands import wait_for

    with Visit(chromium, running) as visit:
        page, held = visit.page, []
        page.route("**/case/r3?ranges=1", lambda route: held.append(route))
        visit.go("/case/r3")
        page.locator("#wishes > summary").click()
        page.get_by_label("ldl at most").fill("6.1")
        page.get_by_label("Direction of ldl").select_option("down")
        page.get_by_label("Keep typea").check()
        page.locator("#dial").fill("0.9")
        page.locator("#save-0").focus()
        save = page.locator("#save-0").element_handle()
        wait_for(lambda: (page.wait_for_timeout(20), held)[1])
        held[0].continue_()
        page.locator(".works").first.wait_for()
        assert page.evaluate("one => one === document.activeElement", save)
        assert page.get_by_label("ldl at most").input_value() == "6.1"
        assert page.get_by_label("Direction of ldl").input_value() == "down"
        assert page.get_by_label("Keep typea").is_checked()
        assert page.locator("#dial").input_value() == "0.9"
        assert page.locator("output[for=dial]").inner_text() == "0.9"
        assert page.locator("#wishes").evaluate("one => one.open")
        page.unroute("**/case/r3?ranges=1")
        feature = visit.changed()[0]
        page.locator("#plan-0").get_by_role("button", name=f"Keep {feature}").press("Enter")
        page.get_by_text(f"{feature} is kept").wait_for()
        assert page.evaluate("document.activeElement.id") == "plans-h"  # the button that was pressed is gone
        assert page.locator("table.wishes").get_by_label(f"Keep {feature}").is_checked()
        assert page.get_by_label("ldl at most").input_value() == "6.1"


def test_the_whole_way_without_script(chromium, running):
    """Playwright itself cannot evaluate anything there: what is waited for is waited for by its selector."""
    with Visit(chromium, running, java_script_enabled=False, viewport={"width": 1280, "height": 900}) as visit:
        page = visit.page
        page.get_by_label("Search").fill("present")
        page.get_by_role("button", name="Find").click()
        page.get_by_text("192 of 462 rows").wait_for()
        page.locator("a.row").first.click()
        page.locator("#plan-0").wait_for()
        first = visit.changed()
        page.locator("#plan-0").get_by_role("button", name=f"Keep {first[0]}").click()
        page.get_by_text(f"{first[0]} is kept").wait_for()
        assert first[0] not in visit.changed()
        page.get_by_role("link", name="Show how far each changed value may move").click()
        page.locator(".works").first.wait_for()
        page.locator("#wishes > summary").click()
        page.get_by_label("ldl at least").fill("6.1")
        page.locator("#wishes").get_by_role("button", name="Show plans").click()
        page.locator("#wishes > summary").click()
        assert page.get_by_label("ldl at least").input_value() == "6.1"
        page.locator("#w-f1").fill("0.1")
        page.get_by_role("button", name="Ask the model").click()
        page.locator("#what-if-said", has_text="The model would say").wait_for()
        page.locator("#save-0").click()
        page.locator("#n-saved", has_text="(1)").wait_for()
        page.get_by_role("link", name="Compare saved plans").click()
        page.locator("table.compare").wait_for()
        with page.expect_download() as kept:
            page.get_by_role("link", name="Saved plans as CSV").click()
        assert kept.value.suggested_filename == "saved.csv"


def test_what_if_follows_what_is_typed(chromium, running):
    with Visit(chromium, running) as visit:
        visit.go("/case/r0")
        page = visit.page
        page.wait_for_selector(".works")
        page.locator("#w-f1").fill("0.2")
        page.locator("#w-f2").fill("2")
        page.locator("#what-if-said", has_text="healthy").wait_for()
        assert page.evaluate("document.activeElement.id") == "w-f2"


@pytest.fixture(scope="module")
def audited(running):
    """The address of an audit that is done."""
    from commands import wait_for

    with running.client() as client:
        name = client.post("/v1/audit", json={"most": 8}).json()["id"]
        wait_for(lambda: client.get(f"/v1/audit/{name}").json()["status"] == "done")
    return f"/audit/{name}"


WRONG = ("/nothing", "/case/nobody", "/audit/none")  # pages that say what is wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_follow_what_the_reader_prefers(chromium, running, audited, scheme):
    """Of a case and of an audit: dark ground with light ink, or the other way round."""
    import io

    import numpy as np
    from PIL import Image

    with Visit(chromium, running, color_scheme=scheme) as visit:
        for path, pictures in (("/case/r0", "#drawn img"), (audited, "figure img")):
            visit.go_and_wait(path)
            visit.page.locator("details").evaluate_all("all => all.forEach(one => (one.open = true))")
            drawn = visit.page.locator(pictures).first
            drawn.scroll_into_view_if_needed()
            drawn.evaluate("one => one.complete || new Promise(done => one.addEventListener('load', done))")
            with Image.open(io.BytesIO(drawn.screenshot())) as picture:
                grey = np.asarray(picture.convert("L"))
            is_dark = np.median(grey) < 80
            assert is_dark == (scheme == "dark"), path
            assert (grey > 190).any()
            assert (grey < 80).any()


BUSY = '<main class="alone"><h1>Busy</h1><p>Too many requests are waiting.</p></main>'


@pytest.mark.parametrize("how", ["problem", "silence"])
def test_a_request_without_an_answer_takes_the_plans_of_before_away(chromium, running, how):
    with Visit(chromium, running) as visit:
        page = visit.page
        visit.go_and_wait("/case/r0")
        first = visit.changed()
        busy = lambda route: route.fulfill(status=503, content_type="text/html", body=BUSY)  # noqa: E731
        page.route("**/lock", busy if how == "problem" else lambda route: route.abort())
        page.locator("#plan-0").get_by_role("button", name=f"Keep {first[0]}").click()
        alert = page.locator("#plans").get_by_role("alert")
        alert.wait_for()
        said = "Busy: Too many requests are waiting." if how == "problem" else "The service did not answer."
        assert alert.inner_text() == f"{said} Reload the page."
        assert page.locator(".plan, #pictures img").count() == 0
        page.unroute("**/lock")
        alert.get_by_role("link").click()
        page.locator("#plan-0").wait_for()
        assert visit.changed() == first
        visit.said = [line for line in visit.said if "Failed to load resource" not in line]


def test_the_answer_of_every_request_is_shown(chromium, running):
    """Who tries a value while plans are asked for gets both answers."""
    with Visit(chromium, running) as visit:
        page = visit.page
        visit.go_and_wait("/case/r0")
        page.evaluate(
            """() => { const send = window.fetch; window.fetch = async (address, options) => {
            if (address.endsWith("/lock")) await new Promise((done) => setTimeout(done, 900));
            options.signal?.throwIfAborted(); return send(address, options); } }"""
        )
        first = visit.changed()[0]
        page.locator("#plan-0").get_by_role("button", name=f"Keep {first}").click()
        page.locator("#w-f1").fill("0.1")  # is sent by itself
        page.locator("#what-if-said", has_text="would say").wait_for()
        assert page.get_by_text(f"{first} is kept").is_visible()
        assert first not in visit.changed()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["1280", "390"])
def test_no_page_has_a_barrier(chromium, running, audited, scheme, size):
    """axe finds nothing (WCAG 2.2 AA and its good practices), and no page is wider than the window."""
    width, height = SIZES[size]
    pages = [
        "/",
        "/?q=nobody",
        "/saved",
        "/type",
        "/case/r0",
        "/case/r0/print",
        "/saved",
        "/audit",
        audited,
        "/service",
    ]
    with Visit(chromium, running, viewport={"width": width, "height": height}, color_scheme=scheme) as visit:
        for path in [*pages, "/case/r1", *WRONG]:
            visit.go_and_wait(path)
            if path == "/case/r0":
                visit.page.locator("#save-0").click()
                visit.page.locator("#wishes > summary").click()
                visit.page.locator("#n-saved", has_text="(0)").wait_for(state="detached")
            if path == audited:
                visit.page.locator("details").evaluate_all("all => all.forEach(one => (one.open = true))")
            assert_no_barrier(visit.page, width, path)
        for open_wrong in (without_plan, with_wrong_wishes, with_wrong_json):
            open_wrong(visit)
            assert_no_barrier(visit.page, width, open_wrong.__name__)
        refused = [line for line in visit.said if "status of 404" in line or "status of 422" in line]
        assert len(refused) == len(WRONG) + 2
        visit.said = [line for line in visit.said if line not in refused]  # browsers note what was refused


def test_who_has_no_token_meets_no_barrier(chromium, running):
    page = chromium.new_page()
    page.goto(running.base)
    assert page.locator("h1").inner_text() == "Not signed in"
    assert_no_barrier(page, 1280, "not signed in")
    page.close()


def without_plan(visit):
    """Keep every feature but one that does not help."""
    visit.go("/case/r0")
    page = visit.page
    page.locator("#wishes > summary").click()
    for box in page.locator("table.wishes input[name$='-lock']").all()[1:]:
        box.check()
    page.locator("#wishes").get_by_role("button", name="Show plans").click()
    page.locator("#plans-h", has_text="No plan").wait_for()


def with_wrong_wishes(visit):
    """Ask for a range that ends before it begins."""
    visit.go("/case/r3")
    page = visit.page
    page.locator("#wishes > summary").click()
    page.get_by_label("ldl at least").fill("9")
    page.get_by_label("ldl at most").fill("8")
    page.locator("#wishes").get_by_role("button", name="Show plans").click()
    page.get_by_role("alert").wait_for()
    page.wait_for_function("document.activeElement.id === 'plans-h'")


def with_wrong_json(visit):
    visit.go("/type")
    visit.page.locator("#json").fill('{"sbp": 1}')
    visit.page.get_by_role("button", name="Show plans").last.click()
    visit.page.get_by_role("alert").wait_for()


def assert_no_barrier(page, width, name):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"runOnly": TAGS, "resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in found] == [], name
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name


TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def test_targets_are_large_enough(chromium, running):
    """WCAG 2.5.8: 24 pixels, but for links within a sentence."""
    with Visit(chromium, running, viewport={"width": 390, "height": 844}) as visit:
        visit.go_and_wait("/case/r0")
        visit.page.locator("#wishes > summary").click()
        small = visit.page.evaluate(
            """() => [...document.querySelectorAll('button, input:not([type=hidden]), select, summary, nav a, a.row')]
            .filter(one => one.checkVisibility()).map(one => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
            .filter(([, box]) => box.width < 24 || box.height < 24).map(([text]) => text)"""
        )
        assert small == []


def test_long_names_and_values_are_read_on_a_telephone(chromium):
    """No page is wider than the window, and no name is broken into single letters."""
    import numpy as np
    import pandas as pd

    from commands import wait_for
    from onbmacf import ONBMACF
    from serving import serving

    name, level = "reference_of_the_applicant_with_a_rather_long_name", "permanent and full-time"
    rng = np.random.default_rng(2)
    table = pd.DataFrame({name: rng.integers(0, 9, 60), "employment": rng.choice([level, "fixed-term only"], 60)})
    model = lambda rows: np.where(rows["employment"] == level, "granted", "refused")  # noqa: E731
    refused = int(np.flatnonzero(table["employment"] != level)[0])
    with (
        serving(ONBMACF(1).fit(table, model), table, "granted") as running,
        Visit(chromium, running, viewport={"width": 390, "height": 844}) as visit,
        running.client() as client,
    ):
        audit = client.post("/v1/audit", json={"most": 4, "by": []}).json()["id"]
        wait_for(lambda: client.get(f"/v1/audit/{audit}").json()["status"] == "done")
        for path in ("/", "/type", f"/case/r{refused}/print", f"/audit/{audit}", f"/case/r{refused}"):
            visit.go_and_wait(path)
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390, path
        feature = visit.page.locator("#plan-0 .feature")
        assert feature.inner_text() == "employment"
        assert feature.bounding_box()["height"] < 30  # one line


def test_nothing_moves_where_less_motion_is_wanted(chromium, running):
    with Visit(chromium, running, reduced_motion="reduce") as visit:
        visit.go("/case/r0")
        moving = "[...document.querySelectorAll('*')].filter(one => getComputedStyle(one).transitionDuration !== '0s')"
        assert visit.page.evaluate(f"{moving}.length") == 0


def test_payloads_run_nothing(chromium):
    """Names, levels, labels and index full of markup: no script runs, nothing outside is asked."""
    import numpy as np

    from onbmacf import ONBMACF
    from payloads import PAYLOADS
    from serving import serving
    from web.test_hostile_tables import evil_table

    table = evil_table()
    model = lambda rows: np.where(rows[PAYLOADS[0]] > 0.5, PAYLOADS[1], PAYLOADS[5])  # noqa: E731
    with (
        serving(ONBMACF(2).fit(table, model), table, name=PAYLOADS[8]) as running,
        Visit(chromium, running) as visit,
    ):
        for path in ("/", "/type", "/case/r0", "/case/r0/print", "/audit", "/service", "/?q=" + PAYLOADS[0]):
            visit.go_and_wait(path)
            assert "PWNED" not in re.sub("<.*?>", "", visit.page.title())[:5]
            assert visit.page.evaluate("document.querySelectorAll('main script, main iframe, main style').length") == 0
