"""What each column of the table is: its kind, its levels, and whether it may change.

    table  ->  Schema.infer  ->  Schema (one Feature per column, in the table's order)

Inference never guesses silently: numbers stored as text, columns that mix types and kinds that have no
distance are errors that name the column. Any guess can be overridden by name.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from onbmacf._base.checks import check_choice, check_count, did_you_mean, listed
from onbmacf._base.containers import is_foreign_table, kind_of, plain_array
from onbmacf._base.numeric_text import numbers_as_text
from onbmacf._base.typed import flag, level, sequence
from onbmacf._text import short
from onbmacf.errors import ParameterError, TableError
from onbmacf.rules import Rules, summary

Kind = Literal["continuous", "integer", "ordinal", "categorical", "binary"]
KINDS: tuple[str, ...] = get_args(Kind)
NUMERIC = ("continuous", "integer")
LEVELS = sequence(level)
HEAD = ("feature", "kind", "may change", "values")  # of the table that shows a schema
LARGEST_EXACT = 2.0**53  # beyond this, float64 cannot represent every whole number


@dataclass(frozen=True)
class Feature:
    """One column of the table.

    Attributes
    ----------
    name : hashable
        The column's name.
    kind : {"continuous", "integer", "ordinal", "categorical", "binary"}
        Continuous and integer features are numbers, and an integer stays whole; ordinal ones have levels with an
        order; categorical and binary ones have levels without one.
    immutable : bool
        Whether a counterfactual must keep the row's own value.
    levels : tuple or None
        The values of an ordinal (from lowest to highest), categorical or binary feature. `fit` reads them off the
        table where they are not given; an ordinal feature needs them.
    decimals : int or None
        Decimals of the values that a continuous feature may change to. By default those of the table where it has
        few, otherwise as many as its range needs (decision 0045).

    Examples
    --------
    >>> Feature("size", "ordinal", levels=("S", "M", "L")).is_numeric
    False

    """

    name: Hashable
    kind: Kind
    immutable: bool = False
    levels: tuple[Any, ...] | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        check_choice(f"kind of {self.name!r}", self.kind, KINDS)
        if self.decimals is not None:
            check_count(f"decimals of {self.name!r}", self.decimals, least=0)
            if self.kind != "continuous":
                raise ParameterError(f"decimals of {self.name!r}: for continuous features only, it is {self.kind}.")
        if self.kind == "ordinal" and self.levels is None:
            raise ParameterError(f"{self.name!r} is ordinal: give its levels, from lowest to highest.")
        level("the name of a feature", self.name)
        flag(f"immutable of {self.name!r}", self.immutable)
        if self.levels is not None:
            object.__setattr__(self, "levels", LEVELS(f"levels of {self.name!r}", self.levels))
            assert self.levels is not None
            if len(set(self.levels)) != len(self.levels):
                raise ParameterError(f"levels of {self.name!r} repeat: {listed(self.levels)}.")

    def __repr__(self) -> str:
        return short.only_set(self, "name", "kind")

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers rather than levels: continuous and integer features."""
        return self.kind in NUMERIC


@dataclass(frozen=True)
class Schema:
    """What each column of a table is, in the table's order, and the rules for changing it.

    Most callers use `infer` and override single columns by name.

    Attributes
    ----------
    features : tuple of Feature
        One per column.
    rules : Rules
        Directions, ranges, steps, costs and the like; none by default.

    Examples
    --------
    >>> schema = Schema((Feature("age", "integer", immutable=True), Feature("dose", "continuous")))
    >>> schema.names, schema.immutable
    (('age', 'dose'), ('age',))
    >>> schema
    Schema of 2 features, 1 immutable
    feature  kind        may change
    age      integer     no
    dose     continuous  yes

    """

    features: tuple[Feature, ...]
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", sequence(_feature)("features", self.features))
        if not isinstance(self.rules, Rules):
            raise ParameterError(f"rules must be Rules, got {self.rules!r}.")
        names = self.names
        if len(set(names)) != len(names):
            raise ParameterError(f"schema names a feature twice: {listed(_repeated(names))}.")
        if self.features and all(feature.immutable for feature in self.features):
            raise ParameterError("every feature is immutable: nothing could change. Leave at least one mutable.")
        self.rules.check(names)

    @classmethod
    def infer(
        cls,
        table: Any,
        *,
        immutable: Iterable[Hashable] = (),
        kinds: Mapping[Hashable, Kind] | None = None,
        ordinal: Mapping[Hashable, Sequence[Any]] | None = None,
        decimals: Mapping[Hashable, int] | None = None,
        rules: Rules | None = None,
    ) -> "Schema":
        """Read the kinds of the columns off a table.

        bool and two-valued text are binary, text and unordered categories are categorical, ordered
        categories are ordinal, whole numbers (also 3.0 in a float column) are integer, the rest continuous.
        What has no distance here (dates, numbers stored as text, mixed types) is a `TableError` that names the column.

        Parameters
        ----------
        table : DataFrame or array-like
            Rows and columns; the columns of an array are called x0, x1 and so on.
        immutable : iterable of hashable, optional
            Columns that a counterfactual must not change.
        kinds : mapping of hashable to str, optional
            The kind of a column, by name, where the table would mislead: ``{"zip": "categorical"}``.
        ordinal : mapping of hashable to sequence, optional
            Ordinal columns with their levels from lowest to highest.
        decimals : mapping of hashable to int, optional
            Decimals of the values that continuous columns may change to, where the table would mislead.
        rules : Rules, optional
            Further restrictions.

        Returns
        -------
        Schema
            One feature per column.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [31, 54], "dose": [0.5, 1.2], "smokes": ["no", "yes"]})
        >>> Schema.infer(table, immutable=["age"]).kinds
        {'age': 'integer', 'dose': 'continuous', 'smokes': 'binary'}

        """
        frame = as_frame(table)
        kinds, ordinal, decimals = (
            _by_name("kinds", kinds),
            _by_name("ordinal", ordinal),
            _by_name("decimals", decimals),
        )
        immutable = _names("immutable", immutable)
        for role, names in (("immutable", immutable), ("kinds", kinds), ("ordinal", ordinal), ("decimals", decimals)):
            _check_known(role, names, frame.columns)
        features = [
            _infer_feature(frame[name], kinds.get(name), ordinal.get(name), name in immutable) for name in frame.columns
        ]
        features = [replace(f, decimals=decimals[f.name]) if f.name in decimals else f for f in features]
        return cls(tuple(features), rules or Rules())

    def __repr__(self) -> str:
        return f"{_heading(self)}\n{short.text_table(HEAD, _lines(self))}"

    def _repr_html_(self) -> str:
        return short.grid(_heading(self), HEAD, _lines(self))

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The columns' names, in their order."""
        return tuple(feature.name for feature in self.features)

    @property
    def kinds(self) -> dict[Hashable, str]:
        """The kind of each feature, by name."""
        return {feature.name: feature.kind for feature in self.features}

    @property
    def immutable(self) -> tuple[Hashable, ...]:
        """The names of the features that must keep their value."""
        return tuple(feature.name for feature in self.features if feature.immutable)

    def with_immutable(self, names: Iterable[Hashable]) -> "Schema":
        """Return the same schema with exactly these features immutable.

        Parameters
        ----------
        names : iterable of hashable
            Columns; those that are not named may change.

        Returns
        -------
        Schema
            A new one; this one stays as it is.

        Examples
        --------
        >>> schema = Schema((Feature("age", "integer"), Feature("dose", "continuous")))
        >>> schema.with_immutable(["age"]).immutable
        ('age',)

        """
        names = _names("immutable", names)
        _check_known("immutable", names, self.names)
        return replace(self, features=tuple(replace(f, immutable=f.name in names) for f in self.features))

    def with_rules(self, rules: Rules) -> "Schema":
        """Return the same schema with these rules in place of its own.

        Parameters
        ----------
        rules : Rules
            They may name columns of this schema only.

        Returns
        -------
        Schema
            A new one; this one stays as it is.

        Examples
        --------
        >>> schema = Schema((Feature("age", "integer"), Feature("dose", "continuous")))
        >>> schema.with_rules(Rules(max_changes=1)).rules.max_changes
        1

        """
        return replace(self, rules=rules)


def _heading(schema: Schema) -> str:
    between = "; ".join(replace(schema.rules, features={}).in_words())
    said = f"Schema of {len(schema.features)} features, {len(schema.immutable)} immutable"
    return f"{said}; {between}" if between else said


def _lines(schema: Schema) -> list[tuple[str, str, str, str]]:
    return [
        (str(feature.name), feature.kind, _may_change(feature, schema.rules), _values(feature))
        for feature in schema.features
    ]


def _may_change(feature: Feature, rules: Rules) -> str:
    if feature.immutable:
        return "no"
    return summary(rules.features[feature.name]) if feature.name in rules.features else "yes"


def _values(feature: Feature) -> str:
    if feature.levels is not None:
        return short.few(feature.levels, separator=" < " if feature.kind == "ordinal" else ", ")
    return "" if feature.decimals is None else f"{feature.decimals} decimal{'s' * (feature.decimals != 1)}"


def as_frame(table: Any) -> pd.DataFrame:
    """Return the table as a DataFrame with distinct columns; arrays get the names x0, x1, ..."""
    if hasattr(table, "toarray") or "sparse" in type(table).__module__:
        raise TableError("the table is a sparse matrix, which is not supported. Call .toarray() first if it fits.")
    if isinstance(table, pd.DataFrame):
        if not table.columns.is_unique:
            raise TableError(f"column names repeat: {listed(_repeated(table.columns))}. Rename them.")
        return table
    if is_foreign_table(table):
        raise TableError(
            f"the table is a {kind_of(table)}: pass a pandas DataFrame or an array, in the form that the model takes."
        )
    values = plain_array(table, TableError, as_objects=False)
    if values.ndim != 2:
        raise TableError(f"the table must have rows and columns, got an array of shape {values.shape}.")
    return pd.DataFrame(values, columns=[f"x{column}" for column in range(values.shape[1])]).infer_objects()


def observed_levels(column: "pd.Series[Any]") -> tuple[Any, ...]:
    """Return the levels seen in a column: categories in their order, anything else sorted."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(column.cat.remove_unused_categories().cat.categories.tolist())
    found = pd.unique(column).tolist()
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=lambda level: (type(level).__name__, str(level))))


def _infer_feature(
    column: "pd.Series[Any]", kind: Kind | None, order: Sequence[Any] | None, immutable: bool
) -> Feature:
    if order is not None:
        return Feature(column.name, "ordinal", immutable, LEVELS(f"ordinal: levels of {column.name!r}", order))
    if kind == "ordinal" and isinstance(column.dtype, pd.CategoricalDtype):
        return Feature(column.name, "ordinal", immutable, tuple(column.cat.categories.tolist()))
    if kind is not None:
        return Feature(column.name, kind, immutable)
    return Feature(column.name, *_guess(column, immutable))


def _guess(column: "pd.Series[Any]", immutable: bool) -> tuple[Kind, bool, tuple[Any, ...] | None]:
    """Return kind, immutable and levels of a column that was not described by the caller."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.ordered:
            return "ordinal", immutable, tuple(dtype.categories.tolist())
        return _levelled(column), immutable, None
    if pd.api.types.is_bool_dtype(dtype):
        return "binary", immutable, (False, True)
    if pd.api.types.is_complex_dtype(dtype):
        raise _no_distance(column)
    if pd.api.types.is_numeric_dtype(dtype):
        return ("integer" if _is_whole(column) else "continuous"), immutable, None
    if pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype):
        return _guess_objects(column, immutable)
    raise _no_distance(column)


def _guess_objects(column: "pd.Series[Any]", immutable: bool) -> tuple[Kind, bool, tuple[Any, ...] | None]:
    present = column[column.notna()]
    inferred = present.infer_objects()
    if not pd.api.types.is_object_dtype(inferred.dtype) and not pd.api.types.is_string_dtype(inferred.dtype):
        return _guess(inferred, immutable)
    is_text = present.map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)
    if not is_text.all():
        raise _mixed(column, present, is_text)
    if found := numbers_as_text(present.tolist()):
        raise TableError(
            f"column {column.name!r} holds {found}. Convert it with pd.to_numeric, with a point for decimals and "
            f"missing values in place of marks, or pass kinds={{{column.name!r}: 'categorical'}} if they are names."
        )
    return _levelled(column), immutable, None


def _levelled(column: "pd.Series[Any]") -> Kind:
    return "binary" if column.nunique() == 2 else "categorical"


def _is_whole(column: "pd.Series[Any]") -> bool:
    if pd.api.types.is_integer_dtype(column.dtype):
        return True
    values = column.dropna().to_numpy(dtype=np.float64)
    return bool(np.all(np.abs(values) < LARGEST_EXACT) and np.all(np.trunc(values) == values))


def _mixed(column: "pd.Series[Any]", present: "pd.Series[Any]", is_text: Any) -> TableError:
    if not is_text.any():
        return _no_distance(column)
    text, other = present[is_text].iloc[0], present[~is_text].iloc[0]
    return TableError(
        f"column {column.name!r} mixes text and other values, e.g. {text!r} and {other!r}. Convert it to one type."
    )


def _no_distance(column: "pd.Series[Any]") -> TableError:
    return TableError(
        f"column {column.name!r} has dtype {column.dtype}, for which no distance is defined. Allowed: "
        "numbers, bool, text and categories. Convert dates to numbers first."
    )


def _feature(name: str, value: Any) -> Feature:
    if not isinstance(value, Feature):
        raise ParameterError(f"{name} must be a Feature, got {value!r}.")
    return value


def _names(role: str, names: Any) -> list[Hashable]:
    """Return names of columns as a list; a text is one name."""
    if isinstance(names, str) or names is None:
        return [] if names is None else [names]
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise ParameterError(f"{role} must be names of columns in a list, got {names!r}.")
    return list(names)


def _by_name(role: str, values: Any) -> dict[Hashable, Any]:
    """Return what is said of columns, by name."""
    if values is not None and not isinstance(values, Mapping):
        raise ParameterError(f"{role} must map names of columns to what holds for them, got {values!r}.")
    return dict(values or {})


def _check_known(role: str, names: Iterable[Hashable], columns: Iterable[Hashable]) -> None:
    columns = list(columns)
    for name in names:
        if name not in columns:
            raise ParameterError(
                f"{role} names {name!r}, which is not a column.{did_you_mean(name, columns)} "
                f"Columns: {listed(columns)}."
            )


def _repeated(names: Iterable[Hashable]) -> list[Hashable]:
    seen: set[Hashable] = set()
    return sorted({name for name in names if name in seen or seen.add(name)}, key=str)  # type: ignore[func-returns-value]
