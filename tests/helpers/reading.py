"""Answers read back from what is printed, with the help of the known columns, levels and labels.

a view's text  ->  READERS[view]  ->  Said, one per counterfactual, all values as text
Said           ->  Reader.row     ->  the row that the text describes, in the columns' own dtypes
"""

import csv
import io
import json
import re
from collections.abc import Callable, Hashable, Iterator
from html.parser import HTMLParser
from typing import Any, NamedTuple

from onbmacf._text.frames import no_formula
from onbmacf._text.records import plain
from onbmacf._text.wording import COLUMNS, quoted, shown, visible
from onbmacf.cli.outputs import written

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
MARK = r"(?P<released> \(released\))?"
WERE = (r"{name}{mark} were {after} instead of {before}", (", ", " and "))
ARROW = (r"{name}{mark}: {before} → {after}", ("; ",))
FROM_TO = (r"{name}{mark} from {before} to {after}", ("; ",))
SENTENCE = (
    r"If (?P<changes>.+?), the model would say (?P<to>{label}) instead of (?P<old>{label})"
    r"(?: \(probability [^()]* %\))?\."
    r"(?P<last_resort> No counterfactual that keeps the immutable features was found, so they were released\.)?"
    r"(?: No counterfactual that keeps (?:the immutable features and )?every rule was found, so [a-z ]+ released\.)?"
    r"(?: Even if (?P<kept>.+), it would still say (?P<still>{label})\.)?"
    r"(?: May not last: none was found with a probability of at least 0\.6\.)?"
)
WIDE = 100_000  # columns of a terminal that folds nothing

Values = dict[Hashable, Any]


class Said(NamedTuple):
    """One counterfactual as a text has it: values and labels, parsed. What a view does not say is None."""

    view: str
    place: int  # of the row in the batch
    rank: int
    old: Any  # the row's label, which the semifactual keeps
    label: Any
    before: Values | None
    after: Values
    kept: Values | None  # the semifactual's values
    kept_before: Values | None
    released: frozenset[Hashable] | None
    distance: str | None = None
    is_last_resort: bool | None = None  # whether it says that none keeps the immutable features


class Read(NamedTuple):
    """A list of changes, read."""

    before: Values
    after: Values
    released: frozenset[Hashable]


def as_is(text: Any) -> str:
    return str(text)


def on_one_line(text: Any) -> str:
    return " ".join(visible(text).split())


class Reader:
    """Knows the columns, levels and labels of an explainer, as a view shows them."""

    def __init__(self, explainer: Any, show: Callable[[Any], str] = as_is, text: Any = shown, label_text: Any = quoted):
        self.show, self.features = show, explainer.schema_.features
        self.names = {show(feature.name): feature.name for feature in self.features}
        self.levels = {
            feature.name: None if feature.is_numeric else {show(text(level)): level for level in feature.levels}
            for feature in self.features
        }
        self.labels = {show(label_text(label)): label for label in explainer.classes_}
        assert len(self.names) == len(self.features), "two columns are shown alike"
        assert len(self.labels) == len(explainer.classes_), "two labels are shown alike"
        self._patterns: dict[str, list[tuple[Hashable, re.Pattern]]] = {}
        self._sentence = re.compile(SENTENCE.replace("{label}", _any_of(self.labels)), flags=re.S)

    def changes(self, text: str, form: tuple[str, tuple[str, ...]]) -> Read:
        """Read a list of changes; the text must be nothing else."""
        pattern, joints = form
        found = self._split(text, self._change_patterns(pattern), joints)
        assert found is not None, f"cannot be read as changes: {text!r}"
        assert len({name for name, _ in found}) == len(found), f"a feature is named twice: {text!r}"
        before = {name: self.value(name, change["before"]) for name, change in found}
        after = {name: self.value(name, change["after"]) for name, change in found}
        return Read(before, after, frozenset(name for name, change in found if change["released"]))

    def _split(self, text, patterns, joints) -> list[tuple[Hashable, re.Match]] | None:
        for name, pattern in patterns:
            change = pattern.match(text)
            if change is None:
                continue
            rest = text[change.end() :]
            if not rest:
                return [(name, change)]
            for joint in joints:
                others = self._split(rest[len(joint) :], patterns, joints) if rest.startswith(joint) else None
                if others is not None:
                    return [(name, change), *others]
        return None

    def _change_patterns(self, form: str) -> list[tuple[Hashable, re.Pattern]]:
        if form not in self._patterns:
            names = sorted(self.names.items(), key=lambda pair: -len(pair[0]))
            self._patterns[form] = [(name, re.compile(self._filled(form, text, name))) for text, name in names]
        return self._patterns[form]

    def _filled(self, form: str, text: str, name: Hashable) -> str:
        value = NUMBER if self.levels[name] is None else _any_of(self.levels[name])
        parts = {
            "name": re.escape(text),
            "mark": MARK,
            "before": f"(?P<before>{value})",
            "after": f"(?P<after>{value})",
        }
        return re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], form)

    def value(self, name: Hashable, text: str) -> Any:
        """Return the value that a text stands for: a number, or the level shown so."""
        levels = self.levels[name]
        if levels is not None:
            return levels[text]
        assert re.fullmatch(NUMBER, text), f"{name!r} is a number, not {text!r}"
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)

    def values(self, texts: dict[str, Any]) -> Values:
        """Return values by column."""
        return {self.names[name]: self.value(self.names[name], str(text)) for name, text in texts.items()}

    def sentence(self, text: str, view: str, place: int, rank: int) -> Said:
        found = self._sentence.fullmatch(text)
        assert found is not None, f"no sentence about a counterfactual: {text!r}"
        read = self.changes(found["changes"], WERE)
        kept = None if found["kept"] is None else self.changes(found["kept"], WERE)
        assert found["still"] in (None, found["old"])
        said = said_of(view, place, rank, self.labels[found["old"]], self.labels[found["to"]], read, kept)
        return said._replace(is_last_resort=found["last_resort"] is not None)

    def line(self, cells: list[str], view: str, place: int, rank: int) -> Said:
        """Read a line of COLUMNS."""
        cell = dict(zip(COLUMNS, cells, strict=True))
        kept = self.changes(cell["even if"], ARROW) if cell["even if"] else None
        labels = self.labels[cell["from"]], self.labels[re.sub(r" \([^()]* %\)$", "", cell["to"])]
        said = said_of(view, place, rank, *labels, self.changes(cell["changes"], ARROW), kept)
        return said._replace(distance=cell["distance"])


def said_of(view: str, place: int, rank: int, old: Any, label: Any, read: Read, kept: Read | None) -> Said:
    """Return what a list of changes says, and another one after "even if"."""
    assert kept is None or kept.released <= read.released
    of_kept = (None, None) if kept is None else (kept.after, kept.before)
    return Said(view, place, rank, old, label, read.before, read.after, *of_kept, read.released)


def _any_of(texts: Any) -> str:
    return "(?:" + "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True)) + ")"


def _places(answers: Any) -> list[tuple[int, int | None]]:
    """Return the row and rank of each line of a view; a row without a counterfactual has one line, without a rank."""
    counts = [len(answer.counterfactuals) for answer in answers]
    return [(place, rank) for place, n in enumerate(counts) for rank in (range(n) if n else [None])]


def _lines(reader: Reader, view: str, answers: Any, lines: list[list[str]]) -> Iterator[Said]:
    for cells, (place, rank) in zip(lines, _places(answers), strict=True):
        assert cells[0] == reader.show(shown(answers.rows.index[place]))
        if rank is None:
            assert cells[3] == reader.show(f"{answers.statuses[place]}: {answers.reasons[place]}")
        else:
            yield reader.line(cells, view, place, rank)


def read_sentences(explainer: Any, answers: Any) -> Iterator[Said]:
    reader = Reader(explainer)
    for text, (place, rank) in zip(answers.sentences(), _places(answers), strict=True):
        if rank is None:
            assert text == f"{shown(answers.rows.index[place])}: {answers.reasons[place]}"
        else:
            yield reader.sentence(text, "sentences", place, rank)


def read_sentence_file(explainer: Any, answers: Any) -> Iterator[Said]:
    reader = Reader(explainer, visible)
    for text, (place, rank) in zip(written(answers, "sentences").splitlines(), _places(answers), strict=True):
        start = reader.show(f"Row {shown(answers.rows.index[place])}: ")
        assert text.startswith(start)
        if rank is None:
            assert text == start + reader.show(f"{answers.statuses[place]}: {answers.reasons[place]}")
        else:
            yield reader.sentence(text.removeprefix(start), "sentence file", place, rank)


def read_terminal(explainer: Any, answers: Any) -> Iterator[Said]:
    lines = [line for line in written(answers, "table", WIDE).splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line[1:-1].split("│")] for line in lines]
    return _lines(Reader(explainer, visible), "terminal", answers, cells)


def read_markdown(explainer: Any, answers: Any) -> Iterator[Said]:
    lines = written(answers, "markdown").splitlines()[2:]
    return _lines(Reader(explainer, on_one_line), "markdown", answers, [markdown_cells(line) for line in lines])


def read_notebook(explainer: Any, answers: Any) -> Iterator[Said]:
    reader = Reader(explainer, visible)
    pages = [table_cells(answer._repr_html_()) for answer in answers]
    yield from _lines(reader, "notebook", answers, [line for page in pages for line in page])
    first = answers[:20]
    yield from _lines(reader, "notebook, whole", first, table_cells(answers._repr_html_()))


def read_csv(explainer: Any, answers: Any) -> Iterator[Said]:
    reader = Reader(explainer, lambda text: str(no_formula(text)), str, str)
    heads, *lines = csv.reader(io.StringIO(written(answers, "csv")))
    width = len(reader.features)
    assert heads[-width:] == list(reader.names)
    for cells, (place, rank) in zip(lines, _places(answers), strict=True):
        head = dict(zip(heads[:-width], cells[:-width], strict=True))
        assert head["status"] == answers.statuses[place]
        if rank is None:
            assert head["reason"] == no_formula(answers.reasons[place])
            assert not any(cells[-width:])
            continue
        assert head["rank"] == str(rank + 1)
        values = reader.values(dict(zip(reader.names, cells[-width:], strict=True)))
        labels = reader.labels[head["from"]], reader.labels[head["to"]]
        released = _names_in(head["released"], reader)
        yield Said("csv", place, rank, *labels, None, values, None, None, released, head["distance"])


def _names_in(text: str, reader: Reader) -> frozenset[Hashable]:
    """Read names from a list; names may have commas."""
    if not text:
        return frozenset()
    for name in reader.names:
        rest = text.removeprefix(name)
        if rest != text and (not rest or rest.startswith(", ")):
            return frozenset([reader.names[name]]) | _names_in(rest.removeprefix(", "), reader)
    raise AssertionError(f"no names of columns: {text!r}")


def read_json(explainer: Any, answers: Any) -> Iterator[Said]:
    reader = Reader(explainer, text=lambda level: str(plain(level)), label_text=lambda label: str(plain(label)))
    document = json.loads(answers.to_json(), parse_float=str, parse_int=str)
    for place, record in enumerate(document["answers"]):
        assert len(record["counterfactuals"]) == len(answers[place].counterfactuals)
        for rank, found in enumerate(record["counterfactuals"]):
            yield from _of_record(reader, place, rank, record, found)


def _of_record(reader: Reader, place: int, rank: int, record: Any, found: Any) -> Iterator[Said]:
    """Yield what the values of a record say, and what its changes say."""
    factual, labels = reader.values(record["factual"]), [reader.labels[str(of["label"])] for of in (record, found)]
    kept, released = found["semifactual"], frozenset(reader.names[name] for name in found["released"])
    of_kept = (None, None) if kept is None else (reader.values(kept["values"]), factual)
    whole = (factual, reader.values(found["values"]), *of_kept, released, found["distance"])
    yield Said("json", place, rank, *labels, *whole)
    changes, kept_changes = (None if of is None else _changes(reader, of["changes"]) for of in (found, kept))
    yield said_of("json changes", place, rank, *labels, changes, kept_changes)._replace(released=None)


def _changes(reader: Reader, changes: list[dict[str, Any]]) -> Read:
    before, after = (reader.values({str(c["feature"]): c[key] for c in changes}) for key in ("before", "after"))
    return Read(before, after, frozenset())


READERS = {
    "sentences": read_sentences,
    "sentence file": read_sentence_file,
    "terminal": read_terminal,
    "markdown": read_markdown,
    "notebook": read_notebook,
    "csv": read_csv,
    "json": read_json,
}


def markdown_cells(line: str) -> list[str]:
    """Return the cells of a line of a Markdown table, unescaped."""
    cells = re.split(r"(?<!\\) \| ", line.removeprefix("| ").removesuffix(" |") + " ")
    return [re.sub(r"\\(.)", r"\1", cell).replace("&amp;", "&").strip() for cell in cells]


class _Elements(HTMLParser):
    """Collects the elements of a page in order, each with its own text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, list[str]]] = []
        self.open: list[list[str]] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.found.append((tag, []))
        if tag not in ("meta", "br", "hr", "img", "link"):
            self.open.append(self.found[-1][1])

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        self.found.append((tag, []))

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, text: str) -> None:
        if self.open:
            self.open[-1].append(text)


def elements(page: str) -> list[tuple[str, str]]:
    """Return the elements of a page in order: tag and own text."""
    parser = _Elements()
    parser.feed(page)
    return [(tag, "".join(texts)) for tag, texts in parser.found]


def table_cells(page: str) -> list[list[str]]:
    """Return the lines of a page's tables, without their headings."""
    lines: list[list[str]] = []
    for tag, text in elements(page):
        if tag == "tr":
            lines.append([])
        elif tag == "td":
            lines[-1].append(text)
    return [line for line in lines if line]
