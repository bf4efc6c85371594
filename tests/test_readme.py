"""The README shows what its code prints and draws, and what its commands print, to the digit.

`ONBMACF_WRITE_DOCS=1` writes what came out into it. A release of a library that trains the network otherwise makes this
fail: then the README is out of date, and that brings it up to date.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pages

README = Path(__file__).parents[1] / "README.md"
DEMO = re.compile(r"(\$ onbmacf demo --people 2\n)(.*?)(```)", flags=re.S)
LINES = 8  # of Python on the first screen


def test_the_first_screen_is_a_sentence_an_installation_eight_lines_and_a_picture():
    first = README.read_text(encoding="utf-8").split("<!-- end of the first screen -->")[0]
    code, shown, picture = pages.BLOCK.findall(first)[0]
    assert len([line for line in code.splitlines() if line.strip()]) == LINES
    assert "pip install" in first
    assert shown.startswith("If ")
    assert (README.parent / picture).exists()
    assert len(first.splitlines()) <= 32


def test_the_readme_shows_what_its_code_prints_and_draws(tmp_path, monkeypatch):
    for library in ("matplotlib", "PIL"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    blocks = pages.run(README)
    if pages.WRITES:
        pages.write(README, blocks)
        return
    for block in blocks:
        assert block.printed == block.shown, block.code
    assert pages.difference(blocks[0].drawn, blocks[0].picture) < pages.ALIKE


def test_the_readme_shows_what_the_demo_prints():
    pytest.importorskip("typer")
    line = [sys.executable, "-m", "onbmacf", "demo", "--people", "2"]
    printed = subprocess.run(line, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    text = README.read_text(encoding="utf-8")
    if pages.WRITES:
        README.write_text(DEMO.sub(lambda found: found[1] + printed + found[3], text), encoding="utf-8")
        return
    (shown,) = [found[1] for found in DEMO.findall(text)]
    assert printed == shown
