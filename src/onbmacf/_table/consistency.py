"""Whether a model says the same of a row twice, and whatever other rows are in the call.

    black box, fitted rows, their labels, some of them  ->  model_warnings  ->  sentences

Each row of a call must be labelled on its own: a model that compares it with the others (`x > x.mean()`) gives answers
that depend on which points happen to be asked together.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._table.calls import Counts
from onbmacf._table.model import FAILED, BlackBox
from onbmacf.errors import ModelError

ALONE = 16  # of the rows asked again, so many are also asked one by one


def model_warnings(box: BlackBox, N: Matrix, labels: Rows, probes: Rows) -> list[str]:
    """Return what a caller should know of how a model answers; the probes are rows that are asked again."""
    messages = [f"probabilities are left out: {box.no_probability}."] if box.no_probability else []
    if box.n_contradicted:
        messages.append(
            f"predict_proba contradicts predict on {box.n_contradicted} of {len(probes)} rows, where it gives another "
            "label the highest probability: predict is believed, and probabilities are shown as they are."
        )
    differs = box.ask(N[probes]) != labels[probes]
    if differs.any():
        first = replace(box, sizes=(), counts=Counts())  # the very call with which fit began, once more
        if (first.ask(N[: box.chunk]) != labels[: box.chunk]).any():
            words = f"{differs.sum()} of {len(probes)} rows asked twice got another label"
            return [*messages, f"the model is not deterministic: {words}."]
    for other in _in_other_calls(box, N[probes], labels[probes]):
        differs |= other
    if differs.any():
        words = f"{differs.sum()} of {len(probes)} rows got another label in another order, in a smaller call or alone"
        messages.append(
            f"the model's answer to a row depends on the other rows in the call: {words}. Its counterfactuals hold "
            "only among the rows that they were asked with."
        )
    return messages


def _in_other_calls(box: BlackBox, N: Matrix, labels: Rows) -> Iterator[Mask]:
    """Yield which rows get another label: backwards, by halves, and some of them alone, without any padding."""
    every, alone = np.arange(len(N)), np.unique(np.linspace(0, len(N) - 1, min(ALONE, len(N))).astype(np.intp))
    for lines, size in ((every[::-1], len(N)), (every[::2], 0), (every[1::2], 0), (alone, 1)):
        if len(lines):
            differs = np.zeros(len(N), dtype=bool)
            try:
                codes = replace(box, sizes=(size or len(lines),), counts=Counts()).ask(N[lines])
            except ModelError:  # a model that cannot take calls of such a size
                codes = np.full(len(lines), FAILED)
            differs[lines] = (codes != labels[lines]) & (codes != FAILED)
            yield differs
