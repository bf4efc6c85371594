"""Errors as problem+json (RFC 9457): the library's own sentence for what the caller can fix, nothing of what is inside.

exception  ->  Problem (status, title, detail, headers)  ->  response
"""

import json
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from onbmacf.errors import (
    ModelError,
    NotEnoughMemoryError,
    OnbmacfError,
    ParameterError,
    RowsError,
    TableError,
)

TYPE = "application/problem+json"
STATUS_OF: dict[type[Exception], int] = {
    ParameterError: 422,
    RowsError: 422,
    TableError: 422,
    ModelError: 502,
    NotEnoughMemoryError: 503,
    OnbmacfError: 500,
}


@dataclass(eq=False)  # not frozen: Python writes tracebacks into exceptions
class Problem(Exception):  # noqa: N818 - the name that the standard gives it
    """What went wrong, as the reader of the response sees it."""

    status: int
    title: str
    detail: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """Return what the body says."""
        kind = self.title.lower().replace(" ", "-")
        return {"type": f"urn:onbmacf:{kind}", "title": self.title, "status": self.status, "detail": self.detail}

    def response(self) -> Response:
        """Return the response."""
        body = json.dumps(self.content(), ensure_ascii=True) + "\n"
        return Response(body, self.status, headers=self.headers, media_type=TYPE)


def as_problem(error: Exception) -> Problem:
    """Return an exception as a problem; what is not ours says only that something is wrong."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ImportError) and "extra" in str(error):
        return Problem(501, "Not installed", str(error))
    for kind, status in STATUS_OF.items():
        if isinstance(error, kind):
            retry = {"Retry-After": "10"} if status == 503 else {}
            return Problem(status, _title(type(error)), str(error), retry)
    return Problem(500, "Internal error", "Something went wrong here. It was written to the log of the service.")


def busy(seconds: int = 1) -> Problem:
    """Return what is said where too many requests wait."""
    return Problem(503, "Busy", "Too many requests are waiting. Ask again shortly.", {"Retry-After": str(seconds)})


def too_slow(seconds: float) -> Problem:
    """Return what is said where an answer takes too long."""
    detail = f"No answer within {seconds:g} s. Ask for fewer rows, or as a stream of lines."
    return Problem(503, "Timed out", detail, {"Retry-After": "5"})


def stuck(n_calls: int) -> Problem:
    """Return what is said where the model does not come back from calls that were given up."""
    calls = "a call" if n_calls == 1 else f"{n_calls} calls"
    detail = (
        f"The model has not come back from {calls}, so nobody can be answered. Start the service again if it stays so."
    )
    return Problem(503, "Model stuck", detail, {"Retry-After": "30"})


def not_found(what: str = "page") -> Problem:
    """Return what is said of an address that is not there."""
    return Problem(404, "Not found", f"There is no such {what}.")


def _title(kind: type[Exception]) -> str:
    """Return the name of an error as words: ParameterError is 'Parameter error'."""
    words = "".join(f" {mark.lower()}" if mark.isupper() else mark for mark in kind.__name__)
    return words.strip().capitalize()
