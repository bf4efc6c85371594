"""How near the only change of a point comes to the edge."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF


@pytest.mark.parametrize(("edge", "most"), [(0.3071, 0.0001), (0.41237, 0.0002), (0.83333, 0.0004)])
def test_a_single_change_ends_close_to_the_edge(edge, most):
    table = pd.DataFrame(np.random.default_rng(1).random((300, 2)).round(5), columns=["a", "b"])
    explainer = ONBMACF(plausibility=0).fit(table, lambda rows: (rows["a"] >= edge).astype(int))
    answers = explainer.explain(table[table["a"] < 0.2].head(20), target=1)
    beyond = np.array([answer.counterfactuals[0].values["a"] for answer in answers]) - edge
    assert beyond.min() >= 0
    assert beyond.mean() <= most
