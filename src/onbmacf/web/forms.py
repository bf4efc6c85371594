"""The schema as a form, and a form as a row: every field has a kind, and a fault names the field and what is allowed.

Feature  ->  Field  ->  HTML           text by field  ->  read_row, read_wishes  ->  a row, Wishes
"""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.checks import listed
from onbmacf._text.wording import shown
from onbmacf.errors import RowsError
from onbmacf.schema import Feature
from onbmacf.web.asking import label_of
from onbmacf.web.cases import COSTS, MOST_PLANS, Wishes
from onbmacf.web.problems import Problem
from onbmacf.web.source import Source

DIRECTIONS = ("up", "down")


class Field(NamedTuple):
    """One feature as a form shows it."""

    id: str  # f0, f1, ...: names of columns may hold anything
    name: Hashable
    feature: Feature
    levels: tuple[str, ...]  # empty for numbers
    low: str
    high: str
    step: str

    @property
    def is_number(self) -> bool:
        """Whether it is typed rather than chosen."""
        return self.feature.is_numeric


def fields_of(source: Source) -> list[Field]:
    """Return one field per feature."""
    return [_field(source, place, feature) for place, feature in enumerate(source.explainer.schema_.features)]


def _field(source: Source, place: int, feature: Feature) -> Field:
    low, high = (shown(end) for end in source.ends.get(feature.name, ("", "")))
    levels = () if feature.is_numeric else tuple(shown(level) for level in feature.levels or ())
    return Field(f"f{place}", feature.name, feature, levels, low, high, "1" if feature.kind == "integer" else "any")


def read_row(form: Mapping[str, str], fields: list[Field], name: Any = "typed") -> pd.DataFrame:
    """Return the row that a form describes; an error that names the feature where a value is missing or foreign."""
    values = {field.name: _value(field, form.get(field.id, "")) for field in fields}
    return pd.DataFrame([list(values.values())], columns=list(values), index=[name]).infer_objects()


def written_row(row: pd.DataFrame, fields: list[Field]) -> dict[str, str]:
    """Return the values of a row as a form shows them, by the fields' ids."""
    return {field.id: shown(row[field.name].iloc[0]) for field in fields}


def read_wishes(form: Mapping[str, str], fields: list[Field], source: Source) -> Wishes:
    """Return the wishes that a form describes; what it leaves empty is not wished."""
    numbers = [field for field in fields if field.is_number]
    locked = frozenset(field.name for field in fields if form.get(f"{field.id}-lock"))
    ease = {field.name: form.get(f"{field.id}-ease", "") for field in fields}
    direction = {field.name: form.get(f"{field.id}-direction", "") for field in fields}
    target = form.get("target", "")
    return Wishes(
        locked=locked,
        low=_ends(form, numbers, "low"),
        high=_ends(form, numbers, "high"),
        direction={name: word for name, word in direction.items() if word in DIRECTIONS},
        ease={name: word for name, word in ease.items() if word in COSTS and word != "usual"},
        dial=_share(form.get("dial", "")),
        n=_count(form.get("n", "3")),
        target=label_of(target, source.classes) if target else source.target,
    )


def _ends(form: Mapping[str, str], fields: list[Field], end: str) -> dict[Hashable, float]:
    given = {field: form.get(f"{field.id}-{end}", "").strip() for field in fields}
    return {field.name: float(_number(field, text)) for field, text in given.items() if text}


def _value(field: Field, text: str) -> Any:
    if field.is_number:
        return _number(field, text.strip())
    written = dict(zip(field.levels, field.feature.levels or (), strict=True))
    if text not in written:
        raise RowsError(f"{field.name!r} must be one of {listed(field.levels)}, got {text!r}.")
    return written[text]


def _number(field: Field, text: str) -> int | float:
    whole = field.feature.kind == "integer"
    try:
        value = float(text)
    except ValueError:
        raise RowsError(f"{field.name!r} must be a number, got {text!r}.") from None
    if not np.isfinite(value) or (whole and not value.is_integer()):
        raise RowsError(f"{field.name!r} must be a {'whole' if whole else 'finite'} number, got {text!r}.")
    return int(value) if whole else value


def _share(text: str) -> float | None:
    if not text:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise Problem(422, "Parameter error", f"The dial must be from 0 to 1, got {text!r}.")
    return share


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_PLANS:
        raise Problem(422, "Parameter error", f"There may be 1 to {MOST_PLANS} plans, got {text!r}.")
    return int(text)
