"""The page of the comparison is filled from runs: every place of it, and nothing else."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

PAGE = Path(__file__).parents[2] / "docs" / "benchmark" / "README.md"


@pytest.fixture
def benchmark(scripts):
    import benchmark

    return benchmark


def lines(methods, metrics, **columns):
    index = pd.MultiIndex.from_product([["test", "tuning"], methods, metrics], names=["group", "method", "metric"])
    return pd.DataFrame({"scaling": "paper", **columns}, index=index).reset_index()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.8404, ".840"), (1.0, "1.000"), (-0.25, "-.250"), (12.5, "12.500"), (np.nan, ""), (10.0, "10.000")],
)
def test_numbers_are_written_as_in_the_page(benchmark, value, shown):
    assert benchmark.number(value) == shown


def test_a_difference_that_may_have_the_other_sign_is_in_brackets(benchmark):
    assert benchmark.signed(pd.Series({"mean": 0.03, "low": 0.01, "high": 0.05})) == "+0.030"
    assert benchmark.signed(pd.Series({"mean": -0.03, "low": -0.07, "high": 0.01})) == "(-0.030)"


def test_the_best_score_is_bold_and_methods_come_in_its_order(benchmark):
    metrics = [*benchmark.METRICS, "overall_mean"]
    scores = lines(["A", "B"], metrics, mean=0.5, low=0.4, high=0.6, view="all models")
    scores.loc[scores["method"] == "B", "mean"] = 0.55
    ranks = lines(["A", "B"], metrics, rank=1.5, view="all models")
    text = benchmark.score_table(scores, ranks, "test", "all models").splitlines()
    assert text[2].startswith("| `B` | **.550** |")
    assert text[3].startswith("| `A` | .500 |")
    assert text[2].endswith("**.550** (.400 to .600) | 1.50 |")


def test_the_page_has_a_place_for_each_table(benchmark):
    source = Path(benchmark.__file__).read_text(encoding="utf-8")
    returned = [*re.findall(r'^ {8}"([a-z ]+)": ', source, flags=re.M), "several"]
    page = PAGE.read_text(encoding="utf-8")
    places = re.findall(r"^<!-- (?!/)(.+) -->$", page, flags=re.M)
    assert sorted(places) == sorted(set(returned))
    assert [f"<!-- /{place} -->" in page for place in places] == [True] * len(places)


def test_what_belongs_to_a_run_that_is_not_finished_stays(benchmark, tmp_path):
    (tmp_path / "paper").mkdir()
    cell = {
        "dataset": "wine",
        "method": "GS",
        "protocol": "paper",
        "model": "network",
        "seed": 0,
        "file": "cells/a.json",
    }
    (tmp_path / "paper" / "manifest.json").write_text(json.dumps({"cells": [cell], "versions": {}}))
    page = tmp_path / "README.md"
    page.write_text("<!-- paper means -->\nkept\n<!-- /paper means -->\n")
    benchmark.write(tmp_path, page)
    assert "kept" in page.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "paper"]
