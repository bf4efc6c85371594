"""The server: a socket, one printed line with the link, a clean end on Ctrl-C and SIGTERM.

Source, Settings  ->  run_server  ->  requests until a signal  ->  what was accepted is answered, then the end
"""

import logging
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from html import escape
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from onbmacf._views.plans import Source
from onbmacf.errors import ParameterError
from onbmacf.web.settings import Settings

BACKLOG = 128
OPEN_SECONDS = 60.0  # for a browser to start and read the file with the link


def run_server(
    source: Source, settings: Settings, *, open_browser: bool = False, tell: Callable[[str], None] | None = None
) -> None:
    """Serve until Ctrl-C or SIGTERM; the link is told when it can be opened."""
    _log_to_stderr(settings.log)
    ended = threading.Event()
    with TemporaryDirectory(prefix="onbmacf-open-", ignore_cleanup_errors=True) as folder:  # for the owner only

        def ready(settings: Settings) -> None:
            (tell or partial(print, flush=True))(link(settings))
            if open_browser:
                threading.Thread(target=_open, args=(link(settings), Path(folder), ended), daemon=True).start()

        server, bound = make_server(source, settings, ready)
        try:
            server.run(sockets=[bound])
        finally:
            ended.set()
            bound.close()


def make_server(source: Source, settings: Settings, ready: Callable[[Settings], None]) -> tuple[Any, socket.socket]:
    """Return a server that has not begun, and its socket; `ready` gets the settings with the port that was taken."""
    try:
        from onbmacf.web.app import create_app
    except ImportError as error:
        raise ImportError(f"serving needs the extra 'web': pip install 'onbmacf[web]' ({error})") from error
    bound = bind(settings)
    settings = replace(settings, port=bound.getsockname()[1])
    try:
        return _server(create_app(source, settings), settings, lambda: ready(settings)), bound
    except BaseException:
        bound.close()
        raise


def link(settings: Settings) -> str:
    """Return the address with its token."""
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{settings.port}/?token={quote(settings.token, safe='')}"


def bind(settings: Settings) -> socket.socket:
    """Return a socket that listens; an error that names the address where it cannot."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        raise ParameterError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}. Port 0 takes a free one."
        ) from error
    bound.listen(BACKLOG)
    bound.set_inheritable(True)
    return bound


def _server(app: Any, settings: Settings, ready: Callable[[], None]) -> Any:
    import uvicorn

    from onbmacf.web.connections import BoundedProtocol

    class Server(uvicorn.Server):
        """Says when it is ready, and ends without passing the signal on."""

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                ready()

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            with _on_signals(self.handle_exit):
                yield

    protocol: Any = partial(BoundedProtocol, settings=settings)
    config = uvicorn.Config(
        app, http=protocol, log_config=None, access_log=False, server_header=False, date_header=True, backlog=BACKLOG,
        proxy_headers=False, timeout_keep_alive=ceil(settings.limits.head_timeout), ws="none",
        # The protocol counts connections; requests whose client has gone count here.
        limit_concurrency=settings.limits.max_connections + settings.limits.max_waiting,
    )  # fmt: skip
    return Server(config)


@contextmanager
def _on_signals(stop: Callable[[int, Any], None]) -> Iterator[None]:
    """Call a function on Ctrl-C and SIGTERM instead of what they do otherwise; only the main thread hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _log_to_stderr(is_verbose: bool) -> None:
    """Write our log to stderr: faults always, requests where wanted. uvicorn is silent: its lines name addresses."""
    log = logging.getLogger("onbmacf.web")
    if not log.handlers:
        writer = logging.StreamHandler(sys.stderr)
        writer.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(writer)
        log.propagate = False
    log.setLevel(logging.INFO if is_verbose else logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)


def _open(address: str, folder: Path, ended: threading.Event) -> None:
    """Open the link in a browser, by a file that leads there: everybody on the machine can read a command's words."""
    file = folder / "open.html"
    file.touch(mode=0o600)
    file.write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(address)}">', encoding="utf-8")
    with suppress(webbrowser.Error):
        webbrowser.open(file.as_uri())
    ended.wait(OPEN_SECONDS)
    file.unlink(missing_ok=True)
