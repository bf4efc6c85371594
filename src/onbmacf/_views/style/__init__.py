"""The style that the report, the pages and the widget share, as text."""

from functools import cache
from importlib.resources import files


@cache
def style(name: str) -> str:
    """Return a style sheet of this package: palette.css or parts.css."""
    return (files("onbmacf._views.style") / name).read_text(encoding="utf-8")
