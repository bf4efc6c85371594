"""Scalings beside the paper's own, frames of a small comparison, and what its figures show."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from onbmacf.bench import comparison, figures
from onbmacf.bench.comparison import OVERALL, differences, intervals, ranks_of, scaled_by, scores_of
from onbmacf.bench.report import METRICS, paper_table, scaled

WAYS = ("A", "B", "C")


def result(n_tables=6, n_seeds=3, seed=0):
    """Return cells of three methods, of which A is a little better everywhere and C far worse."""
    random = np.random.default_rng(seed)
    rows = []
    for dataset in range(n_tables):
        for model in ("network", "forest"):
            for run in range(n_seeds):
                for method, worse in zip(WAYS, (1.0, 1.3, 3.0), strict=True):
                    values = {name: worse + 0.05 * random.random() for name in METRICS}
                    values |= {"ynn": 0.9 / worse, "success_rate": 1.0}
                    rows.append({"dataset": f"d{dataset}", "model": model, "seed": run, "method": method, **values})
    return pd.DataFrame(rows).assign(status="done")


def test_the_papers_scaling_is_the_papers():
    raw = paper_table("raw_results").assign(model="network", seed=0)
    ours, theirs = scaled_by(raw, "paper")[METRICS], scaled(raw)[METRICS]
    pd.testing.assert_frame_equal(ours, theirs)


def test_ranks_and_standard_deviations_worked_by_hand():
    cases = pd.DataFrame({"dataset": "d", "model": "m", "seed": 0, "method": [*WAYS, "D"]})
    cases = cases.assign(**dict.fromkeys(METRICS, 1.0)).assign(l0=[1.0, 2.0, 2.0, np.nan], ynn=[0.2, 0.4, 0.6, np.nan])
    by_rank, by_z = scaled_by(cases, "ranks"), scaled_by(cases, "z")
    assert by_rank["l0"].tolist() == pytest.approx([1.0, 1 / 3, 1 / 3, 1 / 3])  # nothing at all is as bad as the worst
    assert by_rank["ynn"].tolist() == pytest.approx([1 / 6, 2 / 3, 1.0, 1 / 6])
    assert by_rank["l1"].tolist() == [0.5] * 4
    assert by_z["ynn"].tolist() == pytest.approx(
        ((cases["ynn"].fillna(0.2) - 0.35) / np.std([0.2, 0.4, 0.6, 0.2])).tolist()
    )
    assert by_z["l1"].tolist() == [0.0] * 4


@pytest.mark.parametrize("scaling", comparison.SCALINGS)
def test_scores_are_means_over_models_of_cases_that_every_method_has(scaling):
    cells = result()
    cells = cells.drop(cells[(cells["dataset"] == "d0") & (cells["method"] == "B") & (cells["seed"] == 1)].index)
    cells.loc[(cells["dataset"] == "d1") & (cells["method"] == "C"), "status"] = "timeout"
    scores = scores_of(cells, WAYS, scaling, ["network", "forest"])
    assert scores.tables == ("d0", "d2", "d3", "d4", "d5")
    assert scores.values.shape == (5, 3, 3, 9)
    assert np.isnan(scores.values[0, 1]).all()
    complete = cells[(cells["dataset"] == "d2") & (cells["seed"] == 2)]
    by_hand = scaled_by(complete, scaling)
    expected = by_hand[by_hand["method"] == "A"][METRICS].to_numpy().mean()
    assert scores.values[1, 2, 0, -1] == pytest.approx(expected)


def test_the_better_method_leads_with_certainty_and_the_order_is_told_apart():
    scores = scores_of(result(n_tables=12), WAYS, "paper", ["network"])
    means = intervals(scores).set_index(["method", "metric"])
    assert (means["low"] <= means["mean"] + 1e-12).all()
    assert (means["mean"] <= means["high"] + 1e-12).all()
    margins = differences(scores, "A", 0.01).set_index(["method", "metric"])
    assert margins.loc[("B", OVERALL), "low"] > 0
    assert margins.loc[("C", OVERALL), "better"] > 0.99
    assert margins.loc[("B", "success_rate"), "alike"] > 0.99
    gap = means.loc[("A", OVERALL), "mean"] - means.loc[("B", OVERALL), "mean"]
    assert margins.loc[("B", OVERALL), "mean"] == pytest.approx(gap)
    ranked = ranks_of(scores).set_index(["method", "metric"])
    assert ranked["rank"].xs(OVERALL, level="metric").to_dict() == {"A": 1.0, "B": 2.0, "C": 3.0}
    assert ranked.loc[("A", OVERALL), "friedman_p"] < 1e-4


def test_the_diagram_joins_what_the_test_does_not_part():
    ranks = pd.Series({"ONB-MACF": 1.2, "B": 1.4, "C": 2.9, "D": 3.1})
    axes = figures.critical_difference_diagram(ranks, 1.0, "title")
    bars = [line for line in axes.lines if line.get_linewidth() == 4]
    assert [tuple(np.round(bar.get_xdata(), 2)) for bar in bars] == [(1.17, 1.43), (2.87, 3.13)]
    names = [text.get_text() for text in axes.texts]
    assert [name for name in names if "(" in name] == ["ONB-MACF (1.20)", "B (1.40)", "C (2.90)", "D (3.10)"]
    assert axes.get_title() == "title"


def test_intervals_are_drawn_around_their_means():
    frame = pd.DataFrame({"method": ["A", "B"], "mean": [0.5, 0.4], "low": [0.4, 0.3], "high": [0.6, 0.45]})
    axes = figures.interval_plot({"test": frame, "tuning": frame}, ["A", "B"], "score")
    assert [text.get_text() for text in axes.get_yticklabels()] == ["A", "B"]
    assert len(axes.containers) == 2
    ends = axes.containers[0].lines[2][0].get_segments()
    assert np.asarray(ends)[:, :, 0].tolist() == pytest.approx(np.array([[0.4, 0.6], [0.3, 0.45]]))
