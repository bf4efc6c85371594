"""The limits of one fuzzed case: 10 seconds of computing, 500 MB more memory, and only errors of our own types."""

import gc
import resource
import signal
import warnings
from contextlib import contextmanager

from onbmacf.errors import OnbmacfError

SECONDS = 10  # of computing; a busy machine may take longer by the clock
CLOCK_SECONDS = 300  # of the clock: something waits for ever
MEGABYTES = 500
_SINCE = [0]  # cases begun
TYPED = (OnbmacfError, ImportError)  # ImportError: an extra that is not installed


class TooLongError(BaseException):
    """A case did not end in time; no error of a model that is caught and told."""


@contextmanager
def bounded():
    """Run a case within the limits; a typed error ends it quietly, any other goes on."""

    def stop(number, frame):
        raise TooLongError(f"more than {SECONDS} s")

    old = {name: signal.signal(name, stop) for name in (signal.SIGPROF, signal.SIGALRM)}
    limit = resource.getrlimit(resource.RLIMIT_AS)
    _collect()
    resource.setrlimit(resource.RLIMIT_AS, (_used() + MEGABYTES * 2**20, limit[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, CLOCK_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limit)
        for name, handler in old.items():
            signal.signal(name, handler)


def _collect():
    """Free what earlier cases left, now and then: it takes longer than many a case."""
    _SINCE[0] += 1
    if _SINCE[0] % 32 == 1:
        gc.collect()
        gc.freeze()


def _used():
    """Return the bytes of address space in use."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
