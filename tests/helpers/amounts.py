"""How many cases a property is tried on: all where every test is run (`make test-all`), a part of them otherwise."""

import os

from hypothesis import settings

IS_ALL = os.environ.get("ONBMACF_ALL_TESTS") == "1"


def examples(n, **how):
    """Return the settings of a test that draws so many cases when all tests are run."""
    return settings(max_examples=n if IS_ALL else max(10, n // 10), deadline=None, **how)


def seeds(n):
    """Return the seeds of a test that makes so many cases by itself when all tests are run."""
    return range(n if IS_ALL else max(3, n // 5))
