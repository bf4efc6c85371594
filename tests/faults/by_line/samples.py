"""A small table, the rule that stands for a model, and how they are fitted."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF

ARRAY = np.array([[0.0, 5], [1, 6], [3, 7], [4, 8]])


def above(rows):
    return (np.asarray(rows["x"], dtype=float) > 2).astype(int)


def frame(**columns):
    return pd.DataFrame({"x": [0.0, 1, 3, 4], "y": [5, 6, 7, 8], **columns})


def fit(table, model=above, **how):
    return ONBMACF().fit(table, model, **how)


def unasked(table, **how):
    """Fit with a model that must not be asked: the error comes before any work."""
    return fit(table, lambda rows: pytest.fail("the model was asked"), **how)
