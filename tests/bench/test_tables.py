"""Aggregation as in the paper, and tables as text."""

import numpy as np
import pandas as pd
import pytest

from onbmacf._text import frames as formats
from onbmacf.bench import tables


def test_the_papers_raw_tables_give_the_papers_summary_in_all_99_cells():
    ours = tables.average_results(tables.paper_table("raw_results")).set_index("method")
    theirs = tables.paper_table("average_results").set_index("method")
    assert theirs.size == 99
    assert ours.index.tolist() == theirs.index.tolist()
    assert np.abs(ours[theirs.columns] - theirs).to_numpy().max() <= 0.001


def two_methods(**metrics):
    raw = pd.DataFrame({"dataset": ["d", "d"], "method": ["A", "B"]})
    return raw.assign(**{name: [1.0, 1.0] for name in tables.METRICS}).assign(**metrics)


def test_scaled_divides_by_the_largest_of_the_dataset():
    scores = tables.scaled(two_methods(l0=[2.0, 8.0], ynn=[0.2, 0.8]))
    assert scores["l0"].tolist() == [0.75, 0.0]
    assert scores["ynn"].tolist() == [0.25, 1.0]


def test_scaled_gives_everyone_one_where_the_largest_is_zero():
    assert tables.scaled(two_methods(violations=[0.0, 0.0]))["violations"].tolist() == [1.0, 1.0]


def test_na_is_left_out_of_the_mean_not_counted_as_zero():
    raw = pd.concat([two_methods(l0=[1.0, 4.0]), two_methods(l0=[2.0, np.nan]).assign(dataset="e")])
    assert tables.average_results(raw).set_index("method")["l0"].tolist() == [0.375, 0.0]


def lines(*changed):
    return pd.DataFrame({"dataset": "d", "method": "A", "changed": list(changed)})


def test_feature_changes_counts_per_feature():
    table = tables.feature_changes(lines(["x", "y"], ["x"], None), {"d": ["x", "y", "z"]})
    assert table[["feature", "A"]].to_numpy().tolist() == [["x", 2], ["y", 1], ["z", 0]]


def test_pairs_and_single_changes():
    table = lines(["x", "y"], ["x", "y", "z"], ["z"], None)
    pairs = tables.feature_pairs(table)
    assert pairs[["features", "count"]].to_numpy().tolist() == [["x + y", 2], ["x + z", 1], ["y + z", 1]]
    assert tables.single_changes(table)[["features", "count"]].to_numpy().tolist() == [["z", 1]]


def test_compare_puts_the_difference_beside():
    ours = pd.DataFrame({"method": ["A", "B"], "l0": [2.0, 3.0]})
    theirs = pd.DataFrame({"method": ["A"], "l0": [1.5]})
    table = tables.compare(ours, theirs, ["method"])
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
