"""Limits on what comes in: bytes of a body, as they are announced and as they arrive."""

from typing import Any

from starlette.datastructures import Headers

from onbmacf.web.problems import Problem
from onbmacf.web.security import refusal


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
