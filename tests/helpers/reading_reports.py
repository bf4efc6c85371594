"""The single rows of a report and the plots of single counterfactuals, read back as `reading.py` does the other views.

report, plot  ->  read_report, read_markdown_report, read_plots  ->  Said, one per counterfactual
"""

import re
from collections.abc import Iterator
from typing import Any

from onbmacf import plots
from onbmacf._text.wording import quoted, shown, visible
from onbmacf.report import audit_report
from reading import FROM_TO, Reader, Said, elements, markdown_cells, on_one_line, said_of

HEADS = ["feature", "before", "after", "even if"]


def read_report(explainer: Any, answers: Any, n_cases: int = 5) -> Iterator[Said]:
    """Read the sentences, tables and pictures' descriptions of the cases of an HTML report."""
    reader = Reader(explainer, visible)
    page = audit_report(explainer, answers, n_cases=n_cases).html()
    for article in re.findall(r'<article class="case">(.*?)</article>', page, flags=re.S):
        found = elements(article)
        texts = {tag: [text for other, text in found if other == tag] for tag in ("h3", "p", "desc", "figcaption")}
        place = _place(reader, answers, texts["h3"][0])
        tables = [[line for line in table if line] for table in _tables(found)]
        yield from _case(reader, answers, place, texts["p"], tables, "report")
        for description in texts["desc"]:
            assert texts["figcaption"][0].endswith(f" before and after. {description}")
            read, answer = reader.changes(description.removesuffix("."), FROM_TO), answers[place]
            label = answer.counterfactuals[0].label
            yield said_of("picture's description", place, 0, answer.label, label, read, None)


def read_markdown_report(explainer: Any, answers: Any, n_cases: int = 5) -> Iterator[Said]:
    """Read the sentences and tables of the cases of a Markdown report."""
    reader = Reader(explainer, on_one_line)
    text = audit_report(explainer, answers, n_cases=n_cases).markdown()
    cases = text.split("\n## Individual cases\n")[1].split("\n## Limits\n")[0]
    for case in cases.split("\n### ")[1:]:
        title, *rest = [_unescaped(line) for line in case.splitlines() if line]
        sentences = [
            line for line in rest if not line.startswith(("|", "**Counterfactual ", "*One of ", "*The only row "))
        ]
        lines = [markdown_cells(line) for line in case.splitlines() if line.startswith("| ")]
        starts = [at for at, cells in enumerate(lines) if cells == HEADS]
        tables = [lines[at + 1 : end] for at, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
        tables = [[cells for cells in table if set(cells) != {"---"}] for table in tables]
        yield from _case(reader, answers, _place(reader, answers, title), sentences, tables, "Markdown report")


def read_plots(explainer: Any, answers: Any) -> Iterator[Said]:
    """Read the names and values of each counterfactual's plot; texts too long for a plot are left to other views."""
    reader = Reader(explainer, visible)
    for place, answer in enumerate(answers):
        for rank, found in enumerate(answer.counterfactuals):
            ax = plots.before_after(found)
            names = [label.get_text() for label in ax.get_yticklabels()]
            texts = [text.get_text() for text in ax.texts]
            assert ax.get_title() == reader.show(f"Changes that lead to {quoted(found.label)}")
            if not any("\u2026" in text for text in [*names, *texts]):
                pairs = zip(names, texts[::2], texts[1::2], strict=True)
                listed = "; ".join(f"{name} from {before} to {after}" for name, before, after in pairs)
                read = reader.changes(listed, FROM_TO)
                yield said_of("plot", place, rank, answer.label, found.label, read, None)


def _place(reader: Reader, answers: Any, title: str) -> int:
    titles = [reader.show(f"Row {shown(answer.factual.name)}: {quoted(answer.label)}") for answer in answers]
    assert titles.count(title) == 1
    return titles.index(title)


def _tables(found: list[tuple[str, str]]) -> list[list[list[str]]]:
    """Return the cells of each table, line by line."""
    tables: list[list[list[str]]] = []
    for tag, text in found:
        if tag == "table":
            tables.append([])
        elif tag == "tr":
            tables[-1].append([])
        elif tag == "td":
            tables[-1][-1].append(text)
    return tables


def _case(reader, answers, place: int, sentences: list[str], tables: list[list[list[str]]], view: str):
    answer = answers[place]
    if not answer.counterfactuals:
        assert sentences == [reader.show(f"{answer.status}: {answer.reason}")]
        return
    for rank, (text, cells, _) in enumerate(zip(sentences, tables, answer.counterfactuals, strict=True)):
        said = reader.sentence(text, f"{view}'s sentences", place, rank)
        yield said
        yield _from_table(reader, cells, said, f"{view}'s tables")


def _from_table(reader: Reader, lines: list[list[str]], said: Said, view: str) -> Said:
    """Read a case's table; its labels are those of the sentence above it."""
    cells_of = {cells[0].removesuffix(" (released)"): cells for cells in lines}
    before, after = (reader.values({name: cells[at] for name, cells in cells_of.items()}) for at in (1, 2))
    released = frozenset(reader.names[name] for name, cells in cells_of.items() if name != cells[0])
    even_if = {name: cells[3] for name, cells in cells_of.items()}
    if said.kept is None:
        assert set(even_if.values()) == {"\u2013"}
        return said._replace(view=view, before=before, after=after, released=released)
    kept = reader.values(even_if)
    return said._replace(view=view, before=before, after=after, kept=kept, kept_before=before, released=released)


def _unescaped(line: str) -> str:
    return re.sub(r"\\(.)", r"\1", line).replace("&amp;", "&")


READERS_OF_REPORTS = {"report": read_report, "Markdown report": read_markdown_report, "plots": read_plots}
