"""A copy of a model that has been read: the same scores, from numbers and without a frame.

    model, TableForm, rows  ->  ModelCopy.of    ->  ModelCopy.scores(points), ModelCopy.probabilities(points)
    model, TableForm, rows  ->  ColumnsCopy.of  ->  ColumnsCopy.columns(points), for the estimator at the end

A small call of a pipeline is mostly frames and checks. Where the steps and the estimator can be read, a search asks the
copy, and the model itself only about what it found. Where only the steps can, it asks the estimator at their end.

A copy is compared with the model before it is used: on fitted rows, between and beyond them, with each level and each
value that may be missing. Where they differ there is no copy, and NotKnownError says so.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit, log_expit, softmax

from onbmacf._base.arrays import Matrix, Rows, objects
from onbmacf._base.error_words import error_words
from onbmacf._prove.columns import dense, is_of, parted, through
from onbmacf._prove.kernels.evaluate import add_products, add_trees
from onbmacf._prove.network import ACTIVATIONS, Network
from onbmacf._prove.recipes import Program, Recipe, Stage, recipes_of, varied, whole_features
from onbmacf._prove.structures import DOUBLE, SINGLE, Structure, Tree, Trees, reader_of
from onbmacf._prove.values import NotKnownError
from onbmacf._rows.cells import cast
from onbmacf._rows.form import TableForm
from onbmacf._rows.replies import margins_of

MOST_ROWS = 256  # fitted rows on which a copy is compared, and points between them
EXACT, ROUNDED = 1e-9, 1e-5  # differences forgiven, as a share, of double and of single precision
DIFFERS = "the copy does not say what the model says"


class _Read(NamedTuple):
    """A model taken apart, and points on which to compare it."""

    estimator: Any
    recipes: list[Recipe]
    whole: list[int]
    points: Matrix
    rows: Any  # the points as the model gets them
    given: Any  # the points as the estimator gets them
    columns: Matrix  # the same as numbers


@dataclass(frozen=True, eq=False)
class ColumnsCopy:
    """The steps of a pipeline as arithmetic, and the estimator at their end."""

    estimator: Any
    program: Program
    dtype: Any
    is_sparse: bool

    @classmethod
    def of(cls, model: Any, form: TableForm, N: Matrix) -> "ColumnsCopy":
        """Read the steps of a model; `N` are fitted rows as numbers. NotKnownError says why they cannot be read."""
        with _quietly():
            read = _read(model, form, N)
            if hasattr(read.estimator, "feature_names_in_"):
                raise NotKnownError("the estimator at the end was trained on columns with names")
            is_sparse = hasattr(read.given, "toarray")
            copy = cls(read.estimator, Program.of(read.recipes, read.whole), read.given.dtype, is_sparse)
            given = copy.columns(read.points)
            for ask in ("predict", "predict_proba", "decision_function"):
                if hasattr(model, ask) and not _is_same(getattr(copy.estimator, ask)(given), getattr(model, ask)(read.rows)):
                    raise NotKnownError(DIFFERS)
        return copy

    def columns(self, points: Matrix) -> Any:
        """Return points, given as numbers, as the estimator gets them: a matrix, sparse where the steps make it so."""
        columns = self.program.columns(points).astype(self.dtype, copy=False)
        return csr_matrix(columns) if self.is_sparse else columns


@dataclass(frozen=True, eq=False)
class ModelCopy:
    """A model as arithmetic: scores per class, of which the differences are log odds where it has probabilities."""

    classes: tuple[Any, ...]
    program: Program
    sums: "_TreeSums | _LayerSums"
    link: str  # how sums become scores: "softmax", "share", "rest" or "" for a model without probabilities
    order: Rows  # per class: its place among the model's own

    @classmethod
    def of(cls, model: Any, form: TableForm, N: Matrix, classes: Sequence[Any]) -> "ModelCopy":
        """Read a model; `N` are fitted rows as numbers, `classes` the labels in the order that scores shall have.

        Raises
        ------
        NotKnownError
            The model cannot be read, or its copy would not say what it says.
        """
        reader_of(parted(model)[1])  # before anything is asked
        with _quietly():
            read = _read(model, form, N)
            if is_of(read.estimator, "xgboost", "XGBClassifier") and hasattr(read.given, "toarray"):
                read = _zeros_lacking(read)
            structure = reader_of(read.estimator)(read.estimator, read.columns, np.abs(read.columns).max(axis=0))
            own = np.asarray(structure.classes).tolist()
            if sorted(own, key=str) != sorted(classes, key=str):
                raise NotKnownError("the model has labels that no fitted row has")
            order = np.array([own.index(label) for label in classes], dtype=np.intp)
            recipes, sums = _sums_of(structure, read)
            program, answer = Program.of(recipes, read.whole), _answer(model, read.rows, order)
            for link in _links(structure, model):
                copy = cls(tuple(classes), program, sums, link, order)
                if copy._agrees(read.points, answer, structure.unit):
                    copy._check_labels(read.points, model.predict(read.rows))
                    return copy
        raise NotKnownError(DIFFERS)

    def scores(self, points: Matrix) -> Matrix:
        """Return a score per point and class; with shares of votes, none is below the logarithm of 1e-9."""
        sums = self._sums(points)
        if self.link == "share":
            return margins_of(sums)
        return log_expit(sums) if self.link == "rest" else sums

    def probabilities(self, points: Matrix) -> Matrix | None:
        """Return what predict_proba does; None for a model without."""
        if not self.link:
            return None
        sums = self._sums(points)
        if self.link == "share":
            return sums
        shares = expit(sums) if self.link == "rest" else softmax(sums, axis=1)
        return shares / shares.sum(axis=1, keepdims=True)

    def _sums(self, points: Matrix) -> Matrix:
        sums = self.sums.of(self.program.columns(points))
        if sums.shape[1] == 1:  # of the second class against the first
            sums = np.concatenate([np.zeros_like(sums), sums], axis=1)
        return sums if (self.order[1:] > self.order[:-1]).all() else np.ascontiguousarray(sums[:, self.order])

    def _agrees(self, points: Matrix, answer: Any, unit: float) -> bool:
        """Say whether points have the model's own probabilities or, where it has none, decision values."""
        found: Any = self._sums(points) if not self.link else self.probabilities(points)
        is_single = unit >= SINGLE or answer.dtype == np.float32
        share, least = (ROUNDED, 8 * SINGLE) if is_single else (EXACT, 64 * DOUBLE)
        size = 1.0 if self.link else float(np.abs(answer).max(initial=1.0))
        return found.shape == answer.shape and np.allclose(found, answer, rtol=share, atol=least * size)

    def _check_labels(self, points: Matrix, labels: Any) -> None:
        """Raise NotKnownError where the scores, beyond doubt, are those of another label."""
        scores, labels = self.scores(points), np.asarray(labels).ravel().tolist()
        best = scores.argmax(axis=1)
        lead = np.sort(scores, axis=1)
        is_sure = lead[:, -1] - lead[:, -2] > ROUNDED
        if any(self.classes[best[at]] != labels[at] for at in np.flatnonzero(is_sure)):
            raise NotKnownError(DIFFERS)


class _TreeSums(NamedTuple):
    """Trees in flat arrays, as the kernel takes them."""

    threshold: Matrix
    link: Any
    shift: int
    roots: Rows
    place: Rows
    values: Matrix
    offset: Matrix
    n_averaged: int

    def of(self, columns: Matrix) -> Matrix:
        """Return the sums of what trees add, per class; with two boosted classes of the second alone."""
        sums = np.empty((len(columns), len(self.offset)))
        sums[:] = self.offset
        add_trees(columns, self.threshold, self.link, self.shift, self.roots, self.place, self.values, sums)
        return sums / self.n_averaged if self.n_averaged > 1 else sums


class _LayerSums(NamedTuple):
    """Layers of units; a linear model is the last one alone."""

    weights: list[Matrix]
    bias: list[Matrix]
    activation: str

    def of(self, columns: Matrix) -> Matrix:
        """Return the sums of the last layer."""
        for place, (weights, bias) in enumerate(zip(self.weights, self.bias, strict=True)):
            columns = ACTIVATIONS[self.activation](columns) if place else columns
            sums = np.empty((len(columns), len(bias)))
            sums[:] = bias
            add_products(columns, weights, sums)
            columns = sums
        return columns


@contextmanager
def _quietly() -> Iterator[None]:
    """Turn what a model raises into NotKnownError, and keep it from warning of names that columns do not have."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except NotKnownError:
        raise
    except Exception as error:  # of the caller's own model, in which anything may happen
        raise NotKnownError(f"the model could not be read: it raised {error_words(error)}") from error


def _read(model: Any, form: TableForm, N: Matrix) -> _Read:
    """Take a model apart; its columns by recipe must be those that its steps make, to the bit."""
    steps, estimator = parted(model)
    recipes, whole = recipes_of(steps, form, N), whole_features(form)
    points = trial_points(form, N)
    rows = form.rows_for_model(points)
    given = through(steps, rows)
    columns = dense(given)
    if not np.array_equal(Program.of(recipes, whole).columns(points), columns, equal_nan=True):
        raise NotKnownError("the steps before the model are not what their numbers say")
    return _Read(estimator, recipes, whole, points, rows, given, columns)


def trial_points(form: TableForm, N: Matrix) -> Matrix:
    """Return points on which copy and model are compared: fitted rows, between them, and one feature varied."""
    random = np.random.default_rng(0)
    chosen = N[np.unique(np.linspace(0, len(N) - 1, MOST_ROWS).astype(np.intp))]
    first, second = N[random.integers(len(N), size=(2, MOST_ROWS))]
    share = random.random((MOST_ROWS, 1))
    between = np.where(random.random(first.shape) < share, first, second)
    for at, feature in enumerate(form.schema.features):
        if feature.is_numeric:
            mixed = share[:, 0] * first[:, at] + (1 - share[:, 0]) * second[:, at]
            mixed = np.rint(mixed) if feature.kind == "integer" else mixed
            between[:, at] = cast(mixed, form.given_dtypes[at])
    return np.concatenate([chosen, between, varied(form, N, N[0])[0], varied(form, N, N[len(N) // 2])[0]])


def _zeros_lacking(read: _Read) -> _Read:
    """Return the columns as xgboost has them of a sparse matrix: what is not stored, a 0, is missing."""
    recipes = [recipe.then(Stage(zero=np.nan)) for recipe in read.recipes]
    return read._replace(recipes=recipes, columns=np.where(read.columns == 0, np.nan, read.columns))


def _answer(model: Any, rows: Any, order: Rows) -> Any:
    """Return the model's probabilities or, where it has none, decision values: a column per class."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows))[:, order]
    answer = np.asarray(model.decision_function(rows))
    if answer.ndim == 1:
        answer = np.column_stack([np.zeros_like(answer), answer])
    return answer[:, order]


def _links(structure: Structure, model: Any) -> tuple[str, ...]:
    """Return the ways in which sums may become scores; which of them it is, the model's own answers tell."""
    if not hasattr(model, "predict_proba"):
        return ("",)
    return (structure.link,) if structure.link else ("softmax", "rest")


def _is_same(found: Any, answer: Any) -> bool:
    found, answer = np.asarray(found), np.asarray(answer)
    if found.dtype.kind != "f":
        return np.array_equal(objects(found.tolist()), objects(answer.tolist()))
    return found.shape == answer.shape and np.allclose(found, answer, rtol=EXACT, atol=64 * DOUBLE)


def _sums_of(structure: Structure, read: _Read) -> tuple[list[Recipe], "_TreeSums | _LayerSums"]:
    """Return the columns that are needed, and what is summed over them."""
    if isinstance(structure, Trees):
        return _trees(structure, read)
    if isinstance(structure, Network):
        weights, bias, activation = structure.weights, structure.bias, structure.activation
    else:
        weights, bias, activation = [structure.weights], [structure.offset], "identity"
    if weights[-1].shape[1] == 2 and not weights[-1][:, 0].any() and bias[-1][0] == 0:
        weights, bias = [*weights[:-1], weights[-1][:, 1:]], [*bias[:-1], bias[-1][1:]]
    both = ([np.ascontiguousarray(own, dtype=np.float64) for own in every] for every in (weights, bias))
    return read.recipes, _LayerSums(*both, activation)


def _trees(structure: Trees, read: _Read) -> tuple[list[Recipe], _TreeSums]:
    """Lay trees out, and return the columns that they split at.

    A column that may be missing is there twice, as the lowest number and as the highest: a node takes the one with
    which a missing value goes to its side, and the kernel need not know of any.
    """
    n_columns, lacks = read.columns.shape[1], np.isnan(read.columns).any(axis=0)
    slots = [_slots(tree, lacks) for tree in structure.trees]
    used = np.unique(np.concatenate([own[tree.left >= 0] for own, tree in zip(slots, structure.trees, strict=True)]))
    shift = max(1, int(len(used)).bit_length())
    values, n_averaged = _leaf_values(structure, read.estimator)
    place, width = _places(values)
    laid = [_laid_out(tree, np.searchsorted(used, own)) for tree, own in zip(structure.trees, slots, strict=True)]
    sizes, n_leaves = _totals(len(one[0]) for one in laid), _totals(int((one[1] < 0).sum()) for one in laid)
    link = [
        np.where(left < 0, -1 - (np.cumsum(left < 0) - 1 + leaf), (left + size << shift) | slot)
        for (_, left, slot), size, leaf in zip(laid, sizes, n_leaves, strict=True)
    ]
    leaves = [
        own[nodes[left < 0]][:, first : first + width]
        for (nodes, left, _), own, first in zip(laid, values, place, strict=True)
    ]
    threshold = [tree.threshold[nodes] for (nodes, _, _), tree in zip(laid, structure.trees, strict=True)]
    recipes = [_compared(read.recipes[slot % n_columns], slot // n_columns, structure.is_single) for slot in used]
    offset, two = structure.offset, width == 1 and len(structure.offset) == 2
    return recipes, _TreeSums(
        np.concatenate(threshold).astype(np.float64),
        np.concatenate(link).astype(np.longlong),
        shift,
        sizes,
        place - 1 if two else place,
        np.ascontiguousarray(np.concatenate(leaves)),
        np.ascontiguousarray(offset[1:] - offset[0] if two else offset),
        n_averaged,
    )


def _totals(sizes: Any) -> Rows:
    """Return where each of some parts begins."""
    return np.cumsum([0, *sizes], dtype=np.intp)[:-1]


def _slots(tree: Tree, lacks: Any) -> Rows:
    """Return what each node compares: its column, or one number of columns further on where missing goes left."""
    column = np.where(tree.left >= 0, tree.column, 0).astype(np.intp)
    if tree.lacking is None:
        return column
    return column + len(lacks) * (tree.lacking & lacks[column])


def _compared(recipe: Recipe, is_lowest: int, is_single: bool) -> Recipe:
    return recipe.then(Stage(fill=-np.inf if is_lowest else np.inf, is_single=float(is_single)))


def _leaf_values(structure: Trees, estimator: Any) -> tuple[list[Matrix], int]:
    """Return what each node adds, as the model adds it: a forest averages at the end."""
    if structure.link != "share":
        return [tree.values for tree in structure.trees], 1
    n = len(structure.offset)
    values = [one.tree_.value[:, 0, :n] for one in getattr(estimator, "estimators_", [estimator])]
    return values, len(values)


def _places(values: list[Matrix]) -> tuple[Rows, int]:
    """Return the first class to which each tree adds, and to how many: a boosted tree adds to one."""
    adds = np.array([np.abs(own).max(axis=0) > 0 for own in values])
    n_classes = adds.shape[1]
    if (adds.sum(axis=1) > 1).any():
        return np.zeros(len(adds), dtype=np.intp), n_classes
    return np.where(adds.any(axis=1), adds.argmax(axis=1), n_classes - 1).astype(np.intp), 1


def _laid_out(tree: Tree, slot: Rows) -> tuple[Rows, Rows, Rows]:
    """Return the nodes of a tree level by level, siblings side by side; their left children's places, and columns."""
    level, levels, left = np.zeros(1, dtype=np.intp), [], []
    n_placed = 1
    while len(level):
        inner = tree.left[level] >= 0
        places = np.where(inner, n_placed + 2 * (np.cumsum(inner) - 1), -1)
        levels.append(level)
        left.append(places)
        kept = level[inner]
        level = np.stack([tree.left[kept], tree.right[kept]], axis=1).ravel().astype(np.intp)
        n_placed += len(level)
    nodes = np.concatenate(levels)
    return nodes, np.concatenate(left), slot[nodes]
