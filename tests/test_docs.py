"""The pages of docs/: every example runs, prints and draws what the page shows; the site is whole and stands alone.

Printed text is compared exactly on pages whose models are rules. Where a model is trained, another release of a library
gives other weights: there the words are compared, and the numbers only by being there; pictures by their outlines.
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

import pages
from onbmacf import errors

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([page for folder in ("gallery", "questions", "api") for page in DOCS.glob(f"{folder}/*.md")])
PAGES.append(DOCS / "coming-from.md")
NEEDS = {"titanic": ["torch"], "xgboost": ["xgboost"], "heart": ["jinja2"], "coming-from": ["dice_ml"]}
TRAINS = re.compile(r"sklearn|xgboost|heart_network|titanic_network")

on_the_site = pytest.mark.xdist_group("site")  # one process builds it


@pytest.fixture
def ready(request, monkeypatch, tmp_path):
    """Return a function that makes what a page needs available, or skips."""

    def prepare(page):
        text = page.read_text(encoding="utf-8")
        for library in [*NEEDS.get(page.stem, []), *(["matplotlib", "PIL"] if "![" in text else [])]:
            pytest.importorskip(library)
        if "load_task" in text or "titanic_network" in text:
            pytest.importorskip("pooch")
            monkeypatch.setenv("ONBMACF_DATA", str(request.getfixturevalue("data_dir")))
        monkeypatch.syspath_prepend(str(DOCS / "examples"))
        monkeypatch.chdir(tmp_path)
        return text

    return prepare


LONG = ("titanic",)  # trains a network of torch
BY_PAGE = [pytest.param(page, id=page.stem, marks=[pytest.mark.long] * (page.stem in LONG)) for page in PAGES]


@pytest.mark.parametrize("page", BY_PAGE)
def test_every_example_prints_and_draws_what_the_page_shows(page, ready):
    text = ready(page)
    blocks = pages.run(page)
    if pages.WRITES:
        pages.write(page, blocks)
        return
    comparable = pages.without_numbers if TRAINS.search(text) else str
    for block in blocks:
        assert comparable(block.printed) == comparable(block.shown), block.code
        if block.picture is not None:
            assert pages.difference(block.drawn, block.picture) < pages.ALIKE, block.picture


def check_commands(page, folder):
    """Run the commands of a page in a folder, compare or write what they print, and return how many there are."""
    text = page.read_text(encoding="utf-8")
    lines = [(line, shown) for line, shown in pages.commands(text) if line.startswith("onbmacf ")]
    for line, shown in lines:
        printed = pages.run_command(line, folder)
        if pages.WRITES:
            text = text.replace(f"$ {line}\n{shown}", f"$ {line}\n{printed}")
        else:
            assert pages.without_numbers(printed) == pages.without_numbers(shown)
    if pages.WRITES:
        page.write_text(text, encoding="utf-8")
    return len(lines)


def test_the_page_of_the_command_line_shows_what_its_commands_print(tmp_path):
    pytest.importorskip("typer")
    assert check_commands(DOCS / "command-line.md", tmp_path)


@pytest.mark.long
def test_the_first_report_is_what_the_commands_print(data_dir, tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("jinja2")
    shutil.copy(data_dir / "titanic.csv", tmp_path)
    assert check_commands(DOCS / "first-report.md", tmp_path) == 2


def test_every_python_block_has_its_output_and_every_worked_example_a_picture():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found = pages.BLOCK.findall(text)
        assert text.count("```python") == len(found), page
        assert all(shown or picture for _, shown, picture in found), page
        assert page.parent.name != "gallery" or any(picture for *_, picture in found), page


def test_another_picture_is_noticed():
    pytest.importorskip("PIL")
    one, other, *_ = sorted(DOCS.glob("gallery/*.png"))
    assert pages.difference(one.read_bytes(), one) == 0
    assert pages.difference(one.read_bytes(), other) > pages.ALIKE


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning is an error."""
    for library in ("sphinx", "myst_parser", "furo", "sphinx_copybutton"):
        pytest.importorskip(library)
    folder = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(folder)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
@on_the_site
def test_the_site_has_its_pages(site):
    for page in (
        "index",
        "gallery/titanic",
        "api/index",
        "coming-from",
        "decisions/README",
        "notebooks/first-steps",
        "titanic",
        "heart",
    ):
        assert (site / f"{page}.html").exists(), page


def public_names():
    """Yield every public name: of the package, of its public packages, and the methods and fields of its classes."""
    for module in ("onbmacf", "onbmacf.audit", "onbmacf.plots", "onbmacf.report", "onbmacf.io", "onbmacf.datasets"):
        for name in import_module(module).__all__:
            yield from with_members(f"{module}.{name}", getattr(import_module(module), name))
    for name, error in vars(errors).items():
        if inspect.isclass(error):
            yield f"onbmacf.errors.{name}"


def with_members(path, found):
    yield path
    if not inspect.isclass(found):
        return
    own = {name for name in vars(found) if not name.startswith("_") and is_described(vars(found)[name])}
    own |= {field.name for field in fields(found)} if is_dataclass(found) else set()
    yield from (f"{path}.{name}" for name in own)


def is_described(member):
    return isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)


@pytest.mark.long
@on_the_site
def test_every_public_name_has_an_entry_in_the_reference(site):
    text = "".join(page.read_text(encoding="utf-8") for page in site.glob("api/*.html"))
    missing = [path for path in public_names() if not is_in(text, path)]
    assert not missing


def is_in(text, path):
    """Say whether a name has an entry of its own, or is a parameter of the class that has one."""
    if f'id="{path}"' in text:
        return True
    owner, _, name = path.rpartition(".")
    _, found, entry = text.partition(f'id="{owner}"')
    return bool(found) and f"<strong>{name}</strong>" in entry.partition('<dl class="py class">')[0]


class Loaded(HTMLParser):
    """What a page makes the browser load."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.addresses.append(named.get("src"))
        if tag == "link" and named.get("rel") not in ("canonical", "next", "prev", "index", "search", "author"):
            self.addresses.append(named.get("href"))


@pytest.mark.long
@on_the_site
def test_nothing_is_loaded_from_outside(site):
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        outside = [address for address in loaded.addresses if address and re.match(r"(\w+:)?//", address)]
        assert not outside, (page, outside)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(\w+:)?//", sheet.read_text(encoding="utf-8")), sheet


@pytest.fixture
def chromium():
    """The browser; skipped with a reason where it is absent, but not in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None and os.environ.get("CI"):
        pytest.fail("no chromium on this machine")
    return found or pytest.skip("no chromium on this machine")


@pytest.mark.long
@on_the_site
def test_a_search_lists_how_tos_first_and_decision_records_last(site, chromium, tmp_path):
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    flags += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path}"]
    address = f"{(site / 'search.html').as_uri()}?q=immutable"
    line = [chromium, *flags, "--virtual-time-budget=60000", "--dump-dom", address]
    document = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    found = re.findall(r'<li class="kind-text"><a href="([^"]+)"', document)
    ranks = [0 if page.startswith("questions/") else 2 if page.startswith("decisions/") else 1 for page in found]
    assert {0, 1, 2} == set(ranks)
    assert ranks == sorted(ranks)
