"""One call of explain: the fitted map, the options, what is asked, and the rules bound to the table's encoding."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import check_within, listed
from onbmacf._base.limits import NEVER, is_over
from onbmacf._batch.fitted import Fitted
from onbmacf._batch.question import Question
from onbmacf._rows.committee import Committee
from onbmacf._rows.constraints import Constraints
from onbmacf._rows.reach import Reach
from onbmacf._search.options import Options
from onbmacf._search.problem import Features, Strategy
from onbmacf._search.strategies import STRATEGIES
from onbmacf.errors import ParameterError

PROBABILITIES = {"lasting": 0.6}  # least probabilities by name: decision 0077


class Query(NamedTuple):
    """What is asked of every row of one group, in codes."""

    targets: Rows | None  # codes of the labels to reach; None for any but the row's own
    min_probability: float
    front: bool = False
    ranges: bool = False
    prove: Any = False  # whether to prove what can be proven; or the model to read for it
    prove_seconds: float = 1.0  # on one row
    deadline: float = NEVER  # the time of day at which the call must come to an end

    @classmethod
    def of(cls, question: Question, classes: Any) -> "Query":
        """Check what the caller asks for, and turn labels into codes."""
        least = PROBABILITIES.get(question.min_probability, question.min_probability)
        check_within("min_probability", least, 0, 1)
        query = cls(_codes(question.target, classes.tolist()), least, **question.more)
        if not query.prove_seconds >= 0:
            raise ParameterError(f"prove_seconds must be at least 0, got {query.prove_seconds!r}.")
        return query

    @property
    def is_proof(self) -> bool:
        """Whether a proof is asked for."""
        return self.prove is not False


@dataclass(frozen=True, eq=False)
class Call:
    """Everything that holds for all rows of one call."""

    fitted: Fitted
    options: Options
    query: Query
    constraints: Constraints
    freed: frozenset[int] = frozenset()  # immutable features that may change in this call
    committee: Committee | None = None

    @classmethod
    def of(cls, fitted: Fitted, options: Options, query: Query) -> "Call":
        """Return a call under the rules of the schema."""
        committee = fitted.committee(options)
        return cls(fitted, replace(options, committee=None), query, fitted.constraints, committee=committee)

    @property
    def own_rules(self) -> Constraints:
        """The rules of the schema, also where this call is asked without some of them."""
        return self.fitted.constraints

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
        return self.query.min_probability > 0 or self.needs_agreement or self.fitted.guard is not None

    @property
    def sure(self) -> str:
        """How sure the model must be of the label, in words; empty where that is not asked for."""
        least = self.query.min_probability
        return f"with a probability of at least {least:g}" if least > 0 else ""

    @property
    def limits(self) -> str:
        """The names of the limits that are set, of time where it is up; nothing where there are none."""
        return " or ".join(name for name in (self.options.limits, "max_seconds" if self.is_over else "") if name)

    @property
    def is_over(self) -> bool:
        """Whether the time of this call is up."""
        return is_over(self.query.deadline)

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
        return self.fitted.model_copy if self.options.read_model else None

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
        asks_all = bool(self.constraints) or self.query.min_probability > 0 or self.strategy.is_readable
        return Features(
            starts=np.array([block.start for block in space.blocks]),
            of_column=space.feature_of,
            is_immutable=self.is_held,
            constrain=self.place if asks_all else None,
            max_changes=self.constraints.rules.max_changes,
            may_release=self.release == "immutable",
            lacks=space.lacks if space.may_lack else None,
            is_fillable=space.is_fillable,
        )


def check_provable(query: Query, options: Options) -> None:
    """Raise an error where a proof is asked for beside something that it cannot keep."""
    if query.is_proof and options.limits:
        raise ParameterError(f"prove asks the model beyond {options.limits}: leave one of them out.")
    if query.is_proof and not STRATEGIES[options.strategy].is_readable:
        raise ParameterError(f"prove does nothing with strategy={options.strategy!r}: leave it out.")
    if query.is_proof and options.private is not None:
        raise ParameterError("prove looks for answers that private would withhold: leave one of them out.")
    if query.is_proof and options.committee is not None and options.agreement > 0:
        raise ParameterError("prove is about the model alone: leave agreement out.")


def _codes(target: Any, known: list[Any]) -> Rows | None:
    if target is None:
        return None
    return np.array([known.index(label) for label in target_labels(target, known)], dtype=np.intp)


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
