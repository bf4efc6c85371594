"""The pages of docs/: every example runs and prints what the page shows; the site builds without a warning.

`ONBMACF_WRITE_DOCS=1` writes what the examples print into the pages. Numbers may differ in their digits from one
release of a library to the next, so the words are compared, and the numbers only by being there.
"""

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("gallery/*.md"), *DOCS.glob("questions/*.md")])
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", flags=re.S)
NEEDS = {"titanic": ["torch", "matplotlib"], "xgboost": ["xgboost"], "heart": ["matplotlib", "jinja2"]}


def without_numbers(text):
    return re.sub(r"[ ]+", " ", re.sub(r"-?\d[\d,]*\.?\d*(e-?\d+)?", "0", text)).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_prints_what_the_page_shows(page, request, monkeypatch):
    for library in NEEDS.get(page.stem, []):
        pytest.importorskip(library)
    text = page.read_text(encoding="utf-8")
    if "load_task" in text or "titanic_network" in text:
        pytest.importorskip("pooch")
        monkeypatch.setenv("ONBMACF_DATA", str(request.getfixturevalue("data_dir")))
    monkeypatch.syspath_prepend(str(DOCS / "examples"))
    names: dict = {}
    printed = []
    for code, _ in BLOCK.findall(text):
        sink = io.StringIO()
        with redirect_stdout(sink):
            exec(compile(code, page.name, "exec"), names)
        printed.append(sink.getvalue())
    if os.environ.get("ONBMACF_WRITE_DOCS"):
        outputs = iter(printed)
        fresh = BLOCK.sub(lambda found: f"```python\n{found[1]}```\n\n```text\n{next(outputs)}```", text)
        page.write_text(fresh, encoding="utf-8")
        return
    for (_, shown), said in zip(BLOCK.findall(text), printed, strict=True):
        assert without_numbers(said) == without_numbers(shown)


def test_every_python_block_has_its_output():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("```python") == len(BLOCK.findall(text)), page


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    line = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "gallery/titanic.html", "api.html", "titanic.html", "heart.html"):
        assert (tmp_path / page).exists()
