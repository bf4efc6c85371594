"""Secure by default: one test per promise of decision 0073. What is refused says so; the service lives."""

import contextlib
import html
import io
import json
import logging
import pickle
import re
import signal
import socket
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

import httpx
import numpy as np
import pytest

from commands import wait_for
from onbmacf import ONBMACF
from onbmacf._views.plans import Source
from onbmacf.errors import ParameterError
from onbmacf.web import security
from onbmacf.web.security import Keys
from onbmacf.web.server import link, run_server
from onbmacf.web.settings import Settings
from serving import serving

PAGES = ("/", "/type", "/saved", "/audit", "/service", "/case/r0", "/case/r0/print")
SERVICE = ("/v1/schema", "/v1/openapi.json", "/metrics")
KNOWN = (200, 400, 401, 403, 404, 405, 413, 421, 422)


@pytest.fixture
def browser(running):
    with running.browser() as found:
        yield found


def csrf_token_of(browser):
    return browser.get("/type").text.split('name="csrf_token" value="')[1].split('"')[0]


def lives(client):
    assert client.get("/v1/schema").status_code == 200


@pytest.mark.parametrize("path", [*PAGES, *SERVICE])
def test_without_a_token_nothing_is_shown(running, path):
    with httpx.Client(base_url=running.base) as stranger:
        answer = stranger.get(path)
    assert answer.status_code == 401
    assert "tobacco" not in answer.text


@pytest.mark.parametrize("token", ["x", "\u00e9", "t" * 9_000])
def test_a_wrong_token_is_refused_everywhere(running, token):
    with httpx.Client(base_url=running.base) as stranger:
        for half in (running.token[:-1], token):
            said = stranger.get("/v1/schema", headers={"Authorization": f"Bearer {half}".encode()})
            assert said.status_code == 401
            assert stranger.get("/", params={"token": half}).status_code == 401
        assert stranger.get("/v1/schema", headers={"Authorization": f"Basic {running.token}"}).status_code == 401
        assert stranger.post("/v1/explain", json={"rows": []}).status_code == 401
        assert not stranger.cookies


def test_tokens_are_compared_in_constant_time(monkeypatch):
    asked = []
    monkeypatch.setattr("onbmacf.web.security.hmac.compare_digest", lambda a, b: asked.append((a, b)) or a == b)
    keys = Keys("right token of the test")
    assert keys.is_token("right token of the test")
    assert not keys.is_token("wrong")
    assert keys.session_id_of("x.y") is None
    assert len(asked) == 3


def test_the_first_visit_gives_a_cookie_that_scripts_and_other_sites_cannot_use(running):
    with httpx.Client(base_url=running.base) as client:
        said = client.get("/", params={"token": running.token})
        cookie = said.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert running.token.lower() not in cookie
        assert client.get("/").status_code == 200
    forged = {running.service().keys.cookie: "someone.0123"}
    assert httpx.get(f"{running.base}/type", cookies=forged).status_code == 401


def test_a_cookie_behind_a_proxy_is_sent_over_https_only(heart_explainer):
    with serving(heart_explainer, behind_proxy=True) as running:
        said = httpx.get(running.base, params={"token": running.token})
        assert "secure" in said.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[", "localhost.evil"]
)
def test_a_foreign_host_is_refused(running, client, host):
    """DNS rebinding: the browser is told that a foreign name is this machine."""
    for path in ("/", "/v1/schema", "/healthz", "/static/page.js"):
        said = client.get(path, headers={"Host": host})
        assert said.status_code in (400, 421), path
        assert "tobacco" not in said.text
    lives(client)


def test_a_host_that_is_allowed_is_answered(heart_explainer):
    with serving(heart_explainer, allowed_hosts=("plans.example",)) as running, running.client() as client:
        assert client.get("/v1/schema", headers={"Host": "Plans.Example"}).status_code == 200


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_post_from_another_site_is_refused(browser, client, headers):
    form = {"csrf_token": csrf_token_of(browser), "feature": "f1"}
    assert browser.post("/case/r0/lock", data=form, headers=headers).status_code == 403
    assert client.post("/v1/explain", json={"rows": []}, headers=headers).status_code == 403
    assert browser.post("/case/r0/lock", data=form, headers={"Origin": str(browser.base_url)}).status_code == 200


FORMS = [
    "/type",
    "/paste",
    "/case/r0/ask",
    "/case/r0/lock",
    "/case/r0/what-if",
    "/case/r0/view",
    "/case/r0/suggested",
    "/case/r0/save",
    "/saved/remove",
    "/audit",
    "/audit/none/cancel",
]


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_the_csrf_token_of_its_session_is_refused(running, browser, path):
    with running.browser() as other:
        for token in ("", "x", csrf_token_of(other)):
            assert browser.post(path, data={"csrf_token": token, "feature": "f1"}).status_code == 403


def addresses(running):
    """Every address of the service with its methods."""
    from onbmacf.web import api, audit_page, case_page, saved_page, table_page

    modules = (api, audit_page, table_page, case_page, saved_page)
    routes = [route for module in modules for route in module.router.routes]
    return [(route.path, route.methods) for route in routes]


def test_every_form_of_the_service_is_tried(running):
    """A new form must be in the list above."""
    tried = {re.sub("/(r0|none)/", "/{name}/", path) for path in FORMS}
    posts = {address for address, methods in addresses(running) if "POST" in methods}
    assert {address for address in posts if not address.startswith("/v1/")} == tried


def test_a_cookie_does_not_open_what_programs_post_to(browser):
    assert browser.post("/v1/explain", json={"rows": []}).status_code == 401
    assert browser.post("/v1/audit", json={}).status_code == 401
    assert browser.delete("/v1/audit/none").status_code == 401
    assert browser.get("/v1/schema").status_code == 200


@pytest.mark.parametrize("path", [*PAGES, *SERVICE, "/healthz", "/static/style.css", "/nothing", "/case/r0/walk.svg"])
def test_every_answer_carries_the_headers(browser, path):
    headers = browser.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith(("default-src 'self';", "default-src 'none';"))
    assert "unsafe-inline" not in policy or path.endswith(".svg")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize("path", PAGES)
def test_pages_hold_no_inline_script_or_style(browser, path):
    text = browser.get(path).text
    assert "<style" not in text
    assert " style=" not in text
    assert text.count("<script") == text.count('<script src="/static/page.js" defer></script>')
    assert "//" not in text.replace("http://127.0.0.1", "").split("<main")[0].replace("<!DOCTYPE html>", "")


def test_a_huge_body_is_refused(heart_explainer):
    with serving(heart_explainer, max_body=10_000) as running, running.client() as client:
        said = client.post("/v1/explain", content=b"x" * 20_000)
        assert (said.status_code, said.json()["title"]) == (413, "Body too large")
        said = client.post("/v1/explain", content=iter([b"x" * 6_000] * 3))  # no length announced
        assert said.status_code == 413
        with running.browser() as browser:
            assert browser.post("/paste", data={"json": "x" * 20_000}).status_code == 413
        lives(client)


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_client_that_sends_all_before_it_reads_hears_why(running, client, is_announced):
    body = b"x" * (9 << 20)
    for _ in range(5):
        wire = HTTPConnection(running.base.removeprefix("http://"), timeout=60)
        parts = body if is_announced else iter([body[: 1 << 20]] * 9)
        wire.request("POST", "/v1/explain", parts, {"Authorization": f"Bearer {running.token}"})
        said = wire.getresponse()
        assert said.status == 413
        assert json.loads(said.read())["detail"] == "A request may have 8,388,608 bytes. Send fewer rows."
        wire.close()
    lives(client)


def test_more_than_a_service_waits_for_is_cut_off(running, client, monkeypatch):
    monkeypatch.setattr(security, "DRAINED", 1 << 20)
    with contextlib.suppress(httpx.TransportError):
        assert client.post("/v1/explain", content=b"x" * (40 << 20)).status_code == 413
    lives(client)


def test_too_many_rows_are_refused(heart_explainer, heart):
    rows = json.loads(heart.head(4).to_json(orient="records"))
    with serving(heart_explainer, max_rows=3) as running, running.client() as client:
        for path in ("/v1/explain", "/v1/predict"):
            said = client.post(path, json={"rows": rows})
            assert (said.status_code, said.json()["title"]) == (413, "Too many rows")


BODIES = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[" * 200_000,
    b'{"rows":' * 100_000,
    b'{"rows": {"sbp": NaN}}',
    b'{"rows": {"sbp": Infinity}}',
    b'{"rows": ' + b"9" * 6_000 + b"}",
    b"null",
    b"3",
    b'"rows"',
    pickle.dumps({"rows": []}),
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:12]))
def test_what_is_not_our_json_is_refused(client, browser, body):
    for path in ("/v1/explain", "/v1/predict"):
        said = client.post(path, content=body)
        assert said.status_code in (400, 422)
        assert said.headers["content-type"] == "application/problem+json"
    text = body.decode("latin-1")
    assert browser.post("/paste", data={"csrf_token": csrf_token_of(browser), "json": text}).status_code in (400, 422)
    lives(client)


def test_numbers_that_no_table_holds_cost_their_own_row_only(client, browser, heart):
    row = json.loads(heart.head(1).to_json(orient="records"))[0]
    for value in (10**30, 10**400, -(10**400), 1e308, 5.5, "160", None, "x" * 10_000):
        said = client.post("/v1/explain", json={"rows": [row, row | {"sbp": value}, row]}).json()["answers"]
        assert [one["status"] for one in said] == ["found", "invalid_row", "found"]
        assert said[1]["reason"].startswith("column 'sbp'")
        pasted = {"csrf_token": csrf_token_of(browser), "json": json.dumps(row | {"sbp": value})}
        assert "column &#39;sbp&#39;" in browser.post("/paste", data=pasted).text
    lives(client)


def test_a_range_that_no_number_reaches_is_refused(client, heart):
    row = json.loads(heart.head(1).to_json(orient="records"))[0]
    for rule in ({"low": 1e308}, {"high": -1e308}, {"low": 10**30}, {"low": 10**400}):
        said = client.post("/v1/explain", json={"rows": row, "rules": {"features": {"sbp": rule}}})
        assert (said.status_code, said.json()["title"]) == (422, "Parameter error")


def test_an_audit_needs_a_label_to_reach(client):
    said = client.post("/v1/audit", json={"target": []})
    assert said.status_code == 422
    assert said.json()["detail"] == "target must name at least one among the model's labels 'at risk', 'healthy'."


LONG = "x" * 100_000
LONG_BODIES = [
    {"rows": {LONG: 1}},
    {"rows": [LONG]},
    {"rows": LONG},
    {"rows": [], LONG: 1},
    {"rows": [], "n": LONG},
    {"rows": [], "plausibility": LONG},
    {"rows": [], "target": LONG},
    {"rows": [], "target": [LONG]},
    {"rows": [], "immutable": [LONG]},
    {"rows": [], "rules": {LONG: {}}},
    {"rows": [], "rules": {"features": {LONG: {}}}},
    {"rows": [], "rules": {"features": {"sbp": {LONG: 1}}}},
    {"rows": [], "rules": {"features": {"sbp": {"direction": LONG}}}},
    {"rows": [], "rules": {"features": {"sbp": {"low": LONG}}}},
    {"rows": [], "rules": {"features": {"famhist": {"allowed": [LONG]}}}},
    {"rows": [], "rules": {"at_most": [[LONG, "sbp"]]}},
    {"rows": [], "rules": {"max_changes": LONG}},
    {"rows": [], "min_probability": LONG},
]
LONG_CELLS = [{LONG: 1}, {"sbp": LONG}, {"famhist": LONG}, {"sbp": [LONG]}, {"sbp": {LONG: LONG}}]
LONG_AUDITS = [{"by": [LONG]}, {"target": LONG}, {"target": [LONG]}, {"most": LONG}, {"seed": LONG}, {LONG: 1}]
LONG_QUERIES = [
    "/audit/none?page={}",
    "/case/r0?ranges={}",
    "/case/{}",
    "/audit/{}",
    "/v1/audit/{}",
    "/static/{}",
    "/?token={}",
]
LONG_FORMS = [
    ("/type", "f0"),
    ("/type", "f4"),
    ("/paste", "json"),
    ("/case/r0/ask", "dial"),
    ("/case/r0/ask", "n"),
    ("/case/r0/ask", "target"),
    ("/case/r0/ask", "f0-low"),
    ("/case/r0/lock", "feature"),
    ("/case/r0/what-if", "f0"),
    ("/case/r0/view", "x"),
    ("/case/r0/save", "plan"),
    ("/audit", "most"),
    ("/audit", "target"),
]


def n_repeated(text):
    """Return how much of the long text is in an answer."""
    return sum(map(len, re.findall("x{50,}", text)))


def test_no_problem_repeats_what_was_sent(client, heart):
    row = json.loads(heart.head(1).to_json(orient="records"))[0]
    asked = [("explain", body) for body in LONG_BODIES] + [("audit", body) for body in LONG_AUDITS]
    asked += [(path, {"rows": row | cell}) for path in ("explain", "predict") for cell in LONG_CELLS]
    for path, body in asked:
        said = client.post(f"/v1/{path}", json=body)
        text = said.text
        if said.status_code == 200:  # a cell that does not fit costs its own row only; the answer holds that row
            assert said.json()["answers"][0]["status"] == "invalid_row"
            text = said.json()["answers"][0]["reason"]
        else:
            assert said.status_code == 422
        assert n_repeated(text) < 200, (path, str(body)[:200])
    keys = json.dumps({LONG: 1})[:-1] + f', "{LONG}": 2}}'
    assert n_repeated(client.post("/v1/explain", content=keys).text) < 200


def test_no_page_repeats_what_was_sent_beside_its_own_field(browser):
    for address in LONG_QUERIES:
        said = browser.get(address.format(LONG[:10_000]))  # a head may have 16 KiB
        assert said.status_code in (401, 404, 422), address
        assert n_repeated(said.text) < 200, address
    token = csrf_token_of(browser)
    for path, field in LONG_FORMS:
        said = browser.post(path, data={"csrf_token": token, field: LONG})
        assert said.status_code in (400, 404, 422), (path, field)
        assert n_repeated(said.text) <= len(LONG) + 200, (path, field)
    said = browser.post("/paste", data={"csrf_token": token}, files={"json": (f"{LONG}.json", LONG)})
    assert said.status_code in (400, 403, 422)
    assert n_repeated(said.text) < 200


def test_a_number_of_thousands_of_digits_is_refused(browser):
    token, digits = csrf_token_of(browser), "9" * 5_000
    for path, field in (
        ("/case/r0/ask", "n"),
        ("/case/r0/save", "plan"),
        ("/audit", "most"),
        ("/case/r0/ask", "f0-low"),
    ):
        assert browser.post(path, data={"csrf_token": token, field: digits}).status_code in (404, 422), (path, field)
    for address in ("/?page={}", "/case/r{}", "/audit/none?page={}"):
        assert browser.get(address.format(digits)).status_code in (200, 404, 422), address
    view = {"csrf_token": token, "x": "f0", "y": "f1", "plan": digits}
    assert browser.post("/case/r0/view", data=view).status_code == 404


@pytest.mark.parametrize("body", ['{"rows": [], "rows": []}', '{"rows": [{"sbp": 1, "age": 2, "sbp": 3}]}'])
def test_a_key_twice_is_refused_by_its_name(client, browser, body):
    name = "rows" if "[]" in body else "sbp"
    said = client.post("/v1/explain", content=body)
    assert (said.status_code, said.json()["title"]) == (422, "Duplicate key")
    assert said.json()["detail"] == f"An object of the body has the key '{name}' twice."
    pasted = browser.post("/paste", data={"csrf_token": csrf_token_of(browser), "json": body})
    assert pasted.status_code == 422
    assert f"has the key &#39;{name}&#39; twice" in pasted.text


def test_a_client_that_goes_away_is_no_error(heart_explainer, caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("onbmacf.web").propagate = True
    with serving(heart_explainer, log=True) as running:
        host, port = running.base.removeprefix("http://").split(":")
        head = f"POST /v1/explain HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {running.token}\r\n"
        with socket.create_connection((host, int(port))) as wire:
            wire.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + b" " * 500)
        wait_for(lambda: "POST /v1/explain" in caplog.text)
        assert "POST /v1/explain 499 " in caplog.text
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []


class Touches:
    """A pickle that leaves a trace when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_no_pickle_is_read_from_requests(client, browser, tmp_path):
    evil = pickle.dumps(Touches(tmp_path / "trace"))
    for kind in ("application/octet-stream", "application/x-pickle", "application/json"):
        client.post("/v1/explain", content=evil, headers={"Content-Type": kind})
    browser.post("/paste", data={"csrf_token": csrf_token_of(browser)}, files={"json": ("a.pkl", io.BytesIO(evil))})
    assert not list(tmp_path.iterdir())
    lives(client)


PATHS = [
    "/static/../security.py",
    "/static/..%2f..%2fsecurity.py",
    "/static/%2e%2e/security.py",
    "/static/....//style.css",
    "/static//etc/passwd",
    "/static/style.css%00",
    "/static/C:\\windows",
    "/case/..%2f..%2fetc",
    "/case/r99999999999999999999",
    "/case/r-1",
    "/case/r0/..%2fplans.json",
    "/audit/..%2f..%2fetc",
    "/audit/..%2f..%2fetc/report.html",
    "/v1/audit/..%2f..%2fetc",
    "//evil.example/",
    "/%00",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_of_a_request_reaches_the_files(running, client, path):
    """Sent as it is, not as a client would tidy it."""
    host, port = running.base.removeprefix("http://").split(":")
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {running.token}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.sendall(head.encode())
        said = b"".join(iter(lambda: wire.recv(65536), b""))
    assert int(said.split()[1]) in (400, 404)
    assert b"root:" not in said
    assert b"hmac" not in said
    lives(client)


def test_nothing_about_a_person_is_logged(heart_explainer, heart, caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("onbmacf.web").propagate = True
    row = json.loads(heart.head(1).to_json(orient="records"))[0] | {"sbp": 187, "tobacco": 13.37}
    with serving(heart_explainer, heart, log=True) as running, running.client() as client, running.browser() as browser:
        client.post("/v1/explain", json={"rows": row})
        client.post("/v1/explain", json={"rows": row | {"famhist": "Secretly"}})
        client.post("/v1/explain", content=b'{"rows": Secretly')
        browser.get("/", params={"q": "Secretly"})
        browser.post("/paste", data={"csrf_token": csrf_token_of(browser), "json": json.dumps(row)})
        browser.get("/case/Secretly")
    lines = [record for record in caplog.records if record.name.startswith(("onbmacf", "uvicorn"))]
    text = "\n".join(record.getMessage() for record in lines)
    assert "POST /v1/explain 200" in text
    for secret in ("187", "13.37", "Secretly", running.token):
        assert secret not in text


def test_what_fails_inside_is_told_without_its_words(heart, caplog):
    def model(rows):
        if (rows["sbp"] == 199).any():
            raise SystemError("Secretly 13.37")  # no error of a row: the whole call fails
        return np.where(rows["age"] > 40, "old", "young")

    explainer = ONBMACF().fit(heart, model)
    with serving(explainer, heart) as running, running.client() as client:
        running.service().metrics.count_rows = None  # something of ours breaks
        row = json.loads(heart.head(1).to_json(orient="records"))[0]
        said = client.post("/v1/explain", json={"rows": row})
        assert (said.status_code, said.json()["title"]) == (500, "Internal error")
        assert "NoneType" not in said.text
    assert "unexpected TypeError" in caplog.text
    assert "13.37" not in caplog.text


def test_other_machines_need_a_token_or_a_proxy():
    for host in ("0.0.0.0", "::", "192.168.0.7", "example.org"):
        with pytest.raises(ParameterError, match="give a token of your own"):
            Settings(host=host)
    with pytest.raises(ParameterError, match="at least 16 characters, got 5"):
        Settings(host="0.0.0.0", token="short")
    assert Settings(host="0.0.0.0", token="a token of my own").host == "0.0.0.0"
    assert Settings(host="0.0.0.0", behind_proxy=True).token


def test_the_link_holds_any_token():
    token = "a token & more #1"
    address = httpx.URL(link(Settings(token=token)))
    assert address.params["token"] == token
    assert not address.fragment


def test_the_browser_is_opened_without_the_token_in_its_command(heart_explainer, monkeypatch):
    """Everybody on a machine can list commands; the file that leads to the link is the owner's alone, and goes."""
    opened, links = [], []

    def note(address):
        try:
            file = Path(url2pathname(urlsplit(address).path))
            opened.append((address, file, file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777))
            links.append(html.unescape(re.search('url=(.*)"', file.read_text(encoding="utf-8"))[1]))
        finally:
            signal.raise_signal(signal.SIGINT)  # ends the service

    token = "a token & more #1"
    monkeypatch.setattr("webbrowser.open", note)
    told = []
    source = Source.of(heart_explainer)
    run_server(source, Settings(token=token), open_browser=True, tell=told.append)
    [(address, file, *modes)] = opened
    assert address.startswith("file://")
    assert quote(token, safe="") not in address
    assert modes == [0o600, 0o700]
    assert links == told
    assert httpx.URL(links[0]).params["token"] == token
    assert not file.parent.exists()


def test_a_folder_may_be_a_text():
    assert Settings(folder="kept").folder == Path("kept")


def test_tokens_are_drawn_anew():
    tokens = {Settings().token for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 32
