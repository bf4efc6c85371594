"""From the caller's rows to the columns that an estimator sees, where each column comes from one feature alone.

    model  ->  unwrapped  ->  the estimator at the end, and the function from rows to its columns
    steps, TableForm, rows  ->  recipes_of  ->  one Recipe per column  ->  Program.of  ->  Program.columns(points)

For proofs the steps before the estimator are run, not inverted: a value's columns are what the step itself makes of it,
to the bit. Only steps that treat each column by itself are known here.

Copies of a model take its columns from recipes: arithmetic for numbers, a table for levels. The steps are run on rows
that differ from one row in one feature each. A column that changes with a feature of levels is what the steps made of
each level. For numbers the fitted steps are read, and their operations done in their order; whoever uses recipes
compares them with the steps, to the bit.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.kernels.evaluate import fill_columns
from onbmacf._table.cells import cast
from onbmacf._table.form import TableForm

ToColumns = Callable[[Any], Matrix]

BEYOND = 0.1  # of its span: how far outside its fitted range a number is tried

# Transformers of scikit-learn whose output columns depend on one input column each.
COLUMNWISE = {
    "Binarizer",
    "KBinsDiscretizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "SimpleImputer",
    "SplineTransformer",
    "StandardScaler",
    "TargetEncoder",
}


# --- steps before the estimator ---------------------------------------------------------------------------------------


class NotKnownError(Exception):
    """Says why a model cannot be read, or nothing be proven."""


class Chosen(NamedTuple):
    """The step that picks columns of a frame by name, in the order in which a model wants them."""

    names: list[Any]

    def transform(self, rows: Any) -> Any:
        """Return the columns."""
        return rows[self.names]


def parted(model: Any) -> tuple[list[Any], Any]:
    """Return the steps before the estimator at the end of a model, each of which is column-wise, and that estimator."""
    if is_kind(model, "onbmacf", "OneThread"):
        model = model.model
    if is_kind(model, "onbmacf", "Arranged"):  # a model from a file
        if model.levels:
            raise NotKnownError("a model that takes text as categories is not known")
        steps, estimator = parted(model.model)
        return steps if model.columns is None else [Chosen([*model.columns]), *steps], estimator
    if is_kind(model, "sklearn", "GridSearchCV", "RandomizedSearchCV"):
        model = model.best_estimator_
    if not is_kind(model, "sklearn", "Pipeline"):
        return [], model
    steps = [step for _, step in model.steps[:-1]]
    for step in steps:
        _check_columnwise(step)
    return steps, model.steps[-1][1]


def unwrapped(model: Any) -> tuple[Any, ToColumns]:
    """Return the estimator at the end of a model, and how rows become its columns."""
    steps, estimator = parted(model)
    return estimator, lambda rows: dense(through(steps, rows))


def through(steps: list[Any], rows: Any) -> Any:
    """Return rows as steps, one after the other, transform them."""
    for step in steps:
        rows = rows if is_passed(step) else step.transform(rows)
    return rows


def is_passed(step: Any) -> bool:
    """Say whether a step of a pipeline leaves rows as they are."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def is_of(model: Any, package: str, *names: str) -> bool:
    """Say whether a class of a package, as it is, has one of these names or derives from one that has."""
    is_own = type(model).__module__.split(".")[0] == package
    return is_own and any(_is_class(kind, package, names) for kind in type(model).__mro__)


def is_kind(model: Any, package: str, *names: str) -> bool:
    """Say whether a class of a package has one of these names itself."""
    return _is_class(type(model), package, names)


def _is_class(kind: type, package: str, names: tuple[str, ...]) -> bool:
    return kind.__name__ in names and kind.__module__.split(".")[0] == package


def _check_columnwise(step: Any) -> None:
    """Raise NotKnownError for a step that may mix columns."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return
    if is_kind(step, "sklearn", "Pipeline"):
        parts = [part for _, part in step.steps]
    elif is_kind(step, "sklearn", "ColumnTransformer"):
        parts = [part for _, part, _ in step.transformers_]
    elif is_kind(step, "sklearn", "FeatureUnion"):
        parts = [part for _, part in step.transformer_list]
    elif is_kind(step, "sklearn", *COLUMNWISE) or (
        is_kind(step, "sklearn", "FunctionTransformer") and step.func is None
    ):
        return
    else:
        raise NotKnownError(f"the step {type(step).__name__} before the model is not known")
    for part in parts:
        _check_columnwise(part)


def dense(columns: Any) -> Matrix:
    """Return what steps give an estimator as a matrix of numbers."""
    if hasattr(columns, "toarray"):
        columns = columns.toarray()
    try:
        return np.asarray(columns).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise NotKnownError("the model takes columns that are not numbers") from error


# --- recipes ----------------------------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """Operations on a number, in this order; each is left out by a number that changes nothing."""

    zero: float = 0.0  # what a 0 becomes
    fill: float = np.nan  # what a missing value becomes
    minus: float = 0.0
    over: float = 1.0
    times: float = 1.0
    plus: float = 0.0
    low: float = -np.inf
    high: float = np.inf
    is_single: float = 0.0  # whether each operation is rounded to single precision


class Recipe(NamedTuple):
    """Where a column comes from."""

    feature: int
    stages: tuple[Stage, ...] = ()
    table: Matrix | None = None  # per level, then for a missing value; a single entry where the column is constant

    def then(self, stage: Stage) -> "Recipe":
        """Return the recipe with one more stage."""
        if self.table is None:
            return self._replace(stages=(*self.stages, stage))
        numbers = Program.of([Recipe(0, (stage,))]).columns(self.table[:, np.newaxis])
        return self._replace(table=numbers[:, 0])


class Unread(NamedTuple):
    """A column of a step whose arithmetic is not read: a table tells it, if it comes from levels."""

    step: str


Column = Recipe | Unread


class Program(NamedTuple):
    """Recipes as the flat arrays that the kernel takes."""

    feature: Rows
    first: Rows
    stages: Matrix
    start: Rows
    tables: Matrix
    whole: Rows  # features that the model gets as whole numbers

    @classmethod
    def of(cls, recipes: list[Recipe], whole: Iterable[int] = ()) -> "Program":
        """Lay recipes out."""
        stages = [stage for recipe in recipes for stage in recipe.stages]
        tables = [np.empty(0) if recipe.table is None else recipe.table for recipe in recipes]
        return cls(
            np.array([recipe.feature for recipe in recipes], dtype=np.intp),
            _ends(len(recipe.stages) for recipe in recipes),
            np.array(stages, dtype=np.float64).reshape(-1, len(Stage._fields)),
            _ends(map(len, tables)),
            np.concatenate([np.empty(0), *tables]),
            np.array([*whole], dtype=np.intp),
        )

    def columns(self, points: Matrix) -> Matrix:
        """Return the columns of points that are given as numbers."""
        points = np.array(points, dtype=np.float64, order="C", ndmin=2)
        if len(self.whole):
            points[:, self.whole] = np.trunc(points[:, self.whole])
        columns = np.empty((len(points), len(self.feature)))
        narrow = np.empty(1, dtype=np.float32)
        fill_columns(points, self.feature, self.first, self.stages, self.start, self.tables, narrow, columns)
        return columns


def _ends(lengths: Iterable[int]) -> Rows:
    return np.cumsum([0, *lengths], dtype=np.intp)


def whole_features(form: TableForm) -> list[int]:
    """Return the features whose numbers the model gets as whole ones."""
    return [at for at, dtype in enumerate(form.given_dtypes) if dtype is not None and dtype.kind in "iu"]


def varied(form: TableForm, N: Matrix, row: Matrix) -> tuple[Matrix, Rows]:
    """Return copies of a row in which one feature is changed: to each level, to some numbers, or to be missing.

    The numbers are the ends of the fitted range and some beyond. Also returned: the feature of each copy.
    """
    values = [_tried(form, N, at) for at in range(N.shape[1])]
    feature = np.repeat(np.arange(N.shape[1]), [len(some) for some in values])
    points = np.repeat(row[np.newaxis], len(feature), axis=0)
    points[np.arange(len(feature)), feature] = np.concatenate(values)
    return points, feature


def _tried(form: TableForm, N: Matrix, at: int) -> Matrix:
    feature = form.schema.features[at]
    missing = [np.nan] if form.may_lack[at] else []
    if not feature.is_numeric:
        return np.array([*range(len(feature.levels or ())), *missing], dtype=np.float64)
    low, high = np.nanmin(N[:, at]), np.nanmax(N[:, at])
    step = BEYOND * (high - low) or 1.0
    if feature.kind == "integer":
        step = np.ceil(step)
    return np.append(cast(np.array([low - step, low, high, high + step]), form.given_dtypes[at]), missing)


def recipes_of(steps: list[Any], form: TableForm, N: Matrix) -> list[Recipe]:
    """Return how each column that the steps make comes from one feature; NotKnownError says why that is not known."""
    points, changed = varied(form, N, N[0])
    rows = form.rows_for_model(np.concatenate([N[:1], points]))
    columns: list[Column] = [_raw(form, at) for at in range(N.shape[1])]
    for step in steps:
        rows, columns = _through(step, rows, columns)
    made = dense(rows)
    if made.shape[1] != len(columns):
        raise NotKnownError("the steps before the model give other columns than they say")
    same = (made[1:] == made[0]) | (np.isnan(made[1:]) & np.isnan(made[0]))
    return [_settled(form, column, made[:, at], changed, same[:, at]) for at, column in enumerate(columns)]


def _raw(form: TableForm, at: int) -> Column:
    if form.converter(at) is not None:
        return Unread("that takes dates and the like")
    dtype = form.given_dtypes[at]
    if dtype is not None and dtype.kind == "f" and dtype.itemsize < 4:
        return Unread(f"that takes {dtype}")
    return Recipe(at, (Stage(is_single=1.0),) if dtype == np.float32 else ())


def _settled(form: TableForm, column: Column, made: Matrix, changed: Rows, same: Matrix) -> Recipe:
    """Return the recipe of a column, given what the steps made of a row and of its copies."""
    features = form.schema.features
    if isinstance(column, Recipe) and features[column.feature].is_numeric:
        return column
    owners = np.unique(changed[~same.astype(bool)])
    if len(owners) > 1:
        raise NotKnownError("a column of the model depends on several features")
    if not len(owners):
        return Recipe(0, table=made[:1])
    owner = int(owners[0])
    if features[owner].is_numeric:
        step = column.step if isinstance(column, Unread) else ""
        raise NotKnownError(
            f"the step {step} before the model is not read for numbers such as {features[owner].name!r}"
        )
    table = made[1:][changed == owner]
    return Recipe(owner, table=table if form.may_lack[owner] else np.append(table, np.nan))


def _through(step: Any, rows: Any, columns: list[Column]) -> tuple[Any, list[Column]]:
    """Return what a step makes of rows, and of what is known of their columns."""
    if is_passed(step):
        return rows, columns
    made = step.transform(rows)
    if isinstance(step, Chosen):
        return made, [columns[[*rows.columns].index(name)] for name in step.names]
    if is_kind(step, "sklearn", "Pipeline"):
        for _, part in step.steps:
            rows, columns = _through(part, rows, columns)
        return made, columns
    if is_kind(step, "sklearn", "FeatureUnion"):
        if step.transformer_weights:
            raise NotKnownError("a union of steps with weights is not read")
        parts = [_through(part, rows, columns)[1] for _, part in step.transformer_list if part != "drop"]
        return made, [column for part in parts for column in part]
    if is_kind(step, "sklearn", "ColumnTransformer"):
        return made, _chosen_through(step, rows, columns, made.shape[1])
    if is_kind(step, "sklearn", "FunctionTransformer"):
        return made, columns
    if hasattr(rows, "toarray"):  # scaled by other operations than a matrix is
        return made, [Unread(type(step).__name__)] * made.shape[1]
    return made, [*_of_step(step, columns, is_single(made), made.shape[1])]


def is_single(columns: Any) -> bool:
    """Say whether all columns, a matrix or a frame, are of single precision."""
    if hasattr(columns, "dtypes"):
        return all(dtype == np.float32 for dtype in columns.dtypes)
    return bool(getattr(columns, "dtype", None) == np.float32)


def _chosen_through(step: Any, rows: Any, columns: list[Column], n_made: int) -> list[Column]:
    """Return the columns of a ColumnTransformer, in its order."""
    from sklearn.utils import _safe_indexing  # loaded with the model

    names = getattr(rows, "columns", None)
    places: Any = np.arange(len(columns))[np.newaxis]
    places = places if names is None else pd.DataFrame(places, columns=list(names))
    found: list[Column] = [Unread("ColumnTransformer")] * n_made
    for name, part, chosen in step.transformers_:
        slots = step.output_indices_.get(name, slice(0, 0))
        mine = np.ravel(np.asarray(_safe_indexing(places, chosen, axis=1)))
        if slots.start == slots.stop or not len(mine):
            continue
        given = _safe_indexing(rows, [*map(int, mine)], axis=1)
        found[slots] = _through(part, given, [columns[at] for at in mine])[1]
    return found


def _of_step(step: Any, columns: list[Column], is_single: bool, n_made: int) -> Iterator[Column]:
    """Yield the columns that a transformer of scikit-learn makes."""
    name = type(step).__name__
    if name == "SimpleImputer" and _is_nan(step.missing_values) and n_made == _n_imputed(step):
        kept = [at for at, fill in enumerate(step.statistics_) if step.keep_empty_features or not _is_nan(fill)]
        for at in kept:
            fill = step.statistics_[at]
            is_number = isinstance(fill, int | float | np.number)
            stage = Stage(fill=float(fill), is_single=float(is_single)) if is_number else None
            yield _then(columns[at], name, stage)
        for at in step.indicator_.features_ if step.add_indicator else ():
            yield _then(_then(columns[at], name, Stage(times=0.0)), name, Stage(fill=1.0))
        return
    for at in range(n_made):
        stage = _scaled(step, name, at, is_single)
        yield Unread(name) if stage is None else _then(columns[at], name, stage)


def _then(column: Column, name: str, stage: Stage | None) -> Column:
    if isinstance(column, Unread) or stage is None:
        return Unread(name) if stage is None else column
    return column.then(stage)


def _n_imputed(step: Any) -> int:
    n_kept = len(step.statistics_) if step.keep_empty_features else sum(not _is_nan(fill) for fill in step.statistics_)
    return n_kept + (len(step.indicator_.features_) if step.add_indicator else 0)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _scaled(step: Any, name: str, at: int, is_single: bool) -> Stage | None:
    """Return what a scaler does to its column, in the order of its operations; None for any other step."""
    part: dict[str, Any] = {}
    if name == "StandardScaler":
        kind = np.float32 if is_single else np.float64  # the only one that rounds its numbers first
        part = {"minus": kind(step.mean_[at])} if step.with_mean else {}
        part |= {"over": kind(step.scale_[at])} if step.with_std else {}
    elif name == "RobustScaler":
        part = {"minus": step.center_[at]} if step.with_centering else {}
        part |= {"over": step.scale_[at]} if step.with_scaling else {}
    elif name == "MaxAbsScaler":
        part = {"over": step.scale_[at]} | ({"low": -1.0, "high": 1.0} if getattr(step, "clip", False) else {})
    elif name == "MinMaxScaler":
        part = {"times": step.scale_[at], "plus": step.min_[at]}
        part |= dict(zip(("low", "high"), step.feature_range, strict=True)) if step.clip else {}
    else:
        return None
    return Stage(**{field: float(number) for field, number in part.items()}, is_single=float(is_single))
