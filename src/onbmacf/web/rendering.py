"""Templates to pages. Every value of a table is data: escaped, and with nothing hidden in it."""

from functools import cache
from importlib.resources import files
from typing import Any

from starlette.responses import HTMLResponse, Response

from onbmacf._text.wording import quoted, rounded, shown, visible
from onbmacf._views.style import style
from onbmacf._views.templating import environment
from onbmacf.web.problems import Problem

STATIC = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


def page(template: str, status: int = 200, headers: dict[str, str] | None = None, **content: Any) -> HTMLResponse:
    """Return a page made with a template."""
    return HTMLResponse(rendered(template, **content), status, headers)


def rendered(template: str, **content: Any) -> str:
    """Return a template filled in."""
    return str(_environment().get_template(template).render(content))


def problem_page(problem: Problem) -> Response:
    """Return a page that says what is wrong."""
    return page("problem.html", problem.status, problem.headers, problem=problem)


@cache
def static_file(name: str) -> tuple[bytes, str] | None:
    """Return a file that pages need, and its type; None for any other name. Names never reach the file system."""
    if name not in STATIC:
        return None
    content = (files("onbmacf.web") / "static" / name).read_bytes()
    shared = style("palette.css", "text.css", "parts.css").encode() if name == "style.css" else b""
    return shared + content, STATIC[name]


@cache
def _environment() -> Any:
    found = environment("onbmacf.web", visible)
    found.filters |= {"shown": shown, "quoted": quoted, "rounded": rounded, "lines": _lines}
    return found


def _lines(text: str) -> Any:
    """Return text of several lines as text of several lines: what else is hidden in it is written out."""
    from markupsafe import Markup, escape

    return Markup("\n").join(escape(visible(line)) for line in text.splitlines())
