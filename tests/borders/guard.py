"""What guards a border: a line of the package, what it is broken into, and the test that sees it (tests/guards.py)."""

from typing import NamedTuple


class Guard(NamedTuple):
    """A line, what it is broken into, and a test that fails then; the key of a table says against what it stands."""

    file: str
    right: str
    wrong: str
    test: str
