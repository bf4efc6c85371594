"""The plan: which tables, seeds, models and methods, and in which order."""

from itertools import groupby

import pytest

from onbmacf.bench import design
from onbmacf.bench.methods import REGISTRY


@pytest.fixture(scope="module")
def planned():
    return design.cells()


def test_no_cell_is_planned_twice_and_every_method_exists(planned):
    assert len(set(planned)) == len(planned)
    assert {cell.method for cell in planned} <= set(REGISTRY)


def test_ten_seeds_three_models_and_28_tables_for_every_method_of_the_core(planned):
    for method in design.CORE:
        cases = {
            (cell.dataset, cell.model, cell.seed)
            for cell in planned
            if cell.method.removesuffix(design.HELD) == method and cell.protocol == "unknown"
        }
        assert len(cases) == 28 * 3 * 10, method


def test_methods_are_compared_on_the_same_factuals(planned):
    def settings(cell):
        return cell.n_factuals, cell.n_counterfactuals, cell.target

    assert len({settings(cell) for cell in planned}) == 1


def test_cells_that_share_a_model_follow_each_other(planned):
    groups = [about for about, _ in groupby(planned, key=lambda cell: (cell.dataset, cell.model))]
    assert len(groups) == len(set(groups)) == 28 * 3


def test_a_method_that_can_hold_immutables_does_where_there_are_some():
    assert design.held("NICE", "adult") == "NICE-HELD"
    assert design.held("NICE", "wine") == design.held("NICE", "pima") == "NICE"
    assert design.held("FACE-KNN", "adult") == "FACE-KNN"


def test_conclusions_are_drawn_from_tables_that_nothing_was_tuned_on():
    assert [design.group_of(name) for name in ("pima", "adult")] == ["test", "tuning"]
