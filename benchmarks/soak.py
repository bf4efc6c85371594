"""`onbmacf serve --workers 2` under bad clients and dying workers: nobody who asks properly gets a wrong answer.

    python benchmarks/soak.py [--seconds 600] [--clients 16] [--kill-every 20]

On 127.0.0.1, about the heart data. Clients compare each answer with the one computed in this process; beside them
others send half a head or half a body, send slowly, or go away before they are answered, and a worker is killed every
so often. Ends by itself, with exit code 1 where an answer was wrong, or something else came than one or 503.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pandas as pd

from onbmacf import ONBMACF, Schema
from onbmacf.cli.inputs import labelled_heart
from onbmacf.datasets import heart_network

ROWS = 40
TOKEN = "the token of the soak test"
TIMEOUT = 10  # seconds: of the service, so that its deadlines pass several times
HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half:"
SERVE = ("serve", "--target", "healthy", "--workers", "2", "--port", "0", "--no-open", "--timeout", str(TIMEOUT))


def main(words=None):
    """Run, print what happened, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--kill-every", type=float, default=20, help="seconds between two workers killed")
    asked = parser.parse_args(words)
    tally = measured(asked.seconds, asked.clients, asked.kill_every)
    print(tally.text())
    return 0 if tally.is_good() else 1


# --- what happened ----------------------------------------------------------------------------------------------------


class Tally:
    """What all clients saw, counted from several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = dict.fromkeys(("answered", "wrong", "refused", "cut off", "other", "killed", "bad clients"), 0)
        self.longest, self.last = 0.0, time.monotonic()  # seconds without an answer, and when the last one came
        self.memory = []  # MB: at the start, in the middle, at the end
        self.exit_code = None

    def count(self, kind):
        """Count one of a kind; after an answer, note how long there was none."""
        with self.lock:
            self.counts[kind] += 1
            if kind == "answered":
                now = time.monotonic()
                self.longest, self.last = max(self.longest, now - self.last), now

    def judge(self, status, text, expected):
        """Count the response to a proper request."""
        if status == 503:
            self.count("refused")
        elif status != 200:
            self.count("other")
        else:
            self.count("answered" if text == expected else "wrong")

    def is_good(self):
        """Whether all was as promised."""
        return self.counts["wrong"] == self.counts["other"] == self.exit_code == 0 < self.counts["answered"]

    def text(self):
        """Return the tally as lines."""
        counts, memory = self.counts, " / ".join(f"{size:,.0f}" for size in self.memory)
        return "\n".join(
            [
                f"requests answered                      {counts['answered']:,}",
                f"wrong answers                          {counts['wrong']:,}",
                f"503, to be asked again                 {counts['refused']:,}",
                f"connections closed by the service      {counts['cut off']:,}",
                f"other responses                        {counts['other']:,}",
                f"workers killed                         {counts['killed']:,}",
                f"bad clients (half, slow, gone)         {counts['bad clients']:,}",
                f"longest time without any answer        {self.longest:.1f} s",
                f"MB at start / in the middle / at end   {memory or 'not measured here'}",
                f"exit code of the service               {self.exit_code}",
            ]
        )


# --- the run ----------------------------------------------------------------------------------------------------------


def measured(seconds, n_clients=16, kill_every=20.0):
    """Return the tally of a run of so many seconds, counted from the first answer."""
    questions = expected_answers()
    service = started()
    tally, over = Tally(), threading.Event()
    try:
        port = int(re.search(r":(\d+)/", service.stdout.readline())[1])
        ask(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120), questions[0], tally)
        tally.longest, tally.last = 0.0, time.monotonic()
        tasks = [(client, port, questions[number % ROWS :] + questions[: number % ROWS]) for number in range(n_clients)]
        tasks += [(half_heads, port), (half_bodies, port), (slow_client, port, questions), (goes_away, port, questions)]
        tasks += [(killer, service.pid, kill_every)]
        threads = [threading.Thread(target=task, args=(*words, tally, over), daemon=True) for task, *words in tasks]
        for thread in threads:
            thread.start()
        for part in (0.1, 0.4, 0.5):  # of the run, after which memory is looked at
            over.wait(part * seconds)
            tally.memory += [size for size in [memory_of(service.pid)] if size]
        tally.longest = max(tally.longest, time.monotonic() - tally.last)
        over.set()
        for thread in threads:
            thread.join(130)  # longer than any of them waits for something
        service.send_signal(signal.SIGTERM)
        tally.exit_code = service.wait(60)
    finally:
        over.set()
        service.kill()
        service.wait()
    return tally


def started():
    """Start the command; what it says goes to stderr."""
    code = "from onbmacf.cli import main; main()"
    environment = {**os.environ, "ONBMACF_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", code, *SERVE], stdout=subprocess.PIPE, text=True, env=environment)


def expected_answers():
    """Return requests as bodies, each with the answer that the library gives in this process."""
    table, labels = labelled_heart()
    model = heart_network().fit(table, labels)
    explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))
    rows = json.loads(table.head(ROWS).to_json(orient="records"))
    answers = [explainer.explain(pd.DataFrame([row]), "healthy").to_json() for row in rows]
    return [(json.dumps({"rows": row}).encode(), answer) for row, answer in zip(rows, answers, strict=True)]


# --- proper clients ---------------------------------------------------------------------------------------------------


def client(port, questions, tally, over):
    """Ask one question after the other."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as own:
        turn = 0
        while not over.is_set():
            if not ask(own, questions[turn % len(questions)], tally):
                over.wait(random.uniform(0.1, 1))
            turn += 1


def ask(own, question, tally):
    """Send one request and judge its response; say whether it was answered."""
    body, expected = question
    try:
        response = own.post("/v1/explain", content=body, headers={"Authorization": f"Bearer {TOKEN}"})
    except httpx.TransportError:
        tally.count("cut off")
        return False
    tally.judge(response.status_code, response.text, expected)
    return response.status_code == 200


def slow_client(port, questions, tally, over):
    """Send a proper request in small parts, and read the answer in small parts."""
    while not over.is_set():
        body, expected = random.choice(questions)
        tally.count("bad clients")
        with suppress(OSError), connected(port) as wire:
            request = head(len(body)) + body
            for start in range(0, len(request), 40):
                wire.sendall(request[start : start + 40])
                over.wait(0.02)
            said = b"".join(iter(lambda wire=wire: wire.recv(2000), b""))
            status, text = said.split(maxsplit=2)[1:2], said.partition(b"\r\n\r\n")[2].decode()
            if status:
                tally.judge(int(status[0]), text, expected)


# --- bad clients ------------------------------------------------------------------------------------------------------


def half_heads(port, tally, over):
    """Hold more connections than there are places, each with half a head."""
    while not over.is_set():
        with ExitStack() as stack:
            for _ in range(150):
                with suppress(OSError):
                    stack.enter_context(connected(port)).sendall(HALF_A_HEAD)
                    tally.count("bad clients")
            over.wait(5)


def half_bodies(port, tally, over):
    """Hold some requests whose bodies never end."""
    while not over.is_set():
        with ExitStack() as stack:
            for _ in range(8):
                with suppress(OSError):
                    stack.enter_context(connected(port)).sendall(head(1 << 20) + b" " * (1 << 19))
                    tally.count("bad clients")
            over.wait(1.5 * TIMEOUT)


def goes_away(port, questions, tally, over):
    """Ask, and close the connection without reading."""
    while not over.wait(0.3):
        body, _ = random.choice(questions)
        with suppress(OSError), connected(port) as wire:
            wire.sendall(head(len(body)) + body[: random.choice([len(body), len(body) // 2])])
            tally.count("bad clients")


def connected(port):
    """Return an open connection."""
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def head(n_bytes):
    """Return the head of a request that is answered once."""
    lines = ("POST /v1/explain HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", "Connection: close")
    return "\r\n".join((*lines, f"Content-Length: {n_bytes}", "", "")).encode()


# --- processes --------------------------------------------------------------------------------------------------------


def killer(service, every, tally, over):
    """Kill a worker every so often, but none before somebody was answered since the last one."""
    seen = 0
    while not over.wait(every):
        workers = workers_of(service)
        if workers and tally.counts["answered"] > seen:
            seen = tally.counts["answered"]
            with suppress(ProcessLookupError):
                os.kill(random.choice(workers), signal.SIGKILL)
                tally.count("killed")


def workers_of(service):
    """Return the processes that answer for a service; none where the system does not show them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            if parent == service and b"spawn_main" in (path.parent / "cmdline").read_bytes():
                found.append(int(path.parent.name))
    return found


def memory_of(service):
    """Return the MB of a service and its workers, what they share counted once; 0 where it cannot be told."""
    total = 0
    for process in (service, *workers_of(service)):
        with suppress(OSError):
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(re.search(r"^Pss:\s+(\d+) kB", text, flags=re.M)[1])
    return total / 1024


if __name__ == "__main__":
    sys.exit(main())
