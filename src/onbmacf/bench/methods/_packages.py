"""What the methods from other packages share: a model that ends a search by force, seeds, and silence.

These packages draw from global generators, print, and may search for ever. Here a search ends after so many calls of
the model, never after so many seconds: the same call then has the same answer on any machine.
"""

import contextlib
import io
import logging
import random
import warnings
from collections.abc import Iterator

import numpy as np

from onbmacf.bench.protocol import Matrix, Model

UP, DOWN = np.nextafter(0.5, 1.0), np.nextafter(0.5, 0.0)


class OutOfCalls(Exception):  # noqa: N818 - the end of a search, not an error
    """The search of another package has asked the model more often than it may."""


class Asked:
    """A model that counts its calls, and whose probabilities leave no doubt about the label.

    The packages read a probability of one half as either label, depending on the place; here it is moved to the side
    of the label that the model gives. Only models like forests, with few different probabilities, come to that.
    """

    def __init__(self, model: Model, most_calls: int) -> None:
        self.model, self.most_calls, self.calls = model, most_calls, 0

    def probability_of(self, Z: Matrix) -> Matrix:
        """Return the probability of label 1 of each row."""
        self.calls += 1
        if self.calls > self.most_calls:
            raise OutOfCalls
        probability = self.model.probability_of(Z)
        tied = np.flatnonzero(probability == 0.5)
        if len(tied):
            probability = probability.copy()
            probability[tied] = np.where(self.model.label_of(Z[tied]) == 1, UP, DOWN)
        return probability


def distinct(rows: Matrix) -> Matrix:
    """Return the rows without those that have come before."""
    first: Matrix = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
    return first


@contextlib.contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed the global generators of Python and NumPy, and restore them afterwards."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars, messages and warnings, and keep the root logger as it is."""
    silent = logging.NullHandler()  # without a handler, the first message would give the root logger one for good
    logging.getLogger().addHandler(silent)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger().removeHandler(silent)
