"""What one call of explain asks, of all rows the same or of each row something else, bound to a fitted map.

arguments of explain  ->  Question (of all rows, or of each its own)  ->  Request (of rows that are asked the same)
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.asked import ASKED
from onbmacf._base.checks import check_count, check_within, did_you_mean, listed, names_of, shortened
from onbmacf._base.limits import NEVER, deadline_after, is_over
from onbmacf._explain.fitted import Fitted, check_blocks, check_space
from onbmacf._search.options import Options
from onbmacf._search.problem import Features, Strategy
from onbmacf._search.strategies import STRATEGIES, checked
from onbmacf._table.committee import Committee
from onbmacf._table.constraints import Constraints
from onbmacf._table.readings import Between, Reading
from onbmacf._table.space import FeatureSpace
from onbmacf._table.values import Reach
from onbmacf.errors import ParameterError
from onbmacf.rules import Rule, Rules
from onbmacf.schema import Schema

LISTS = ("target", "immutable", "vary")  # a list of single values is one value for all rows
SINGLES = ("rules", "n", "plausibility", "min_probability", "min_neighbours")  # a list is one value per row
WHOLE = ("n", "min_neighbours")
LASTING = 0.6  # what is asked for where the caller does not say, and the model has probabilities: decision 0052
PROBABILITIES = {"lasting": LASTING}  # least probabilities by name
OF_ALL = ("front", "ranges", "prove", "prove_seconds", "deadline")  # the same for all rows


# --- the question -----------------------------------------------------------------------------------------------------


class EachRow(list[Any]):
    """One value per row, in order."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, in the order of `ASKED`; `ONBMACF.explain` says what each field means. None: as `fit` was told."""

    target: Any = None
    immutable: Any = None
    vary: Any = None
    rules: Any = None
    n: Any = None
    plausibility: Any = None
    min_probability: Any = None
    min_neighbours: Any = None
    front: bool = False
    ranges: bool = False
    prove: Any = False
    prove_seconds: float = 1.0
    max_seconds: Any = None
    deadline: float = field(default=NEVER, kw_only=True)  # when they are over

    def timed(self) -> "Question":
        """Return the question with the time of day at which its seconds are over."""
        return replace(self, deadline=deadline_after(self.max_seconds))

    def given(self) -> dict[str, Any]:
        """Return the arguments of `ONBMACF.explain` that ask this: what is not as usual."""
        plain = Question()
        asked = {name: getattr(self, name) for name in ASKED}
        return {name: value for name, value in asked.items() if value is not getattr(plain, name)}

    def options(self, options: Options) -> Options:
        """Return the options with the number of counterfactuals and the dial of this question."""
        asked = {"n_counterfactuals": self.n, "plausibility": self.plausibility}
        return replace(options, **{name: value for name, value in asked.items() if value is not None})

    def wanting(self, reading: Reading) -> "Question":
        """Return the question with the label that a range of numbers stands for, or the default label for none."""
        if isinstance(self.target, Between) and self.target != reading.between:
            was = "none" if reading.between is None else repr(reading.between)
            raise ParameterError(
                f"target is {self.target!r}, fit was given {was}: a range shapes the map. Fit with it."
            )
        is_open = self.target is None or isinstance(self.target, Between)
        return replace(self, target=reading.wanted) if is_open else self

    def schema(self, schema: Schema) -> Schema:
        """Return the schema with the immutable features and the rules of this question."""
        if self.immutable is not None and self.vary is not None:
            raise ParameterError("give immutable or vary: one is what the other leaves out.")
        if self.immutable is not None:
            schema = schema.with_immutable([*names_of("immutable", self.immutable), *schema.held])  # decision 0022
        if self.vary is not None:
            vary = names_of("vary", self.vary)
            _check_features(vary, schema.names)
            schema = schema.with_immutable([name for name in schema.names if name not in vary])
        return schema if self.rules is None else schema.with_rules(_weighted(_rules(self.rules), schema.rules))

    def of_rows(self, rows: Any, known: Mapping[str, Iterable[Hashable]]) -> "tuple[Question, list[Hashable]]":
        """Read values off columns of the rows; return also which columns those are.

        A word that `known` lists for its argument is what it says there (a label, a feature), never a column.
        """
        asked = {name: getattr(self, name) for name in (*LISTS, *SINGLES)}
        words = {name: value for name, value in asked.items() if isinstance(value, str)}
        words = {name: value for name, value in words.items() if value not in list(known.get(name, ()))}
        if not words:
            return self, []
        columns, found = _columns(rows), {}
        for name, value in words.items():
            if value in columns:
                found[name] = value
            elif name in SINGLES:
                raise ParameterError(f"{name} names a column {value!r} that the rows do not have.")
        values: dict[str, Any] = {name: EachRow(_entries(columns[column])) for name, column in found.items()}
        return replace(self, **values), list(found.values())

    def for_partitions(self) -> "Question":
        """Return the question for rows that are not here yet; one that needs them is an error."""
        each = [name for name in (*LISTS, *SINGLES) if _is_each(name, getattr(self, name))]
        if each:
            raise ParameterError(f"{each[0]} per row needs the rows: for a Dask DataFrame, give one value for all.")
        return self

    def for_index(self, index: "pd.Index[Any]") -> "Question":
        """Turn lists and Series of one value per row into values in the order of the rows."""
        each: dict[str, Any] = {name: _each(name, getattr(self, name), index) for name in (*LISTS, *SINGLES)}
        return replace(self, **{name: value for name, value in each.items() if value is not None})

    def parts(self, n_rows: int) -> "list[tuple[Rows, Question]]":
        """Return groups of rows that are asked the same, in the order of their first rows."""
        each = [name for name in (*LISTS, *SINGLES) if isinstance(getattr(self, name), EachRow)]
        if not each:
            return [(np.arange(n_rows), self)]
        groups: dict[str, list[int]] = {}
        for row in range(n_rows):
            asked = [getattr(self, name)[row] for name in each]
            # Rules are printed in words, which do not tell all of them apart; their fields do.
            key = repr([asdict(value) if isinstance(value, Rules) else value for value in asked])
            groups.setdefault(key, []).append(row)
        lines = [np.array(rows) for rows in groups.values()] or [np.arange(0)]
        return [(rows, self._of_row(each, rows[:1])) for rows in lines]

    def _of_row(self, each: list[str], row: Rows) -> "Question":
        """Return what is asked of one row, or of none; what it leaves open is as `fit` was told."""
        values: dict[str, Any] = {name: next((getattr(self, name)[at] for at in row), None) for name in each}
        return replace(self, **values)


def _each(name: str, value: Any, index: "pd.Index[Any]") -> EachRow | None:
    """Return one value per row, or None where there is one for all rows."""
    if not _is_each(name, value):
        return None
    values = EachRow(_entries(_aligned(name, value, index) if isinstance(value, pd.Series) else value))
    if len(values) != len(index):
        raise ParameterError(f"{name} has {len(values)} entries for {len(index)} rows: give one per row.")
    if name in WHOLE:  # a column with a missing value holds floats
        return EachRow(int(value) if isinstance(value, float) and value.is_integer() else value for value in values)
    return values


def _is_each(name: str, value: Any) -> bool:
    """Say whether a value is one per row: a Series, or a list where that cannot mean one value for all rows."""
    if isinstance(value, EachRow | pd.Series):
        return True
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    if name in SINGLES:
        return True
    entries = [entry for entry in value if entry is not None]  # each a list of its own: then there is one per row
    return bool(entries) and all(isinstance(entry, list | set | frozenset | np.ndarray) for entry in entries)


def _aligned(name: str, values: "pd.Series[Any]", index: "pd.Index[Any]") -> "pd.Series[Any]":
    """Return a Series in the order of the rows, by its index."""
    if values.index.equals(index):
        return values
    if not values.index.is_unique:
        raise ParameterError(f"{name} has an index that repeats and is not that of the rows: one value per row is due.")
    missing = index.difference(values.index)
    if len(missing):
        raise ParameterError(f"{name} has no value for row {missing[0]!r} ({len(missing)} rows in all).")
    return values.loc[index]


def _entries(values: Any) -> list[Any]:
    """Return the values of a column or list as plain Python ones, None where one is missing."""
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return [None if pd.api.types.is_scalar(value) and pd.isna(value) else value for value in plain]


def _columns(rows: Any) -> Mapping[Hashable, Any]:
    """Return the columns of the rows by name, where they have names and may hold more than the features."""
    if isinstance(rows, pd.DataFrame):
        return {name: rows[name] for name in rows.columns} if rows.columns.is_unique else {}
    return {name: [value] for name, value in rows.items()} if isinstance(rows, dict | pd.Series) else {}


def _check_features(names: list[Hashable], features: tuple[Hashable, ...]) -> None:
    for name in names:
        if name not in features:
            meant = did_you_mean(name, features)
            raise ParameterError(
                f"vary names {shortened(name)}, which is not a column.{meant} Columns: {listed(features)}."
            )
    if not names:
        raise ParameterError("vary is empty: nothing could change. Name at least one feature.")


def _check_derived(vary: Any, space: FeatureSpace) -> None:
    """Raise an error where nothing may vary but what is computed."""
    derived = [
        name for name, is_derived in zip(space.schema.names, space.is_derived.tolist(), strict=True) if is_derived
    ]
    names = [] if vary is None else names_of("vary", vary)
    if names and all(name in derived for name in names):
        raise ParameterError(f"vary names {listed(names)} alone: derived, and so computed and never chosen.")


def _rules(rules: Any) -> Rules:
    if isinstance(rules, Rules):
        return rules
    if isinstance(rules, Mapping):
        return Rules.from_dict(rules)
    raise ParameterError(f"rules must be Rules or a dict, got {type(rules).__name__}.")


def _weighted(rules: Rules, fitted: Rules) -> Rules:
    """Return rules with the costs of the map: they shape its distances, so a call cannot change them."""
    costs = {name: rule.weight for name, rule in fitted.features.items() if rule.weight != 1}
    for name, rule in rules.features.items():
        if rule.weight not in (1, costs.get(name, 1)):
            here = f"weight is {rule.weight!r} here and was {costs.get(name, 1.0)!r} in fit"
            raise ParameterError(f"rule for {name!r}: {here}. Costs shape the map: fit again.")
    named = {name: replace(rules.features.get(name, Rule()), weight=cost) for name, cost in costs.items()}
    return replace(rules, features={**rules.features, **named})


def without_columns(rows: Any, columns: list[Hashable]) -> Any:
    """Return rows without the columns that only said what to ask."""
    if not columns:
        return rows
    if isinstance(rows, pd.DataFrame):
        return rows.drop(columns=columns)
    left = {name: value for name, value in rows.items() if name not in columns}
    return left if isinstance(rows, dict) else pd.Series(left, name=rows.name, dtype=object)


# --- the request ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that holds for all rows that are asked the same."""

    fitted: Fitted
    options: Options
    constraints: Constraints
    targets: Rows | None  # codes of the labels to reach; None for any but the row's own
    min_probability: float = 0.0
    min_neighbours: int = 0  # of the nearest fitted rows, with the label of the answer
    settles: bool = False  # whether a row without an answer of that probability gets one of less, and is told
    front: bool = False
    ranges: bool = False
    prove: Any = False  # whether to prove what can be proven; or the model to read for it
    prove_seconds: float = 1.0  # on one row
    deadline: float = NEVER  # the time of day at which the call must come to an end
    freed: frozenset[int] = frozenset()  # immutable features that may change in this call
    committee: Committee | None = None

    @classmethod
    def of(cls, fitted: Fitted, options: Options, question: Question) -> "Request":
        """Check what the caller asks for, and bind it to a map: labels as codes, rules to its encoding."""
        options = checked(question.options(options))
        question, known = question.wanting(fitted.black_box.reading), fitted.black_box.classes.tolist()
        least = question.min_probability
        settles = least is None and _may_last(fitted, options, question)
        least = (LASTING if settles else 0.0) if least is None else least
        least = PROBABILITIES.get(least, least) if isinstance(least, str) else least
        check_within("min_probability", least, 0, 1)
        _check_derived(question.vary, fitted.space)
        bound = fitted.under(question.schema(fitted.space.schema))
        rules = bound.constraints  # an error in them is told before one in the target
        labels = None if question.target is None else target_labels(question.target, known)
        request = cls(
            fitted=bound,
            options=replace(options, committee=None),
            constraints=rules,
            targets=None if labels is None else np.array([known.index(label) for label in labels], dtype=np.intp),
            min_probability=least,
            min_neighbours=_bound_on_neighbours(bound, question.min_neighbours),
            settles=settles,
            **{name: getattr(question, name) for name in OF_ALL},
        )
        request._check(options)
        return replace(request, committee=bound.committee(options))

    def _check(self, options: Options) -> None:
        """Raise an error where something is asked for beside what excludes it."""
        if not self.prove_seconds >= 0:
            raise ParameterError(f"prove_seconds must be at least 0, got {self.prove_seconds!r}.")
        if self.front and "plausibility" in self.strategy.ignores:
            raise ParameterError(f"front=True does nothing with strategy={options.strategy!r}: leave it out.")
        if self.fitted.embedding is not None:
            check_space(options)
        if self.fitted.blocks is not None:
            check_blocks(options)
            if self.is_proof:
                raise ParameterError("prove is about single features, and blocks change together: leave it out.")
        if self.is_proof and options.limits:
            raise ParameterError(f"prove asks the model beyond {options.limits}: leave one of them out.")
        if self.is_proof and not self.strategy.is_readable:
            raise ParameterError(f"prove does nothing with strategy={options.strategy!r}: leave it out.")
        if self.is_proof and options.committee is not None and options.agreement > 0:
            raise ParameterError("prove is about the model alone: leave agreement out.")

    @property
    def is_proof(self) -> bool:
        """Whether a proof is asked for."""
        return self.prove is not False

    @cached_property
    def is_held(self) -> Mask:
        """Per feature: whether it must keep its value."""
        return self.fitted.space.is_immutable & ~np.isin(np.arange(len(self.fitted.space.blocks)), list(self.freed))

    @property
    def needs_agreement(self) -> bool:
        """Whether members of a committee must agree on a point before it is accepted."""
        return self.committee is not None and self.committee.n_needed > 0

    @property
    def n_members(self) -> int:
        """How many models are in the committee."""
        return 0 if self.committee is None else len(self.committee.boxes)

    @property
    def asks_more(self) -> bool:
        """Whether the model's label alone does not make a point acceptable."""
        return self.min_probability > 0 or self.min_neighbours > 0 or self.needs_agreement

    @property
    def required(self) -> float:
        """The probability without which there is no answer."""
        return 0.0 if self.settles else self.min_probability

    @property
    def sure(self) -> str:
        """How sure the model must be of the label, in words; empty where that is not asked for."""
        return f"with a probability of at least {self.required:g}" if self.required > 0 else ""

    @property
    def near(self) -> str:
        """How many neighbours of its own label an answer must have, in words; empty where that is not asked for."""
        least, y = self.min_neighbours, self.fitted.neighbours.y
        many = f"all {y}" if least == y else f"at least {least} of {y}"
        return f"with {many} neighbours of its own label" if least > 0 else ""

    @property
    def least_share(self) -> float:
        """The share of neighbours that is enough: between two counts, so that no rounding decides."""
        return (self.min_neighbours - 0.5) / self.fitted.neighbours.y if self.min_neighbours > 0 else 0.0

    def has_neighbours(self, N: Matrix, codes: Rows) -> Mask:
        """Say which points, in the caller's units and of these labels, have as many neighbours of it as is asked."""
        if self.min_neighbours == 0:
            return np.ones(len(N), dtype=bool)
        return np.asarray(self.fitted.share(N, codes) >= self.least_share)

    @property
    def limits(self) -> str:
        """The names of the limits that are set, of time where it is up; nothing where there are none."""
        return " or ".join(name for name in (self.options.limits, "max_seconds" if self.is_over else "") if name)

    @property
    def is_over(self) -> bool:
        """Whether the time of this call is up."""
        return is_over(self.deadline)

    @property
    def release(self) -> str:
        """What may be given up: what the options say, or what is usual for the strategy."""
        return self.options.release or self.strategy.release

    @cached_property
    def reach(self) -> Reach:
        """The rows that a row may become."""
        if self.constraints is self.fitted.constraints and not self.freed:
            return self.fitted.reach
        return Reach(self.fitted.space, self.constraints, self.fitted.ranges, self.is_held)

    @property
    def model_copy(self) -> Any:
        """The exact copy of the model that the search may ask in its place; None where there is none."""
        is_asked = self.options.read_model and self.fitted.heard.is_copy_right
        return self.fitted.model_copy if is_asked else None

    @property
    def strategy(self) -> Strategy:
        """The strategy that the options name."""
        return STRATEGIES[self.options.strategy]

    def place(self, points: Matrix, z: Matrix) -> Matrix:
        """Return points with values that may be returned: readable where the strategy says so, and within the rules."""
        return self.constraints.constrain(
            self.fitted.space.to_grid(points, z) if self.strategy.is_readable else points, z
        )

    @cached_property
    def features(self) -> Features:
        """The columns of each feature, and what may change."""
        space = self.fitted.space
        asks_all = bool(self.constraints) or self.min_probability > 0 or self.strategy.is_readable
        return Features(
            starts=np.array([block.start for block in space.blocks]),
            of_column=space.feature_of,
            is_immutable=self.is_held,
            is_derived=space.is_derived,
            constrain=self.place if asks_all else None,
            max_changes=self.constraints.rules.max_changes,
            may_release=self.release == "immutable",
            lacks=space.lacks if space.may_lack else None,
            is_fillable=space.is_fillable,
        )


def _bound_on_neighbours(fitted: Fitted, least: Any) -> int:
    """Return the least number of neighbours of its label that an answer must have; 0 where there is no bound."""
    if least is None:
        return 0
    most = fitted.neighbours.y
    if check_count("min_neighbours", least, 0) > most:
        raise ParameterError(f"min_neighbours must be at most {most}, the neighbours counted, got {shortened(least)}.")
    return int(least)


def _may_last(fitted: Fitted, options: Options, question: Question) -> bool:
    """Say whether answers that last are asked for where the caller does not say.

    Not where the nearest is to be proven, the paper's strategy followed, or a committee asked, which knows better; and
    only where the probabilities are what labels follow from.
    """
    scorer, is_proof = fitted.black_box.scorer, question.prove is not False
    has_probabilities = scorer is not None and scorer.has_probabilities
    return has_probabilities and not is_proof and STRATEGIES[options.strategy].finds_labels and options.agreement == 0


def target_labels(target: Any, known: list[Any]) -> list[Any]:
    """Return the labels that a target names; an error says which are not among those of the model."""
    labels = list(target) if isinstance(target, Iterable) and not isinstance(target, str | bytes) else [target]
    unknown = [label for label in labels if not _is_among(label, known)]
    if not labels:
        raise ParameterError(f"target must name at least one among the model's labels {listed(known)}.")
    if unknown:
        raise ParameterError(f"target must be among the model's labels {listed(known)}, got {listed(unknown)}.")
    return labels


def _is_among(label: Any, known: list[Any]) -> bool:
    try:
        return label in known
    except Exception:  # what cannot be compared, such as a frame
        return False
