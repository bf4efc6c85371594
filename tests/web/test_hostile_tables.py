"""A table whose names, levels, labels and index are payloads: every page, form and export shows them as text."""

import numpy as np
import pandas as pd
import pytest

from commands import wait_for
from onbmacf import ONBMACF, Schema
from payloads import PAYLOADS
from serving import serving
from web.test_security import csrf_token_of


def evil_table():
    """Payloads as names of columns and as levels."""
    rng = np.random.default_rng(0)
    levels = [payload for payload in PAYLOADS if payload != "-2+3"]
    return pd.DataFrame(
        {
            PAYLOADS[0]: rng.random(60).round(2),
            PAYLOADS[3]: rng.random(60).round(2),
            PAYLOADS[11]: (levels * 3)[:60],
            PAYLOADS[14]: rng.integers(0, 9, 60),
        },
        index=[PAYLOADS[place % len(PAYLOADS)] for place in range(60)],
    )


@pytest.fixture(scope="module")
def evil():
    table = evil_table()

    def model(rows):
        return np.where(rows[PAYLOADS[0]] + rows[PAYLOADS[3]] > 1, PAYLOADS[1], PAYLOADS[5])

    explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table, immutable=[PAYLOADS[14]]))
    with serving(explainer, table, name=PAYLOADS[8]) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/type", "/case/r0?ranges=1", "/case/r1/print", "/case/r0/walk.svg", "/service"])
def test_payloads_in_names_and_values_are_text(evil, path):
    with evil.browser() as browser:
        said = browser.get(path)
    assert said.status_code == 200, said.text[:2000]
    for mark in ("<script>document", "<img src=x", "<svg onload", "<iframe", "<link rel=stylesheet href"):
        assert mark not in said.text
    assert "{{ 7 * 7 }}" in said.text or path.endswith(".svg")
    assert "\u202e" not in said.text


def test_payloads_in_searches_and_forms_are_text(evil):
    with evil.browser() as browser:
        token = csrf_token_of(browser)
        for payload in PAYLOADS:
            said = browser.get("/", params={"q": payload, "label": payload, "page": payload})
            assert said.status_code == 200
            assert "<script>document" not in said.text
            said = browser.post("/type", data={"csrf_token": token, "f0": payload, "f1": "1", "f2": payload, "f3": "3"})
            assert said.status_code == 422
            assert "<script>document" not in said.text
            assert browser.post("/paste", data={"csrf_token": token, "json": payload}).status_code == 422


def test_payloads_in_saved_plans_and_audits_are_text(evil):
    with evil.browser() as browser, evil.client() as client:
        assert (
            browser.post("/case/r0/save", data={"csrf_token": csrf_token_of(browser), "plan": "0"}).status_code == 200
        )
        name = client.post("/v1/audit", json={"most": 6}).json()["id"]
        wait_for(lambda: client.get(f"/v1/audit/{name}").json()["status"] == "done")
        pages = {path: browser.get(path).text for path in ("/saved", f"/audit/{name}", f"/audit/{name}/report.html")}
        cells = [cell for line in browser.get("/saved.csv").text.splitlines() for cell in line.split(",")]
    for path, text in pages.items():
        assert "&lt;" in text, path  # some payload is shown
        for mark in ("<script>document", "<img src=x", "<svg onload", "<iframe", "<link rel=stylesheet href", "\u202e"):
            assert mark not in text, (path, mark)
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))]


def test_exports_run_nothing_in_a_spreadsheet(evil):
    with evil.browser() as browser:
        text = browser.get("/case/r0/plans.csv").text
    cells = [cell for line in text.splitlines() for cell in line.split(",")]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))]
