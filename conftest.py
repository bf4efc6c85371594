"""The names that examples in docstrings share: made by the examples at the top of `onbmacf.audit` and of a package."""

import doctest
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

NEEDS = {"onbmacf.audit": [], "onbmacf.plots": ["matplotlib"], "onbmacf.report": ["matplotlib", "jinja2"]}

# Kernels that Cython compiles: what is imported is not the file that would be collected.
KERNELS = (path for path in Path(__file__).parent.joinpath("src").rglob("kernels/*.py"))
collect_ignore = [str(path) for path in KERNELS if "import cython" in path.read_text("utf-8")]


@cache
def _made_at_the_top_of(package: str) -> dict:
    names: dict = {}
    for module in dict.fromkeys(["onbmacf.audit", package]):
        for example in doctest.DocTestParser().get_examples(import_module(module).__doc__):
            exec(example.source, names)
    return names


@pytest.fixture(autouse=True)
def _what_examples_start_from(request):
    if not isinstance(request.node, pytest.DoctestItem):
        return
    package = ".".join(request.node.dtest.name.split(".")[:2])
    if package in NEEDS:
        for library in NEEDS[package]:
            pytest.importorskip(library)
        request.node.dtest.globs.update(_made_at_the_top_of(package))


@pytest.fixture(autouse=True)
def _figures_are_closed():
    """Close what a test or an example drew through pyplot, which keeps figures until it is told."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
