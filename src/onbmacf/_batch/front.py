"""The front of a row's counterfactuals: those that no other beats in distance, changes and plausibility at once."""

import numpy as np

from onbmacf._base.arrays import Rows
from onbmacf.explanations import Batch


def on_the_front(batch: Batch) -> Rows:
    """Return the lines that no other of the same factual beats, nearest first."""
    figures = np.column_stack([batch.distance, batch.changed.sum(axis=1), -batch.plausibility])
    kept = []
    for place in np.unique(batch.factual):
        lines = np.flatnonzero(batch.factual == place)
        own = figures[lines]
        no_worse = (own[:, np.newaxis] <= own[np.newaxis]).all(axis=2)
        better = no_worse & (own[:, np.newaxis] < own[np.newaxis]).any(axis=2)
        twin = np.tril(no_worse & no_worse.T, k=-1).any(axis=1)  # an equal one stands before
        best = lines[~better.any(axis=0) & ~twin]
        kept.append(best[np.lexsort((best, batch.distance[best]))])
    return np.concatenate(kept) if kept else np.empty(0, dtype=np.intp)
