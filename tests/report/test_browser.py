"""Reports in a real browser: a picture comes out, no script runs or fails, nothing outside is asked."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest

from browsing import launched
from commands import PATIENCE

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
pytest.importorskip("jinja2", reason="reports need the extra 'report'")

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing leaves this machine
)
BROWSER = "not an origin"  # who asks, in the log, where it is the browser itself

pytestmark = pytest.mark.xdist_group("chromium")


@pytest.fixture(scope="module")
def chromium():
    """The browser; skipped with a reason where it is absent, but not in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        reason = "no chromium on this machine: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def browse(chromium, page, *flags, width=1000, height=1400):
    """Open a page with a profile of its own; return stdout and what was logged."""
    with tempfile.TemporaryDirectory() as profile:
        size = f"--window-size={width},{height}"
        line = [chromium, *FLAGS, size, f"--user-data-dir={profile}", "--enable-logging=stderr", *flags, page.as_uri()]
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, done.stderr


@contextmanager
def listening():
    """A server on this machine that remembers what is asked of it."""
    asked = []

    class Ear(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Ear)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()


def asked_outside(net_log):
    """Return the addresses that the page asked for, by the browser's own log; what the browser wants is left out."""
    addresses = set()
    for event in json.loads(net_log.read_text(encoding="utf-8"))["events"]:
        asked = event.get("params", {})
        is_page = asked.get("initiator", BROWSER) != BROWSER
        if is_page and urlsplit(str(asked.get("url"))).scheme in ("http", "https", "ws", "wss", "ftp"):
            addresses.add(asked["url"])
    return addresses


class Opened(NamedTuple):
    """What the browser made of a page."""

    document: str
    logged: str
    shot: Path
    printed: Path
    net_log: Path


def opened(chromium, page, folder):
    """Open a page once: the document, a screenshot, what is printed, and what was asked for."""
    shot, printed, net_log = (folder / name for name in ("shot.png", "printed.pdf", "net.json"))
    how = (f"--screenshot={shot}", f"--print-to-pdf={printed}", "--no-pdf-header-footer", f"--log-net-log={net_log}")
    return Opened(*browse(chromium, page, "--dump-dom", *how), shot, printed, net_log)


@pytest.fixture(scope="module")
def committed(chromium, tmp_path_factory):
    """Return a function that opens a committed report, each once."""
    return cache(lambda name: opened(chromium, EXAMPLES / f"{name}.html", tmp_path_factory.mktemp(name)))


def check(page):
    """Look for script errors, dialogs, scripts that ran, and requests."""
    consoles = [line for line in page.logged.splitlines() if "CONSOLE" in line]
    assert not consoles
    assert not asked_outside(page.net_log)
    assert "<title>PWNED" not in page.document
    assert "<script" not in page.document


def is_drawn(shot, least_colours=20):
    from matplotlib.image import imread

    picture = (imread(shot)[:, :, :3] * 255).astype(np.uint32)
    return len(np.unique(picture @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32))) >= least_colours


def committed_names(*names):
    """Return a test's parameter `name`: the tests of the committed reports are long but for the first."""
    first, *others = names
    return pytest.mark.parametrize("name", [first, *(pytest.param(name, marks=pytest.mark.long) for name in others)])


@committed_names("titanic", "adult", "unfair", "fair")
def test_the_committed_reports_print_on_at_most_six_pages(committed, name):
    pages = len(re.findall(rb"/Type\s*/Page[^s]", committed(name).printed.read_bytes()))
    assert 1 <= pages <= 6


@committed_names("titanic", "heart", "adult")
def test_the_committed_reports_open_without_errors_or_requests(committed, name):
    page = committed(name)
    check(page)
    assert is_drawn(page.shot)
    assert "The most changed features are" in page.document


@pytest.mark.long
def test_thirty_payloads_open_no_dialog_and_ask_nothing(chromium, tmp_path):
    import test_payloads
    from onbmacf import ONBMACF, Schema
    from onbmacf.report import About, audit_report
    from payloads import PAYLOADS

    with listening() as (url, asked):
        texts = [payload.replace("{url}", url) for payload in PAYLOADS]
        table = test_payloads.evil_table()
        names = dict(zip(test_payloads.TEXTS, texts, strict=True))
        table = table.rename(columns=names).map(lambda value: names.get(value, value))

        def model(rows):
            score = rows[texts[20]] + rows[texts[27]]
            return np.select([score > 0.8, score > -0.4], [texts[0], texts[3]], texts[2])

        explainer = ONBMACF(2).fit(table, model, schema=Schema.infer(table, immutable=[texts[0]]))
        about = About(texts[0], texts[3], texts[5], {texts[6]: texts[7]}, texts[9], texts)
        answers = explainer.explain(table)
        report = audit_report(explainer, answers, by=[texts[0], texts[3]], n_cases=6, about=about)
        page = opened(chromium, report.save(tmp_path / "evil.html"), tmp_path)
        check(page)
        browse(chromium, _loose(report, tmp_path / "loose.html"), "--dump-dom")
        assert not asked
    assert is_drawn(page.shot)
    assert "&lt;script&gt;document.title='PWNED';alert(1)&lt;/script&gt;" in page.document


def _loose(report, path):
    """The same report without its own guard, the content security policy: escaping alone must do."""
    lines = report.html().splitlines()
    path.write_text("\n".join(line for line in lines if "Content-Security-Policy" not in line), encoding="utf-8")
    return path


def test_the_guard_itself_would_be_noticed(chromium, tmp_path):
    """What the other tests look for is there when it should be: a script that runs, and a request."""
    with listening() as (url, asked):
        page = tmp_path / "bad.html"
        page.write_text(f"<title>x</title><img src='{url}/x'><script>document.title='PWNED'; oops()</script>", "utf-8")
        net_log = tmp_path / "net.json"
        document, logged = browse(chromium, page, "--dump-dom", f"--log-net-log={net_log}")
        assert asked == ["/x"]
        assert asked_outside(net_log) == {f"{url}/x"}
    assert "<title>PWNED" in document
    assert "CONSOLE" in logged


@pytest.fixture(scope="module")
def telephone():
    """A window of 390 pixels."""
    with launched() as browser:
        yield browser.new_page(viewport={"width": 390, "height": 800})


@pytest.mark.parametrize("name", ["titanic", "adult", "unfair"])
def test_no_report_is_wider_than_a_telephone_or_a_zoomed_window(telephone, name):
    """Nothing but tables, which scroll by themselves, may be wider than the page, folded or unfolded."""
    telephone.goto((EXAMPLES / f"{name}.html").as_uri())
    folded = telephone.evaluate("document.documentElement.scrollWidth")
    telephone.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    unfolded = telephone.evaluate("document.documentElement.scrollWidth")
    assert folded <= 390
    assert unfolded <= 390
