"""What the widget shows of one row, as plain values, and the calls that it takes.

Person, features kept, values tried  ->  shown  ->  Shown: a dict for the script, and the explanation itself
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from onbmacf._base.checks import check_count, listed
from onbmacf._explain.request import Question
from onbmacf._text.wording import shown as written
from onbmacf._views.fields import Field, fields_of, outside_known, read_row, written_row
from onbmacf._views.plans import Source, explained, no_plan, percent, plan_views, predicted
from onbmacf.errors import OnbmacfError, ParameterError, RowsError
from onbmacf.explanation import Explanation

USUAL_PLANS, MOST_PLANS = 3, 5


@dataclass(frozen=True, eq=False)
class Person:
    """A row, the explainer that is asked about it, and what is wanted."""

    source: Source
    fields: list[Field]
    row: pd.DataFrame
    target: Any
    n: int

    @classmethod
    def of(cls, explainer: Any, row: Any, target: Any = None, n: int = USUAL_PLANS) -> "Person":
        """Return a person; an error where there is not exactly one row."""
        check_count("n", n, least=1)
        if n > MOST_PLANS:
            raise ParameterError(f"n must be from 1 to {MOST_PLANS} plans, got {n}.")
        source = Source.of(explainer)
        rows = explainer.fitted_.space.form.arrange(row)[0]
        if len(rows) != 1:
            raise RowsError(f"a widget shows one row, got {len(rows):,}: pick one, as in table.iloc[[0]].")
        return cls(source, fields_of(source), rows, target, n)

    @property
    def locked(self) -> list[str]:
        """The features that are kept before anything is pressed, by name."""
        return [str(name) for name in self.source.explainer.schema_.immutable]

    def ask(self, locked: Sequence[str], ranges: bool) -> Question:
        """Return the question in which these features are kept."""
        unknown = [name for name in locked if name not in self.source.column_of]
        if unknown:
            raise ParameterError(f"{unknown[0]!r} is not a feature. Features: {listed(list(self.source.column_of))}.")
        vary = tuple(name for text, name in self.source.column_of.items() if text not in set(locked))
        if not vary:
            raise ParameterError("every feature is kept: nothing could change. Let at least one change.")
        return Question(target=self.target, n=self.n, vary=vary, ranges=ranges)


class Shown(NamedTuple):
    """What is shown: plain values for the script, and the explanation they come from."""

    view: dict[str, Any]
    answer: Explanation


def shown(person: Person, locked: Sequence[str], ranges: bool) -> Shown:
    """Ask for the decision and the plans of the row, some features kept."""
    explainer = person.source.explainer
    said = predicted(explainer, person.row)
    answer = explained(explainer, person.row, person.ask(locked, ranges))[0]
    values = written_row(person.row, person.fields)
    view = {
        "title": f"Row {written(person.row.index[0])}",
        "label": _label(said),
        "probability": percent(said.probabilities[0]),
        "fields": [_field(field, values[field.id]) for field in person.fields],
        "plans": _plans(person, answer),
        "reason": answer.reason,
        "would_need": list(answer.in_words().would_need),
    }
    return Shown(view, answer)


def tried(person: Person, values: Mapping[str, str], locked: Sequence[str]) -> dict[str, Any]:
    """Ask what the model says of other values, and for the nearest plan from there; a fault is a sentence."""
    before = written_row(person.row, person.fields)
    ids = {str(field.name): field.id for field in person.fields}
    try:
        unknown = [name for name in values if name not in ids]
        if unknown:
            raise RowsError(f"{unknown[0]!r} is not a feature. Features: {listed(list(ids))}.")
        row = read_row({**before, **{ids[name]: text for name, text in values.items()}}, person.fields)
        row = person.source.explainer.fitted_.space.form.arrange(row)[0]
        said = predicted(person.source.explainer, row)
        answer = explained(person.source.explainer, row, replace(person.ask(locked, False), n=1))[0]
    except OnbmacfError as error:
        return {"label": "", "probability": "", "reason": str(error), "plans": [], "outside": []}
    reason = said.reasons[0] or no_plan(answer)
    return {
        "label": _label(said),
        "probability": percent(said.probabilities[0]),
        "reason": reason,
        "plans": _plans(person, answer),
        "outside": outside_known(row, person.source, person.fields),
    }


def _label(said: Any) -> str:
    return written(said.labels[0]) if said.statuses[0] == "predicted" else ""


def _plans(person: Person, answer: Explanation) -> list[dict[str, Any]]:
    return plan_views(answer, {field.name: field.id for field in person.fields})


def _field(field: Field, value: str) -> dict[str, Any]:
    return {
        "name": str(field.name),
        "said": field.said,
        "value": value,
        "is_number": field.is_number,
        "input": field.input,
        "levels": [list(option) for option in field.options],
        "low": field.low,
        "high": field.high,
        "step": field.step,
        "may_lack": field.may_lack,
    }
