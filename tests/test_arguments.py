"""The border of arguments: a value of any other type or size is a sentence that names it."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf.errors import ParameterError

TABLE = pd.DataFrame({"x": [0.0, 1, 3, 4.5], "r": [0.1, 0.2, 0.3, 0.4]})
ROW = {"x": 0.5, "r": 0.2}


def above(rows):
    return (rows["x"] > 2).astype(int)


HUGE = 10**5000  # Python does not write it
ASKED = {
    "max_seconds": (HUGE, "max_seconds must be a number above 0, got a value of type int"),
    "min_probability": (HUGE, r"min_probability must be in \[0, 1\], got a value of type int"),
    "min_neighbours": (HUGE, "min_neighbours must be at most 4, the neighbours counted, got a value of type int"),
    "plausibility": (-HUGE, r"plausibility must be in \[0, 1\], got a value of type int"),
    "n": (HUGE, "n_counterfactuals must be at most 100,000, got a value of type int"),
    "immutable": (5, "immutable must be names of columns in a list, got 5"),
    "vary": (5, "vary must be names of columns in a list, got 5"),
    "target": ([], "target must name at least one among the model's labels 0, 1"),
}


@pytest.mark.parametrize("name, value, pattern", [(name, *entry) for name, entry in ASKED.items()], ids=ASKED)
def test_what_explain_cannot_take_is_said(name, value, pattern):
    with pytest.raises(ParameterError, match=pattern):
        ONBMACF().fit(TABLE, above).explain(ROW, **{name: value})


@pytest.mark.parametrize("seconds", [np.int64(60), np.float32(60), Fraction(120, 2)], ids=repr)
def test_every_kind_of_number_is_a_time(seconds):
    assert ONBMACF().fit(TABLE, above).explain(ROW, max_seconds=seconds)[0].status == "found"


METRICS = {
    "raises": (lambda a, b: 1 // 0, "but raised ZeroDivisionError"),
    "returns nothing": (lambda a, b: None, "but raised TypeError"),
    "returns text": (lambda a, b: "far", "but raised ValueError: .*'far'"),
}


@pytest.mark.parametrize("metric, pattern", METRICS.values(), ids=METRICS)
def test_a_metric_that_gives_no_distance_is_refused(metric, pattern):
    with pytest.raises(ParameterError, match=f"metric must return a distance of at least 0, {pattern}"):
        ONBMACF(metric=metric).fit(TABLE, above)
