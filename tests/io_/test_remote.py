"""A model behind HTTP, a real server on this machine: it answers as the model itself, and what goes wrong is said."""

import json
import pickle
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pandas as pd
import pytest

from _table.test_kinds_of_models import NAMES, TABLE
from onbmacf import ONBMACF
from onbmacf.errors import ModelError, ParameterError
from onbmacf.io import RemoteModel, load_model, remote
from onbmacf.io.remote import RemoteRowsError


class Server(HTTPServer):
    """Answers rows by a rule; `faults` are statuses that the next requests get instead."""

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.faults, self.bodies, self.headers = answer, [], [], []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/predict"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.server.headers.append(dict(self.headers))
        status, answer = (self.server.faults.pop(0), b"not now") if self.server.faults else self.server.answer(body)
        answer = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def rule(body):
    rows = body["instances"]
    if any(row["age"] == 21 for row in rows):
        return 422, {"detail": "age 21 is not served"}
    return 200, {"predictions": ["yes" if row["pay"] > 0.5 * row["age"] + 28 else "no" for row in rows]}


@pytest.fixture
def served():
    servers = []

    def start(answer=rule):
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


GOOD = TABLE[TABLE["age"] != 21].reset_index(drop=True)


def test_a_model_behind_http_answers_as_the_model_itself(served):
    server = served()
    model = RemoteModel(server.url, batch=50, headers={"Authorization": "Bearer x"})
    local = lambda rows: np.where(rows["pay"] > 0.5 * rows["age"] + 28, "yes", "no")  # noqa: E731
    explainer = ONBMACF(2).fit(GOOD, model)
    assert explainer.explain(GOOD.head(5)).to_dicts() == ONBMACF(2).fit(GOOD, local).explain(GOOD.head(5)).to_dicts()
    assert max(len(body["instances"]) for body in server.bodies) == 50
    assert {head["Authorization"] for head in server.headers} == {"Bearer x"}
    assert "Bearer" not in repr(model)
    assert pickle.loads(pickle.dumps(model)) == model


@pytest.mark.parametrize("form", ["matrix", "dataframe_split"])
def test_rows_and_probabilities_in_the_forms_that_servers_know(served, form):
    def shares(body):
        values = body["instances"] if form == "matrix" else body["dataframe_split"]["data"]
        sure = [0.9 if pay > 0.5 * age + 28 else 0.2 for age, pay in values]
        return 200, [[1 - share, share] for share in sure]

    explainer = ONBMACF().fit(GOOD, RemoteModel(served(shares).url, form=form), classes=NAMES)
    assert explainer.classes_.tolist() == NAMES
    assert explainer.explain(GOOD.head(3)).to_frame()["to"].isin(NAMES).all()


def test_scores_of_a_server_take_a_threshold(served):
    server = served(lambda body: (200, [row["pay"] - 0.5 * row["age"] for row in body["instances"]]))
    explainer = ONBMACF().fit(GOOD, load_model(server.url), threshold=28, classes=NAMES)
    assert set(explainer.explain(GOOD.head(4)).statuses) == {"found"}


def test_a_busy_server_is_asked_again_and_a_dead_one_is_named(served, monkeypatch):
    monkeypatch.setattr(remote, "FIRST_PAUSE", 0.001)
    server = served()
    server.faults += [503, 429, 502]
    assert len(RemoteModel(server.url).predict(GOOD.head(3))) == 3
    assert len(server.bodies) == 4
    server.faults += [503] * 9
    with pytest.raises(ModelError, match=r"answered 503 not now \(rows 0 to 2 of a call, after 3 attempts\)"):
        RemoteModel(server.url, retries=2).predict(GOOD.head(3))
    server.faults.clear()
    server.shutdown()
    server.server_close()
    with pytest.raises(ModelError, match=r"127\.0\.0\.1.* cannot be asked: .*after 2 attempts"):
        ONBMACF().fit(GOOD, RemoteModel(server.url, retries=1, timeout=0.5))


def test_a_slow_server_is_left_in_time(served, monkeypatch):
    monkeypatch.setattr(remote, "FIRST_PAUSE", 0.001)
    wait = threading.Event()
    server = served(lambda body: (wait.wait(20), (200, []))[1])
    with pytest.raises(ModelError, match="timed out"):
        RemoteModel(server.url, retries=0, timeout=0.2).predict(GOOD.head(1))
    wait.set()


class Raw:
    """Sends bytes to whoever asks, one piece at a time, until it is closed or the other side is gone."""

    def __init__(self, pieces):
        self.bound = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.bound.getsockname()[1]}/predict"
        threading.Thread(target=self._serve, args=(pieces,), daemon=True).start()

    def _serve(self, pieces):
        with suppress(OSError):
            while True:
                line, _ = self.bound.accept()
                with line, suppress(OSError):
                    line.recv(1 << 16)
                    for piece in pieces():
                        line.sendall(piece)


def dripping(before):
    """Return a server's answer that begins with some bytes and never ends, one byte after the other."""

    def pieces():
        yield before
        for _ in range(400):  # at least 20 s in all
            time.sleep(0.05)
            yield b" "

    return pieces


@pytest.mark.parametrize(
    "before", [b"HTTP/1.1 200 OK\r\nX-Slow:", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n["], ids=["head", "body"]
)
def test_a_server_that_sends_a_byte_at_a_time_is_left_in_time(before):
    server = Raw(dripping(before))
    with server.bound, pytest.raises(ModelError, match="timed out"):
        RemoteModel(server.url, retries=0, timeout=0.4).predict(GOOD.head(1))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(served, status):
    other = served(lambda body: (200, {"predictions": ["yes"] * len(body["instances"])}))
    server = Raw(lambda: [f"HTTP/1.1 {status} Moved\r\nLocation: {other.url}\r\nContent-Length: 0\r\n\r\n".encode()])
    with server.bound, pytest.raises(ModelError, match=r"redirects to 'http://127.*', which is not followed"):
        RemoteModel(server.url, headers={"Authorization": "Bearer secret"}).predict(GOOD.head(3))
    assert not other.headers


def test_an_answer_without_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(remote, "LARGEST_ANSWER", 1 << 20)
    server = Raw(lambda: [b"HTTP/1.1 200 OK\r\n\r\n", *[b"[" * (1 << 16)] * 400])
    with server.bound, pytest.raises(ModelError, match="answered with more than 1 MiB"):
        RemoteModel(server.url, retries=0).predict(GOOD.head(1))


def test_the_row_that_a_server_refuses_is_named(served):
    server = served()
    with pytest.raises(RemoteRowsError, match=r"answered 422 for row 0 of a call: .*age 21 is not served") as raised:
        RemoteModel(server.url).predict(pd.DataFrame({"age": [21], "pay": [3.0]}))
    assert raised.value.__cause__.closed  # the connection
    bad = pd.concat([GOOD.head(30), pd.DataFrame({"age": [21], "pay": [30.0]}), GOOD.tail(20)], ignore_index=True)
    with pytest.raises(ModelError, match="the model raised on row 30 of the table"):
        ONBMACF().fit(bad, RemoteModel(server.url))
    answers = ONBMACF().fit(GOOD, RemoteModel(server.url)).explain(bad.iloc[[29, 30, 31]])
    assert answers.statuses.tolist()[1] == "model_error"
    assert "age 21 is not served" in answers.reasons[1]
    assert answers.statuses[0] == answers.statuses[2] == "found"


@pytest.mark.parametrize(
    "answer, message",
    [
        (b"<html>", "did not answer with JSON but with b'<html>'"),
        ({"labels": []}, "must answer with a list, or an object with 'predictions'"),
        (["yes"], "was sent 3 rows and answered with 1 predictions"),
    ],
)
def test_an_answer_that_is_none_is_said(served, answer, message):
    with pytest.raises(ModelError, match=message):
        RemoteModel(served(lambda body: (200, answer)).url).predict(GOOD.head(3))


@pytest.mark.parametrize(
    "told, message",
    [
        ({"url": "ftp://x/"}, "url must start with http"),
        ({"batch": 0}, "batch must be a whole number"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"retries": -1}, "retries must be a whole number of at least 0"),
        ({"form": "xml"}, "form must be one of"),
    ],
)
def test_how_a_server_is_asked_is_checked(told, message):
    with pytest.raises(ParameterError, match=message):
        RemoteModel(**{"url": "http://127.0.0.1:1/", **told})


def test_missing_values_and_dates_are_written_as_json_has_them(served):
    server = served(lambda body: (200, [1] * len(body["instances"])))
    frame = pd.DataFrame({"a": [np.nan, 2.5], "b": pd.to_datetime(["2024-02-03", None]), "c": ["x", None]})
    assert RemoteModel(server.url).predict(frame).tolist() == [1, 1]
    assert server.bodies[0]["instances"] == [
        {"a": None, "b": "2024-02-03 00:00:00", "c": "x"},
        {"a": 2.5, "b": None, "c": None},
    ]
