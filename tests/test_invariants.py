"""What must hold for every cover and every answer, whatever the table and the model."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from _search.test_paper import explained_by_the_package
from amounts import examples
from conftest import dose_model
from onbmacf import ONBMACF, Relaxation, Schema
from onbmacf._balls.cover import build_cover
from onbmacf._balls.distance import distances
from strategies import ExplanationCase, LabelledGrid, explanation_cases, labelled_grids

pytestmark = pytest.mark.filterwarnings("ignore")  # the tables are odd on purpose
often = examples(200, derandomize=True)


@often
@given(labelled_grids())
def test_no_ball_contains_an_enemy(grid: LabelledGrid):
    Z, labels = np.array(grid.points, dtype=float), np.array(grid.labels)
    cover = build_cover(Z, labels, grid.metric, grid.competitors)
    inside = distances(Z[cover.centers], Z, grid.metric) < cover.radii[:, np.newaxis]
    assert not (inside & (labels != cover.labels[:, np.newaxis])).any()


@often
@given(labelled_grids())
def test_every_row_is_owned_by_a_ball_of_its_label_that_covers_it(grid: LabelledGrid):
    Z, labels = np.array(grid.points, dtype=float), np.array(grid.labels)
    cover = build_cover(Z, labels, grid.metric, grid.competitors)
    assert (cover.labels[cover.owner] == labels).all()
    to_owner = distances(Z, Z[cover.centers], grid.metric)[np.arange(len(Z)), cover.owner]
    assert ((to_owner < cover.radii[cover.owner]) | (to_owner == 0)).all()
    members = [cover.members(ball) for ball in range(len(cover))]
    assert sorted(np.concatenate(members)) == list(range(len(Z)))
    assert all(len(rows) for rows in members)


@often
@given(explanation_cases())
def test_counterfactuals_hold_and_immutables_stay_unless_released(case: ExplanationCase):
    locked = [position for position, feature in enumerate(case.features) if feature.immutable]
    for answer in explained_by_the_package(case):
        for found in answer.counterfactuals:
            assert case.model(tuple(found.values)) == found.label != answer.label
            if found.relaxation is not Relaxation.IMMUTABILITY:
                assert [found.values.iloc[p] for p in locked] == [found.factual.iloc[p] for p in locked]
            if found.semifactual is not None:
                assert case.model(tuple(found.semifactual.values)) == answer.label
                assert set(found.semifactual.changed) <= set(found.changed)


def digest(frame: pd.DataFrame) -> str:
    return hashlib.sha256(frame.sort_index(kind="stable").to_csv(float_format="%.17g").encode()).hexdigest()


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_one_row_alone_is_the_same_row_in_any_batch_and_any_order(mixed, batch):
    table = mixed.reset_index(drop=True)
    explainer = ONBMACF(3).fit(table, dose_model, schema=Schema.infer(table, immutable=["age"]))
    whole = explainer.explain(table).to_frame()
    shuffled = table.sample(frac=1, random_state=4)
    parts = [explainer.explain(shuffled[i : i + batch]).to_frame() for i in range(0, len(table), batch)]
    assert digest(pd.concat(parts)) == digest(whole)


def test_the_index_of_the_caller_is_kept_and_repeated(mixed):
    answers = ONBMACF(2).fit(mixed, dose_model).explain(mixed)
    frame, n_found = answers.to_frame(), answers.status_frame()["n_found"]
    assert frame.index.name == "person"
    assert n_found.max() == 2
    assert list(frame.index) == [label for label, n in zip(mixed.index, n_found, strict=True) for _ in range(n)]
    pd.testing.assert_series_equal(frame[mixed.columns].dtypes, mixed.dtypes)


def test_questions_to_the_model_grow_with_features_not_with_rows_times_balls(heart):
    questions = []

    def model(rows):
        return (rows["tobacco"] + rows["ldl"] > 10).astype(int)

    explainer = ONBMACF(3, strategy="paper", predict_chunk=1 << 16).fit(heart, model)
    for n in (2, 40):
        questions.append(explainer.explain(heart.head(n)).n_calls)
    assert questions[0] == questions[1] <= heart.shape[1] + 5


@pytest.mark.parametrize("limits", [{}, {"max_model_rows": 82}], ids=["free", "limited"])
@pytest.mark.parametrize("width", [5, 24])
def test_rows_that_lack_values_change_no_answer_of_others(width, limits):
    """What a row lacks cannot change: it has fewer features to ask about than the rows beside it."""
    rng = np.random.default_rng(width)
    table = pd.DataFrame(rng.integers(0, 50, (160, width)).astype(float)).add_prefix("x")
    table = table.mask(rng.random(table.shape) < 0.15)
    weights = rng.normal(size=width)

    def model(rows):
        return (rows.fillna(25).to_numpy() @ weights > 25 * weights.sum()).astype(int)

    explainer = ONBMACF(**limits).fit(table, model)
    rows = table.head(24)
    together = explainer.explain(rows)
    for place in range(len(rows)):
        (alone,) = explainer.explain(rows.iloc[[place]])
        assert together[place].to_dict() == alone.to_dict()
