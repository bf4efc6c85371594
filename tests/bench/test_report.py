"""Aggregation as in the paper, tables as text, and what a radar plot draws."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from onbmacf._text import frames as formats
from onbmacf.bench import report
from onbmacf.bench.report import METRICS, average_results, paper_table, radar


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


def test_the_papers_raw_tables_give_the_papers_summary_in_all_99_cells():
    ours = report.average_results(report.paper_table("raw_results")).set_index("method")
    theirs = report.paper_table("average_results").set_index("method")
    assert theirs.size == 99
    assert ours.index.tolist() == theirs.index.tolist()
    assert np.abs(ours[theirs.columns] - theirs).to_numpy().max() <= 0.001


def two_methods(**metrics):
    raw = pd.DataFrame({"dataset": ["d", "d"], "method": ["A", "B"]})
    return raw.assign(**{name: [1.0, 1.0] for name in report.METRICS}).assign(**metrics)


def test_scaled_divides_by_the_largest_of_the_dataset():
    scores = report.scaled(two_methods(l0=[2.0, 8.0], ynn=[0.2, 0.8]))
    assert scores["l0"].tolist() == [0.75, 0.0]
    assert scores["ynn"].tolist() == [0.25, 1.0]


def test_scaled_gives_everyone_one_where_the_largest_is_zero():
    assert report.scaled(two_methods(violations=[0.0, 0.0]))["violations"].tolist() == [1.0, 1.0]


def test_na_is_left_out_of_the_mean_not_counted_as_zero():
    raw = pd.concat([two_methods(l0=[1.0, 4.0]), two_methods(l0=[2.0, np.nan]).assign(dataset="e")])
    assert report.average_results(raw).set_index("method")["l0"].tolist() == [0.375, 0.0]


def lines(*changed):
    return pd.DataFrame({"dataset": "d", "method": "A", "changed": list(changed)})


def test_feature_changes_counts_per_feature():
    table = report.feature_changes(lines(["x", "y"], ["x"], None), {"d": ["x", "y", "z"]})
    assert table[["feature", "A"]].to_numpy().tolist() == [["x", 2], ["y", 1], ["z", 0]]


def test_pairs_and_single_changes():
    table = lines(["x", "y"], ["x", "y", "z"], ["z"], None)
    pairs = report.feature_pairs(table)
    assert pairs[["features", "count"]].to_numpy().tolist() == [["x + y", 2], ["x + z", 1], ["y + z", 1]]
    assert report.single_changes(table)[["features", "count"]].to_numpy().tolist() == [["z", 1]]


def test_compare_puts_the_difference_beside():
    ours = pd.DataFrame({"method": ["A", "B"], "l0": [2.0, 3.0]})
    theirs = pd.DataFrame({"method": ["A"], "l0": [1.5]})
    table = report.compare(ours, theirs, ["method"])
    assert table.columns.tolist() == ["method", "l0", "l0_paper", "l0_difference"]
    assert table["l0_difference"].iloc[0] == 0.5
    assert np.isnan(table["l0_difference"].iloc[1])


ODD = pd.DataFrame({"name": ["<b>|x", "=1+1", "a_b"], "value": [0.5, np.nan, 2.0]})


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (formats.as_markdown, [r"\<b\>\|x", r"a\_b", "| 0.500 |", "| Na |"]),
        (formats.as_latex, [r"a\_b", r"0.500 \\", r"Na \\"]),
        (formats.as_csv, ["'=1+1,", "<b>|x,0.500"]),
    ],
)
def test_text_from_a_table_is_shown_as_text(write, shown):
    text = write(ODD)
    for part in shown:
        assert part in text
