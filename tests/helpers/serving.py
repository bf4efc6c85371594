"""A service on this machine for tests: a real server in a thread, and a client that has its token."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from commands import PATIENCE, wait_for
from onbmacf._views.plans import Source
from onbmacf.web.server import make_server
from onbmacf.web.settings import Settings


@dataclass
class Running:
    """A service that answers."""

    base: str
    token: str
    server: object

    def client(self, **how):
        headers = {"Authorization": f"Bearer {self.token}", **how.pop("headers", {})}
        return httpx.Client(base_url=self.base, headers=headers, timeout=PATIENCE, **how)

    @contextmanager
    def browser(self):
        """A client that has come by the link, as a browser does: with a cookie, without the token."""
        with httpx.Client(base_url=self.base, timeout=PATIENCE, follow_redirects=True) as client:
            assert client.get("/", params={"token": self.token}).status_code == 200
            yield client

    def service(self):
        return self.server.config.app.state.service


@contextmanager
def serving(explainer, table=None, target=None, name="a table", **settings):
    """Serve until the block ends; it is an error if the server does not end then."""
    ready = threading.Event()
    found = []

    def note(settings):
        found.append(settings)
        ready.set()

    source = Source.of(explainer, table, target=target, name=name, model_name="a model")
    server, bound = make_server(source, Settings.of(**settings), note)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        wait_for(lambda: ready.is_set() or not thread.is_alive())
        yield Running(f"http://127.0.0.1:{found[0].port}", found[0].token, server)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        bound.close()
        assert not thread.is_alive()
