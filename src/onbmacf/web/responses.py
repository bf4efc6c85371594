"""What goes out: problems (RFC 9457), pages made with templates, pictures, and files to keep.

    exception  ->  HTTPProblem  ->  JSON for programs, a page for people
    template, values  ->  page

Every value of a table is data: escaped, and with nothing hidden in it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse, Response

from onbmacf._base.checks import MOST_SHOWN
from onbmacf._text.wording import for_all_borders, quoted, rounded, shown, visible
from onbmacf._views.style import style
from onbmacf._views.templating import environment
from onbmacf.errors import (
    ModelError,
    NotEnoughMemoryError,
    OnbmacfError,
    ParameterError,
    RowsError,
    StoreError,
    TableError,
)

API = "/v1/"
LONGEST_DETAIL = 2000  # characters
PROBLEM_TYPE = "application/problem+json"
STATUS_OF: dict[type[Exception], int] = {
    ParameterError: 422,
    RowsError: 422,
    TableError: 422,
    ModelError: 502,
    NotEnoughMemoryError: 503,
    StoreError: 507,
    OnbmacfError: 500,
}
STATIC = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


# --- problems ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)  # not frozen: Python writes tracebacks into exceptions
class HTTPProblem(Exception):  # noqa: N818 - the name that the standard gives it
    """What went wrong, as the reader of the response sees it."""

    status: int
    title: str
    detail: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.title, self.detail = shorten(self.title), shorten(self.detail)

    def content(self) -> dict[str, Any]:
        """Return what the body says."""
        kind = self.title.lower().replace(" ", "-")
        return {"type": f"urn:onbmacf:{kind}", "title": self.title, "status": self.status, "detail": self.detail}


def as_problem(error: Exception) -> HTTPProblem:
    """Return an exception as a problem; only our own errors are quoted: any other may hold a person's values."""
    if isinstance(error, HTTPProblem):
        return error
    if isinstance(error, ClientDisconnect):  # nobody reads it; the number is nginx's, for metrics and log
        return HTTPProblem(499, "Client closed request")
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return HTTPProblem(422, "Unexpected request", f"{place_of(first['loc'])}: {first['msg']}.")
    if isinstance(error, ImportError) and "extra" in str(error):
        return HTTPProblem(501, "Not installed", str(error))
    for kind, status in STATUS_OF.items():
        if isinstance(error, kind):
            title = re.sub("(?<=.)(?=[A-Z])", " ", type(error).__name__).capitalize()  # Parameter error
            return HTTPProblem(
                status, title, for_all_borders(str(error)), {"Retry-After": "10"} if status == 503 else {}
            )
    return HTTPProblem(500, "Internal error", "Something went wrong here. It was written to the log of the service.")


def place_of(loc: Sequence[Any]) -> str:
    """Return where pydantic found a fault; what a request names itself is shortened."""
    return (
        ".".join(part if len(part) <= MOST_SHOWN else f"{part[:MOST_SHOWN]}..." for part in map(str, loc)) or "the body"
    )


def shorten(text: str) -> str:
    """Return the words of an error, cut off where they are long: what they quote may be a whole request."""
    return text if len(text) <= LONGEST_DETAIL else f"{text[:LONGEST_DETAIL]}..."


def not_found(what: str = "page") -> HTTPProblem:
    """Return the problem of an address that does not exist."""
    return HTTPProblem(404, "Not found", f"There is no such {what}.")


def is_for_programs(path: str) -> bool:
    """Say whether programs rather than browsers ask for a path."""
    return path.startswith(API) or path == "/metrics"


def problem_response(problem: HTTPProblem, path: str) -> Response:
    """Return a problem as the response to a request for a path."""
    if is_for_programs(path):
        body = json.dumps(problem.content(), ensure_ascii=True) + "\n"
        return Response(body, problem.status, headers=problem.headers, media_type=PROBLEM_TYPE)
    return page("problem.html", problem.status, problem.headers, problem=problem)


# --- pages and files --------------------------------------------------------------------------------------------------


def page(template: str, status: int = 200, headers: dict[str, str] | None = None, **content: Any) -> HTMLResponse:
    """Return a page made with a template."""
    return HTMLResponse(_environment().get_template(template).render(content), status, headers)


def redirect(address: str) -> Response:
    """Send the browser to a page with GET, so that reloading the page does not send the form again."""
    return RedirectResponse(address, status_code=303)


def download(text: str, kind: str, name: str) -> Response:
    """Return text as a file for the browser to keep."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode("utf-8", "backslashreplace"), media_type=kind, headers=headers)


def picture(svg: str) -> Response:
    """Return an SVG picture that follows the reader's choice of light or dark."""
    start = svg.index(">", svg.index("<svg")) + 1
    svg = f"{svg[:start]}<style>{style('pictures.css')}</style>{svg[start:]}"
    # Opened alone, it is a document: it may have styles in it, and nothing else.
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return Response(svg, media_type="image/svg+xml", headers=headers)


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
    found.filters |= {"shown": shown, "quoted": quoted, "rounded": rounded, "lines": _visible_lines}
    return found


def _visible_lines(text: str) -> Any:
    """Return text with its line breaks kept; any other invisible character is written out."""
    from markupsafe import Markup, escape

    return Markup("\n").join(escape(visible(line)) for line in text.splitlines())
