"""Intervals, ranks and tests, beside naive twins, published tables and cases worked by hand."""

import numpy as np
import pytest
from scipy import stats

from onbmacf.bench import statistics
from onbmacf.bench.statistics import (
    bootstrap,
    cliques,
    critical_difference,
    friedman,
    mean_of_present,
    ranks,
    signed_rank,
)

# AUC of C4.5 and its three variants on 14 tables: the worked example of Demsar (2006), table 6. Two values that are
# printed alike have different ranks there.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_ranks_and_friedman_of_the_published_example():
    ranked = ranks(DEMSAR)
    assert ranked.mean(axis=0) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=0.001)
    # There, F(3, 39) = 3.69 without a correction for ties, p = .020; with it, F is a little larger.
    assert 0.005 < friedman(ranked) < 0.02


@pytest.mark.parametrize("n_methods", [3, 5])
def test_friedmans_p_is_that_of_his_formula_without_ties(n_methods):
    n = 8
    ranked = np.array([np.random.default_rng(seed).permutation(n_methods) + 1.0 for seed in range(n)])
    spread = (ranked.mean(axis=0) ** 2).sum() - n_methods * (n_methods + 1) ** 2 / 4
    chi_square = 12 * n / (n_methods * (n_methods + 1)) * spread
    found = (n - 1) * chi_square / (n * (n_methods - 1) - chi_square)
    expected = stats.f.sf(found, n_methods - 1, (n_methods - 1) * (n - 1))
    assert 0.001 < expected < 0.999
    assert friedman(ranked) == pytest.approx(expected)


@pytest.mark.parametrize(("n_methods", "quantile"), [(2, 1.960), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_nemenyis_quantiles_are_the_published_ones(n_methods, quantile):
    expected = quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * 14))
    assert critical_difference(n_methods, 14) == pytest.approx(expected, abs=0.001)


def test_methods_that_are_always_tied_do_not_differ():
    assert friedman(ranks(np.ones((6, 3)))) == 1.0


def test_an_order_that_never_changes_is_no_chance():
    assert friedman(ranks(np.tile([3.0, 2.0, 1.0], (10, 1)))) == 0.0


def test_a_method_without_a_score_comes_last_and_two_share_the_place():
    assert ranks(np.array([[0.5, np.nan, 0.9, np.nan]])).tolist() == [[2.0, 3.5, 1.0, 3.5]]


def naive_cliques(places, difference):
    """Every range of neighbours whose ends differ by less, unless it lies within another."""
    count = len(places)
    ranges = [(a, b) for a in range(count) for b in range(a + 1, count) if places[b] - places[a] < difference]
    return [r for r in ranges if not any(o != r and o[0] <= r[0] and r[1] <= o[1] for o in ranges)]


@pytest.mark.parametrize("seed", range(20))
def test_cliques_agree_with_every_range_tried(seed):
    random = np.random.default_rng(seed)
    places = np.sort(random.integers(10, 60, size=7) / 10)
    difference = random.integers(3, 25) / 10 + 0.05
    assert cliques(random.permutation(places), difference) == naive_cliques(places, difference)


def test_an_interval_is_the_mean_where_all_scores_are_equal():
    found = bootstrap(np.full((4, 3, 2), 0.25))
    assert found.mean.tolist() == found.low.tolist() == found.high.tolist() == [0.25, 0.25]


def naive_bootstrap(scores, draws, random):
    n_tables, n_seeds = scores.shape
    means = []
    for _ in range(draws):
        drawn = [
            random.choice(scores[table], size=n_seeds).mean() for table in random.integers(n_tables, size=n_tables)
        ]
        means.append(np.mean(drawn))
    return np.quantile(means, [0.025, 0.975])


def test_an_interval_agrees_with_drawing_one_by_one():
    random = np.random.default_rng(3)
    scores = random.normal(size=(12, 5)) + random.normal(size=(12, 1))
    found = bootstrap(scores)
    assert found.mean == pytest.approx(scores.mean())
    assert [found.low, found.high] == pytest.approx(naive_bootstrap(scores, 4000, random), abs=0.06)


def test_a_missing_score_counts_as_its_tables_mean_and_a_table_without_any_is_left_out():
    scores = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [5.0, 5.0, 5.0]])
    found = bootstrap(scores)
    assert found.mean == 3.5
    assert found.low >= 1.0
    assert found.high == 5.0


def test_the_mean_of_nothing_is_nothing():
    assert np.isnan(mean_of_present(np.array([np.nan, np.nan]), axis=0))


def naive_signed_rank(differences, alike, draws, random):
    points = [0.0, *differences]
    wins = np.zeros(3)
    for _ in range(draws):
        weights = random.dirichlet([statistics.PRIOR_STRENGTH, *[1.0] * len(differences)])
        votes = np.zeros(3)
        for one, weight in zip(points, weights, strict=True):
            for other, further in zip(points, weights, strict=True):
                mean = (one + other) / 2
                votes[0 if mean < -alike else 2 if mean > alike else 1] += weight * further
        wins[votes.argmax()] += 1
    return wins / draws


@pytest.mark.parametrize("shift", [-0.02, 0.0, 0.015])
def test_the_verdict_agrees_with_counting_pairs_one_by_one(shift):
    random = np.random.default_rng(5)
    differences = random.normal(shift, 0.02, size=9)
    verdict = signed_rank(differences, 0.01)
    assert sum(verdict) == pytest.approx(1.0)
    assert verdict == pytest.approx(naive_signed_rank(differences, 0.01, 1500, random), abs=0.05)


def test_the_verdict_agrees_with_the_authors_package():
    """What baycomp 1.0.3 prints of these differences with 200,000 draws."""
    differences = np.round(np.random.default_rng(2).normal(0.01, 0.03, 20), 4)
    assert signed_rank(differences, 0.01) == pytest.approx((0.012, 0.444, 0.544), abs=0.02)


def test_a_clear_difference_is_better_and_a_small_one_is_alike():
    assert signed_rank(np.full(20, 0.2), 0.01).better > 0.999
    assert signed_rank(np.full(20, -0.2), 0.01).worse > 0.999
    assert signed_rank(np.full(20, 0.001), 0.01).alike > 0.999


def test_a_table_without_a_difference_is_left_out():
    differences = np.array([0.1, 0.2, np.nan, 0.15])
    assert signed_rank(differences, 0.01) == signed_rank(differences[[0, 1, 3]], 0.01)
