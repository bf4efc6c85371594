"""The script that sets the dial against NICE runs, and notices an answer without neighbours."""

import numpy as np
import pytest

pytest.importorskip("torch")


def test_a_pair_is_measured_and_what_falls_short_is_seen():
    import dial

    pair = dial.pair_of("saheart", "forest", 6, None)
    line = dial.measured(pair)
    assert (line["rows"], line["short"]) == (6, 0)
    assert 0 < line["l1"] < line["l1 NICE"]
    assert line["won"] == (line["lost"] == "")
    method = dial.OnbMacf(plausibility=1.0).fit(pair.task, pair.model, 0)
    short, total = dial.fall_short(pair, method.explainer_, [np.atleast_2d(z) for z in pair.factuals])
    assert 0 < short <= total
