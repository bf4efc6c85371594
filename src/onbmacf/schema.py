"""What each column of the table is: its kind, its levels, and whether it may change.

    table  ->  Schema.infer  ->  Schema (one Feature per column, in the table's order)

Inference never guesses silently: numbers stored as text, columns that mix types and kinds that have no
distance are errors that name the column. Any guess can be overridden by name.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import pandas as pd

from onbmacf._base.checks import (
    Check,
    check_choice,
    check_count,
    checked,
    did_you_mean,
    flag,
    level,
    listed,
    names_of,
    sequence,
    shortened,
    table,
    word,
)
from onbmacf._columns.converters import converter_of, holds
from onbmacf._columns.interop import as_frame, repeated
from onbmacf._columns.kinds import (
    KINDS,
    NUMERIC,
    Kind,
    guess,
    is_code,
    is_own_text,
    look_like_dates,
    step_of,
    suggested,
)
from onbmacf._text import records as short
from onbmacf._text.labels import Labels
from onbmacf.errors import ParameterError
from onbmacf.rules import RULES_KEYS, Rule, Rules, summary, toml_of

LEVELS = sequence(level)
FILE_KEYS: dict[str, Check] = {"kinds": table, "ordinal": table, "decimals": table, "fillable": LEVELS}
FILE_KEYS["dates"] = sequence(word())
SUGGESTED = {"up": "yes (only up?)", "immutable": "yes (immutable?)"}
HOLDS = ("", "date", "time", "duration", "period")
HEAD = ("feature", "kind", "may change", "values")  # of the table that shows a schema


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
    missing : bool
        Whether values may be missing, which is a state of its own (decision 0062). `fit` sets it where the table lacks
        some; a row may lack a value only where this is set.
    fillable : bool
        Whether a counterfactual may fill in a value that a row lacks. It never removes one.
    held : bool
        Whether it is immutable because `Schema.infer` took it for names, identifiers, free text, codes that look like
        numbers, or dates written as text (decision 0022).
    step : int or None
        Whole numbers change in multiples of it; `Schema.infer` reads it off the table. A rule's own step, or its
        ``low``, takes its place.
    holds : {"", "date", "time", "duration", "period"}
        What the column holds where its whole numbers stand for something else; `Schema.infer` and `fit` set it, and it
        is shown in place of the kind. It changes nothing else.

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
    missing: bool = False
    fillable: bool = False
    held: bool = False
    step: int | None = None
    holds: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", bool(self.missing or self.fillable))
        check_choice(f"kind of {self.name!r}", self.kind, KINDS)
        if self.decimals is not None:
            check_count(f"decimals of {self.name!r}", self.decimals, least=0)
            if self.kind != "continuous":
                raise ParameterError(f"decimals of {self.name!r}: for continuous features only, it is {self.kind}.")
        if self.step is not None:
            check_count(f"step of {self.name!r}", self.step)
            if self.kind != "integer":
                raise ParameterError(f"step of {self.name!r}: for integer features only, it is {self.kind}.")
        if self.kind == "ordinal" and self.levels is None:
            raise ParameterError(f"{self.name!r} is ordinal: give its levels, from lowest to highest.")
        level("the name of a feature", self.name)
        check_choice(f"what {self.name!r} holds", self.holds, HOLDS)
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

    @property
    def shown_kind(self) -> str:
        """The kind as people read it: 'date' for a column of dates, whose kind is integer."""
        return self.holds or self.kind


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
    labels : dict
        What people call columns and their values: per column a dict of ``name``, ``unit`` and ``levels`` (words by
        code), or the name alone. Sentences, pages, notices and widgets show it; frames and JSON do not.

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
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", Labels.of(self.labels))
        object.__setattr__(self, "features", sequence(_feature)("features", self.features))
        if isinstance(self.rules, Mapping):
            object.__setattr__(self, "rules", Rules.from_dict(self.rules))
        if not isinstance(self.rules, Rules):
            raise ParameterError(f"rules must be Rules or a dict, got {self.rules!r}.")
        names = self.names
        if len(set(names)) != len(names):
            raise ParameterError(f"schema names a feature twice: {listed(repeated(names))}.")
        self._take_over(self.rules.immutable)
        if self.features and all(feature.immutable for feature in self.features):
            raise ParameterError("every feature is immutable: nothing could change. Leave at least one mutable.")
        self.rules.check(names)
        self.labels.check(names)

    def _take_over(self, immutable: tuple[Hashable, ...]) -> None:
        """Make the features immutable that the rules call so; from then on the schema says it."""
        if immutable:
            self.rules.check(self.names)
            features = [replace(f, immutable=f.immutable or f.name in immutable) for f in self.features]
            object.__setattr__(self, "features", tuple(features))
            object.__setattr__(self, "rules", replace(self.rules, immutable=()))

    @classmethod
    def infer(
        cls,
        table: Any,
        *,
        immutable: Iterable[Hashable] = (),
        kinds: Mapping[Hashable, Kind] | None = None,
        ordinal: Mapping[Hashable, Sequence[Any]] | None = None,
        decimals: Mapping[Hashable, int] | None = None,
        fillable: Iterable[Hashable] = (),
        rules: Rules | Mapping[str, Any] | None = None,
        labels: Mapping[Any, Any] | None = None,
    ) -> "Schema":
        """Read the kinds of the columns off a table.

        bool and two-valued text are binary, text and unordered categories are categorical, ordered
        categories are ordinal, whole numbers (also 3.0 in a float column) are integer, the rest continuous.
        Dates, times, durations and periods are whole numbers of days, seconds or periods, decimals are continuous.
        What has no distance here (numbers stored as text, mixed types) is a `TableError` that names the column.
        Missing values do not count for the kind: whole numbers with NaN among them are integer.
        Text that differs in nearly every row (at least 20 values, 95 % of them different) is a name, an identifier or
        free text: it is made immutable, which `fit` says, unless an argument names the column. So are codes that look
        like numbers (postcodes, serial numbers, 01067), and dates written as text, which have no order here.
        Whole numbers that all are multiples of one, such as 0, 5, 10, 15 or thousands, change in steps of it, unless
        ``rules`` has another step for them.

        Parameters
        ----------
        table : DataFrame of pandas or polars, or array-like
            Rows and columns; the columns of an array are called x0, x1 and so on.
        immutable : iterable of hashable, optional
            Columns that a counterfactual must not change.
        kinds : mapping of hashable to str, optional
            The kind of a column, by name, where the table would mislead: ``{"zip": "categorical"}``.
        ordinal : mapping of hashable to sequence, optional
            Ordinal columns with their levels from lowest to highest.
        decimals : mapping of hashable to int, optional
            Decimals of the values that continuous columns may change to, where the table would mislead.
        fillable : iterable of hashable, optional
            Columns in which a counterfactual may fill in a value that a row lacks; none by default.
        rules : Rules or dict, optional
            Further restrictions; a dict has the keys of `Rules.from_dict`.
        labels : dict, optional
            What people call columns and values, as for `Schema`: ``{"dur": {"name": "duration", "unit": "months"}}``.

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
        immutable, fillable = names_of("immutable", immutable), names_of("fillable", fillable)
        named = {"immutable": immutable, "kinds": kinds, "ordinal": ordinal, "decimals": decimals, "fillable": fillable}
        for role, names in named.items():
            _check_known(role, names, frame.columns)
        features = [
            _infer_feature(frame[name], kinds.get(name), ordinal.get(name), name in immutable) for name in frame.columns
        ]
        features = [replace(f, decimals=decimals[f.name]) if f.name in decimals else f for f in features]
        features = [replace(f, missing=bool(frame[f.name].isna().any()), fillable=f.name in fillable) for f in features]
        rules = Rules.from_dict(rules) if isinstance(rules, Mapping) else rules
        named["rules"] = rules.features if isinstance(rules, Rules) else ()
        features = _holding(features, frame, {name for names in named.values() for name in names})
        return cls(tuple(features), Rules() if rules is None else rules, Labels.of(labels))

    @classmethod
    def from_toml(cls, path: Any, table: Any) -> "Schema":
        """Read a schema from a TOML file such as `onbmacf schema TABLE` writes it; the rest is read off the table.

        Its keys are those of `Rules.from_toml` and, as for `infer`, ``kinds``, ``ordinal``, ``decimals`` and
        ``fillable``. Columns in ``dates`` must have been read as dates (`io.read_table`).
        """
        said, rules = schema_file(path)
        frame, dates = as_frame(table), said.pop("dates", ())
        _check_known("dates", dates, frame.columns)
        for name in dates:
            if converter_of(frame[name]) is None:
                how = f"read_table(..., dates=[{name!r}])"
                raise ParameterError(f"{path}: column {name!r} is no date yet: read the table with {how}.")
        return cls.infer(table, **said, rules=rules)

    def __repr__(self) -> str:
        return f"{_heading(self)}\n{short.text_table(HEAD, _lines(self))}"

    def _repr_html_(self) -> str:
        return short.grid(_heading(self), HEAD, _lines(self))

    @cached_property
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

    @property
    def fillable(self) -> tuple[Hashable, ...]:
        """The names of the features in which a counterfactual may fill in a value that a row lacks."""
        return tuple(feature.name for feature in self.features if feature.fillable)

    @property
    def held(self) -> tuple[Hashable, ...]:
        """The names of the features that are immutable because nearly every row has a text of its own there."""
        return tuple(feature.name for feature in self.features if feature.held)

    @property
    def suggested(self) -> dict[Hashable, str]:
        """What names of columns suggest, and nobody has said: that one only goes ``"up"``, or is ``"immutable"``."""
        found = {f.name: suggested(f.name, f.is_numeric and not f.holds) for f in self.features if not f.immutable}
        ruled = {name for name, rule in self.rules.features.items() if rule.direction is not None}
        return {name: what for name, what in found.items() if what and name not in ruled}

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
        names = names_of("immutable", names)
        _check_known("immutable", names, self.names)
        return replace(self, features=tuple(replace(f, immutable=f.name in names, held=False) for f in self.features))

    def with_rules(self, rules: Rules | Mapping[str, Any]) -> "Schema":
        """Return the same schema with these rules in place of its own.

        Parameters
        ----------
        rules : Rules or dict
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
        return replace(self, rules=rules)  # type: ignore[arg-type]


def _heading(schema: Schema) -> str:
    between = "; ".join(replace(schema.rules, features={}).in_words())
    n_features = len(schema.features)
    said = f"Schema of {n_features} feature{'s' * (n_features != 1)}, {len(schema.immutable)} immutable"
    return f"{said}; {between}" if between else said


def _lines(schema: Schema) -> list[tuple[str, str, str, str]]:
    hints = {name: SUGGESTED[what] for name, what in schema.suggested.items()}
    return [
        (str(f.name), f.shown_kind, _may_change(f, schema.rules, hints.get(f.name, "yes")), _values(f))
        for f in schema.features
    ]


def _may_change(feature: Feature, rules: Rules, otherwise: str) -> str:
    if feature.immutable:
        return "no"
    rule = stepped(feature, rules.features.get(feature.name, Rule()))
    return summary(rule) if rule != Rule() else otherwise


def schema_file(path: Any) -> tuple[dict[str, Any], Rules]:
    """Return what a TOML file says of columns, with the keys of FILE_KEYS, and the rules in it."""
    found = checked(str(path), toml_of(path), FILE_KEYS | RULES_KEYS)
    said = {name: found.pop(name) for name in FILE_KEYS if name in found}
    return said, Rules.from_dict(found, str(path))


def stepped(feature: Feature, rule: Rule) -> Rule:
    """Return the rule of a feature with the step of its column, where it has neither a step nor a lowest value."""
    is_open = feature.step is not None and rule.step is None and rule.low == -inf
    return replace(rule, step=feature.step) if is_open else rule


def _values(feature: Feature) -> str:
    if feature.levels is not None:
        return short.few(feature.levels, separator=" < " if feature.kind == "ordinal" else ", ")
    return "" if feature.decimals is None else f"{feature.decimals} decimal{'s' * (feature.decimals != 1)}"


def _infer_feature(
    column: "pd.Series[Any]", kind: Kind | None, order: Sequence[Any] | None, immutable: bool
) -> Feature:
    if order is not None:
        return Feature(column.name, "ordinal", immutable, LEVELS(f"ordinal: levels of {column.name!r}", order))
    if kind == "ordinal" and isinstance(column.dtype, pd.CategoricalDtype):
        return Feature(column.name, "ordinal", immutable, tuple(column.cat.categories.tolist()))
    kind, immutable, levels = guess(column, immutable) if kind is None else (kind, immutable, None)
    what = holds(converter_of(column)) if kind in NUMERIC else ""
    step = step_of(column) if kind == "integer" and not what else None
    return Feature(column.name, kind, immutable, levels, step=step, holds=what)


def _holding(features: list[Feature], frame: pd.DataFrame, named: set[Hashable]) -> list[Feature]:
    """Return the features with those held from which no advice can come; not if nothing could change then."""
    free = [feature for feature in features if not feature.immutable]
    kept = {f.name for f in free if f.name not in named and _is_kept(frame[f.name])}
    if len(kept) == len(free):
        return features
    return [replace(f, immutable=True, held=True) if f.name in kept else f for f in features]


def _is_kept(column: "pd.Series[Any]") -> bool:
    """Say whether a column holds text of each row's own, codes, or dates written as text."""
    if is_own_text(column) or is_code(column):
        return True
    is_number = pd.api.types.is_numeric_dtype(column.dtype)  # and no text: a million values need not be told apart
    return not is_number and look_like_dates(column.dropna().drop_duplicates().tolist())


def _feature(name: str, value: Any) -> Feature:
    if not isinstance(value, Feature):
        raise ParameterError(f"{name} must be a Feature, got {value!r}.")
    return value


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
                f"{role} names {shortened(name)}, which is not a column.{did_you_mean(name, columns)} "
                f"Columns: {listed(columns)}."
            )
