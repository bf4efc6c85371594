"""One style for pages, reports, notices and the widget, in files and in a real browser."""

import re
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("jinja2", reason="needs the extra 'report'")

from browsing import launched
from onbmacf import ONBMACF, Schema
from onbmacf._views.style import style
from onbmacf.report import audit_report, notice

COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(")
DARK = 80  # of 255: the brightest that a dark ground may be


@pytest.fixture(scope="module")
def written():
    """A report and a notice, as HTML."""
    random = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "dose": random.integers(0, 40, 80),
            "age": random.integers(20, 70, 80),
            "town": random.choice(["A", "B"], 80),
        }
    )
    model = lambda rows: np.where(rows["dose"] + 10 * (rows["town"] == "A") > 25, "yes", "no")  # noqa: E731
    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table, immutable=["age"]))
    refused = table[model(table) == "no"]
    report = audit_report(explainer, explainer.explain(refused.head(8), "yes"), target="yes", by=["town"])
    return {"report": report.html(), "notice": notice(explainer, refused.iloc[[0]], target="yes").html()}


def test_reports_and_notices_hold_the_shared_sheets_and_no_colour_of_their_own(written):
    shared = style("palette.css", "text.css")
    assert style("pictures.css") in written["report"]
    for page in written.values():
        [sheet] = re.findall("<style>(.*?)</style>", page.split("<body>")[0], flags=re.S)
        assert shared in sheet
        assert COLOUR.findall(sheet.replace(shared, "").replace(style("pictures.css"), "")) == []


def test_pages_and_widget_hold_the_shared_sheets_and_no_colour_of_their_own():
    pytest.importorskip("fastapi", reason="needs the extra 'web'")
    pytest.importorskip("anywidget", reason="needs the extra 'widget'")
    from onbmacf.web.responses import static_file
    from onbmacf.widget.live import PersonWidget

    page = static_file("style.css")[0].decode()
    own = (files("onbmacf.web") / "static" / "style.css").read_text("utf-8")
    assert page == style("palette.css", "text.css", "parts.css") + own
    assert style("text.css", "parts.css") in PersonWidget._css
    frame = (files("onbmacf.widget") / "static" / "widget.css").read_text("utf-8")
    assert COLOUR.findall(own + frame + style("parts.css")) == []


def test_every_colour_of_the_palette_has_a_light_and_a_dark_side():
    colours = re.findall(r"(--[\w-]+): ([^;]+);", style("palette.css"))
    assert len(colours) > 12
    for name, value in colours:
        assert name in ("--text", "--code", "--radius", "--gap") or re.fullmatch(
            r"light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\)", value
        ), name


@pytest.fixture(scope="module")
def chromium():
    with launched() as browser:
        yield browser


@pytest.mark.xdist_group("chromium")
@pytest.mark.parametrize(
    ("scheme", "width", "name"),
    [
        ("light", 1280, "notice"),
        ("dark", 390, "report"),
        pytest.param("light", 1280, "report", marks=pytest.mark.long),
        pytest.param("dark", 390, "notice", marks=pytest.mark.long),
    ],
)
def test_what_is_written_has_no_barrier_and_is_light_on_paper(chromium, written, name, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_content(written[name].replace("Content-Security-Policy", "unused"))  # axe is a script
    page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (brightness(page) < DARK) == (scheme == "dark")
    page.emulate_media(media="print", color_scheme=scheme)
    assert brightness(page) == 255
    page.close()


def brightness(page):
    """The darkest part of the ground's colour, from 0 to 255."""
    return page.evaluate("Math.min(...getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number))")
