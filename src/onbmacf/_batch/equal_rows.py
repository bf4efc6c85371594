"""Rows that are equal in all that a search sees are searched once, and each gets what was found (decision 0112).

rows, open lines  ->  first_of  ->  the first line equal to each        Found, Effort of these  ->  for_all
"""

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._search.problem import Effort, Found


def first_of(N: Matrix, z: Matrix, lines: Rows) -> Rows:
    """Return, per line, the first of the lines whose row is the same to the bit: numbers, and encoded points."""
    if len(lines) < 2:
        return lines
    seen = np.column_stack([N[lines], z[lines]])
    as_bytes = np.ascontiguousarray(seen).view(np.dtype((np.void, seen.itemsize * seen.shape[1])))[:, 0]
    _, places, same = np.unique(as_bytes, return_index=True, return_inverse=True)
    return lines[places[same]]


def is_first(frame: pd.DataFrame) -> Mask:
    """Say which rows are the first of those equal to them; every one where values cannot be compared."""
    try:
        return ~frame.duplicated().to_numpy(dtype=bool)
    except Exception:  # lists, or a class of the caller's own
        return np.ones(len(frame), dtype=bool)


def for_all(found: Found, effort: Effort, lines: Rows, first: Rows) -> tuple[Found, Effort]:
    """Give each line what was found for the first one that is equal to it; `found` is sorted by factual."""
    if np.array_equal(lines, first):
        return found, effort
    n_found = np.bincount(found.factual, minlength=len(effort.asked))
    starts, n_own = (np.cumsum(n_found) - n_found)[first], n_found[first]
    within = np.arange(n_own.sum()) - np.repeat(np.cumsum(n_own) - n_own, n_own)
    for column in effort:
        column[lines] = column[first]
    return take(found, np.repeat(starts, n_own) + within)._replace(factual=np.repeat(lines, n_own)), effort
