"""Clients that send half of something, or read nothing: they end by a deadline, and others are answered meanwhile."""

import contextlib
import json
import socket
import time
from http.client import HTTPConnection

import pytest

import commands
from commands import wait_for
from onbmacf.errors import ParameterError
from onbmacf.web.settings import Limits
from serving import serving

HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half:"


@contextlib.contextmanager
def wires(running, n, content=b""):
    """Open connections that each send something."""
    host, port = running.base.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(n):
            wire = stack.enter_context(socket.create_connection((host, int(port)), timeout=commands.PATIENCE))
            wire.sendall(content)
            found.append(wire)
        yield found


def said(wire):
    """Return all that a connection says until it ends."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := wire.recv(65536):
            parts.append(part)
    return b"".join(parts)


def half_a_body(running, announced=1000, sent=900):
    head = "POST /v1/explain HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += f"Authorization: Bearer {running.token}\r\nContent-Length: {announced}\r\n\r\n"
    return head.encode() + b" " * sent


def n_open(running):
    return len(running.server.server_state.connections)


def n_held(running):
    """How many bytes of bodies the service holds."""
    layer = running.server.config.app.middleware_stack
    while not hasattr(layer, "n_held"):
        layer = layer.app
    return layer.n_held


def test_half_a_head_has_a_deadline(heart_explainer):
    with serving(heart_explainer, head_timeout=0.2) as running, wires(running, 3, HALF_A_HEAD) as found:
        assert [said(wire) for wire in found] == [b""] * 3
        wait_for(lambda: n_open(running) == 0)


def test_a_head_that_comes_byte_by_byte_has_a_deadline(heart_explainer):
    with serving(heart_explainer, head_timeout=0.5) as running, wires(running, 1, HALF_A_HEAD) as (wire,):
        end = time.monotonic() + commands.PATIENCE
        wire.settimeout(0.02)
        is_open = True
        while is_open:
            assert time.monotonic() < end
            try:
                is_open = wire.recv(1) != b""
            except TimeoutError:
                with contextlib.suppress(ConnectionError):
                    wire.sendall(b"x")
            except ConnectionError:
                is_open = False


@pytest.mark.parametrize("limit", ["max_per_client", "max_connections"])
def test_half_heads_take_no_place_from_a_whole_one(heart_explainer, limit):
    with (
        serving(heart_explainer, head_timeout=600, **{limit: 4}) as running,
        wires(running, 12, HALF_A_HEAD) as found,
        running.client() as client,
    ):
        wait_for(lambda: n_open(running) == 4)
        assert client.get("/v1/schema").status_code == 200
        assert [said(wire) for wire in found[:8]] == [b""] * 8  # the oldest made room
        assert n_open(running) <= 4


def test_half_heads_do_not_close_the_connection_of_a_client_that_was_answered(heart_explainer):
    with serving(heart_explainer, head_timeout=600, max_per_client=4) as running:
        idle = HTTPConnection(running.base.removeprefix("http://"), timeout=commands.PATIENCE)
        idle.request("GET", "/healthz")
        assert idle.getresponse().read() == b"ok\n"
        with wires(running, 12, HALF_A_HEAD) as found:
            assert [said(wire) for wire in found[:9]] == [b""] * 9
            idle.request("GET", "/healthz")
            assert idle.getresponse().read() == b"ok\n"
        idle.close()


def test_connections_that_all_have_a_request_keep_their_places(heart_explainer):
    with serving(heart_explainer, max_per_client=2, timeout=600) as running:
        with wires(running, 2, half_a_body(running)) as busy:
            wait_for(lambda: n_held(running) == 1800)
            with wires(running, 1) as (third,):
                assert said(third).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            for wire in busy:
                wire.sendall(b" " * 100)
                assert wire.recv(65536).startswith(b"HTTP/1.1 400 ")  # whole now, but not JSON
        wait_for(lambda: n_open(running) == 0)
        with running.client() as client:
            assert client.get("/v1/schema").status_code == 200


def test_a_proxy_is_one_address_for_all_its_clients(heart_explainer):
    with (
        serving(heart_explainer, behind_proxy=True, max_per_client=1) as running,
        wires(running, 5, HALF_A_HEAD),
    ):
        wait_for(lambda: n_open(running) == 5)


def test_half_a_body_has_the_deadline_of_a_request(heart_explainer):
    with serving(heart_explainer, timeout=0.3) as running:
        with wires(running, 2, half_a_body(running)) as found:
            for wire in found:
                head, _, body = said(wire).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 408 ")
                assert json.loads(body)["detail"].startswith("The body did not arrive within 0.3 s.")
        assert n_held(running) == 0


def test_bodies_are_bounded_together(heart_explainer):
    with serving(heart_explainer, max_body=1000, max_bodies=1500, timeout=600) as running:
        with wires(running, 1, half_a_body(running)) as (first,):
            wait_for(lambda: n_held(running) == 900)
            with wires(running, 1, half_a_body(running)) as (second,):
                wait_for(lambda: n_held(running) == 1800)
                second.sendall(b" " * 100)
                assert b"\r\nretry-after: 1\r\n" in said(second).lower()
            first.sendall(b" " * 100)
            assert first.recv(65536).startswith(b"HTTP/1.1 400 ")
        wait_for(lambda: n_held(running) == 0)
        with wires(running, 1, half_a_body(running, sent=1000)) as (third,):
            assert third.recv(65536).startswith(b"HTTP/1.1 400 ")
    with pytest.raises(ParameterError, match="max_bodies must be at least max_body, 1000, got 10"):
        Limits(max_body=1000, max_bodies=10)


def test_a_client_that_reads_no_answer_is_cut_off(heart_explainer):
    ask = b"GET /static/page.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100
    with serving(heart_explainer, head_timeout=0.5) as running, wires(running, 1) as (wire,):
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        end = time.monotonic() + commands.PATIENCE
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                wire.settimeout(1)  # nobody takes it any more: the service waits for us
                wire.sendall(ask)
        wait_for(lambda: n_open(running) == 0)
