"""What a radar plot draws."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from onbmacf.bench.report import radar
from onbmacf.bench.tables import METRICS, average_results, paper_table


def test_one_closed_line_per_method_with_its_scores():
    scores = average_results(paper_table("raw_results"))
    axes = radar(scores, "average")
    assert [line.get_label() for line in axes.lines] == scores["method"].tolist()
    for line, (_, values) in zip(axes.lines, scores.iterrows(), strict=True):
        drawn = line.get_ydata()
        assert drawn[:-1] == pytest.approx(values[METRICS].to_numpy(dtype=float))
        assert drawn[-1] == drawn[0]
    assert axes.get_title() == "average"


def test_no_two_methods_look_alike():
    scores = average_results(paper_table("raw_results"))
    looks = {(line.get_color(), line.get_linestyle()) for line in radar(scores).lines}
    assert len(looks) == len(scores)


def test_a_missing_score_is_drawn_at_zero():
    scores = pd.DataFrame({"method": ["A"], **{metric: [np.nan] for metric in METRICS}})
    assert radar(scores).lines[0].get_ydata().tolist() == [0.0] * (len(METRICS) + 1)
