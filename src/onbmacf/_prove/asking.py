"""A proof about any model: everything that a row may become is asked, nearest first.

rows, their distances, whether they are answers  ->  ask_nearest_first  ->  Proof
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._prove.prove import SAME, TIME_RAN_OUT, Proof

TOGETHER = 512  # rows that are asked about at once


def ask_nearest_first(
    rows: Matrix, apart: Matrix, distance: float, is_answer: Callable[[Matrix], Mask], seconds: float
) -> Proof:
    """Ask about all rows that are nearer than the answer known, until one is an answer."""
    begun = perf_counter()
    order = np.argsort(apart, kind="stable")
    order = order[apart[order] < distance * (1.0 - SAME)]
    for start in range(0, len(order), TOGETHER):
        if perf_counter() - begun > seconds:
            return Proof(float(apart[order[start]]), None, False, perf_counter() - begun, TIME_RAN_OUT)
        some = order[start : start + TOGETHER]
        good = some[is_answer(rows[some])]
        if len(good):
            return Proof(float(apart[good[0]]), rows[good[0]], True, perf_counter() - begun)
    return Proof(distance, None, True, perf_counter() - begun)
