"""What people call columns and codes: names, units and words for levels, wherever people read. Data stay as they are.

    {"dur": {"name": "duration", "unit": "months"}, "A6": {"levels": {"A61": "below 100"}}}

mapping or TOML  ->  Labels  ->  names, values, an Explanation in words
                                 tables, answers and schemas for audits and plots: numbers stay numbers, codes are words
"""

import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onbmacf._base.arrays import objects
from onbmacf._base.checks import Check, checked, did_you_mean, is_absent, listed, shortened, table, word
from onbmacf._base.origin import Origin
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
        return text if is_absent(value) else text + self.unit(column)

    def unit(self, column: Any) -> str:
        """Return the unit of a column's numbers, after a blank; empty where none is known."""
        unit = self.get(str(column), NOTHING).unit
        return f" {unit}" if unit else ""

    def axis(self, column: Any) -> str:
        """Return what an axis is called along which the column's numbers lie.

        >>> Labels.of({"dur": {"name": "duration", "unit": "months"}}).axis("dur")
        'duration (months)'
        """
        unit = self.unit(column).strip()
        return f"{self.name(column)} ({unit})" if unit else self.name(column)

    def answer(self, answer: Any) -> Any:
        """Return an explanation in which columns and values are what people call them."""
        if not self:
            return answer
        found = tuple(self._counterfactual(one) for one in answer.counterfactuals)
        needs = tuple(self.needed(answer.would_need, answer.factual.index))
        said = {"counterfactuals": found, "factual": self._row(answer.factual), "would_need": needs}
        return replace(answer, **said, words=Labels(), origin=Origin())

    def needed(self, would_need: Any, columns: Any) -> list[str]:
        """Return what a row needs, features as people call them; a rule is in words already."""
        known = {str(column) for column in columns}
        return [self.name(need) if need in known else need for need in would_need]

    # --- for audits and plots: tables in which names and codes are words, and all other numbers are numbers ----------

    def codes_in(self, table: Any) -> frozenset[str]:
        """Return the columns of numbers that are codes: each of their values has a word."""
        named = [column for column in table.columns if self.get(str(column), NOTHING).levels]
        return frozenset(str(column) for column in named if self._are_codes(column, table[column]))

    def _are_codes(self, column: Any, values: Any) -> bool:
        return {shown(value) for value in values.dropna().unique().tolist()} <= set(self[str(column)].levels)

    def table(self, table: Any, codes: frozenset[str]) -> Any:
        """Return rows whose columns and levels are what people call them; numbers stay numbers, but for codes."""
        if not self:
            return table
        return type(table)({self.name(name): self._column(table[name], codes) for name in table.columns}, table.index)

    def _column(self, column: Any, codes: frozenset[str]) -> Any:
        words = self._apart(column.name)
        if not words:
            return column
        if hasattr(column, "cat"):
            return column.cat.rename_categories([words.get(shown(level), level) for level in column.cat.categories])
        if column.dtype.kind in "iuf" and str(column.name) not in codes:
            return column
        return column.astype(object).map(lambda value: words.get(shown(value), value), na_action="ignore")

    def _apart(self, column: Any) -> Mapping[str, str]:
        """Return the words for a column's codes; where two have the same one, with the code."""
        words = self.get(str(column), NOTHING).levels
        said = list(words.values())
        return {code: f"{word} ({code})" if said.count(word) > 1 else word for code, word in words.items()}

    def answers(self, answers: Any, codes: frozenset[str] | None = None) -> Any:
        """Return the answers for a batch with columns and levels as people call them."""
        if not self:
            return answers
        codes = self.codes_in(answers.rows) if codes is None else codes
        batch, lazy = answers.batch, type(answers.batch.rows)
        batch = batch._replace(
            rows=lazy.of_frame(self.table(batch.values, codes)),
            semifactual_rows=lazy.of_frame(self.table(batch.semifactual_values, codes)),
        )
        needs = objects([tuple(self.needed(need, answers.rows.columns)) for need in answers.would_need])
        rows, days = self.table(answers.rows, codes), tuple(map(self.name, answers.days))
        said = {"rows": rows, "batch": batch, "would_need": needs, "days": days}
        return replace(answers, **said, words=Labels(), origin=Origin())

    def schema(self, schema: Any, codes: frozenset[str]) -> Any:
        """Return a schema with columns and levels as people call them."""
        if not self:
            return schema
        features = tuple(self._feature(feature, codes) for feature in schema.features)
        return replace(schema, features=features, rules=self.rules(schema.rules), labels=Labels())

    def _feature(self, feature: Any, codes: frozenset[str]) -> Any:
        words, levels, is_code = self._apart(feature.name), feature.levels, str(feature.name) in codes
        feature = replace(feature, name=self.name(feature.name))
        if levels is not None:
            return replace(feature, levels=tuple(words.get(shown(level), level) for level in levels))
        return replace(feature, kind="categorical", decimals=None, step=None) if is_code else feature

    def groups(self, column: Any, gaps: Any) -> Any:
        """Return a frame of gaps between groups of a column, with the words for its codes."""
        words = self.get(str(column), NOTHING).levels
        sides = [side for side in ("group", "other") if words and side in gaps]
        return gaps.assign(**{side: [words.get(shown(one), one) for one in gaps[side]] for side in sides})

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
        if found.of_blocks is not None:
            parts["of_blocks"] = found.of_blocks.named(self.name)
            parts["donor_values"] = self._row(found.donor_values)
        return replace(self._changed(found), released=released, semifactual=kept, words=Labels(), **parts)

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
        ends = {end: self.value(name, getattr(found, end)) for end in ("low", "high")} if self.unit(name) else {}
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
