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

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.origin import Origin
from onbmacf._explain.fitted import Fitted
from onbmacf._prove.columns import NotKnownError
from onbmacf._prove.conditions import Conditions, Crossings
from onbmacf._text import crossed as words
from onbmacf._text.frames import ranks
from onbmacf._text.labels import Labels
from onbmacf._text.records import plain
from onbmacf.errors import ParameterError

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
            "answers that were saved or sent do not know their model: give the explainer, rules=explainer or "
            "rules(explainer)."
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
            np.array([classes.index(plain(label)) for label in some], dtype=np.intp)
            for some in (np.asarray(labels, dtype=object)[place], reached)
        ]
        numbers = np.concatenate([old, new])
        crossings = conditions.crossed(old[place], new)
        return cls(conditions, crossings, fitted, place, before, after, numbers, (codes[0], codes[1]))

    # --- texts --------------------------------------------------------------------------------------------------------

    def texts(self, code: int, labels: Labels) -> tuple[str, str]:
        """Return a condition, and its opposite, as texts that are true of all fitted values and all of these."""
        conditions, form = self.conditions, self.fitted.space.form
        cut = conditions.cuts[code]
        feature = form.schema.features[cut.feature]
        lacking = cut.lacking if form.may_lack[cut.feature] else None
        if not feature.is_numeric:
            return words.of_levels(feature.name, feature.levels or (), cut.levels, lacking, labels)
        values = self.values(cut.feature)
        return words.of_number(feature, cut.at, values, conditions.kept_by(code, values), lacking, labels)

    def threshold(self, code: int) -> float:
        """Return the threshold of a condition in few digits that tell the same values apart; NaN for levels."""
        cut = self.conditions.cuts[code]
        values = self.values(cut.feature)
        kept = self.conditions.kept_by(code, values)
        is_plain = kept == (values <= cut.at)
        return float(
            cut.at if np.isnan(cut.at) else words.number_of(cut.at, values[is_plain], kept[is_plain], False)[0]
        )

    def values(self, at: int) -> Matrix:
        """Return the values of a feature that are known: fitted ones, and those of these rows."""
        seen, own = self.fitted.seen_values[at], self.numbers[:, at]
        return np.union1d(seen, own[~np.isnan(own)])

    def rule(self, unit: int, labels: Labels) -> str:
        """Return a rule in words."""
        parts = dict.fromkeys(self.texts(code, labels)[not is_left] for code, is_left in self.conditions.rules[unit])
        return " and ".join(parts) or "always"

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
        said = {one: self.texts(one, labels) for one in set(code)}
        is_rules = bool(self.conditions.rules)
        rules = {unit: self.rule(unit, labels) for unit in np.unique(crossings.unit).tolist()} if is_rules else {}
        feature = np.array([self.conditions.cuts[one].feature for one in code], dtype=np.intp)
        lines = pd.DataFrame(
            {
                "line": crossings.line,
                "rule": pd.array(crossings.unit + 1, dtype="Int64"),
                "says": [rules.get(unit, "") for unit in crossings.unit.tolist()],
                "at": feature,
                "condition": [said[one][side] for one, side in zip(code, other, strict=True)],
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


def _added(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of many trees with each condition once, the largest effects first."""
    groups = lines.groupby(["line", "at", "condition"], sort=False, observed=True)
    first = groups.first()
    first["effect"], first["used_by"] = groups["effect"].sum(), groups["rule"].nunique()
    first["rule"] = first["rule"].where(first["used_by"] == 1)
    first = first.reset_index()
    size = -first["effect"].abs().round(9)
    return first.iloc[np.lexsort((np.arange(len(first)), size, first["line"]))].reset_index(drop=True)


def _cells(rows: pd.DataFrame, lines: Rows, columns: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Return cells of rows, each with the type of its own column."""
    cells = [rows.iloc[line, at] for line, at in zip(lines, columns, strict=True)]
    return np.array([*cells, None], dtype=object)[:-1]
