"""The log: one line per request where asked for, and what failed; never a row, a value, a query or an address."""

import logging
import traceback

LOG = logging.getLogger("onbmacf.web")


def log_request(method: str, route: str, status: int, seconds: float) -> None:
    """Write the kind of a request, its status and its time."""
    LOG.info("%s %s %d %.0f ms", method, route, status, 1000 * seconds)


def log_failure(error: BaseException) -> None:
    """Write the kind of an unexpected error and where it was raised; its words may hold a person's values."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f"{place[0].filename}:{place[0].lineno}" if place else "an unknown place"
    LOG.error("unexpected %s at %s", type(error).__name__, where)
