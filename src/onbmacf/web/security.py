"""Who may ask, from where, how much, and what browsers may do with what they get (docs/decisions/0073-serve.md)."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response

from onbmacf.web.problems import Problem
from onbmacf.web.settings import Settings

OPEN = ("/healthz",)  # what anyone may ask
OPEN_FOLDER = "/static/"
SERVICE = "/v1/"
SAFE = ("GET", "HEAD", "OPTIONS")
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


# --- security ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """The token, and what is derived from it: signed sessions and the word of their forms."""

    token: str
    cookie: str = "onbmacf"
    is_https: bool = False

    def is_token(self, word: str) -> bool:
        """Say whether a word is the token, in a time that does not depend on how much of it is right."""
        return hmac.compare_digest(word.encode("utf-8", "replace"), self.token.encode())

    def new_session(self) -> str:
        """Return a new session with its signature."""
        session = secrets.token_urlsafe(16)
        return f"{session}.{self._sign('session', session)}"

    def session_of(self, word: str) -> str | None:
        """Return the session that a cookie names; None where its signature is not ours."""
        session, _, signature = word.partition(".")
        right = self._sign("session", session)
        is_ours = hmac.compare_digest(signature.encode("utf-8", "replace"), right.encode())
        return session if is_ours else None

    def form_word(self, session: str) -> str:
        """Return the word that forms of a session carry."""
        return self._sign("form", session)

    def check_form(self, session: str, word: str) -> None:
        """Raise a problem unless a form carries the word of its session."""
        if not hmac.compare_digest(word.encode("utf-8", "replace"), self.form_word(session).encode()):
            raise Problem(403, "Foreign form", "This form was not sent from a page of this service. Reload the page.")

    def set_cookie(self, response: Response) -> None:
        """Let the browser remember a new session."""
        looks: dict[str, Any] = {"httponly": True, "samesite": "strict", "secure": self.is_https, "path": "/"}
        response.set_cookie(self.cookie, self.new_session(), **looks)

    def _sign(self, use: str, text: str) -> str:
        return hmac.new(self.token.encode(), f"{use}:{text}".encode("utf-8", "replace"), sha256).hexdigest()


class Guard:
    """Around the whole app: refuses what must not come in, and adds the headers to everything that goes out."""

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
                _add_headers(MutableHeaders(scope=message), scope["path"])
            await send(message)

        try:
            check_host(request.headers, self.settings.hosts)
            check_origin(request.method, request.headers)
            scope["session"] = self._session(request)
        except Problem as problem:
            return await refusal(problem, scope["path"])(scope, receive, send_with_headers)
        return await self.app(scope, receive, send_with_headers)

    def _session(self, request: Request) -> str:
        """Return who asks: a session, 'program' for a token, '' where anyone may; a problem where nobody is known."""
        path = request.url.path
        kind, _, word = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.keys.is_token(word.strip()):
            return "program"
        session = self.keys.session_of(request.cookies.get(self.keys.cookie, ""))
        if session is not None and (request.method in SAFE or not path.startswith(SERVICE)):
            return session
        if path in OPEN or path.startswith(OPEN_FOLDER) or (path == "/" and request.method in SAFE):
            return ""  # the first page checks the token of the link itself
        raise Problem(401, "Not signed in", _how_to_sign_in(path), {"WWW-Authenticate": "Bearer"})


def check_host(headers: Mapping[str, str], hosts: frozenset[str]) -> None:
    """Raise a problem for a host that is not ours: a foreign name that leads here is an attack (DNS rebinding)."""
    name = _name_of(f"//{headers.get('host', '')}")
    if name not in hosts:
        raise Problem(421, "Foreign host", "This service does not answer under that name. See --allow-host.")


def check_origin(method: str, headers: Headers) -> None:
    """Raise a problem for a request from a page of another site that would change something."""
    if method in SAFE:
        return
    origin = headers.get("origin")
    is_other = origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    if is_other or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Problem(403, "Foreign origin", "Requests from pages of other sites are refused.")


def refusal(problem: Problem, path: str) -> Response:
    """Return a refusal: JSON for programs, a sentence for people."""
    if path.startswith(SERVICE) or path == "/metrics":
        return problem.response()
    from onbmacf.web.rendering import problem_page

    return problem_page(problem)


def _add_headers(headers: MutableHeaders, path: str) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    if path.startswith(OPEN_FOLDER):
        headers["Cache-Control"] = "public, max-age=3600"


def _name_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _how_to_sign_in(path: str) -> str:
    if path.startswith(SERVICE) or path == "/metrics":
        return "Send the header 'Authorization: Bearer TOKEN' with the token that the service was started with."
    return "Open the whole link that 'onbmacf serve' printed when it was started; its token lets this browser in."


# --- limits -----------------------------------------------------------------------------------------------------------


class BodyLimit:
    """Around the app: a body that is too large gets 413, before or while it is read."""

    def __init__(self, app: Any, max_body: int) -> None:
        self.app, self.max_body = app, max_body

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and count what arrives of its body."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self.max_body:
            return await refusal(self._too_large(), scope["path"])(scope, receive, send)
        n_bytes = 0

        async def receive_counted() -> Any:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self.max_body:
                raise self._too_large()
            return message

        return await self.app(scope, receive_counted, send)

    def _too_large(self) -> Problem:
        close = {"Connection": "close"}
        return Problem(413, "Body too large", f"A request may have {self.max_body:,} bytes. Send fewer rows.", close)
