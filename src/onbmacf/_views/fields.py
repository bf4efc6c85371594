"""The schema as fields to fill in, and what is filled in as a row: a fault names the field and what is allowed.

Feature  ->  Field  ->  a form           text by field  ->  read_row  ->  a row  ->  outside_known

Days have a date input, times one for dates and times, durations and periods are typed as text.
"""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.checks import is_absent, listed, shortened
from onbmacf._columns.converters import Converter
from onbmacf._columns.interop import frame_of_cells
from onbmacf._columns.moments import allowed_in, end_in, value_in, written
from onbmacf._text.labels import NOTHING, Labels
from onbmacf._text.records import few
from onbmacf._text.wording import shown
from onbmacf._views.plans import Source
from onbmacf.errors import RowsError
from onbmacf.schema import Feature

NO_LABELS = Labels()
MOST_LEVELS = 8  # of one feature, where they are only named
MOST_TICKED = 40  # where they can be chosen from


class Field(NamedTuple):
    """One feature as a form shows it."""

    id: str  # f0, f1, ...: names of columns may hold anything
    name: Hashable
    feature: Feature
    levels: tuple[str, ...]  # empty for numbers
    low: str
    high: str
    step: str
    converter: Converter | None = None  # of dates and the like
    words: Labels = NO_LABELS

    @property
    def input(self) -> str:
        """The type of the HTML input in which it is typed."""
        if self.converter is None or self.converter.kind == "decimal":
            return "number"
        if self.converter.kind in ("duration", "period"):
            return "text"
        return "date" if self.converter.unit == "D" else "datetime-local"

    @property
    def is_number(self) -> bool:
        """Whether it is typed rather than chosen."""
        return self.feature.is_numeric

    @property
    def some_levels(self) -> str:
        """The first levels, and how many others there are."""
        return few([said for _, said in self.options], MOST_LEVELS)

    @property
    def said(self) -> str:
        """What people call it."""
        return self.words.name(self.name)

    @property
    def unit(self) -> str:
        """The unit of its numbers; empty where none is known."""
        return self.words.get(str(self.name), NOTHING).unit

    @property
    def options(self) -> list[tuple[str, str]]:
        """Its levels, and what people call them."""
        return [(level, self.words.value(self.name, level)) for level in self.levels]

    @property
    def offers_levels(self) -> bool:
        """Whether its levels are few enough to tick those that are allowed."""
        return 1 < len(self.levels) <= MOST_TICKED

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
    converter = source.explainer.fitted_.space.form.converter(place)
    step = "any" if feature.kind != "integer" or (converter is not None and converter.unit == "us") else "1"
    words = source.explainer.schema_.labels
    return Field(f"f{place}", feature.name, feature, levels, low, high, step, converter, words)


def read_row(form: Mapping[str, str], fields: list[Field], name: Any = "typed") -> pd.DataFrame:
    """Return the row that a form describes; an error that names the feature where a value is missing or foreign."""
    values = {field.name: _value(field, form.get(field.id, "")) for field in fields}
    return frame_of_cells([list(values.values())], list(values)).set_axis([name])


def written_row(row: pd.DataFrame, fields: list[Field]) -> dict[str, str]:
    """Return the values of a row as a form shows them, by the fields' ids."""
    return {field.id: _written(field, row[field.name].iloc[0]) for field in fields}


def said_row(row: pd.DataFrame, fields: list[Field]) -> dict[str, str]:
    """Return the values of a row as people read them, by the fields' ids."""
    return {field.id: field.words.value(field.name, row[field.name].iloc[0]) for field in fields}


def outside_known(row: pd.DataFrame, source: Source, fields: list[Field]) -> list[str]:
    """Return a sentence for each value of a row that lies beyond those of the fit, where a model can only guess."""
    said = []
    for field in fields:
        value, (low, high) = row[field.name].iloc[0], source.ends.get(field.name, (None, None))
        if not field.is_number or is_absent(value) or is_absent(low) or low <= value <= high:
            continue
        known = f"{shown(low)} to {field.words.value(field.name, high)}"
        said.append(f"Outside the known range: {field.said} {field.words.value(field.name, value)} (known: {known}).")
    return said


def _written(field: Field, value: Any) -> str:
    if value is None or value is pd.NaT or bool(pd.isna(value)):
        return ""
    if field.input == "number" or isinstance(value, str):
        return shown(value)
    if field.input == "text":
        return written(value)
    wall = pd.Timestamp(value).tz_localize(None)  # an input has no time zone: the clock on the wall
    return str(wall.date()) if field.input == "date" else wall.isoformat().removesuffix(":00")  # as browsers write it


def _value(field: Field, text: str) -> Any:
    if field.may_lack and not text.strip():
        return np.nan if field.is_number else None
    if field.is_number:
        return _typed(field, text.strip())
    written = dict(zip(field.levels, field.feature.levels or (), strict=True))
    if text not in written:
        raise RowsError(
            f"{field.said!r} must be one of {listed([said for _, said in field.options])}, got {shortened(text)}."
        )
    return written[text]


def read_end(field: Field, text: str) -> float:
    """Return an end of a wished range as a number in the field's unit; that of a date reads as the date."""
    if field.input == "number":
        return float(_number(field, text))
    return end_in(repr(field.said), text, field.converter)


def _typed(field: Field, text: str) -> Any:
    return _number(field, text) if field.input == "number" else _moment(field, text)


def _moment(field: Field, text: str) -> Any:
    assert field.converter is not None
    try:
        return value_in(text, field.converter)
    except (ValueError, TypeError, OverflowError):
        raise RowsError(f"{field.said!r} must be {allowed_in(field.converter)}, got {shortened(text)}.") from None


def _number(field: Field, text: str) -> int | float:
    whole = field.feature.kind == "integer"
    try:
        value = float(text)
    except ValueError:
        raise RowsError(f"{field.said!r} must be a number, got {shortened(text)}.") from None
    if not np.isfinite(value) or (whole and not value.is_integer()):
        raise RowsError(f"{field.said!r} must be a {'whole' if whole else 'finite'} number, got {shortened(text)}.")
    return int(value) if whole else value
