"""The factuals asked again with noise: which lines of a cell get a steadiness, and which."""

import numpy as np
import pytest

from onbmacf.bench import cells
from onbmacf.bench.cases import Case
from onbmacf.bench.cells import Cell
from onbmacf.bench.protocol import factual_rows, with_noise

CELL = Cell("small", "ANY", n_noisy=6)


class Recorded:
    """A method that answers with given counterfactuals and keeps what it was asked."""

    def __init__(self, answers=None):
        self.answers, self.asked = answers, []

    def explain(self, Z, n=1):
        self.asked.append(Z)
        return self.answers(Z)


@pytest.fixture
def factuals(small_task, small_network):
    return small_task.Z[factual_rows(small_task, small_network, 8)]


def case(task, model, Z):
    return Case(task, model, np.arange(len(Z)), Z, [], 1.0)


def steadiness(cell, task, model, method, Z):
    return cells._steadiness(cell, case(task, model, Z), method, method.answers(Z))


def richer(task, model):
    """Answers that change the debt and the income, and nothing else."""
    names = list(task.schema.names)
    columns = [task.blocks[names.index(name)].start for name in ("income", "debt")]

    def answers(Z):
        points = Z.copy()
        points[:, columns] = 1.0, 0.0
        return list(points)

    return answers


def test_the_first_factuals_are_asked_again_and_the_same_change_is_steady(small_task, small_network, factuals):
    method = Recorded(richer(small_task, small_network))
    steady = steadiness(CELL, small_task, small_network, method, factuals)
    assert steady[:6].tolist() == [1.0] * 6
    assert np.isnan(steady[6:]).all()
    noisy = with_noise(small_task, factuals[:6], cells.NOISE, CELL.seed)
    assert np.array_equal(method.asked[0], noisy)
    assert not np.array_equal(noisy, factuals[:6])


def test_another_change_or_none_at_all_is_not_steady_and_no_first_answer_is_no_number(
    small_task, small_network, factuals
):
    answers = richer(small_task, small_network)
    found = answers(factuals)
    found[0] = None
    found[1] = factuals[1]  # not the target label: no counterfactual

    def moved(Z):
        later = answers(Z)
        city = small_task.blocks[list(small_task.schema.names).index("city")]
        later[2][city] = np.roll(later[2][city], 1)
        later[3] = None
        return later

    steady = cells._steadiness(CELL, case(small_task, small_network, factuals), Recorded(moved), found)
    assert np.isnan(steady[:2]).all()
    assert steady[2:6].tolist() == [0.0, 0.0, 1.0, 1.0]


def test_where_noise_alone_gives_the_label_the_factual_is_asked_as_it_was(small_task, factuals, monkeypatch):
    monkeypatch.setattr(cells, "NOISE", 0.2)
    noisy = with_noise(small_task, factuals[:6], 0.2, CELL.seed)
    income = small_task.blocks[list(small_task.schema.names).index("income")].start
    grown = noisy[:, income] > factuals[:6, income] + 1e-3

    class Growth:
        """Label 1 for whoever has more income than the factual with the same debt."""

        def label_of(self, Z):
            return np.array([z[income] > before[income] + 1e-3 for z, before in zip(Z, factuals, strict=False)]).astype(
                np.intp
            )

    method = Recorded(lambda Z: list(Z + np.eye(Z.shape[1])[income]))
    steady = steadiness(CELL, small_task, Growth(), method, factuals)
    assert 0 < grown.sum() < 6
    assert np.array_equal(method.asked[0][grown], factuals[:6][grown])
    assert np.isnan(steady[:6]).tolist() == grown.tolist()


def test_nobody_is_asked_again_where_the_cell_says_so(small_task, small_network, factuals):
    method = Recorded(richer(small_task, small_network))
    steady = steadiness(Cell("small", "ANY", n_noisy=0), small_task, small_network, method, factuals)
    assert np.isnan(steady).all()
    assert method.asked == []


def test_answers_are_made_whole_under_the_protocols_of_the_comparison_only(small_task, small_network, factuals):
    between = factuals.copy()
    size = small_task.blocks[list(small_task.schema.names).index("size")].start
    between[:, size] = 0.3
    about = case(small_task, small_network, factuals)
    unknown = cells._whole(Cell("small", "ANY", protocol="unknown"), about, [*between[:3], None])
    assert [None if rows is None else set(rows[:, size]) <= {0.0, 0.5} for rows in unknown] == [True, True, True, None]
    assert cells._whole(Cell("small", "ANY"), about, list(between))[0][size] == 0.3
