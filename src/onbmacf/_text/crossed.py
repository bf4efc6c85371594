"""Conditions of a model as people read them, and what a change crosses as a sentence.

a cut, the values that are known  ->  condition  ->  'ldl <= 4.35 or missing', 'town is Ayr'
the lines of `rules()`            ->  sentence   ->  "Rule 3, ldl > 4.2, no longer fires."
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._text.labels import Labels
from onbmacf._text.records import few
from onbmacf._text.wording import joined

DIGITS = range(6, 18)  # of a threshold: the first that tell all known values apart as the model does
MOST, MOST_RULES = 3, 6  # conditions of an ensemble, and rules, in a sentence
COLUMNS = ("rank", "rule", "says", "feature", "condition", "before", "after", "holds", "fires", "used_by", "effect")


# --- conditions -------------------------------------------------------------------------------------------------------


def number_of(at: float, values: Matrix, kept: Mask, is_whole: bool) -> tuple[float, str]:
    """Return a threshold in few digits, and the sign with which it tells these values apart: "<=" or "<".

    >>> number_of(4.34999990463, np.array([4.3, 4.4]), np.array([True, False]), False)
    (4.35, '<=')
    >>> number_of(2.9999999999999996, np.array([2.0, 3.0]), np.array([True, False]), True)
    (3.0, '<')
    """
    numbers = [float(f"{at:.{digits}g}") for digits in DIGITS]
    if is_whole:  # 40 for 40.5, and 32300 for the number just before it
        numbers = [*(number for number in numbers[:1] if number.is_integer()), float(np.floor(at)), *numbers]
    for number in numbers:
        for sign, is_below in (("<=", values <= number), ("<", values < number)):
            if (is_below == kept).all():
                return number, sign
    return at, "<="


def of_number(
    feature: Any, at: float, values: Matrix, kept: Mask, lacking: bool | None, labels: Labels
) -> tuple[str, str]:
    """Return both sides of a condition on numbers as text: where it is kept, and where not.

    `values` are those that are known, of which the model keeps some; `lacking` says whether a missing value is kept,
    None where there is none.
    """
    name, is_whole = feature.name, feature.kind == "integer"
    called = labels.name(name)
    if np.isinf(at):
        missing, known = f"{called} is missing", f"{called} is known"
        return (missing, known) if lacking else (known, missing)
    is_other = kept != (values <= at)  # a 0 that counts as missing in a sparse matrix
    number, sign = number_of(at, values[~is_other], kept[~is_other], is_whole)
    others = np.flatnonzero(is_other)
    strays = dict.fromkeys((labels.value(name, float(values[one])), bool(kept[one])) for one in others)
    said = []
    for is_kept, mark in ((True, sign), (False, {"<=": ">", "<": ">="}[sign])):
        joins = [value for value, one in strays if one == is_kept] + ["missing"] * (lacking is is_kept)
        without = "".join(f" but not {value}" for value, one in strays if one != is_kept)
        said.append(" or ".join([f"{called} {mark} {labels.value(name, number)}{without}", *joins]))
    return said[0], said[1]


def of_levels(name: Any, levels: Sequence[Any], kept: Mask, lacking: bool | None, labels: Labels) -> tuple[str, str]:
    """Return both sides of a condition on levels as text, in the levels of the smaller side.

    >>> of_levels("town", "ABCD", np.array([True, False, True, False]), False, Labels())
    ('town is A or C', 'town is neither A nor C')
    >>> of_levels("town", "ABCD", np.array([True, True, True, False]), None, Labels())
    ('town is not D', 'town is D')
    """
    sides = []
    for is_kept in (True, False):
        side = [labels.value(name, level) for level, one in zip(levels, kept, strict=True) if one == is_kept]
        sides.append(side + ["missing"] * (lacking is is_kept))
    called, is_first = labels.name(name), len(sides[0]) <= len(sides[1])
    inside = sides[0] if is_first else sides[1]
    if len(sides[0]) == len(sides[1]) == 1:
        return f"{called} is {sides[0][0]}", f"{called} is {sides[1][0]}"
    if len(inside) <= 2:
        words = f"{called} is {joined(inside, 'or')}", f"{called} is {_neither(inside)}"
    else:
        words = f"{called} is one of {few(inside)}", f"{called} is none of {few(inside)}"
    return words if is_first else words[::-1]


def _neither(levels: list[str]) -> str:
    return f"not {levels[0]}" if len(levels) == 1 else f"neither {' nor '.join(levels)}"


# --- sentences --------------------------------------------------------------------------------------------------------


def sentence(lines: Sequence[dict[str, Any]], words: str, n_units: int, is_rules: bool) -> str:
    """Return what one counterfactual crosses as a sentence; `lines` are those of `rules()` as dicts."""
    if not lines:
        return "It crosses no condition of the model."
    if is_rules:
        return " ".join(_of_rules(lines, words))
    if n_units == 1:
        conditions = [one["condition"] for one in lines]
        return f"In the model's {words}, {joined(conditions)} now hold{'s' * (len(lines) == 1)}."
    told = [f"{one['condition']} (in {one['used_by']:,})" for one in lines[:MOST]]
    more = [f"{len(lines) - MOST:,} other condition{'s' * (len(lines) > MOST + 1)}"] if len(lines) > MOST else []
    return f"Of the conditions in the model's {n_units:,} trees, now hold: {joined(told + more)}."


def _of_rules(lines: Sequence[dict[str, Any]], words: str) -> list[str]:
    """Return a sentence for each rule that fires now or no longer; of many, the first."""
    rules = list(dict.fromkeys(one["rule"] for one in lines))
    said = [_of_rule([one for one in lines if one["rule"] == rule]) for rule in rules[:MOST_RULES]]
    if len(rules) > MOST_RULES:
        return [*said, f"So it is with {len(rules) - MOST_RULES:,} more of its rules."]
    if any(one["fires"] == "now" for one in lines):
        return said
    instead = "fires instead" if words == "rule list" else "begins to fire"
    return [*said, f"No other rule of the {words} {instead}."]


def _of_rule(lines: Sequence[dict[str, Any]]) -> str:
    """Return a sentence for one rule, and why it fires or not where it has more conditions than those crossed."""
    first, is_now = lines[0], lines[0]["fires"] == "now"
    crossed = [one["condition"] for one in lines if one["holds"] != "still"]
    hold, why = "holds" if len(crossed) == 1 else "hold", ""
    if crossed and first["says"] != crossed[0]:
        why = f", because {joined(crossed)} {f'now {hold}' if is_now else f'no longer {hold}'}"
    elif not crossed:
        why = ", as no earlier one does" if is_now else ", as an earlier one does"
    return f"Rule {first['rule']}, {first['says']}, {'now' if is_now else 'no longer'} fires{why}."
