"""Rows that are asked about are apart from those that anything is learned from, or among them: as the protocol says."""

import numpy as np
import pytest

from onbmacf.bench import cells
from onbmacf.bench.cases import ESTIMATORS, separated, separated_case, trained
from onbmacf.bench.cells import Cell, case_of
from onbmacf.errors import ParameterError


@pytest.fixture(autouse=True)
def nothing_kept():
    for kept in (cells._case, cells._known, cells._task):
        kept.cache_clear()


def test_known_and_unknown_rows_are_apart_and_the_same_for_a_seed(small_task):
    split, again, other = separated(small_task, 0), separated(small_task, 0), separated(small_task, 1)
    assert not set(split.known_rows) & set(split.unknown_rows)
    assert len(split.known_rows) == int(0.75 * len(small_task.y))
    assert np.array_equal(split.known_rows, again.known_rows)
    assert not np.array_equal(split.known_rows, other.known_rows)


def test_what_is_known_is_those_rows_and_no_others(small_task):
    split = separated(small_task, 2)
    known = split.known
    assert np.array_equal(known.Z, small_task.Z[split.known_rows])
    assert np.array_equal(known.space.encode(known.table), known.Z)
    assert np.array_equal(known.y, small_task.y[split.known_rows])
    assert np.array_equal(split.Z, small_task.Z[split.unknown_rows])


def test_a_row_with_a_level_that_no_known_row_has_is_not_asked_about(small_task):
    from dataclasses import replace

    table = small_task.table.copy()
    rare = separated(small_task, 0).unknown_rows[:3]
    table["city"] = "A"
    table.loc[rare, "city"] = "C"
    task = replace(small_task, table=table, Z=small_task.space.encode(table))
    assert not set(rare) & set(separated(task, 0).unknown_rows)


@pytest.mark.parametrize("protocol", ["unknown", "known"])
def test_factuals_have_the_undesired_label_and_come_from_where_the_protocol_says(small_task, protocol):
    split = separated(small_task, 0)
    model = trained("forest", split.known, 0)
    case = separated_case(split, model, [], protocol, 7)
    assert len(case.rows) == 7
    assert set(case.rows) <= set(split.unknown_rows if protocol == "unknown" else split.known_rows)
    assert np.array_equal(case.Z, small_task.Z[case.rows])
    assert (model.label_of(case.Z) == 0).all()
    assert case.accuracy == (model.label_of(split.Z) == split.y).mean()


@pytest.mark.parametrize("kind", ["network", *ESTIMATORS])
def test_a_model_of_each_kind_learns_and_is_the_same_again(small_task, kind):
    split = separated(small_task, 0)
    model, again = trained(kind, split.known, 0), trained(kind, split.known, 0)
    assert (model.label_of(split.Z) == split.y).mean() > 0.75
    assert np.array_equal(model.probability_of(split.Z), again.probability_of(split.Z))


def test_methods_share_a_case_and_its_other_models_are_those_of_other_seeds(tmp_path):
    cell = Cell("saheart", "NICE", protocol="unknown", model="boosting", seed=9, n_factuals=3, n_retrainings=2)
    case = case_of(cell, None, tmp_path)
    assert case_of(Cell(**{**vars(cell), "method": "GS"}), None, tmp_path) is case
    first = case_of(Cell(**{**vars(cell), "seed": 0, "n_retrainings": 0}), None, tmp_path)
    assert case.retrained[0] is first.model
    assert len(case.retrained) == 2


def test_a_cell_says_what_it_cannot_be():
    with pytest.raises(ParameterError, match="protocol"):
        Cell("saheart", "NICE", protocol="mine")
    with pytest.raises(ParameterError, match="model"):
        Cell("saheart", "NICE", protocol="known", model="tree")
    with pytest.raises(ParameterError, match="explains a network"):
        Cell("saheart", "NICE", model="forest")
