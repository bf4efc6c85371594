"""Copies of models that a search asks instead: exact ones of what can be read, a surrogate of what gives labels alone.

    model, TableForm, rows  ->  ModelCopy.of    ->  ModelCopy.scores(points), ModelCopy.probabilities(points)
    model, TableForm, rows  ->  ColumnsCopy.of  ->  ColumnsCopy.columns(points), for the estimator at the end
    rows, labels            ->  Surrogate.of    ->  Surrogate(points): how much a point is of each label, a guess

A small call of a pipeline is mostly frames and checks. Where the steps and the estimator can be read, a search asks the
copy, and the model itself only about what it found. Where only the steps can, it asks the estimator at their end.

An exact copy is compared with the model before it is used: on fitted rows, between and beyond them, with each level and
each value that may be missing. Where they differ there is no copy, and NotKnownError says so. The surrogate only tells
how far a refused point may be from being an answer: what is an answer, the model says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit, log_expit, softmax
from threadpoolctl import threadpool_limits

from onbmacf._base.arrays import Mask, Matrix, Rows, objects
from onbmacf._prove.columns import (
    NotKnownError,
    Program,
    Recipe,
    Stage,
    dense,
    is_of,
    parted,
    recipes_of,
    through,
    varied,
    whole_features,
)
from onbmacf._prove.readers import quietly, reader_of
from onbmacf._prove.structures import DOUBLE, SINGLE, Structure
from onbmacf._prove.sums import Sums, sums_of
from onbmacf._table.cells import cast
from onbmacf._table.form import TableForm
from onbmacf._table.replies import margins_of

MOST_ROWS = 256  # fitted rows on which a copy is compared, and points between them
EXACT, ROUNDED, MOST = 1e-9, 1e-5, 1e-3  # log odds by which a copy may differ: of double and single precision, at all
DIFFERS = "the copy does not say what the model says"
N_TREES, N_LEAVES = 50, 15  # more say with more certainty what is less true: answers were farther


# --- exact copies -----------------------------------------------------------------------------------------------------


class TakenApart(NamedTuple):
    """A model taken apart, and points on which to compare it."""

    estimator: Any
    recipes: list[Recipe]
    whole: list[int]
    points: Matrix
    rows: Any  # the points as the model gets them
    given: Any  # the points as the estimator gets them
    columns: Matrix  # the same as numbers
    lacks: Mask  # per column: whether it may be missing


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
        with quietly():
            read = _with_columns(model, form, N)
            if hasattr(read.estimator, "feature_names_in_") or hasattr(read.given, "columns"):
                raise NotKnownError("the estimator at the end was trained on columns with names")
            is_sparse = hasattr(read.given, "toarray")
            copy = cls(read.estimator, Program.of(read.recipes, read.whole), read.given.dtype, is_sparse)
            given = copy.columns(read.points)
            for ask in ("predict", "predict_proba", "decision_function"):
                asked = getattr(model, ask, None)
                if asked is not None and not _is_same(getattr(copy.estimator, ask)(given), asked(read.rows)):
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
    sums: Sums
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
        with quietly():
            read = taken_apart(model, form, N)
            structure = reader_of(read.estimator)(read.estimator, np.abs(read.columns).max(axis=0))
            known = np.asarray(structure.classes).tolist()
            if sorted(known, key=str) != sorted(classes, key=str):
                raise NotKnownError("the model has labels that no fitted row has")
            order = np.array([known.index(label) for label in classes], dtype=np.intp)
            recipes, sums = sums_of(structure, read.recipes, read.lacks)
            program, answer = Program.of(recipes, read.whole), _answer(model, read.rows, order)
            weights = getattr(read.estimator, "coef_", answer)
            slack = _slack(structure, np.float32 in (answer.dtype, weights.dtype))
            for link in _links(structure, read.estimator):
                copy = cls(tuple(classes), program, sums, link, order)
                if copy._agrees(read.points, answer, slack):
                    # Far out, probabilities would not show that the sums are others than the estimator's own.
                    expected = structure.own_scores(read.columns)[:, order]
                    if not np.allclose(copy._sums(read.points), expected, rtol=slack, atol=slack):
                        raise NotKnownError(DIFFERS)
                    copy._check_labels(read.points, model.predict(read.rows), slack)
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
        if self.link == "softmax":
            return softmax(sums, axis=1)
        shares = expit(sums)
        return shares / shares.sum(axis=1, keepdims=True)

    def _sums(self, points: Matrix) -> Matrix:
        sums = self.sums.of(self.program.columns(points))
        if sums.shape[1] == 1:  # of the second class against the first
            sums = np.concatenate([np.zeros_like(sums), sums], axis=1)
        return sums if (self.order[1:] > self.order[:-1]).all() else np.ascontiguousarray(sums[:, self.order])

    def _agrees(self, points: Matrix, answer: Any, slack: float) -> bool:
        """Say whether points have the model's own probabilities or, where it has none, decision values."""
        found: Any = self._sums(points) if not self.link else self.probabilities(points)
        least = 64 * np.finfo(answer.dtype).eps * (1.0 if self.link else np.abs(answer).max(initial=1.0))
        return found.shape == answer.shape and np.allclose(found, answer, rtol=slack, atol=least)

    def _check_labels(self, points: Matrix, labels: Any, slack: float) -> None:
        """Raise NotKnownError where the scores, beyond doubt, are those of another label."""
        scores, labels = self.scores(points), np.asarray(labels).ravel().tolist()
        best, ranked = scores.argmax(axis=1), np.sort(scores, axis=1)
        is_sure = ranked[:, -1] - ranked[:, -2] > slack
        if any(self.classes[best[at]] != labels[at] for at in np.flatnonzero(is_sure)):
            raise NotKnownError(DIFFERS)


def taken_apart(model: Any, form: TableForm, N: Matrix) -> TakenApart:
    """Take a model apart into its estimator and recipes of the columns that this sees."""
    read = _with_columns(model, form, N)
    is_xgboost = is_of(read.estimator, "xgboost", "XGBClassifier")
    return _zeros_lacking(read) if is_xgboost and hasattr(read.given, "toarray") else read


def _with_columns(model: Any, form: TableForm, N: Matrix) -> TakenApart:
    """Take a model apart; its columns by recipe must be those that its steps make, to the bit."""
    steps, estimator = parted(model)
    recipes, whole = recipes_of(steps, form, N), whole_features(form)
    points = trial_points(form, N)
    rows = form.rows_for_model(points)
    given = through(steps, rows)
    columns = dense(given)
    if not np.array_equal(Program.of(recipes, whole).columns(points), columns, equal_nan=True):
        raise NotKnownError("the steps before the model are not what their numbers say")
    lacks = np.asarray(np.isnan(columns).any(axis=0))
    return TakenApart(estimator, recipes, whole, points, rows, given, columns, lacks)


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


def _zeros_lacking(read: TakenApart) -> TakenApart:
    """Return the columns as xgboost has them of a sparse matrix: what is not stored, a 0, is missing."""
    recipes = [recipe.then(Stage(zero=np.nan)) for recipe in read.recipes]
    columns = np.where(read.columns == 0, np.nan, read.columns)
    return read._replace(recipes=recipes, columns=columns, lacks=np.ones(len(recipes), dtype=bool))


def _answer(model: Any, rows: Any, order: Rows) -> Any:
    """Return the model's probabilities or, where it has none, decision values: a column per class."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows))[:, order]
    answer = np.asarray(model.decision_function(rows))
    if answer.ndim == 1:
        answer = np.column_stack([np.zeros_like(answer), answer])
    return answer[:, order]


def _slack(structure: Structure, is_single: bool) -> float:
    """Return by how much rounding may make log odds differ: more where large terms are summed."""
    is_single = is_single or structure.unit >= SINGLE
    error = structure.error * (SINGLE / structure.unit if is_single else 1.0)
    return float(np.clip(16 * error, ROUNDED if is_single else EXACT, MOST))


def _links(structure: Structure, estimator: Any) -> tuple[str, ...]:
    """Return the ways in which sums may become scores; which of them it is, the model's own answers tell."""
    if not hasattr(estimator, "predict_proba"):
        return ("",)
    if getattr(estimator, "loss", "log_loss") == "modified_huber":  # it has the first one's far from its border
        return ()
    return (structure.link,) if structure.link else ("softmax", "rest")


def _is_same(found: Any, answer: Any) -> bool:
    found, answer = np.asarray(found), np.asarray(answer)
    if found.dtype.kind != "f":
        return np.array_equal(objects(found.tolist()), objects(answer.tolist()))
    return found.shape == answer.shape and np.allclose(found, answer, rtol=EXACT, atol=64 * DOUBLE)


class Answering(NamedTuple):
    """A copy that answers as the model's own method for scores does, a column per label of `classes_`."""

    copy: ModelCopy
    has_probabilities: bool

    @classmethod
    def of(
        cls, model: Any, form: TableForm, N: Matrix, names: Sequence[Any], has_probabilities: bool
    ) -> "Answering | None":
        """Read a model; None where it cannot be read."""
        try:
            copy = ModelCopy.of(model, form, N, names)
        except NotKnownError:
            return None
        except Exception:  # a class of the caller's own that only looks like one that can be read
            return None
        return cls(copy, has_probabilities) if bool(copy.link) == has_probabilities else None

    def answers(self, N: Matrix) -> Matrix:
        """Return probabilities or decision values."""
        found = self.copy.probabilities(N) if self.has_probabilities else self.copy.scores(N)
        assert found is not None, "a copy with a link has probabilities"
        return found


def steps_of(model: Any, form: TableForm, N: Matrix) -> ColumnsCopy | None:
    """Return a copy of the steps of a pipeline; None where there are none, or they cannot be read."""
    if not is_of(model, "sklearn", "Pipeline"):
        return None
    try:
        return ColumnsCopy.of(model, form, N)
    except Exception:  # what cannot be read is asked as a whole
        return None


# --- the surrogate ----------------------------------------------------------------------------------------------------


class Surrogate(NamedTuple):
    """Trees, laid out for the kernels."""

    program: Program
    sums: Sums
    labels: Rows  # those of the fitted rows
    width: int

    @classmethod
    def of(cls, N: Matrix, labels: Rows, n_labels: int) -> "Surrogate | None":
        """Learn from rows; None where all have one label."""
        if len(np.unique(labels)) < 2:
            return None
        from sklearn.ensemble import HistGradientBoostingClassifier  # here: its import is two thirds of ours

        how = {"max_iter": N_TREES, "max_leaf_nodes": N_LEAVES, "early_stopping": False, "random_state": 0}
        with threadpool_limits(1, "openmp"):  # so few rows gain nothing from threads, which wait for each other
            trees = HistGradientBoostingClassifier(**how).fit(N, labels)
        largest = np.nanmax(np.abs(N), axis=0, initial=0.0)
        may_lack = np.ones(N.shape[1], dtype=bool)
        recipes = [Recipe(at) for at in range(N.shape[1])]
        recipes, sums = sums_of(reader_of(trees)(trees, largest), recipes, may_lack)
        return cls(Program.of(recipes), sums, trees.classes_, n_labels + 1)

    def __call__(self, N: Matrix) -> Matrix:
        """Return a number per point and label, the last for labels that no fitted row has."""
        found = np.full((len(N), self.width), -np.inf)
        sums = self.sums.of(self.program.columns(np.ascontiguousarray(N)))
        if sums.shape[1] == 1:  # of the second label against the first
            sums = np.concatenate([np.zeros_like(sums), sums], axis=1)
        found[:, self.labels] = sums
        return found
