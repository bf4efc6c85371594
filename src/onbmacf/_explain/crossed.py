"""Which conditions of the model counterfactuals cross: the frame of `rules()`, its sentences and its dicts.

Fitted  ->  conditions_of  ->  Conditions, read once per map
answers  ->  of_explanation, of_explanations  ->  Crossed: frame, sentences(), dicts()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import listed
from onbmacf._base.origin import Origin
from onbmacf._explain.fitted import Fitted
from onbmacf._prove.columns import NotKnownError
from onbmacf._prove.conditions import Conditions, Crossings
from onbmacf._text import crossed as words
from onbmacf._text.frames import ranks
from onbmacf._text.labels import Labels
from onbmacf._text.records import plain
from onbmacf.errors import ParameterError

Known = tuple[Matrix, Mask]  # values of a feature, and which of them keep a condition
_READ: WeakKeyDictionary[Fitted, Conditions | str] = WeakKeyDictionary()  # what was read, or why nothing could be


def conditions_of(fitted: Fitted) -> Conditions:
    """Return the conditions of a map's model; an error says why they cannot be read."""
    fitted = fitted.origin or fitted
    if fitted not in _READ:
        box = fitted.black_box
        try:
            _READ[fitted] = Conditions.of(box.model, fitted.space.form, fitted.map.table.N, box.reading)
        except NotKnownError as error:
            _READ[fitted] = str(error)
    found = _READ[fitted]
    if isinstance(found, str):
        raise ParameterError(f"the rules of this model cannot be told: {found}.")
    return found


def fitted_of(explainer: Any, origin: Origin) -> Fitted:
    """Return the map of an explainer or, without one, of that which gave the answers."""
    if explainer is not None and not hasattr(explainer, "fitted_"):
        raise ParameterError(f"explainer must be a fitted ONBMACF, got {type(explainer).__name__}.")
    found: Fitted | None = origin.maker if explainer is None else explainer.fitted_
    if found is None:
        raise ParameterError(
            "answers that were saved, sent or put into words do not know their model: give the explainer to those that "
            "explain returned, rules=explainer or rules(explainer)."
        )
    return found


def of_explanation(answer: Any, explainer: Any = None) -> "Crossed":
    """Return what the counterfactuals of one row cross."""
    fitted, found = fitted_of(explainer, answer.origin), answer.counterfactuals
    before = pd.DataFrame([answer.factual]).infer_objects()
    after = pd.DataFrame([one.values for one in found], columns=before.columns).infer_objects()
    place, reached = np.zeros(len(found), dtype=np.intp), [one.label for one in found]
    return Crossed.of(fitted, before, place, after, [answer.label], reached)


def of_explanations(answers: Any, explainer: Any = None) -> "Crossed":
    """Return what all counterfactuals of a batch cross."""
    fitted, batch = fitted_of(explainer, answers.origin), answers.batch
    return Crossed.of(fitted, answers.rows, batch.factual, batch.values, answers.labels, batch.label)


@dataclass(frozen=True, eq=False)
class Crossed:
    """What counterfactuals cross; `line` is the place of one among them."""

    conditions: Conditions
    crossings: Crossings
    fitted: Fitted
    place: Rows  # per counterfactual: its row among the factuals
    before: pd.DataFrame  # the factuals
    after: pd.DataFrame  # the counterfactuals
    numbers: Matrix  # of both, each once
    reached: tuple[Rows, Rows]  # per counterfactual: the labels before and after, by their place in the model

    @classmethod
    def of(
        cls, fitted: Fitted, before: pd.DataFrame, place: Rows, after: pd.DataFrame, labels: Any, reached: Any
    ) -> "Crossed":
        """Look at counterfactuals, of which each is for the row at its place; labels are the model's."""
        conditions, form = conditions_of(fitted), fitted.space.form
        old, new = (form.numbers(form.arrange(rows)[0]) for rows in (before, after))
        classes = [plain(label) for label in np.asarray(conditions.structure.classes).tolist()]
        codes = [
            np.array([_place_of(label, classes) for label in some], dtype=np.intp)
            for some in (np.asarray(labels, dtype=object)[place], reached)
        ]
        numbers = np.concatenate([old, new])
        crossings = conditions.crossed(old[place], new)
        return cls(conditions, crossings, fitted, place, before, after, numbers, (codes[0], codes[1]))

    # --- texts --------------------------------------------------------------------------------------------------------

    def texts(self, code: int, labels: Labels, line: int = -1, known: Known | None = None) -> tuple[str, str]:
        """Return a condition, and its opposite, as texts that are true of all fitted values.

        And of those of a counterfactual and of its row: of no others, so that a text does not depend on the batch.
        """
        conditions, form = self.conditions, self.fitted.space.form
        cut = conditions.cuts[code]
        feature = form.schema.features[cut.feature]
        lacking = cut.lacking if form.may_lack[cut.feature] else None
        if not feature.is_numeric:
            return words.of_levels(feature.name, feature.levels or (), cut.levels, lacking, labels)
        values, kept = self.known(code) if known is None else known
        if line >= 0:
            own = self.numbers[[self.place[line], len(self.before) + line], cut.feature]
            own = own[~np.isnan(own)]
            values, kept = np.append(values, own), np.append(kept, conditions.kept_by(code, own))
        return words.of_number(feature, cut.at, values, kept, lacking, labels)

    def known(self, code: int) -> Known:
        """Return the fitted values of a condition's feature, and which of them keep it."""
        values = self.fitted.seen_values[self.conditions.cuts[code].feature]
        return values, self.conditions.kept_by(code, values)

    def threshold(self, code: int) -> float:
        """Return the threshold of a condition in few digits that tell fitted values apart."""
        at, (values, kept) = self.conditions.cuts[code].at, self.known(code)
        is_plain = kept == (values <= at)
        return words.number_of(at, values[is_plain], kept[is_plain], False)[0]

    def rule(self, unit: int, line: int, labels: Labels) -> str:
        """Return a rule in words that are true of a counterfactual and its row."""
        parts = [self.texts(code, labels, line)[not is_left] for code, is_left in self.conditions.rules[unit]]
        return " and ".join(dict.fromkeys(parts)) or "always"

    # --- tables -------------------------------------------------------------------------------------------------------

    def effects(self) -> Matrix:
        """Return what each crossing adds for the new label: to its share, or to its lead over the old one."""
        gain, line = self.crossings.gain, self.crossings.line
        old, new = (codes[line] for codes in self.reached)
        each = np.arange(len(line))
        is_share = self.conditions.structure.link == "share"
        return gain[each, new] if is_share else gain[each, new] - gain[each, old]

    def table(self, labels: Labels) -> pd.DataFrame:
        """Return one line per counterfactual (`line`) and condition, in the columns of `rules()` but for rank."""
        crossings, names = self.crossings, self.fitted.space.schema.names
        code, other = crossings.code.tolist(), (~crossings.is_left).tolist()
        known = {one: self.known(one) for one in set(code)}
        is_rules, of_lines = bool(self.conditions.rules), crossings.line.tolist()
        texts = [self.texts(one, labels, line, known[one]) for one, line in zip(code, of_lines, strict=True)]
        units = list(zip(crossings.unit.tolist(), of_lines, strict=True))
        rules = {pair: self.rule(*pair, labels) for pair in set(units)} if is_rules else {}
        feature = np.array([self.conditions.cuts[one].feature for one in code], dtype=np.intp)
        lines = pd.DataFrame(
            {
                "line": crossings.line,
                "rule": pd.array(crossings.unit + 1, dtype="Int64"),
                "says": [rules.get(pair, "") for pair in units],
                "at": feature,
                "condition": [both[side] for both, side in zip(texts, other, strict=True)],
                "holds": np.where(crossings.holds, np.where(crossings.held, "still", "now"), "no longer"),
                "fires": np.array(["", "now", "no longer"], dtype=object)[crossings.fires],
                "used_by": 1,
                "effect": self.effects(),
            }
        )
        lines = lines if is_rules or len(self.conditions.structure.trees) == 1 else _added(lines)
        line, at = lines["line"].to_numpy(), lines["at"].to_numpy()
        lines["feature"] = [names[one] for one in at]
        lines["before"], lines["after"] = _cells(self.before, self.place[line], at), _cells(self.after, line, at)
        return lines[["line", *words.COLUMNS[1:]]]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The lines of `rules()`, the caller's index before them."""
        lines, rank = self.table(Labels()), ranks(self.place)
        lines.insert(0, "rank", rank[lines["line"]])
        return lines.set_index(self.before.index[self.place[lines.pop("line")]])

    def sentences(self, labels: Labels) -> list[str]:
        """Return a sentence per counterfactual, in the words of people."""
        structure, is_rules = self.conditions.structure, bool(self.conditions.rules)
        form = (structure.words, len(structure.trees), is_rules)
        return [words.sentence(lines, *form) for lines in self._by_line(self.table(labels))]

    def dicts(self) -> list[list[dict[str, Any]]]:
        """Return the lines of each counterfactual as plain values, ready for JSON."""
        return [
            [{name: plain(value) for name, value in one.items()} for one in lines]
            for lines in self._by_line(self.table(Labels()))
        ]

    def _by_line(self, table: pd.DataFrame) -> list[list[dict[str, Any]]]:
        line, records = table.pop("line").to_numpy(), table.to_dict("records")
        return [[records[at] for at in np.flatnonzero(line == one)] for one in range(len(self.place))]


def _place_of(label: Any, classes: list[Any]) -> int:
    """Return the place of a label in the model."""
    if plain(label) not in classes:
        says = listed(classes)
        raise ParameterError(f"these answers are of another model: this one says {says}, not {plain(label)!r}.")
    return classes.index(plain(label))


def _added(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of many trees with each condition once, the largest effects first."""
    groups = lines.groupby(["line", "at", "condition"], sort=False, observed=True)
    first = groups.first()
    first["used_by"] = groups["rule"].nunique()
    first["effect"] = np.bincount(groups.ngroup(), weights=lines["effect"])  # one after the other, as in any batch
    first["rule"] = first["rule"].where(first["used_by"] == 1)
    first = first.reset_index()
    size = -first["effect"].abs().round(9)
    return first.iloc[np.lexsort((np.arange(len(first)), size, first["line"]))].reset_index(drop=True)


def _cells(rows: pd.DataFrame, lines: Rows, columns: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Return cells of rows, each with the type of its own column."""
    cells = [rows.iloc[line, at] for line, at in zip(lines, columns, strict=True)]
    return np.array([*cells, None], dtype=object)[:-1]
