"""Debian's chromium for tests: skipped with a reason where it is absent, but not in CI."""

import os
import shutil
from contextlib import contextmanager

import pytest


@contextmanager
def launched(*flags):
    """Launch the browser; it ends with the block."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "no chromium on this machine: apt-get install chromium"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu", *flags])
        yield browser
        browser.close()
