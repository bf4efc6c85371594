"""Rules between features as people state them: sentences read into conditions, sums and linked changes, and back.

    "if education rises, age must rise by at least 2"   "if housing is own, rent is 0"      IfThen
    "stocks + bonds + cash = 100"                        Sum
    "experience moves with age", "b moves with a times 0.5"     Linked

A name that holds words of these sentences is put in quotes. `_table/relations.py` applies them to points.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onbmacf._base.checks import did_you_mean, listed, shortened
from onbmacf.errors import ParameterError

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
NAME = r"\"[^\"]+\"|'[^']+'|`[^`]+`|[^\"'`].*?"
CONDITION = re.compile(
    rf"(?P<name>{NAME}) (?:(?P<move>rises|falls)(?: by at least (?P<by>{NUMBER}))?|(?P<plain>changes|stays)"
    rf"|is (?P<end>at least|at most) (?P<limit>{NUMBER})|(?P<word>is not|is) (?P<value>.+))"
)
SUM = re.compile(rf"(?P<names>.+ \+ .+) (?P<sign>=|<=|>=) (?P<total>{NUMBER})")
LINK = re.compile(rf"(?P<name>{NAME}) moves with (?P<source>{NAME})(?: times (?P<times>{NUMBER}))?")
PLAIN = {
    "must rise": "rises",
    "must fall": "falls",
    "must change": "changes",
    "must stay": "stays",
    "must not be": "is not",
    "must be": "is",
}
FORMS = (
    "'if a rises, b rises by at least 2', 'if a is x, b is 0', 'a + b + c = 100', 'a moves with b times 2'; after a "
    "name: rises, falls, changes, stays, is, is not, is at least, is at most"
)
Said = Callable[[Any], str]  # of a name


@dataclass(frozen=True)
class Condition:
    """What may hold of one feature: how it moves, or what it is."""

    feature: Hashable
    how: str  # rises, falls, changes, stays, is, is not, at least, at most
    amount: Any = None  # of a move: by at least; else the value, a text until it is bound

    def words(self, name: Said = str) -> str:
        """Return the condition as it is read."""
        if self.how in ("rises", "falls"):
            return f"{name(self.feature)} {self.how}" + (f" by at least {self.amount:g}" if self.amount else "")
        if self.how in ("at least", "at most"):
            return f"{name(self.feature)} is {self.how} {self.amount:g}"
        return f"{name(self.feature)} {self.how}" + ("" if self.amount is None else f" {self.amount}")


@dataclass(frozen=True)
class IfThen:
    """Where one condition holds, another must hold."""

    when: Condition
    then: Condition

    @property
    def features(self) -> tuple[Hashable, ...]:
        """The features that it names."""
        return self.when.feature, self.then.feature

    def named(self, names: Sequence[Hashable]) -> "IfThen":
        """Return the rule with other names."""
        return IfThen(replace(self.when, feature=names[0]), replace(self.then, feature=names[1]))

    def words(self, name: Said = str) -> str:
        """Return the rule as it is read."""
        return f"if {self.when.words(name)}, {self.then.words(name)}"


@dataclass(frozen=True)
class Sum:
    """Features that add up to a total, or to at most or at least one."""

    features: tuple[Hashable, ...]
    sign: str
    total: float

    def named(self, names: Sequence[Hashable]) -> "Sum":
        """Return the rule with other names."""
        return replace(self, features=tuple(names))

    def words(self, name: Said = str) -> str:
        """Return the rule as it is read."""
        return f"{' + '.join(map(name, self.features))} {self.sign} {self.total:.15g}"


@dataclass(frozen=True)
class Linked:
    """A feature that changes by so many times what another one changes by."""

    feature: Hashable
    source: Hashable
    times: float = 1.0

    @property
    def features(self) -> tuple[Hashable, ...]:
        """The features that it names."""
        return self.feature, self.source

    def named(self, names: Sequence[Hashable]) -> "Linked":
        """Return the rule with other names."""
        return replace(self, feature=names[0], source=names[1])

    def words(self, name: Said = str) -> str:
        """Return the rule as it is read."""
        times = "" if self.times == 1 else f" times {self.times:.15g}"
        return f"{name(self.feature)} moves with {name(self.source)}{times}"


Relation = IfThen | Sum | Linked


def read(where: str, text: Any) -> Relation:
    """Read one rule.

    >>> read("rule", "if education rises, age must rise by at least 2").words()
    'if education rises, age rises by at least 2'
    >>> read("rule", "stocks + bonds = 100"), read("rule", "b moves with 'the age' times 2")
    (Sum(features=('stocks', 'bonds'), sign='=', total=100.0), Linked(feature='b', source='the age', times=2.0))
    """
    if isinstance(text, IfThen | Sum | Linked):
        return text
    plain = " ".join(text.split()) if isinstance(text, str) else ""
    found = _if_then(plain) or _sum(plain) or _linked(plain)
    if found is None:
        raise ParameterError(f"{where}: {shortened(text)} is no rule between features. Such are: {FORMS}.")
    return found


def quoted_name(name: Any) -> str:
    """Return a name as it is written in a rule: in quotes where it could be read otherwise."""
    text = str(name)
    is_plain = re.fullmatch(r"[\w.-]+(?: [\w.-]+)*", text) and not re.search(
        r"\b(if|then|is|rises|falls|changes|stays|must|moves|times)\b", text
    )
    return text if is_plain else f'"{text}"' if '"' not in text else f"`{text}`"


def resolved(rule: Relation, names: Iterable[Hashable]) -> Relation:
    """Return a rule with the columns that its names mean; a name that is none is an error."""
    known = {str(name): name for name in names}
    for feature in rule.features:
        if str(feature) not in known:
            raise ParameterError(
                f"rule {rule.words()!r}: there is no feature {shortened(feature)}.{did_you_mean(feature, known)} "
                f"Features: {listed(known)}."
            )
    repeated = [feature for feature in rule.features if rule.features.count(feature) > 1]
    if repeated:
        raise ParameterError(f"rule {rule.words()!r}: {shortened(repeated[0])} is there twice.")
    return rule.named([known[str(feature)] for feature in rule.features])


def _if_then(text: str) -> IfThen | None:
    """Read 'if A, B': the first comma on both of whose sides there is a condition."""
    if not text.startswith("if "):
        return None
    for comma in re.finditer(", (?:then )?", text):
        when, then = _condition(text[3 : comma.start()]), _condition(text[comma.end() :])
        if when is not None and then is not None:
            return IfThen(when, then)
    return None


def _condition(text: str) -> Condition | None:
    for old, new in PLAIN.items():
        text = text.replace(f" {old}", f" {new}")
    found = CONDITION.fullmatch(text)
    if found is None:
        return None
    name = _unquoted(found["name"])
    if found["move"]:
        return Condition(name, found["move"], float(found["by"]) if found["by"] else None)
    if found["plain"]:
        return Condition(name, found["plain"])
    if found["end"]:
        return Condition(name, found["end"], float(found["limit"]))
    return Condition(name, found["word"], _unquoted(found["value"]))


def _sum(text: str) -> Sum | None:
    found = SUM.fullmatch(text)
    if found is None:
        return None
    return Sum(tuple(map(_unquoted, found["names"].split(" + "))), found["sign"], float(found["total"]))


def _linked(text: str) -> Linked | None:
    found = LINK.fullmatch(text)
    if found is None:
        return None
    times = float(found["times"] or 1)
    return Linked(_unquoted(found["name"]), _unquoted(found["source"]), times) if times else None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text
