"""The style that the pages, reports, notices and the widget share, as text."""

from functools import cache
from importlib.resources import files


@cache
def style(*names: str) -> str:
    """Return style sheets of this package as one: palette.css, text.css and parts.css."""
    return "".join((files("onbmacf._views.style") / name).read_text(encoding="utf-8") for name in names)
