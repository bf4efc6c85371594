"""Results as sentences and as an escaped table for notebooks, and ranges as they read.

Every value of a table is data, never markup.
"""

import html
import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Protocol

from onbmacf._base.checks import is_absent
from onbmacf._base.enums import Status

FEW_VALUES = 4  # of a block, beyond which a sentence names the donor alone
MIDNIGHT = re.compile(r" 00:00:00([-+]\d\d:\d\d)?$")
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control and direction characters, lone surrogates, Unicode line breaks
_KEEPS = " No counterfactual that keeps {} was found, so {} released."
GIVEN_UP = {  # by what was released
    "immutability": _KEEPS.format("the immutable features", "they were"),
    "rules": _KEEPS.format("every rule", "at least one was"),
    "immutability and rules": _KEEPS.format("the immutable features and every rule", "some of them were"),
}


# --- ranges -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """The values of one changed feature with which the model keeps the counterfactual's label, as far as asked.

    Attributes
    ----------
    feature : hashable
        The feature's name.
    low : object
        The lower end, in the caller's dtype: a readable value that was asked itself. None for a feature with levels.
    high : object
        The upper end.
    levels : tuple or None
        The levels that hold, for a feature with levels.
    n_asked : int
        Points inside that the model was asked about; all hold.
    reaches_low : bool
        Whether the range goes down to the end of the fitted values.
    reaches_high : bool
        Whether it goes up to their other end.

    Examples
    --------
    >>> str(Range("ldl", 0.98, 3.2, None, 210, True, False)), str(Range("city", None, None, ("A", "B"), 3))
    ('at most 3.2', 'one of A, B')
    >>> Range("ldl", 0.98, 3.2, None, 210, True, False)
    <Range: ldl at most 3.2; of 210 points asked, all hold>

    """

    feature: Hashable
    low: Any
    high: Any
    levels: tuple[Any, ...] | None
    n_asked: int
    reaches_low: bool = False
    reaches_high: bool = False

    def __str__(self) -> str:
        """Return the range in words, without the feature's name."""
        if self.levels is not None:
            texts = [shown(level) for level in self.levels]
            return f"exactly {texts[0]}" if len(texts) == 1 else f"one of {', '.join(texts)}"
        if self.low == self.high:
            return f"exactly {shown(self.low)}"
        if self.reaches_low and not self.reaches_high:
            return f"{'no later than' if is_moment(self.high) else 'at most'} {shown(self.high)}"
        if self.reaches_high and not self.reaches_low:
            return f"{'no earlier than' if is_moment(self.low) else 'at least'} {shown(self.low)}"
        return f"between {shown(self.low)} and {shown(self.high)}"

    def __repr__(self) -> str:
        return f"<Range: {self.feature} {self}; of {self.n_asked} points asked, all hold>"


Ranges = Mapping[Hashable, Range]


# --- sentences --------------------------------------------------------------------------------------------------------


class _Changed(Protocol):
    @property
    def changed(self) -> tuple[Any, ...]: ...
    @property
    def factual(self) -> Any: ...
    @property
    def values(self) -> Any: ...


def shown(value: Any) -> str:
    """Return a value of a row as text for people: every digit that it takes to write it exactly, and no more.

    >>> shown(7.5), shown(12.0), shown(1234567.25), shown("a"), shown(float("nan"))
    ('7.5', '12', '1234567.25', 'a', 'unknown')
    >>> import pandas as pd
    >>> shown(pd.Timestamp("2024-05-31")), shown(pd.Timedelta(90, "min"))
    ('2024-05-31', '01:30:00')
    """
    if is_absent(value):
        return "unknown"
    if hasattr(value, "isoformat"):
        return MIDNIGHT.sub("", str(value)).removeprefix("0 days ")  # of a duration
    if not isinstance(value, Real) or isinstance(value, Integral | bool):
        return str(value)
    text = str(value).removesuffix(".0")
    return "0" if text == "-0" else text


def is_moment(value: Any) -> bool:
    """Say whether a value is a point in time: a date, a time or a period, but no duration."""
    return hasattr(value, "strftime")


def rounded(value: Any) -> str:
    """Return a figure, a distance or a mean, as text for people: 4 significant digits."""
    if isinstance(value, Real) and not isinstance(value, Integral | bool):
        return f"{float(value):.4g}" if abs(float(value)) < 1e4 else f"{float(value):,.0f}"
    return str(value)


def whole_percent(share: float) -> str:
    """Return a probability in whole per cent, without the sign; 0 and 100 only where it is exactly that.

    >>> whole_percent(0.29), whole_percent(0.675), whole_percent(0.9996), whole_percent(0.0004), whole_percent(1.0)
    ('29', '68', '>99', '<1', '100')
    """
    whole = round(100 * share)
    return ">99" if whole == 100 and share < 1 else "<1" if whole == 0 and share > 0 else str(whole)


def visible(value: Any) -> str:
    r"""Return a value as text with nothing hidden: control and direction characters are written out.

    >>> visible("safe\u202etxt"), visible("two\nlines")
    ('safe\\u202etxt', 'two\\nlines')
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        mark.encode("unicode_escape", "backslashreplace").decode("ascii")
        if unicodedata.category(mark) in _HIDDEN
        else mark
        for mark in text
    )


def quoted(label: Any) -> str:
    """Return a label of the model as text: strings in quotes, numbers and bools without."""
    return f"'{label}'" if isinstance(label, str) else str(label) if label is None else shown(label)


def what_if(found: _Changed, released: tuple[Any, ...] = ()) -> str:
    """Return the changes as text: 'tobacco were 1.2 instead of 7.5 and age were 31 instead of 54'.

    A value that was missing reads 'income were known to be 12'.
    """
    parts = [
        f"{marked(name, released)} were known to be {after}"
        if is_absent(found.factual[name])
        else f"{marked(name, released)} were {after} instead of {before}"
        for name, before, after in _values(found)
    ]
    return joined(parts) + _following(found)


def what_if_blocks(found: Any, changed: Any) -> str:
    """Return what of a counterfactual's blocks is changed, in it or in its semifactual, which takes some of them.

    'address (street Elm instead of Oak) were as in fitted row 17 and income were 12 instead of 7'; values are told
    where they are few and no pixels.
    """
    of_donor, alone, whole = [], [], {**found.of_blocks.groups}
    for block in found.of_blocks.of_columns(changed.changed):
        names = tuple(name for name in changed.changed if name in whole[block])
        told = [
            f"{marked(name, found.released)} {after} instead of {before}"
            for name, before, after in _values(changed)
            if name in names
        ]
        if whole[block] == (block,):
            alone.append(what_if(_Part(names, changed.factual, changed.values), found.released))
        else:
            is_told = found.of_blocks.shape is None and len(names) <= FEW_VALUES
            of_donor.append(f"{block} ({joined(told)})" if is_told else str(block))
    is_part = any(differs_from(found, name) for name in changed.changed)
    like = f"were {'part of the way to' if is_part else 'as in'} fitted row {found.donor}"
    return joined([*([f"{joined(of_donor)} {like}"] if of_donor else []), *alone])


def differs_from(found: Any, name: Hashable) -> bool:
    """Say whether a counterfactual has another value than its donor."""
    value, given = found.values[name], found.donor_values[name]
    return not (is_absent(value) and is_absent(given)) and shown(value) != shown(given)


@dataclass(frozen=True)
class _Part:
    """Some of the changes of an answer."""

    changed: tuple[Any, ...]
    factual: Any
    values: Any
    effects: tuple[Any, ...] = ()


def _following(found: Any) -> str:
    """Return what follows from the changes, in parentheses; empty where nothing does."""
    parts = [
        f"{name} would then be {after}" + ("" if is_absent(found.factual[name]) else f" instead of {before}")
        for name, before, after in _values(found, "effects")
    ]
    return f" ({joined(parts)})" if parts else ""


def sentence(label: Any, found: Any) -> str:
    """Return one counterfactual as a sentence, and its semifactual as another if it has one."""
    in_words = partial(what_if, released=found.released) if found.donor is None else partial(what_if_blocks, found)
    text = f"If {in_words(found)}, the model would {_said(label, found)}."
    text += GIVEN_UP.get(found.relaxation, "")
    if found.semifactual is not None:
        still = f"it would still say {quoted(label)}"
        still = still if found.predicted is None else f"the number would still be {label} the range"
        text += f" Even if {in_words(found.semifactual)}, {still}."
    if found.stability is not None:
        text += f" {round(found.stability * found.n_members)} of {found.n_members} retrained models agree."
    return text + range_sentences(found)


def _said(label: Any, found: Any) -> str:
    """Return what the model would say: a label, and how sure it is where that is known; a regressor says a number."""
    if found.predicted is not None:
        before, after = (rounded(number) for number in found.predicted)
        return f"predict {after} instead of {before}"
    sure = f" (probability {whole_percent(found.probability)} %)" if is_sure(found) else ""
    return f"say {quoted(found.label)} instead of {quoted(label)}{sure}"


def is_sure(found: Any) -> bool:
    """Say whether it is known how sure the model is of a counterfactual's label."""
    return found.probability is not None and not is_absent(found.probability)


def range_sentences(found: Any) -> str:
    """Return the ranges of a counterfactual as sentences that follow its own; empty where there are none.

    A range reads as its own text: 'at most 3.2'.
    """
    if found.ranges is None:
        return ""
    parts = [f"{marked(each.feature, found.released)} {each} ({_asked(each)})" for each in found.ranges.values()]
    if len(parts) == 1:
        return f" The label {quoted(found.label)} holds for {parts[0]}."
    text = f" With the other changes as they are, the label {quoted(found.label)} holds for {joined(parts)}."
    if found.box is None:
        return text
    together = [f"{marked(each.feature, found.released)} {each}" for each in found.box.values()]
    return f"{text} It holds for {joined(together)} together ({_asked(next(iter(found.box.values())))})."


def _asked(found: Any) -> str:
    return "the answer itself" if found.n_asked == 1 else f"of {found.n_asked:,} points asked, all hold"


def for_all_borders(message: str) -> str:
    """Return a message without what is said to callers in Python alone, for the command line and the service.

    >>> for_all_borders("Name it in --dates day; in Python, pd.to_datetime.")
    'Name it in --dates day.'
    """
    return re.sub(r"; in Python, .*\.$", ".", message, flags=re.M)


def as_sentence(text: str) -> str:
    """Return a text with a capital where it begins with an article; names, such as predict, keep their letters."""
    return f"T{text[1:]}" if text.startswith("the ") else text


def joined(parts: Sequence[str], last: str = "and") -> str:
    """Return words as a sentence lists them.

    >>> joined(["a"]), joined(["a", "b", "c"]), joined(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}" if len(parts) > 1 else "".join(parts)


# What every view of answers shows: the HTML of a notebook, the terminal's table, Markdown.
COLUMNS = ("row", "from", "to", "changes", "distance", "even if")


def lines(explanation: Any) -> list[list[str]]:
    """Return the cells of COLUMNS as text, one line per counterfactual; a row without one says why on one line."""
    explanation = explanation.in_words()
    name, label = name_of(explanation), quoted(explanation.label)
    if not explanation.counterfactuals:
        return [[name, label, "", why_none(explanation), "", ""]]
    cells = [[name, label, *_cells(found)] for found in explanation.counterfactuals]
    if explanation.certificate is not None:
        cells[0][COLUMNS.index("distance")] += explanation.certificate.mark()
    return cells


def why_none(explanation: Any) -> str:
    """Return the status of a row without a counterfactual, the reason, and what is proven beside it."""
    said = f"{explanation.status}: {explanation.reason}"
    return said if not (proven := proven_of(explanation)) else f"{said} {proven}"


def proven_of(explanation: Any) -> str:
    """Return what is proven as a sentence; empty where no proof was asked for or the reason says it already."""
    if explanation.certificate is None or explanation.status == Status.INFEASIBLE:
        return ""
    return str(explanation.certificate.sentence())


def may_not_last(least: float) -> str:
    """Return what is said of answers that are of less than the probability that was looked for."""
    return f"May not last: none was found with a probability of at least {least:g}."


def lasting_in(reason: str) -> str:
    """Return what a reason says of answers that may not last; nothing where it does not.

    >>> lasting_in(f"{may_not_last(0.6)} 1 of 2 counterfactuals was found.")
    'May not last: none was found with a probability of at least 0.6.'
    """
    return " ".join(re.findall(r"May not last: .*? of at least [\d.]*\d\.", reason)[:1])


def name_of(explanation: Any) -> str:
    """Return the index label of a row as text."""
    name = explanation.factual.name
    return "None" if name is None else shown(name)


def _cells(found: Any) -> list[str]:
    even_if = "" if found.semifactual is None else arrows(found.semifactual, found.released)
    sure = f" ({whole_percent(found.probability)} %)" if is_sure(found) else ""
    sure = sure if found.predicted is None else f" ({rounded(found.predicted[1])})"
    return [quoted(found.label) + sure, arrows(found, found.released), rounded(found.distance), even_if]


def arrows(found: _Changed, released: tuple[Any, ...] = ()) -> str:
    """Return the changes as text: 'tobacco: 7.5 \u2192 1.2 (at most 1.4); age: 54 \u2192 31', with ranges if asked."""
    parts = [(name, f"{marked(name, released)}: {before} \u2192 {after}") for name, before, after in _values(found)]
    told = [f"{text} ({works})" if (works := works_in(found, name)) else text for name, text in parts]
    told += [f"then {name}: {before} \u2192 {after}" for name, before, after in _values(found, "effects")]
    return "; ".join(told)


def works_in(found: Any, name: Any) -> str:
    """Return the range shown beside a change: that of the box, since people read those of all changes together.

    Without a box, which a limit may leave out, the range of this feature alone, and that it is. Empty without ranges.
    """
    box, ranges = getattr(found, "box", None) or {}, getattr(found, "ranges", None) or {}
    return str(box[name]) if name in box else f"{ranges[name]}, alone" if name in ranges else ""


def marked(name: Any, released: tuple[Any, ...]) -> str:
    """Return a changed feature's name, marked where it is immutable or its rule is broken."""
    return f"{name} (released)" if name in released else str(name)


def _values(found: _Changed, of: str = "changed") -> list[tuple[Any, str, str]]:
    """Return name, value before and value after of each change, or of each of the effects."""
    return [(name, shown(found.factual[name]), shown(found.values[name])) for name in getattr(found, of, ())]


LEFT = 'style="text-align:left;vertical-align:top"'  # text, where notebooks align to the right


def html_table(explanations: Sequence[Any], n_more: int = 0) -> str:
    """Return an HTML table of the answers, every cell escaped."""
    cells = [[f"<td {LEFT}>{escaped(cell)}</td>" for cell in line] for one in explanations for line in lines(one)]
    rows = [f"<tr>{''.join(line)}</tr>" for line in cells]
    head = "".join(f"<th {LEFT}>{name}</th>" for name in COLUMNS)
    more = f"<p>... and {n_more} more rows.</p>" if n_more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"


def escaped(text: str) -> str:
    """Return text for HTML, with nothing hidden."""
    return html.escape(visible(text))


def scrolling(content: str) -> str:
    """Return HTML in a box of limited height, so that a long table does not fill the page."""
    return f'<div style="max-height:28em;overflow:auto">{content}</div>'
