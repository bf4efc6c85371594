"""What people call columns and codes: names, units and words for levels, wherever people read. Data stay as they are.

    {"dur": {"name": "duration", "unit": "months"}, "A6": {"levels": {"A61": "below 100"}}}

mapping or TOML  ->  Labels  ->  names, values, an Explanation in words
"""

import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onbmacf._base.checks import Check, checked, did_you_mean, listed, shortened, table, word
from onbmacf._base.missing import is_absent
from onbmacf._text.wording import shown
from onbmacf.errors import ParameterError

KEYS: dict[str, Check] = {"name": word(), "unit": word(), "levels": table}


@dataclass(frozen=True)
class Label:
    """What one column is called, the unit of its numbers, and its levels by their code as text."""

    name: str = ""
    unit: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)


class Labels(dict[str, Label]):
    """Labels by the columns' names as text; a column that is not there is shown as it is."""

    @classmethod
    def of(cls, given: Any) -> "Labels":
        """Return labels from a mapping, such as a TOML file holds; an error names what is wrong in it."""
        found = cls()
        for column, entry in table("labels", {} if given is None else given).items():
            where = f"labels: {shortened(column)}"
            if isinstance(entry, str):
                entry = {"name": entry}
            if not isinstance(entry, Label):
                entry = Label(**checked(where, entry, KEYS))
            levels = entry.levels.items()
            said = {str(code): word()(f"{where}: levels: {shortened(code)}", text) for code, text in levels}
            found[str(column)] = replace(entry, levels=said)
        return found

    @classmethod
    def from_toml(cls, path: Any) -> "Labels":
        """Read labels from a TOML file: a table per column."""
        try:
            return cls.of(tomllib.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError) as error:  # also text that is not UTF-8, or is no TOML
            raise ParameterError(f"labels file {path}: {error}") from error

    def name(self, column: Any) -> str:
        """Return what a column is called."""
        return self.get(str(column), NOTHING).name or str(column)

    def value(self, column: Any, value: Any) -> str:
        """Return a value as people read it: the word for a code, or the number with its unit.

        >>> Labels.of({"dur": {"unit": "months"}, "sex": {"levels": {"1": "female"}}}).value("dur", 12.0)
        '12 months'
        """
        found, text = self.get(str(column), NOTHING), shown(value)
        if text in found.levels:
            return found.levels[text]
        return f"{text} {found.unit}" if found.unit and not is_absent(value) else text

    def answer(self, answer: Any) -> Any:
        """Return an explanation in which columns and values are what people call them."""
        if not self:
            return answer
        found = tuple(self._counterfactual(one) for one in answer.counterfactuals)
        return replace(answer, counterfactuals=found, factual=self._row(answer.factual), words=Labels())

    def rules(self, rules: Any) -> Any:
        """Return rules in which columns and levels are what people call them, to be read."""
        if not self:
            return rules
        features = {self.name(name): self._rule(name, rule) for name, rule in rules.features.items()}
        at_most = tuple((self.name(low), self.name(high)) for low, high in rules.at_most)
        relations = tuple(one.named([self.name(name) for name in one.features]) for one in rules.relations)
        named = {"immutable": tuple(map(self.name, rules.immutable)), "relations": relations}
        return replace(rules, features=features, at_most=at_most, **named)

    def _rule(self, column: Any, rule: Any) -> Any:
        def said(levels: Any) -> Any:
            return tuple(self.value(column, level) for level in levels)

        allowed = None if rule.allowed is None else said(rule.allowed)
        return replace(rule, allowed=allowed, forbidden=tuple(map(said, rule.forbidden)))

    def _counterfactual(self, found: Any) -> Any:
        parts = {name: self._ranges(getattr(found, name)) for name in ("ranges", "box")}
        released = tuple(self.name(name) for name in found.released)
        kept = None if found.semifactual is None else self._changed(found.semifactual)
        return replace(self._changed(found), released=released, semifactual=kept, **parts)

    def _changed(self, found: Any) -> Any:
        names = {of: tuple(self.name(name) for name in getattr(found, of)) for of in ("changed", "effects")}
        return replace(found, values=self._row(found.values), factual=self._row(found.factual), **names)

    def _row(self, row: Any) -> Any:
        cells = {self.name(name): None if is_absent(value) else self.value(name, value) for name, value in row.items()}
        return type(row)(cells, name=row.name, dtype=object)

    def _ranges(self, ranges: Any) -> Any:
        return None if ranges is None else {self.name(name): self._range(each) for name, each in ranges.items()}

    def _range(self, found: Any) -> Any:
        name: Hashable = found.feature
        if found.levels is not None:
            levels = tuple(self.value(name, level) for level in found.levels)
            return replace(found, feature=self.name(name), levels=levels)
        unit = self.get(str(name), NOTHING).unit
        ends = {end: self.value(name, getattr(found, end)) for end in ("low", "high")} if unit else {}
        return replace(found, feature=self.name(name), **ends)

    def check(self, columns: Any) -> None:
        """Raise an error for labels of no column, and for two columns that would have the same name."""
        known = [str(column) for column in columns]
        for name in self:
            if name not in known:
                hint = did_you_mean(name, known)
                named = f"labels name {shortened(name)}, which is not a column."
                raise ParameterError(f"{named}{hint} Columns: {listed(known)}.")
        names = [self.name(column) for column in columns] if self else []
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ParameterError(f"labels give two columns the name {shortened(twice)}: tell them apart.")


NOTHING = Label()
