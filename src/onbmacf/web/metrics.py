"""What the service tells of itself: figures as Prometheus reads them, and a log without a row or a value."""

import logging
import time
import traceback
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

LOG = logging.getLogger("onbmacf.web")
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
TYPE = "text/plain; version=0.0.4; charset=utf-8"


# --- the log ----------------------------------------------------------------------------------------------------------


def log_request(method: str, route: str, status: int, seconds: float) -> None:
    """Write the kind of a request, its status and its time."""
    LOG.info("%s %s %d %.0f ms", method, route, status, 1000 * seconds)


def log_failure(error: BaseException) -> None:
    """Write the kind of an unexpected error and where it was raised; its words may hold a person's values."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f"{place[0].filename}:{place[0].lineno}" if place else "an unknown place"
    LOG.error("unexpected %s at %s", type(error).__name__, where)


# --- figures ----------------------------------------------------------------------------------------------------------


class Metrics:
    """Counts since the start."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self.counts: Counter[str] = Counter()
        self.gauges: dict[str, Callable[[], float]] = {}

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[method, route, status] += 1
        self.seconds[route] += seconds
        self.buckets[route][bisect_left(BOUNDS, seconds)] += 1

    def explained(self, n_rows: int, n_model_rows: int) -> None:
        """Count rows that were answered, and rows that the model was handed for them."""
        self.counts["rows_explained"] += n_rows
        self.counts["model_rows"] += n_model_rows

    def text(self) -> str:
        """Return all figures."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# TYPE onbmacf_requests_total counter"
        for (method, route, status), count in sorted(self.requests.items()):
            yield f'onbmacf_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
        yield "# TYPE onbmacf_request_seconds histogram"
        for route in sorted(self.buckets):
            yield from self._histogram(route)
        for name in ("rows_explained", "model_rows"):
            yield f"# TYPE onbmacf_{name}_total counter"
            yield f"onbmacf_{name}_total {self.counts[name]}"
        for name, read in self.gauges.items():
            yield f"# TYPE onbmacf_{name} gauge"
            yield f"onbmacf_{name} {read():g}"

    def _histogram(self, route: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*BOUNDS, "+Inf"), self.buckets[route], strict=True):
            total += count
            yield f'onbmacf_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
        yield f'onbmacf_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}'
        yield f'onbmacf_request_seconds_count{{route="{route}"}} {total}'


class Counted:
    """Around the app: counts requests by the pattern of their address, and logs them if asked to."""

    def __init__(self, app: Any, metrics: Metrics, is_logged: bool) -> None:
        self.app, self.metrics, self.is_logged = app, metrics, is_logged

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and count it when it is answered."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        status, begun = 500, time.perf_counter()

        async def send_and_look(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, send_and_look)
        finally:
            seconds, route = time.perf_counter() - begun, _pattern(scope)
            self.metrics.answered(_method(scope), route, status, seconds)
            if self.is_logged:
                log_request(_method(scope), route, status, seconds)


def _pattern(scope: Any) -> str:
    """Return the pattern of an address, never the address: what a person asked for is in no figure and in no log."""
    return str(getattr(scope.get("route"), "path", "other"))


def _method(scope: Any) -> str:
    return scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "DELETE", "OPTIONS") else "other"
