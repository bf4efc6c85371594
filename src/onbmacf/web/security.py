"""Who may ask, from where, how much, and what browsers may do with what they get (docs/decisions/0073-serve.md).

token  ->  Keys  ->  session cookies, CSRF tokens
request  ->  SecurityMiddleware (host, origin, session; headers of every response)  ->  BodyLimitMiddleware
"""

import asyncio
import hmac
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response

from onbmacf._base.checks import whole_number
from onbmacf.web.responses import API, HTTPProblem, is_for_programs, problem_response
from onbmacf.web.settings import Limits, Settings

HEALTH = "/healthz"
DRAINED, DRAIN_SECONDS = 64 << 20, 10.0  # the most bytes and time for what is left of a body that is refused
STATIC_FOLDER = "/static/"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Nothing is told to other sites. 'no-referrer' would also hide from ourselves where a form was sent from.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def new_id() -> str:
    """Return an id that nobody guesses."""
    return secrets.token_urlsafe(9)


# --- tokens and sessions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """The service's token, and what is derived from it: signed session cookies and CSRF tokens."""

    token: str
    cookie: str = "onbmacf"  # its name
    is_https: bool = False

    def is_token(self, text: str) -> bool:
        """Say whether a text is the token, in a time that does not depend on how much of it is right."""
        return _are_equal(text, self.token)

    def session_id_of(self, cookie: str) -> str | None:
        """Return the session that a cookie's value names; None where its signature is not ours."""
        session_id, _, signature = cookie.partition(".")
        return session_id if _are_equal(signature, self._signature("session", session_id)) else None

    def csrf_token(self, session_id: str) -> str:
        """Return the token that every form of a session carries."""
        return self._signature("form", session_id)

    def check_csrf_token(self, session_id: str, text: str) -> None:
        """Raise a problem unless a form carries the CSRF token of its session."""
        if not _are_equal(text, self.csrf_token(session_id)):
            detail = "This form was not sent from a page of this service. Reload the page."
            raise HTTPProblem(403, "Foreign form", detail)

    def start_session(self, response: Response) -> None:
        """Start a new session: the response sets its signed cookie."""
        session_id = secrets.token_urlsafe(16)
        signed = f"{session_id}.{self._signature('session', session_id)}"
        response.set_cookie(self.cookie, signed, path="/", secure=self.is_https, httponly=True, samesite="strict")

    def _signature(self, purpose: str, text: str) -> str:
        return hmac.new(self.token.encode(), f"{purpose}:{text}".encode("utf-8", "replace"), sha256).hexdigest()


def _are_equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


# --- middleware -------------------------------------------------------------------------------------------------------


class SecurityMiddleware:
    """Refuses what must not come in, and adds the headers to everything that goes out."""

    def __init__(self, app: Any, keys: Keys, settings: Settings) -> None:
        self.app, self.keys, self.settings = app, keys, settings

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Check a request and pass it on."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        request = Request(scope)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith(STATIC_FOLDER):
                    headers["Cache-Control"] = "public, max-age=3600"
            await send(message)

        try:
            check_host(request.headers, self.settings.hosts)
            check_origin(request.method, request.headers)
            scope["session_id"] = self._session_id(request)
        except HTTPProblem as problem:
            return await problem_response(problem, scope["path"])(scope, receive, send_with_headers)
        return await self.app(scope, receive, send_with_headers)

    def _session_id(self, request: Request) -> str:
        """Return who asks: a session, 'program' for a token, '' where anyone may; a problem where nobody is known."""
        path, is_safe = request.url.path, request.method in SAFE_METHODS
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.keys.is_token(token.strip()):
            return "program"
        session_id = self.keys.session_id_of(request.cookies.get(self.keys.cookie, ""))
        if session_id is not None and (is_safe or not path.startswith(API)):
            return session_id
        if path == HEALTH or path.startswith(STATIC_FOLDER) or (path == "/" and is_safe):
            return ""  # the first page checks the token of the link itself
        detail = "Open the whole link that 'onbmacf serve' printed when it was started; its token lets this browser in."
        if is_for_programs(path):
            detail = "Send the header 'Authorization: Bearer TOKEN' with the token that the service was started with."
        raise HTTPProblem(401, "Not signed in", detail, {"WWW-Authenticate": "Bearer"})


def check_host(headers: Mapping[str, str], hosts: frozenset[str]) -> None:
    """Raise a problem for a host that is not ours: a foreign name that leads here is an attack (DNS rebinding)."""
    try:
        name = urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        name = None
    if name not in hosts:
        raise HTTPProblem(421, "Foreign host", "This service does not answer under that name. See --allow-host.")


def check_origin(method: str, headers: Headers) -> None:
    """Raise a problem for a request from a page of another site that would change something."""
    if method in SAFE_METHODS:
        return
    origin = headers.get("origin")
    is_other = origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()
    if is_other or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPProblem(403, "Foreign origin", "Requests from pages of other sites are refused.")


class BodyLimitMiddleware:
    """Bounds bodies: 413 for one that is too large, 408 for one that is too slow, 503 where all together are too much.

    Starlette's RequestBodyLimitMiddleware answers in plain text, and only the newest releases have it.
    """

    def __init__(self, app: Any, limits: Limits) -> None:
        self.app, self.limits, self.n_held = app, limits, 0
        close = {"Connection": "close"}
        detail = f"A request may have {limits.max_body:,} bytes. Send fewer rows."
        self.too_large = partial(HTTPProblem, 413, "Body too large", detail, close)
        detail = f"The body did not arrive within {limits.timeout:g} s. Send it faster, or fewer rows."
        self.too_slow = partial(HTTPProblem, 408, "Body too slow", detail, close)
        detail = "Too many large requests are being answered. Ask again shortly."
        self.too_many = partial(HTTPProblem, 503, "Busy", detail, {"Retry-After": "1", **close})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and count the bytes of its body that arrive; they are held until it is answered."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        announced = whole_number(Headers(scope=scope).get("content-length", "0"))
        if not 0 <= announced <= self.limits.max_body:
            await _drain(receive)
            return await problem_response(self.too_large(), scope["path"])(scope, receive, send)
        n_bytes, is_complete = 0, False
        deadline = asyncio.get_running_loop().time() + self.limits.timeout

        async def receive_counted() -> Any:
            nonlocal n_bytes, is_complete
            try:
                async with asyncio.timeout_at(None if is_complete else deadline):
                    message = await receive()
            except TimeoutError:
                raise self.too_slow() from None
            n_new = len(message.get("body", b""))
            n_bytes, self.n_held = n_bytes + n_new, self.n_held + n_new
            is_complete = not message.get("more_body")
            if n_bytes > self.limits.max_body or self.n_held > self.limits.max_bodies:
                if not is_complete:
                    await _drain(receive)
                raise self.too_large() if n_bytes > self.limits.max_body else self.too_many()
            return message

        try:
            return await self.app(scope, receive_counted, send)
        finally:
            self.n_held -= n_bytes


async def _drain(receive: Any) -> None:
    """Read the rest of a body and forget it: most clients read no answer before they have sent all."""
    n_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while n_bytes <= DRAINED:
                message = await receive()
                n_bytes += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
