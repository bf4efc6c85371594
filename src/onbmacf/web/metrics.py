"""What the service says about itself: metrics for Prometheus, and a log that holds no row and no value."""

import logging
import time
import traceback
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LOG = logging.getLogger("onbmacf.web")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # upper ends of the histogram's buckets
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")
TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def log_failure(error: BaseException) -> None:
    """Write the type of an unexpected error and where it was raised; its message may hold a person's values."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    LOG.error("unexpected %s at %s", type(error).__name__, where)


class Metrics:
    """Counts since the start, in a registry that belongs to one app: two apps in a process do not mix."""

    def __init__(self, n_waiting: Callable[[], float]) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("onbmacf_requests", "Requests answered.", labels, registry=registry)
        self.seconds = Histogram(
            "onbmacf_request_seconds", "Seconds until an answer.", ["route"], buckets=SECONDS, registry=registry
        )
        self.rows_explained = Counter("onbmacf_rows_explained", "Rows explained.", registry=registry)
        self.model_rows = Counter("onbmacf_model_rows", "Rows that the model was given.", registry=registry)
        waiting = Gauge("onbmacf_requests_waiting", "Requests that wait for the model.", registry=registry)
        waiting.set_function(n_waiting)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests.labels(method, route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def count_rows(self, n_explained: int, n_model_rows: int) -> None:
        """Count rows that were explained, and rows that the model was given for them."""
        self.rows_explained.inc(n_explained)
        self.model_rows.inc(n_model_rows)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Counts requests by the pattern of their address, and logs them where that is wanted."""

    def __init__(self, app: Any, metrics: Metrics, is_logged: bool) -> None:
        self.app, self.metrics, self.is_logged = app, metrics, is_logged

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and count it when it is answered."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        status, start = 500, time.perf_counter()

        async def send_and_note_status(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, send_and_note_status)
        finally:
            seconds = time.perf_counter() - start
            # The pattern, never the address: what a person asked for is in no metric and in no log.
            route = str(getattr(scope.get("route"), "path", "other"))
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.count_request(method, route, status, seconds)
            if self.is_logged:
                LOG.info("%s %s %d %.0f ms", method, route, status, 1000 * seconds)
