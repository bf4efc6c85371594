"""The optima are optima: against every point there is, a closed form, and points drawn at random."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from onbmacf.bench.datasets import Description, as_task

MODELS = {
    "logistic": LogisticRegression(),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(4, max_depth=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "network": MLPClassifier((4, 3), max_iter=2000, random_state=0, solver="lbfgs", alpha=0.5),
}


def task_of(kinds, seed, rows=120):
    """Return a table of n(umbers), i(ntegers from 0 to 6) and c(ategories of 3), labelled by a rule with noise."""
    random = np.random.default_rng(seed)
    draws = {"n": lambda: random.random(rows), "i": lambda: random.integers(0, 7, rows)}
    columns = [draws.get(kind, lambda: random.integers(0, 3, rows))() for kind in kinds]
    score = sum(np.sin(2 + place + 3 * column / column.max()) for place, column in enumerate(columns))
    words = np.array(["red", "green", "blue"])
    named = {
        f"{kind}{place}": words[columns[place]] if kind == "c" else columns[place] for place, kind in enumerate(kinds)
    }
    frame = pd.DataFrame(named).assign(y=score + 0.5 * random.standard_normal(rows) > np.median(score))
    return as_task("small", frame, Description("y", (True,), ("no", "yes")))


def problem_of(kinds, model, seed, fixed=(), rows=3):
    from optimum_problems import problem_with, with_fixed

    task = with_fixed(task_of(kinds, seed), fixed)
    estimator = MODELS[model].fit(task.Z, task.y)
    return problem_with(task, model, bool(fixed), rows, estimator)


def every_point(problem, z, numbers):
    """Return every point of the set: all levels and whole numbers, and for a number the values given."""
    choices = []
    for feature in problem.features:
        if feature.is_fixed:
            choices.append([z[feature.block]])
        elif feature.is_group:
            choices.append(list(np.eye(feature.block.stop - feature.block.start)))
        else:
            values = feature.grid if feature.is_whole else [*numbers(feature.block.start), z[feature.block.start]]
            choices.append([np.array([value]) for value in values])
    return np.array([np.concatenate(parts) for parts in product(*choices)])


def beyond_each_threshold(problem):
    """Return a function from a column to both sides of all its thresholds."""
    from optimum_programs import trees_of

    def numbers(column):
        at = trees_of(problem.estimator).thresholds(column)
        return [*at.astype(float), *np.nextafter(at, np.float32(2)).astype(float)]

    return numbers


def moved(problem, z, points):
    return np.stack([np.abs(points[:, f.block] - z[f.block]).max(axis=1) for f in problem.features], axis=1)


def check_against_all(problem, numbers=None):
    """Compare every optimum of a problem with all points; return how many factuals have a counterfactual."""
    from optimum_solve import NEAR, solve

    n_found = 0
    for row in problem.rows:
        z = problem.task.Z[row]
        points = every_point(problem, z, numbers)
        moves = moved(problem, z, points[problem.label_of(points) == 1])
        found = solve(problem, row, 60)
        if not len(moves):
            assert found.status == "none"
            continue
        distances, changes = moves.sum(axis=1), (moves > 1e-9).sum(axis=1)
        assert found.status == "proven"
        assert found.distance == pytest.approx(distances.min(), abs=2e-6)
        assert found.bound <= distances.min() + 1e-9
        assert found.least_changes == changes.min()
        assert found.near_changes == changes[distances <= NEAR * distances.min() + 1e-6].min()
        assert problem.label_of(np.array([found.point]))[0] == 1
        n_found += 1
    return n_found


@pytest.mark.parametrize("fixed", [(), ("i0", "c3")], ids=["free", "fixed"])
@pytest.mark.parametrize("model", MODELS)
def test_no_point_of_a_discrete_table_is_nearer_or_changes_less(model, fixed):
    assert sum(check_against_all(problem_of("iiicc", model, seed, fixed)) for seed in range(3)) > 3


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("model", ["tree", "forest", "boosting"])
def test_numbers_count_beyond_each_float32_threshold(model, seed):
    problem = problem_of("nnnnc", model, seed)
    lowest = np.argsort(problem.estimator.predict_proba(problem.task.Z)[:, 1], kind="stable")
    problem = replace(problem, rows=lowest[::8][:6])  # from those that need many changes to those that need few
    assert check_against_all(problem, beyond_each_threshold(problem)) == 6


@pytest.mark.parametrize("model", MODELS)
def test_a_question_without_a_counterfactual_is_proven_to_have_none(model):
    problem = problem_of("iiii", model, 1, fixed=("i0", "i1", "i2"), rows=15)
    assert check_against_all(problem) < len(problem.rows)


def test_a_category_has_one_level_at_a_time():
    """Either other level adds 1 to the score, both would add 2: 1.5 is out of reach."""
    from optimum_solve import solve

    problem = problem_of("ci", "logistic", 0, fixed=("i1",))
    row = problem.rows[0]
    estimator = MODELS["logistic"].fit(problem.task.Z, problem.task.y)
    estimator.coef_ = np.array([[*(1.0 - problem.task.Z[row, :3]), 0.0]])
    estimator.intercept_ = np.array([-1.5])
    assert solve(replace(problem, estimator=estimator), row, 60).status == "none"
    estimator.intercept_ = np.array([-0.5])
    assert solve(replace(problem, estimator=estimator), row, 60).distance == 1.0


def test_the_optimum_of_a_linear_model_spends_on_the_steepest_numbers_first():
    from optimum_solve import solve

    problem = problem_of("nnnn", "logistic", 2, rows=10)
    weights, offset = problem.estimator.coef_[0], problem.estimator.intercept_[0]
    for row in problem.rows:
        z = problem.task.Z[row]
        missing, spent = -(weights @ z + offset), 0.0
        for column in np.argsort(-np.abs(weights)):
            room = 1 - z[column] if weights[column] > 0 else z[column]
            step = min(room, missing / abs(weights[column]))
            missing, spent = missing - step * abs(weights[column]), spent + step
        found = solve(problem, row, 60)
        assert (found.distance, found.bound) == (pytest.approx(spent, abs=2e-6), pytest.approx(spent, abs=2e-6))


def test_no_random_point_is_nearer_than_the_bound_of_a_network():
    from optimum_solve import solve

    problem = problem_of("nnni", "network", 5, rows=5)
    random = np.random.default_rng(0)
    for row in problem.rows:
        z, found = problem.task.Z[row], solve(problem, row, 60)
        steps = random.dirichlet(np.ones(4), 20_000) * random.choice([-1, 1], (20_000, 4)) * found.distance * 1.2
        points = np.clip(z + steps, 0, 1)
        points[:, 3] = problem.features[3].grid[np.round(points[:, 3] * problem.features[3].span).astype(int)]
        distances = moved(problem, z, points).sum(axis=1)[problem.label_of(points) == 1]
        assert found.status == "proven"
        assert distances.min(initial=np.inf) >= found.bound - 1e-6
        assert distances.min() < found.distance * 1.2  # some were near enough to matter


def test_an_answer_between_whole_numbers_is_rounded_where_the_label_holds_and_else_is_none():
    from optimum_problems import within

    problem = replace(problem_of("ni", "tree", 0), estimator=Above(0.5))
    z = np.array([0.2, 2 / 6])
    assert within(problem, z, np.array([0.2, 3.4 / 6])) == pytest.approx([0.2, 4 / 6])  # 3 has label 0: away from 2
    assert within(problem, z, np.array([0.2, 4.4 / 6])) == pytest.approx([0.2, 4 / 6])
    assert within(problem, z, np.array([0.2, 2.4 / 6])) is None
    assert within(problem, z, np.array([1.2, 4 / 6])) is None


class Above:
    """A model that says yes where the second column is above a number."""

    def __init__(self, limit):
        self.limit = limit

    def predict_proba(self, Z):
        yes = (Z[:, 1] > self.limit).astype(float)
        return np.stack([1 - yes, yes], axis=1)


LINE = {
    "question": "nothing fixed",
    "method": "dial 0",
    "model": "tree",
    "table": "small",
    "status": "proven",
    "optimum": 1.0,
    "bound": 1.0,
    "least_changes": 1,
    "near_changes": 2,
    "optimum_changes": 2,
    "seconds": 0.1,
    "n_changes": 2,
    "asked": 70.0,
}


def lines_of(distances, **others):
    return pd.DataFrame([LINE | {"row": row, "distance": value} | others for row, value in enumerate(distances)])


def test_the_table_counts_answers_of_proven_problems_only():
    from optimum import summary

    lines = pd.concat([lines_of([1.0, 1.04, 2.0, np.nan]), lines_of([9.0], status="unproven")])
    found = summary(lines, ["question", "method"]).iloc[0]
    assert (found["n"], found["answered"], found["median"]) == (4, 0.75, 1.04)
    assert (found["within"], found["sums"]) == (pytest.approx(2 / 3), pytest.approx(4.04 / 3))


def test_an_answer_below_the_bound_is_noticed_and_ends_with_1(capsys):
    from optimum import report

    assert report(lines_of([1.0, 1.0 - 1e-7])) == 0
    assert report(lines_of([1.0, 0.999])) == 1
    assert "answers nearer than a proven bound: 1" in capsys.readouterr().out


def test_targets_that_were_not_measured_are_not_met():
    from optimum import GOALS, goals

    assert sum(": met" in line for line in goals(lines_of([1.0]))) == 3  # median, sum over sum, within 5 %
    assert len(goals(lines_of([1.0]))) == len(GOALS)


def test_optima_are_solved_once_and_again_for_another_model(tmp_path, monkeypatch):
    import optimum

    problem = problem_of("iic", "tree", 0)
    first = optimum.optima(problem, tmp_path, 60)
    monkeypatch.setattr(optimum, "solve", None)
    assert optimum.optima(problem, tmp_path, 60) == first
    other = replace(problem, estimator=DecisionTreeClassifier(max_depth=2).fit(problem.task.Z, problem.task.y))
    with pytest.raises(TypeError):
        optimum.optima(other, tmp_path, 60)


def test_a_run_fills_the_committed_page_and_leaves_its_words(tmp_path):
    """Twice: what a run wrote, the next one replaces."""
    from common import fill
    from optimum import parts_of

    committed = (Path(__file__).parents[2] / "docs" / "benchmark" / "optimum.md").read_text(encoding="utf-8")
    page = tmp_path / "optimum.md"
    page.write_text(committed, encoding="utf-8")
    lines = pd.concat([lines_of([1.0, 3.5]), lines_of([7.5], model="network", method="GS")])
    for _ in range(2):
        fill(page, parts_of(lines))
    written = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in written if line.startswith("#")] == [
        line for line in committed.splitlines() if line.startswith("#")
    ]
    assert sum("| GS | 1 | 1.00 | 7.500 |" in line for line in written) == 1  # on the network only
    assert any(line.startswith("| answers checked against the bound | 3; 0 are nearer |") for line in written)


def test_a_run_prints_its_tables_and_ends_well(tmp_path, capsys):
    from optimum import main

    options = ["--tables", "saheart", "--models", "tree", "--methods", "dial 0,NICE", "--factuals", "3"]
    assert main([*options, "--cache", str(tmp_path), "--fixed", "both"]) == 0
    said = capsys.readouterr().out
    assert "| nothing fixed | NICE | 3 | 1.00 |" in said
    assert "| two fixed | dial 0 | tree | 3 |" in said
    assert "answers nearer than a proven bound: 0" in said
