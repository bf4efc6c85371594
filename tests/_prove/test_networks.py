"""Proofs for networks: bounds of boxes beside a plain twin, searches beside all points, and what can be read."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from amounts import seeds
from onbmacf import ONBMACF, Schema
from onbmacf._prove.boxes import Demand, choosable_of, solve
from onbmacf._prove.domain import Choices
from onbmacf._prove.kernels.network import NetworkSearch
from onbmacf._prove.structures import Network
from onbmacf.datasets import heart_network, load_heart
from onbmacf.io import train_network, train_trees
from plain_kernels import plain_kernels, steps

NO_PAIRS = np.zeros((0, 2), np.intp)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Small:
    """A random network over few choices of four features, two of them numbers, and what is asked of it."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        hidden = [(5,), (5, 4), (4, 4, 3)][seed % 3]
        sizes = [4, *hidden, 2]
        self.weights = [random.normal(size=shape) for shape in itertools.pairwise(sizes)]
        self.bias = [random.normal(size=size) * 0.3 for size in sizes[1:]]
        self.network = Network("network", [0, 1], self.weights, self.bias, lambda rows: rows, np.ones(4), 2.0**-52)
        self.is_sum, self.n_conditions = seed % 4 > 0, 1 + seed % 2
        self.conditions = random.normal(size=(2, self.n_conditions))
        self.kept, self.columns = [], []
        for feature, size in enumerate(random.integers(2, 7, 3)):
            is_number = feature < 2
            own = int(random.integers(size)) if is_number else 0
            steps = np.abs(np.arange(size) - own) / 4.0 if is_number else np.arange(size) * 0.0 + (np.arange(size) > 0)
            self.kept.append(Choices(np.arange(size), np.arange(size, dtype=float), steps, own))
            mine = [feature] if is_number else [2, 3]
            self.columns.append(np.zeros((size, 4)))
            self.columns[-1][:, mine] = (
                np.sort(random.normal(size=(size, 1)), axis=0) if is_number else random.normal(size=(size, 2))
            )
        every = itertools.product(*(range(len(choices.cost)) for choices in self.kept))
        self.points = np.array(list(every))
        self.sums = np.array([self.sums_at(point) for point in self.points])
        self.need = np.quantile(self.sums, 0.8, axis=0)
        combine = np.sum if self.is_sum else np.max
        self.costs = np.array([combine([c.cost[at] for c, at in zip(self.kept, p, strict=True)]) for p in self.points])
        amount = np.concatenate([choices.value for choices in self.kept])
        pairs = np.array([[0, 1]]) if seed % 5 == 0 else NO_PAIRS
        most = int(random.integers(1, 4))
        limit = [9.0, 1.0, 0.6][seed % 7 % 3]
        self.demand = Demand(self.need - 1e-9, self.need + 1e-9, limit, most, pairs, amount)

    def sums_at(self, point):
        row = sum(columns[at] for columns, at in zip(self.columns, point, strict=True))
        return self.network.scores(row[np.newaxis])[0] @ self.conditions

    def layers(self):
        given = np.concatenate([columns @ self.weights[0] for columns in self.columns])
        along = np.concatenate([self.columns[0][:, 0], self.columns[1][:, 1], np.zeros(len(self.columns[2]))])
        line = np.vstack([self.weights[0][:2], np.zeros_like(self.weights[0][:1])])
        return self.network.layers(given, self.bias[0], (np.array([1, 1, 0]), line, along), self.conditions)

    def search_in(self, lo, hi, demand):
        """Return a search over a box of the choices alone; the row's own may lie outside."""
        spans = [slice(low, high + 1) for low, high in zip(lo, hi, strict=True)]
        kept = [
            Choices(*(part[span] for part in choices[:3]), choices.own - span.start)
            for choices, span in zip(self.kept, spans, strict=True)
        ]
        layers, starts = self.layers(), choosable_of(self.kept, self.is_sum).start
        inside = np.concatenate([np.arange(low, high + 1) + at for low, high, at in zip(lo, hi, starts, strict=False)])
        layers = layers._replace(given=layers.given[inside], along=layers.along[inside])
        demand = demand._replace(amount=demand.amount[inside])
        return NetworkSearch(choosable_of(kept, self.is_sum), demand, layers)

    def is_good(self, point):
        """Say whether a point meets the conditions, changes few enough features and keeps the pairs."""
        own = [choices.own for choices in self.kept]
        is_changed = [at != mine for at, mine in zip(point, own, strict=True)]
        keeps = all(not (is_changed[a] or is_changed[b]) or point[a] <= point[b] for a, b in self.demand.pairs)
        return bool((self.sums_at(point) >= self.need).all() and sum(is_changed) <= self.demand.most and keeps)


class PlainBox:
    """The bound of a box, written with whole arrays."""

    def __init__(self, small, boxes):
        self.small, self.limit = small, small.demand.limit
        self.costs = [choices.cost[list(cells)] for choices, cells in zip(small.kept, boxes, strict=True)]
        self.base = (sum if small.is_sum else max)(own.min() for own in self.costs)
        rows = [columns[list(cells)] for columns, cells in zip(small.columns, boxes, strict=True)]
        self.first = [own @ small.weights[0] for own in rows]
        self.layers = [*zip(small.weights[1:-1], small.bias[1:-1], strict=True)]
        self.layers.append((small.weights[-1] @ small.conditions, small.bias[-1] @ small.conditions))
        self.ranges = [self.first_ranges()]
        for layer, (weights, bias) in enumerate(self.layers[:-1], start=1):
            self.ranges.append(self.next_ranges(layer, weights, bias))

    def offers(self, weights):
        """Return a line at the cheapest cost, and gain per cost, gain and least cost of each feature."""
        total, offers = weights @ self.small.bias[0], []
        for own, cost in zip((own @ weights for own in self.first), self.costs, strict=True):
            free, dearer = own[cost == cost.min()].max(), cost > cost.min()
            gains = np.maximum(own[dearer] - free, 0.0)
            rate = (gains / (cost[dearer] - cost.min())).max(initial=0.0)
            total, offers = total + free, [*offers, (rate, gains.max(initial=0.0), cost.min())]
        return total, offers

    def most(self, weights, constant=0.0):
        """Return the most that a line can be where no point costs more than the limit."""
        total, offers = self.offers(weights)
        budget = self.limit - self.base if self.small.is_sum else np.inf
        for rate, gain, _ in sorted(offers, reverse=True):
            bought = min(gain, rate * budget) if rate > 0 else 0.0
            total, budget = total + bought, budget - (bought / rate if rate > 0 else 0.0)
        return total + constant

    def first_ranges(self):
        units = np.eye(len(self.small.bias[0]))
        return np.array([-self.most(-unit) for unit in units]), np.array([self.most(unit) for unit in units])

    def next_ranges(self, layer, weights, bias):
        (low, high), ends = self.ranges[-1], []
        for sign in (-1.0, 1.0):
            own = sign * weights
            plain = sign * bias + np.maximum(high, 0) @ np.maximum(own, 0) + np.maximum(low, 0) @ np.minimum(own, 0)
            lines = [self.most(*self.above(layer, own[:, unit], sign * bias[unit])) for unit in range(len(bias))]
            ends.append(sign * np.minimum(plain, lines))
        return tuple(ends)

    def above(self, layer, weights, constant):
        """Return weights of the first layer's sums and a constant: a line above a sum of a layer's units."""
        for below in range(layer - 1, -1, -1):
            low, high = self.ranges[below]
            with np.errstate(divide="ignore", invalid="ignore"):
                upper = np.where(high <= 0, 0.0, np.where(low >= 0, 1.0, high / (high - low)))
            lower = np.where(high <= 0, 0.0, np.where(low >= 0, 1.0, (high > -low) * 1.0))
            is_open = (low < 0) & (high > 0)
            constant = constant - (np.where(weights > 0, weights * upper * low, 0.0) * is_open).sum()
            weights = weights * np.where(weights > 0, upper, lower)
            if below:
                constant, weights = constant + weights @ self.layers[below - 1][1], self.layers[below - 1][0] @ weights
        return weights, constant

    def bound(self):
        """Return the least cost at which the lines above all conditions are large enough; infinite if never."""
        bounds = [self.base]
        for condition in range(self.small.n_conditions):
            line = self.layers[-1][0][:, condition], self.layers[-1][1][condition]
            weights, constant = self.above(len(self.layers), *line)
            total, offers = self.offers(weights)
            bounds.append(self.spent(total + constant, self.small.demand.need[condition], offers))
        return max(bounds)

    def spent(self, total, need, offers):
        if not self.small.is_sum:
            grid = np.linspace(self.base, self.limit, 20_001)
            given = sum(np.minimum(gain, rate * np.maximum(grid - first, 0.0)) for rate, gain, first in offers)
            return grid[np.argmax(total + given >= need)] if (total + given >= need).any() else np.inf
        cost = self.base
        for rate, gain, _ in sorted(offers, reverse=True):
            if total < need and rate > 0:
                part = min(gain, need - total)
                total, cost = total + part, cost + part / rate
        return cost if total >= need - 1e-12 else np.inf


@pytest.mark.parametrize("seed", seeds(60))
def test_the_bound_of_a_box_agrees_with_its_plain_twin_and_lies_below_all_points(seed):
    small = Small(seed)
    sizes = [len(choices.cost) for choices in small.kept]
    demand = small.demand._replace(most=9, pairs=NO_PAIRS, firm=np.full(small.n_conditions, np.inf))
    random = np.random.default_rng(seed)
    for _ in range(8):
        lo = np.array([int(random.integers(size)) for size in sizes])
        hi = np.array([int(random.integers(low, size)) for low, size in zip(lo, sizes, strict=True)])
        search = small.search_in(lo, hi, demand)
        search.run(1)
        boxes = [range(low, high + 1) for low, high in zip(lo, hi, strict=True)]
        is_inside = ((small.points >= lo) & (small.points <= hi)).all(axis=1)
        good = is_inside & (small.sums >= small.need).all(axis=1)
        nearest, expected = small.costs[good].min(initial=np.inf), PlainBox(small, boxes).bound()
        if search.is_over():
            assert not (good & (small.costs < small.demand.limit)).any()
            assert expected >= small.demand.limit - 1e-6
            continue
        bound = search.least_bound()
        assert bound <= nearest + 1e-9
        if not search.has_candidate():
            assert bound == pytest.approx(expected, abs=1e-6 if small.is_sum else 1e-3)


@pytest.mark.parametrize("seed", seeds(60))
def test_a_search_over_a_network_agrees_with_all_points(seed):
    small = Small(seed)
    search = NetworkSearch(choosable_of(small.kept, small.is_sum), small.demand, small.layers())
    good = np.array([small.is_good(point) for point in small.points]) & (small.costs < small.demand.limit)
    solved = solve(search, lambda point: small.is_good(point.astype(int)), np.inf)
    assert solved.is_over
    assert (solved.point is None) == (not good.any())
    assert solved.bound == pytest.approx(small.costs[good].min(initial=solved.bound))


@pytest.mark.parametrize("seed", seeds(40))
def test_a_compiled_search_over_a_network_takes_the_steps_of_its_source(seed):
    small = Small(seed)
    given = choosable_of(small.kept, small.is_sum), small.demand, small.layers()
    assert steps(NetworkSearch(*given)) == steps(plain_kernels().network.NetworkSearch(*given))


@pytest.fixture(scope="module")
def heart_answers():
    table, y = load_heart()
    model = heart_network().fit(table, y)
    explainer = ONBMACF(plausibility=0).fit(table, model, schema=Schema.infer(table, immutable=["age"]))
    rows = table[model.predict(table) == 1].head(6)
    return explainer, rows, explainer.explain(rows, target=0, prove=True, prove_seconds=120)


def test_the_network_of_the_heart_data_is_proven(heart_answers):
    explainer, rows, answers = heart_answers
    plain = explainer.explain(rows, target=0)
    assert {answer.certificate.kind for answer in answers} == {"nearest"}
    for one, other in zip(answers, plain, strict=True):
        assert "network" in one.certificate.sentence()
        assert one.counterfactuals[0].distance <= other.counterfactuals[0].distance + 1e-9


def test_no_point_drawn_nearer_than_a_proven_answer_has_the_label(heart_answers):
    explainer, rows, answers = heart_answers
    random, space, numbers = np.random.default_rng(0), explainer.fitted_.space, ["sbp", "tobacco", "ldl", "obesity"]
    n_asked = 0
    for place, answer in enumerate(answers):
        trial = pd.concat([rows.iloc[[place]]] * 2000)
        for name in numbers:
            drawn = trial[name] + random.normal(size=len(trial)) * 0.1 * space.span[rows.columns.get_loc(name)]
            drawn = drawn.clip(lower=0).round(0 if name == "sbp" else 2).astype(trial[name].dtype)
            trial[name] = drawn.where(random.random(len(trial)) < 0.5, trial[name])
        apart = np.abs(space.encode(trial) - space.encode(rows.iloc[[place]])).sum(axis=1)
        near = trial[apart < answer.certificate.bound * (1 - 1e-9)]
        n_asked += len(near)
        assert (explainer.fitted_.black_box.ask(space.form.numbers(near)) == 1).all()
    assert n_asked > 1000


def _explained(model, table, **asked):
    explainer = ONBMACF(plausibility=0).fit(table, model)
    return explainer.explain(table.head(3), prove=True, prove_seconds=60, **asked)


@pytest.fixture(scope="module")
def numbers():
    random = np.random.default_rng(4)
    table = pd.DataFrame(random.integers(0, 12, (150, 3)) / 4, columns=list("abc"))
    score = table["a"] * table["b"] - table["c"]
    return table, np.digitize(score, np.quantile(score, [0.4, 0.7]))


def test_several_classes_and_a_least_probability_are_proven(numbers):
    table, y = numbers
    model = make_pipeline(StandardScaler(), MLPClassifier((8, 5), solver="lbfgs", max_iter=200, random_state=0))
    model.fit(table, y)
    for answer in _explained(model, table):
        assert answer.certificate.kind == "nearest"
    every = pd.DataFrame(itertools.product(*(np.arange(0, 2.76, 0.25),) * 3), columns=list("abc"))
    sure = every[model.predict_proba(every).max(axis=1) >= 0.7]
    space = ONBMACF().fit(table, model).fitted_.space
    for place, answer in enumerate(_explained(model, table, min_probability=0.7)):
        other = sure[model.predict(sure) != model.predict(table.iloc[[place]])[0]]
        apart = np.abs(space.encode(other) - space.encode(table.iloc[[place]])).sum(axis=1)
        assert answer.certificate.bound <= apart.min() + 1e-9  # values between quarters may be nearer
        assert answer.counterfactuals[0].distance <= apart.min() + 1e-9


@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity"])
def test_other_units_are_not_known_and_that_is_said(numbers, activation):
    table, y = numbers
    model = MLPClassifier((4,), activation=activation, solver="lbfgs", max_iter=50, random_state=0).fit(table, y)
    for answer in _explained(model, table):
        assert answer.certificate.reason == f"a network of {activation!r} units is not known"


def test_a_network_that_was_changed_behind_its_answers_is_not_proven(numbers):
    table, y = numbers

    class Shifted(MLPClassifier):
        __module__ = "sklearn.own"

        def predict_proba(self, rows):
            return super().predict_proba(rows)[:, ::-1]

    model = Shifted((4,), solver="lbfgs", max_iter=50, random_state=0).fit(table, y)
    for answer in _explained(model, table):
        assert "not those of its structure" in answer.certificate.reason


def test_single_precision_is_allowed_for(numbers):
    table, y = numbers
    model = MLPClassifier((6, 4), max_iter=100, random_state=0).fit(table.astype(np.float32), y)
    assert model.coefs_[0].dtype == np.float32
    for answer in _explained(model, table):
        assert answer.certificate.kind == "nearest"


def test_models_that_the_package_trains_itself_are_proven():
    table, y = load_heart()
    for trained in (train_network(table, y), train_trees(table[["age", "ldl", "tobacco"]], y)):
        used = table if trained.kind.startswith("a network") else table[["age", "ldl", "tobacco"]]
        explainer = ONBMACF(plausibility=0).fit(used, trained.model)
        answer = explainer.explain(used.iloc[[0]], prove=True, prove_seconds=120)[0]
        assert answer.certificate.kind == "nearest", answer.certificate
