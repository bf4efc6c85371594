"""A model behind HTTP: rows go out as JSON in batches, labels, scores or class probabilities come back.

    rows  ->  batches  ->  POST, again where the server is busy  ->  predictions in the order of the rows

A server that cannot be reached, stays busy or answers nonsense ends the work (`ModelError`). One that refuses a batch
raises `RemoteRowsError` for it, one that answers to fewer or more rows `BadAnswerError`: the caller then asks about
smaller parts, until the row concerned stands alone. Rows and headers go to the address given and to no other, so a
redirect is not followed; time and size of a whole answer are limited, however it comes.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from math import inf
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

import numpy as np
import pandas as pd

from onbmacf._base.checks import check_choice, check_count, real_number, shortened
from onbmacf._columns.interop import pandas_frame
from onbmacf._table.replies import BadAnswerError
from onbmacf.errors import ModelError, OnbmacfError, ParameterError

BUSY = (408, 425, 429, 502, 503, 504)  # the same request may be answered later
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0  # seconds before another attempt; twice as long each time
SHOWN = 300  # characters of a server's words that an error repeats
LARGEST_ANSWER = 64 << 20  # bytes


class RemoteRowsError(OnbmacfError, ValueError):
    """A server refused some rows; the message says which and why."""


# Names of columns and rows of values, as the servers take them.
FORMS: dict[str, Callable[[list[str], list[list[Any]]], dict[str, Any]]] = {
    "instances": lambda names, rows: {"instances": [dict(zip(names, row, strict=True)) for row in rows]},
    "dataframe_split": lambda names, rows: {"dataframe_split": {"columns": names, "data": rows}},
    "matrix": lambda names, rows: {"instances": rows},
}


@dataclass(frozen=True)
class RemoteModel:
    """A model that a server runs: rows are sent to it as JSON.

    The request holds the rows as ``{"instances": [{"age": 31, ...}, ...]}``, as KServe and Vertex AI take them; with
    ``form="matrix"`` each is a list of values, with ``form="dataframe_split"`` as MLflow takes them. The answer is a
    list with one entry per row, or an object that has it under ``"predictions"``. An entry is a label, a list of class
    probabilities, or a score, for which ``fit`` takes ``threshold`` and ``classes``. Missing values are null.

    Parameters
    ----------
    url : str
        Where to send requests, starting with http:// or https://.
    batch : int, default 512
        The most rows in one request.
    timeout : float, default 30
        Seconds to wait for each answer, to its last byte.
    retries : int, default 3
        How often a request is sent again to a server that cannot be reached, is too slow, or says that it is busy
        (408, 425, 429, 502, 503, 504), after 0.25, 0.5, 1, ... seconds.
    headers : mapping, optional
        Sent along, for example ``{"Authorization": "Bearer ..."}``; not shown when the model is printed.
    form : {"instances", "matrix", "dataframe_split"}
        How rows are written.

    Examples
    --------
    >>> RemoteModel("http://127.0.0.1:8080/predict", timeout=5)
    RemoteModel(url='http://127.0.0.1:8080/predict', batch=512, timeout=5, retries=3, form='instances')

    """

    url: str
    batch: int = 512
    timeout: float = 30.0
    retries: int = 3
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: str = "instances"

    def __post_init__(self) -> None:
        if not _names_host(self.url):
            raise ParameterError(f"url must start with http:// or https:// and name a host, got {shortened(self.url)}.")
        check_count("batch", self.batch)
        check_count("retries", self.retries, least=0)
        check_choice("form", self.form, FORMS)
        if not 0 < real_number(self.timeout) < inf:
            raise ParameterError(f"timeout must be above 0 seconds, got {shortened(self.timeout)}.")

    def predict(self, rows: Any) -> Any:
        """Return what the server says of the rows, in their order."""
        rows = pandas_frame(rows)
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows))
        found: list[Any] = []
        for start in range(0, len(frame), self.batch):
            part = frame.iloc[start : start + self.batch]
            where = f"rows {start} to {start + len(part) - 1}" if len(part) > 1 else f"row {start}"
            body = json.dumps(FORMS[self.form]([str(name) for name in part.columns], _rows(part))).encode("utf-8")
            found += _predictions(self._posted(body, where), len(part), self.url)
        if found and isinstance(found[0], list):
            return np.array(found, dtype=np.float64)
        # Labels as numpy would hold them, without turning numbers among text into text.
        is_of_one_type = len({type(value) for value in found}) == 1
        return np.array(found) if is_of_one_type else np.array([*found, None], dtype=object)[:-1]

    def _posted(self, body: bytes, where: str) -> bytes:
        """Send a request, again after a pause where that may help; return the body of the answer."""
        for attempt in range(self.retries + 1):
            try:
                return self._send(body)
            except HTTPError as error:
                with error:  # which holds the connection
                    said = error.read(SHOWN * 4).decode("utf-8", "replace").strip()[:SHOWN]
                if 300 <= error.code < 400:
                    goal = shortened(error.headers.get("Location", ""))
                    raise ModelError(
                        f"{self.url} redirects to {goal}, which is not followed. Give that address."
                    ) from error
                if error.code not in BUSY:
                    raise RemoteRowsError(f"{self.url} answered {error.code} for {where} of a call: {said}") from error
                fault = f"answered {error.code} {said}".strip()
            except (URLError, HTTPException, OSError) as error:
                fault = f"cannot be asked: {getattr(error, 'reason', error)}"
            if attempt < self.retries:
                time.sleep(min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE))
        raise ModelError(f"{self.url} {fault} ({where} of a call, after {self.retries + 1} attempts).")

    def _send(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self.headers}
        request = Request(self.url, data=body, headers=headers, method="POST")
        with _opener(urlsplit(self.url).hostname or "").open(request, timeout=self.timeout) as answer:
            content: bytes = answer.read(LARGEST_ANSWER + 1)
        if len(content) > LARGEST_ANSWER:
            raise ModelError(f"{self.url} answered with more than {LARGEST_ANSWER >> 20} MiB.")
        return content


# --- connections ------------------------------------------------------------------------------------------------------


def _opener(host: str) -> OpenerDirector:
    """Return what opens an address: through the proxies that are set, but for this machine's own."""
    is_own = host in ("localhost", "::1") or host.startswith("127.")
    handlers = [_Plain(), _Encrypted(), _NoRedirect()]
    return build_opener(*handlers, ProxyHandler({})) if is_own else build_opener(*handlers)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow nothing: the answer that redirects is the error."""


class _Timed(RawIOBase):
    """What a server sends, until a deadline: a socket's own timeout begins anew with every byte."""

    def __init__(self, raw: RawIOBase, sock: Any, deadline: float) -> None:
        self._raw, self._sock, self._deadline = raw, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _response(deadline: float, sock: Any, *args: Any, **how: Any) -> HTTPResponse:
    answer = HTTPResponse(sock, *args, **how)
    answer.fp = BufferedReader(_Timed(answer.fp.detach(), sock, deadline))
    return answer


class _Plain(HTTPHandler):
    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPConnection), request)


class _Encrypted(HTTPSHandler):
    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPSConnection), request)


def _connection(kind: type[HTTPConnection], host: str, *, timeout: float, **how: Any) -> HTTPConnection:
    connection = kind(host, timeout=timeout, **how)
    connection.response_class = partial(_response, time.monotonic() + timeout)  # type: ignore[assignment]
    return connection


def _predictions(content: bytes, n_rows: int, url: str) -> list[Any]:
    try:
        answer = json.loads(content)
    except ValueError as error:
        raise ModelError(f"{url} did not answer with JSON but with {content[:60]!r}.") from error
    found = answer.get("predictions") if isinstance(answer, dict) else answer
    if not isinstance(found, list):
        raise ModelError(f"{url} must answer with a list, or an object with 'predictions', got {str(answer)[:60]!r}.")
    if len(found) != n_rows:
        raise BadAnswerError(f"{url} was sent {n_rows} rows and answered with {len(found)} predictions.")
    return found


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the values of each row as JSON has them."""
    columns = [[_plain(value) for value in frame.iloc[:, place].tolist()] for place in range(frame.shape[1])]
    return [list(row) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | str):
        return value
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return value if isinstance(value, float) else str(value)


def _names_host(url: Any) -> bool:
    """Say whether something is the address of a server: a scheme, a host, and a port that can be one."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 80) > 0 and " " not in url
    except (AttributeError, TypeError, ValueError):
        return False
