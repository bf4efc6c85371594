"""The schema as fields to fill in, and what is filled in as a row: a fault names the field and what is allowed.

Feature  ->  Field  ->  a form           text by field  ->  read_row  ->  a row
"""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.checks import listed
from onbmacf._text.wording import shown
from onbmacf._views.source import Source
from onbmacf.errors import RowsError
from onbmacf.schema import Feature


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

    @property
    def may_lack(self) -> bool:
        """Whether it may be left empty: a missing value is a value of its own (decision 0062)."""
        return self.feature.missing


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
    return {field.id: _written(row[field.name].iloc[0]) for field in fields}


def _written(value: Any) -> str:
    return "" if value is None or value is pd.NaT or bool(pd.isna(value)) else shown(value)


def _value(field: Field, text: str) -> Any:
    if field.may_lack and not text.strip():
        return np.nan if field.is_number else None
    if field.is_number:
        return read_number(field, text.strip())
    written = dict(zip(field.levels, field.feature.levels or (), strict=True))
    if text not in written:
        raise RowsError(f"{field.name!r} must be one of {listed(field.levels)}, got {text!r}.")
    return written[text]


def read_number(field: Field, text: str) -> int | float:
    whole = field.feature.kind == "integer"
    try:
        value = float(text)
    except ValueError:
        raise RowsError(f"{field.name!r} must be a number, got {text!r}.") from None
    if not np.isfinite(value) or (whole and not value.is_integer()):
        raise RowsError(f"{field.name!r} must be a {'whole' if whole else 'finite'} number, got {text!r}.")
    return int(value) if whole else value
