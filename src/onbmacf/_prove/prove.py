"""Proofs for the rows of one call: what is the nearest that the model allows, or that there is none.

Known kinds of models are solved by branch and bound; of any other, everything that a row may become is asked, nearest
first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._prove.boxes import Conditions, Forest, IsAnswer, Solved, nearest_leaf, posed, solve
from onbmacf._prove.columns import NotKnownError, Program, Recipe, is_single, parted, through, unwrapped
from onbmacf._prove.domain import Choices, ColumnTable, Domain, below, near_enough, only_own
from onbmacf._prove.kernels.additive import AdditiveSearch
from onbmacf._prove.kernels.network import NetworkSearch
from onbmacf._prove.kernels.search import Search
from onbmacf._prove.kernels.trees import TreeSearch
from onbmacf._prove.readers import has_scores, read, reader_of
from onbmacf._prove.structures import Additive, Layers, Network, Structure, Trees
from onbmacf._prove.sums import sums_of
from onbmacf._table.calls import ENDLESS
from onbmacf._table.form import TableForm
from onbmacf._table.model import PRINTED
from onbmacf._table.readings import Reading

TOGETHER = 512  # rows that are asked about at once
SAME = 1e-9  # what is nearer by less than this share is not nearer
TIME_RAN_OUT = "time ran out"
MOST_SURE = 1.0 - 1e-6  # beyond, the last bits of a probability decide, which a copy does not have
MOST_SINGLES, BEST_SINGLES, N_RANDOM, MANY = 16, 8, 32, 2.5  # points that are looked at for doubts; changes of each
MOST_TRIALS = 512  # points on which structure and model are compared once per call
N_DOUBTS = 24  # points that the model is asked about before a proof is believed

Ask = Callable[[Matrix], Any]  # rows as numbers -> labels, or the error that each raised


# --- the rows of a call -----------------------------------------------------------------------------------------------


class Proof(NamedTuple):
    """What is known of one row."""

    bound: float  # no answer is nearer; infinite where there is none
    point: Matrix | None  # the nearest answer, as numbers, where it is nearer than the one known
    is_over: bool  # whether nothing is left to look for
    seconds: float
    reason: str = ""


class Doubts(NamedTuple):
    """Points that the model is asked about before a proof is believed: as numbers, and as the model's columns."""

    points: Matrix
    columns: Matrix


@dataclass(frozen=True, eq=False)
class Prover:
    """A model that has been read, and the values that some rows may change to."""

    structure: Structure
    domain: Domain
    table: ColumnTable
    forest: Forest | None  # the model's trees, where it has some
    least: float  # probability that an answer must have
    quick_scores: Callable[[Matrix], Matrix]  # columns -> the structure's scores, by kernels

    @classmethod
    def of(
        cls,
        model: Any,
        domain: Domain,
        form: TableForm,
        trials: Matrix,
        ask: Ask,
        least: float,
        reading: Reading | None = None,
    ) -> "Prover":
        """Read a model; NotKnownError says why it cannot be.

        On trial points, which do not depend on the rows, it must say what its structure says, and so must the model
        that is explained, which `ask` asks. `reading` says how the caller reads the model's answers.
        """
        estimator, to_columns = unwrapped(model)
        reader_of(estimator)  # before its columns are looked at: why a function cannot be read is not what it takes
        if least > MOST_SURE:
            raise NotKnownError(f"probabilities above {MOST_SURE} are those of the last bits")
        trials = trials[~np.isnan(trials).any(axis=1)]
        trials = trials[:: -(-len(trials) // MOST_TRIALS)]  # of a wide table, some
        columns = to_columns(form.rows_for_model(trials))
        table = ColumnTable.of(domain, form, to_columns)
        size = np.maximum(table.size(), np.abs(columns).max(axis=0, initial=0.0))
        structure = read(estimator, columns, size, reading)
        is_double = isinstance(structure, Trees) and structure.is_double
        if is_double and is_single(through(parted(model)[0], form.rows_for_model(trials[:1]))):
            raise NotKnownError("a model of this kind is not known over columns of single precision")
        forest = Forest.of(structure, domain, table) if isinstance(structure, Trees) else None
        prover = cls(structure, domain, table, forest, least, _quick_scores(structure, columns.shape[1]))
        prover._check_labels(columns, ask(trials))
        return prover

    def row(
        self, row: int, wanted: list[Any], distance: float, is_answer: IsAnswer, seconds: float, slices: int = ENDLESS
    ) -> Proof:
        """Look for an answer with one of the wanted labels that is nearer than the one known.

        Work is counted in slices, the same on any machine.
        """
        begun, known = perf_counter(), list(np.asarray(self.structure.classes).tolist())
        bound, limit, point, is_over = np.inf, distance**self.domain.power, None, True
        parts = [(label, case) for label in wanted if label in known for case in self.cases]
        for n_done, (label, case) in enumerate(parts):
            if not case.domain.is_within(row, limit * (1.0 - SAME)):
                continue
            share = (seconds - (perf_counter() - begun)) / (len(parts) - n_done)
            solved = case._solved(
                row, known.index(label), limit * (1.0 - SAME), is_answer, (perf_counter() + share, slices)
            )
            is_over &= solved.is_over
            if solved.point is not None:
                point, limit = solved.point, self._cost(row, solved.point)
            if not solved.is_over:
                bound = min(bound, solved.bound)
        bound = min(bound, limit) ** (1.0 / self.domain.power)
        return Proof(bound, point, is_over, perf_counter() - begun, "" if is_over else TIME_RAN_OUT)

    @cached_property
    def cases(self) -> list["Prover"]:
        """One prover per case of the rules between features: together they prove what may be."""
        if self.domain.cases == [self.domain]:
            return [self]
        return [
            replace(self, domain=domain, forest=self.forest and replace(self.forest, domain=domain))
            for domain in self.domain.cases
        ]

    def _solved(self, row: int, target: int, limit: float, is_answer: IsAnswer, ends: tuple[float, int]) -> Solved:
        conditions, weights = self._conditions(target)
        is_plain = not len(self.domain.pairs) and not self.domain.literals
        if self.forest is not None and len(self.forest.structure.trees) == 1 and is_plain:
            values = self._by_target(target, self.forest.nodes.values, weights)
            return nearest_leaf(self.forest, row, conditions, values, limit, is_answer)
        return solve(self._search(row, target, limit, conditions, weights), is_answer, *ends)

    def _search(self, row: int, target: int, limit: float, conditions: Conditions, weights: Matrix) -> Search:
        if self.forest is not None:
            cells, kept = self.forest.cells(row)
            nodes = self.forest.nodes._replace(values=self._by_target(target, self.forest.nodes.values, weights))
            return TreeSearch(*posed(conditions, limit, self.domain, kept), nodes, cells)
        if isinstance(self.structure, Network):
            kept, layers = self._layers(row, weights, limit)
            return NetworkSearch(*posed(conditions, limit, self.domain, kept), layers)
        assert isinstance(self.structure, Additive)
        kept, gains = self._terms(row, weights, limit)
        is_fixed = self.table.owner() < 0  # columns that change with no feature
        fixed = self.table.own[row, is_fixed] @ self.structure.weights[is_fixed]
        conditions = conditions._replace(need=conditions.need - weights.T @ fixed)
        return AdditiveSearch(*posed(conditions, limit, self.domain, kept), gains)

    def _conditions(self, target: int) -> tuple[Conditions, Matrix]:
        """Return what the scores must reach for a label, and how scores become the sums of each condition."""
        structure, least = self.structure, self.least
        weights = np.delete(-np.eye(len(structure.offset)), target, axis=1)
        weights[target] = 1.0
        need = np.zeros(weights.shape[1])
        if least > 0 and structure.link == "share":
            weights, need = np.column_stack([weights, np.eye(len(weights))[target]]), np.append(need, least)
        elif least > 0.5 and structure.link == "softmax":
            need += np.log(least) - np.log1p(-least)
        is_exact = least == 0 or structure.link == "share" or (structure.link == "softmax" and len(weights) == 2)
        error = 4.0 * structure.error * (1.0 + (least > 0) * 1e3)
        if least > 0:  # probabilities are compared as they are printed
            error += 2.0 * 10.0**-PRINTED / (1.0 if structure.link == "share" else least * (1.0 - least))
        return Conditions(need - structure.offset @ weights, error, is_exact), weights

    @cached_property
    def _of_targets(self) -> dict[int, Matrix]:
        return {}

    def _by_target(self, target: int, values: Matrix, weights: Matrix) -> Matrix:
        """Return the trees' values as sums of a label's conditions; the same for all rows."""
        if target not in self._of_targets:
            self._of_targets[target] = values @ weights
        return self._of_targets[target]

    def _terms(self, row: int, weights: Matrix, limit: float) -> tuple[list[Choices], Matrix]:
        """Return the choices of each feature below the limit, sorted by cost, and what each adds to the conditions."""
        assert isinstance(self.structure, Additive)
        kept, gains = [], []
        for at, mine in enumerate(self.table.columns):
            choices = self.domain.choices(row, at)
            gain = self.table.of_choices(row, at, choices) @ self.structure.weights[mine] @ weights
            near = near_enough(choices, limit)
            order = near[np.lexsort((near != choices.own, choices.cost[near]))]
            own = 0 if order[0] == choices.own else -1
            kept.append(Choices(choices.line[order], choices.value[order], choices.cost[order], own))
            gains.append(gain[order])
        return kept, np.ascontiguousarray(np.concatenate(gains).T)

    def _layers(self, row: int, weights: Matrix, limit: float) -> tuple[list[Choices], Layers]:
        """Return the choices of each feature below the limit, and the network as this row sees it."""
        assert isinstance(self.structure, Network)
        first, kept, given, is_line, line, along = self.structure.weights[0], [], [], [], [], []
        for at, mine in enumerate(self.table.columns):
            choices = below(self.domain.choices(row, at), limit)
            if not len(mine) and at not in self.domain.pairs:
                choices = only_own(choices)
            columns = self.table.of_choices(row, at, choices)
            steps = np.diff(columns, axis=0)
            kept.append(choices)
            given.append(columns @ first[mine])
            is_line.append(len(mine) == 1 and bool((steps >= 0).all() or (steps <= 0).all()))
            line.append(first[mine].sum(axis=0))
            along.append(columns[:, 0] if len(mine) else np.zeros(len(columns)))
        is_fixed = self.table.owner() < 0
        fixed = self.table.own[row, is_fixed] @ first[is_fixed] + self.structure.bias[0]
        lines = np.array(is_line, dtype=np.intp), np.array(line), np.concatenate(along)
        return kept, self.structure.layers(np.concatenate(given), fixed, lines, weights)

    def _cost(self, row: int, point: Matrix) -> float:
        costs = [self.domain.cost(at, value, self.domain.N[row, at]) for at, value in enumerate(point)]
        return float(np.sum(costs) if self.domain.is_sum else np.max(costs))

    def _check_labels(self, columns: Matrix, labels: Any) -> None:
        """Raise NotKnownError where the structure, beyond doubt, gives a row another label than the model in use."""
        scores, lines = self.structure.scores(columns), np.arange(len(columns))
        best = scores.argmax(axis=1)
        lead = scores[lines, best] - np.sort(scores, axis=1)[:, -2]
        names = np.asarray(self.structure.classes).tolist()
        for line in np.flatnonzero(lead > 8 * self.structure.error):
            if not isinstance(labels[line], Exception) and names[best[line]] != labels[line]:
                raise NotKnownError("the model's labels are not those of its structure")

    # --- what would refute a proof ---

    def doubts(self, row: int, wanted: list[Any], distance: float) -> Doubts:
        """Return points nearer than a distance that, by the structure, come closest to an answer.

        One change each, on both sides of the thresholds; the best of them together; and random ones. For the row
        that was proven last.
        """
        limit = distance**self.domain.power * (1.0 - SAME)
        if self.forest is not None and self.cases != [self]:
            self.forest.cells(row)  # what it remembers of the row: the cases were asked, not it
        choices = [self._told_apart(row, at, limit) for at in range(len(self.domain.is_held))]
        own, sizes = np.array([some.own for some in choices]), np.array([len(some.cost) for some in choices])
        free = np.flatnonzero(sizes > 1)
        single = np.concatenate([own[np.newaxis], *(_with(own, at, np.arange(sizes[at])) for at in free.tolist())])
        best = single[np.argsort(-self._leads(row, choices, single, wanted), kind="stable")[:BEST_SINGLES]]
        both = np.where(best[:, np.newaxis] != own, best[:, np.newaxis], best).reshape(-1, len(own))
        points = np.concatenate([single, both, _random(own, sizes, free)])
        points = points[np.unique(points[:, free], axis=0, return_index=True)[1]]
        costs = np.column_stack([some.cost[points[:, at]] for at, some in enumerate(choices)])
        total = costs.sum(axis=1) if self.domain.is_sum else costs.max(axis=1)
        few = (points != own).sum(axis=1) <= self.domain.most_changes
        near = few & (total < limit) & (total > 0)
        if self.cases != [self]:
            numbers = np.column_stack([some.value[points[:, at]] for at, some in enumerate(choices)])
            near &= self.domain.constraints.allowed(numbers, np.broadcast_to(self.domain.N[row], numbers.shape))
        points = points[near]
        points = points[np.argsort(-self._leads(row, choices, points, wanted), kind="stable")[:N_DOUBTS]]
        numbers = np.column_stack([some.value[points[:, at]] for at, some in enumerate(choices)])
        return Doubts(numbers, self._columns(row, choices, points))

    def _told_apart(self, row: int, at: int, limit: float) -> Choices:
        """Return some of a feature's choices below a limit: both sides of every split, or evenly spaced ones."""
        if self.forest is None:
            choices = self.domain.choices(row, at)
            near = near_enough(choices, limit)
        else:
            choices, near = self.forest.edges(row, at)
            near = near[choices.cost[near] < limit]
        kept = near[np.linspace(0, len(near) - 1, MOST_SINGLES).astype(np.intp)] if len(near) > MOST_SINGLES else near
        kept = np.unique(np.append(kept, choices.own))
        own = int(np.searchsorted(kept, choices.own))
        return Choices(choices.line[kept], choices.value[kept], choices.cost[kept], own)

    def _columns(self, row: int, choices: list[Choices], points: Rows) -> Matrix:
        columns = np.repeat(self.table.own[[row]], len(points), axis=0)
        for at, mine in enumerate(self.table.columns):
            columns[:, mine] = self.table.of_choices(row, at, choices[at])[points[:, at]]
        return columns

    def _leads(self, row: int, choices: list[Choices], points: Rows, wanted: list[Any]) -> Matrix:
        """Return by how much the best wanted label leads the best other, by the structure."""
        scores = self.quick_scores(self._columns(row, choices, points))
        is_wanted = np.isin(np.asarray(self.structure.classes, dtype=object), np.array(wanted, dtype=object))
        if not is_wanted.any() or is_wanted.all():
            return np.zeros(len(points))
        lead: Matrix = scores[:, is_wanted].max(axis=1) - scores[:, ~is_wanted].max(axis=1)
        return lead

    def is_same(self, columns: Matrix) -> Mask:
        """Say for which rows of columns the model's own scores are those of the structure."""
        return has_scores(self.structure, columns, self.quick_scores(columns))


def _quick_scores(structure: Structure, n_columns: int) -> Callable[[Matrix], Matrix]:
    recipes, sums = sums_of(structure, [Recipe(at) for at in range(n_columns)], np.zeros(n_columns, bool))
    program = Program.of(recipes)

    def scores(columns: Matrix) -> Matrix:
        found = sums.of(program.columns(columns))
        return found if found.shape[1] > 1 else np.column_stack([np.zeros(len(found)), found])

    return scores


def _with(own: Rows, at: int, places: Rows) -> Rows:
    """Return copies of a point with one feature at each of some places."""
    points = np.repeat(own[np.newaxis], len(places), axis=0)
    points[:, at] = places
    return points


def _random(own: Rows, sizes: Rows, free: Rows) -> Rows:
    """Return copies of a point with some features at random places, always the same."""
    random, shape = np.random.default_rng(0), (N_RANDOM, len(free))
    points, is_changed = np.repeat(own[np.newaxis], N_RANDOM, axis=0), random.random(shape) * len(free) < MANY
    points[:, free] = np.where(is_changed, (random.random(shape) * sizes[free]).astype(np.intp), own[free])
    return points


# --- any model --------------------------------------------------------------------------------------------------------


def ask_nearest_first(
    rows: Matrix, apart: Matrix, distance: float, is_answer: Callable[[Matrix], Mask], seconds: float
) -> Proof:
    """Ask about all rows that are nearer than the answer known, until one is an answer."""
    begun = perf_counter()
    order = np.argsort(apart, kind="stable")
    order = order[apart[order] < distance * (1.0 - SAME)]
    for start in range(0, len(order), TOGETHER):
        if perf_counter() - begun > seconds:
            return Proof(float(apart[order[start]]), None, False, perf_counter() - begun, TIME_RAN_OUT)
        some = order[start : start + TOGETHER]
        good = some[is_answer(rows[some])]
        if len(good):
            return Proof(float(apart[good[0]]), rows[good[0]], True, perf_counter() - begun)
    return Proof(distance, None, True, perf_counter() - begun)
