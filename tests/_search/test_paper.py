"""The package agrees with the paper line by line, on small grids full of ties.

tests/helpers/paper.py is the reference. Discrete values, labels, order, relaxations and statuses must be equal,
continuous values and distances to 1e-9.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import paper
from amounts import examples
from onbmacf import ONBMACF, Feature, Schema
from onbmacf._balls.associate import home_balls
from onbmacf._balls.cover import build_cover
from onbmacf._balls.geometry import Balls, crossing
from onbmacf._search.strategies import STRATEGIES
from paper_space import encode, learn_space
from strategies import (
    Association,
    ExplanationCase,
    LabelledGrid,
    associations,
    explanation_cases,
    labelled_grids,
)

thoroughly = examples(500, derandomize=True)
pytestmark = pytest.mark.filterwarnings("ignore")  # the tables are odd on purpose


@thoroughly
@given(labelled_grids())
def test_cover_agrees_with_the_paper_line_by_line(grid: LabelledGrid):
    D = grid.balls()
    Z, labels = np.array(grid.points, dtype=float), np.array(grid.labels)
    cover = build_cover(Z, labels, metric=grid.metric, competitors=grid.competitors)
    assert list(cover.centers) == [ball.l for ball in D]
    assert list(cover.labels) == [ball.c for ball in D]
    assert list(cover.radii) == [ball.r for ball in D]
    assert list(cover.owner) == [owner_of(row, D) for row in range(len(Z))]


def owner_of(row: int, D: list[paper.Ball]) -> int:
    (owner,) = [position for position, ball in enumerate(D) if row in ball.G]
    return owner


@thoroughly
@given(associations())
def test_association_agrees_with_the_paper_line_by_line(case: Association):
    homes = home_balls(
        np.array(case.distances),
        np.array(case.radii),
        association=case.association,
        boundary=case.boundary,
    )
    for home, d_i in zip(homes, case.distances, strict=True):
        assert home == paper.algorithm_2(d_i, case.radii, case.association, case.boundary)


@thoroughly
@given(explanation_cases())
def test_explanations_agree_with_the_paper_line_by_line(case: ExplanationCase):
    assert_agreement(case)


def test_two_labels_that_no_fitted_row_has_are_two_labels():
    """The factual is "c", the walk meets "d" before "b": "d" is no semifactual of "c"."""

    def model(row: paper.Row) -> str:
        (x,) = row
        return "a" if x < 0.5 else "b" if x < 1.2 else "d" if x < 1.6 else "c"

    case = ExplanationCase([(0.0,), (1.0,)], [paper.Feature("continuous")], model, [(2.0,)], None, paper.Options())
    assert_agreement(case)
    assert explained_by_the_package(case)[0].semifactuals == (None,)


@pytest.mark.parametrize(("boundary", "share"), [("surface", 0.5), ("ratio", 2.0**-50)])
def test_balls_of_radius_0_have_a_boundary(boundary: str, share: float):
    """From the centre of one to the centre of the other; between them both ratios are infinite, so equal."""
    rows, options = [(0.0,), (1.0,), (0.0,)], paper.Options(boundary=boundary)
    space = learn_space(rows, [paper.Feature("continuous")], "manhattan")
    points = [encode(row, space) for row in rows]
    q = paper.Question(rows, points, ["a", "b", "a"], 2, space, str, options)
    a, l = (paper.Ball(row, q.c[row], 0.0, frozenset({row})) for row in (0, 1))  # noqa: E741
    home, ball = (Balls(np.array([[x]]), np.zeros(1), np.array([0])) for x in (0.0, 1.0))
    assert paper.cut(q, a, l, rows[1]) == pytest.approx(share)
    assert crossing(home.points, ball.points, home, ball, "manhattan", boundary) == pytest.approx(share)


def assert_agreement(case: ExplanationCase) -> None:
    expected = paper.explain(case.rows, case.features, case.model, case.factuals, case.target, case.options)
    answers = explained_by_the_package(case)
    assert len(answers) == len(expected)
    for answer, reference in zip(answers, expected, strict=True):
        assert answer.status == reference.status
        found = [summary(counterfactual) for counterfactual in answer.counterfactuals]
        assert found == [reference_summary(counterfactual) for counterfactual in reference.counterfactuals]
        assert [found.semifactual for found in answer.counterfactuals] == list(answer.semifactuals)


def explained_by_the_package(case: ExplanationCase, strategy: str = "paper", **more: Any) -> Any:
    options = case.options._asdict() | more
    if strategy == "paper":
        options["search"] = "exhaustive"
    else:
        options = {name: value for name, value in options.items() if name not in STRATEGIES[strategy].ignores}
    explainer = ONBMACF(options.pop("n"), predict_chunk=16, strategy=strategy, **options)
    names = [f"x{f}" for f in range(len(case.features))]
    schema = Schema(
        [
            Feature(name, feature.kind, immutable=feature.immutable, levels=feature.levels or None)
            for name, feature in zip(names, case.features, strict=True)
        ]
    )
    explainer.fit(pd.DataFrame(case.rows, columns=names), by_row(case.model), schema=schema)
    target = None if case.target is None else list(case.target)
    return explainer.explain(pd.DataFrame(case.factuals, columns=names), target=target)


def by_row(model: Any) -> Any:
    """A model of one row as a model of a frame."""
    return lambda frame: np.array([model(row) for row in frame.itertuples(index=False, name=None)])


def summary(found: Any) -> tuple:
    semifactual = None if found.semifactual is None else list(found.semifactual.values)
    return (list(found.values), found.distance, found.label, found.relaxation.name, semifactual)


def reference_summary(found: paper.Counterfactual) -> tuple:
    semifactual = None if found.semifactual is None else to_1e_9(found.semifactual)
    distance = pytest.approx(found.distance, abs=1e-9)
    return (to_1e_9(found.values), distance, found.label, found.relaxation, semifactual)


def to_1e_9(values: paper.Row) -> list:
    """Floats are continuous and compared to 1e-9, everything else exactly."""
    return [pytest.approx(value, rel=0, abs=1e-9) if isinstance(value, float) else value for value in values]
