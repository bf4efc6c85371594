"""How long a person waits on the pages of `onbmacf serve`, on the heart data: the first answer, the plan after a lock.

    python benchmarks/serve.py [--out docs/speed/serve.md]

The server runs in this process, on 127.0.0.1; a request is timed from being sent to its page being there.
"""

import argparse
import re
import statistics
import threading
import time
from pathlib import Path
from typing import NamedTuple

import httpx

from onbmacf import ONBMACF, Schema
from onbmacf._views.plans import Source
from onbmacf.cli.inputs import labelled_heart
from onbmacf.datasets import heart_network
from onbmacf.web.server import make_server
from onbmacf.web.settings import Settings

LOCKS = ("f1", "f2", "f4", "f6", "f7")


class Times(NamedTuple):
    """Milliseconds on the clock, and of computing in this process, which is service and browser in one."""

    waited: float
    computed: float


def main():
    """Measure, print, and write the page where asked to."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--out", type=Path)
    words.add_argument("--people", type=int, default=6)
    asked = words.parse_args()
    first, locks, ranges = measured(asked.people)
    text = PAGE.format(first=first, locks=locks, ranges=ranges, n=asked.people * len(LOCKS))
    print(text)
    if asked.out:
        asked.out.write_text(text, encoding="utf-8")


def measured(n_people):
    """Return the times of the first answer after the start, and the medians after a lock and with ranges."""
    table, labels = labelled_heart()
    model = heart_network().fit(table, labels)
    explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))
    ready, found = threading.Event(), []
    source = Source.of(explainer, table, target="healthy", name="heart", model_name="a network")
    server, bound = make_server(source, Settings(), lambda settings: (found.append(settings), ready.set()))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    ready.wait()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{found[0].port}", follow_redirects=True, timeout=60) as client:
            client.get("/", params={"token": found[0].token})
            client.get("/")
            time.sleep(2)  # a person reads the first page
            first = timed(lambda: client.get("/case/r0"))
            at_risk = [place for place, label in enumerate(source.labels) if label == "at risk"][1 : n_people + 1]
            locks = [waited for place in at_risk for waited in locked(client, f"/case/r{place}")]
            ranges = [timed(lambda place=place: client.get(f"/case/r{place}?ranges=1")) for place in at_risk]
    finally:
        server.should_exit = True
        thread.join()
    return [Times(*map(statistics.median, zip(*several, strict=True))) for several in ([first], locks, ranges)]


def locked(client, case):
    """Yield the times of one lock after the other; each is taken back before the next."""
    token = re.search(r'name="csrf_token" value="(\w+)"', client.get(case).text)[1]
    for feature in LOCKS:
        yield timed(lambda feature=feature: client.post(f"{case}/lock", data={"csrf_token": token, "feature": feature}))
        client.post(f"{case}/lock", data={"csrf_token": token, "feature": feature, "unlock": "1"})


def timed(ask):
    """Return the milliseconds that a request takes; it must be answered."""
    begun, used = time.perf_counter(), time.process_time()
    assert ask().status_code == 200
    return Times(1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - used))


PAGE = """# What a person waits for on the pages of `onbmacf serve`

Heart data (462 rows), its network, three plans, on 127.0.0.1: from sending a request to having its page.
Written by `python benchmarks/serve.py --out docs/speed/serve.md`. The service explains one row when it starts.

| milliseconds | waited | of these, computed |
|---|---:|---:|
| first answer after the start | {first.waited:.0f} | {first.computed:.0f} |
| plans after a lock, median of {n} | {locks.waited:.0f} | {locks.computed:.0f} |
| ranges of the three plans, asked for when the plans are there, median | {ranges.waited:.0f} | {ranges.computed:.0f} |

The machine has two cores and was busy with other work, so what was waited is an upper end.
What was computed is the processor time of service and client together. No test depends on these figures.
"""


if __name__ == "__main__":
    main()
