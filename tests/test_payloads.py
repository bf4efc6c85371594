"""Thirty strings as column names, categories and labels pass through every sink as text."""

import csv
import io
import json
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
pytest.importorskip("jinja2", reason="reports need the extra 'report'")

from onbmacf import ONBMACF, Schema, audit, plots
from onbmacf._text.frames import as_csv
from onbmacf._text.wording import visible
from onbmacf.report import About, audit_report
from payloads import PAYLOADS

URL = "http://127.0.0.1:9"
TEXTS = [payload.replace("{url}", URL) for payload in PAYLOADS]


def evil_table():
    """A table whose thirty column names are payloads, whose first ten columns hold payloads, and labels too."""
    random = np.random.default_rng(0)
    columns = {}
    for place, name in enumerate(TEXTS):
        levels = [TEXTS[(3 * place + step) % len(TEXTS)] for step in range(3)]
        columns[name] = random.choice(levels, 90) if place < 10 else random.normal(size=90).round(3)
    return pd.DataFrame(columns)


def evil_model(rows):
    score = rows[TEXTS[20]] + rows[TEXTS[27]] + (rows[TEXTS[0]] == TEXTS[0])
    return np.select([score > 0.8, score > -0.4], [TEXTS[0], TEXTS[28]], TEXTS[20])


@pytest.fixture(scope="module")
def explainer():
    table = evil_table()
    schema = Schema.infer(table, immutable=[TEXTS[0], TEXTS[20]])
    return ONBMACF(2).fit(table, evil_model, schema=schema)


@pytest.fixture(scope="module")
def answers(explainer):
    return explainer.explain(evil_table().set_index(pd.Index(TEXTS * 3, name=TEXTS[3])))


@pytest.fixture(scope="module")
def report(explainer, answers):
    about = About(TEXTS[0], TEXTS[1], TEXTS[2], {TEXTS[3]: TEXTS[4]}, TEXTS[14], TEXTS)
    return audit_report(
        explainer, answers, by=[TEXTS[0], TEXTS[28], TEXTS[20]], n_cases=9, about=about, others={TEXTS[5]: answers}
    )


def test_there_are_thirty():
    assert len(set(TEXTS)) == 30


class Page(HTMLParser):
    """Collects what a browser would see: elements, attributes and text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = set(), [], []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes

    def handle_data(self, text):
        self.text.append(text)


def test_html_shows_them_as_text_and_nothing_else(report):
    page = Page()
    page.feed(report.html())
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "form", "input", "b"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for name, value in page.attributes:
        if name in ("href", "src", "xlink:href"):
            assert value.startswith(("#", "data:,")), value
    text = "".join(page.text)
    for payload in TEXTS:
        assert visible(payload) in text
    assert not any(mark in text for mark in "\x1b\u202e\u200f\x07")
    assert "49" not in [part.strip() for part in page.text]


def test_markdown_shows_them_as_text(report):
    markdown_it = pytest.importorskip("markdown_it", reason="comes with the extra 'cli'")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    kinds, text = set(), []
    for token in parser.parse(report.markdown()):
        for inner in [token, *(token.children or [])]:
            kinds.add(inner.type)
            if inner.type in ("text", "text_special"):
                text.append(inner.content)
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_inline", "fence", "code_block"}
    joined = "".join(text)
    for payload in TEXTS:
        assert " ".join(visible(payload).split()) in joined


def test_the_terminal_gets_text(run_cli):
    out, err = run_cli("--format", "table")
    sentences, _ = run_cli("--format", "sentences")
    for said in (out, err, sentences):
        assert not [mark for mark in "\x1b\u202e\u200f\x07" if mark in said]
    for label in (TEXTS[0], TEXTS[20], TEXTS[28]):
        assert f"'{visible(label)}'" in out
    assert visible(TEXTS[28]) in sentences


@pytest.fixture
def run_cli(tmp_path, monkeypatch, capsys):
    pytest.importorskip("typer")
    from onbmacf import cli

    table = evil_table()
    table.to_csv(tmp_path / "evil.csv", index=False)
    (tmp_path / "evil_model_module.py").write_text(
        f"import sys; sys.path += {sys.path!r}\nfrom test_payloads import evil_model\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "4000")

    def run_cli(*words):
        line = ["onbmacf", "explain", "evil.csv", "--model", "evil_model_module:evil_model", "--rows", "all", *words]
        monkeypatch.setattr(sys, "argv", line)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert ended.value.code == 0, said.err
        return said.out, said.err

    return run_cli


def test_json_brings_every_string_back(run_cli):
    document = json.loads(run_cli("--format", "json")[0])["answers"]
    assert {entry["label"] for entry in document} == {TEXTS[0], TEXTS[20], TEXTS[28]}
    names = {
        change["feature"] for entry in document for found in entry["counterfactuals"] for change in found["changes"]
    }
    assert {TEXTS[20], TEXTS[27]} <= names <= set(TEXTS)
    assert list(document[0]["counterfactuals"][0]["values"]) == TEXTS


def no_formula(cell):
    return not cell.lstrip(" \u00a0\u200b\ufeff\x00").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_csv_quotes_formulas_and_keeps_the_rest(run_cli):
    lines = list(csv.reader(io.StringIO(run_cli("--format", "csv")[0])))
    for line in lines:
        for cell in line:
            assert no_formula(cell) or is_number(cell), cell
    header = [name.removeprefix("'") if name[1:2] in "=+-@" else name for name in lines[0]]
    assert header[-30:] == TEXTS
    frame = pd.DataFrame({"text": TEXTS, "n": range(30)})
    back = pd.read_csv(io.StringIO(as_csv(frame)))["text"]
    assert [text.removeprefix("'") if text[1:2] in "=+-@" else text for text in back] == TEXTS


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def drawn_texts(ax):
    """Draw, and return the texts of the SVG as an XML reader sees them."""
    import matplotlib

    sink = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(sink, format="svg")
    root = ElementTree.fromstring(sink.getvalue())
    tags = {element.tag.split("}")[-1] for element in root.iter()}
    assert not tags & {"script", "image", "a", "foreignObject", "iframe"}
    return ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("}text")]


def cut(text, longest=40):
    """Return the beginning and the end of a long text."""
    shown, tail = visible(text), (longest - 1) // 2
    return shown if len(shown) <= longest else f"{shown[: longest - 1 - tail]}…{shown[-tail:]}"


@pytest.mark.long
def test_pictures_draw_them_as_text(explainer, answers):
    short = {cut(text): text for text in TEXTS}
    counted = audit.changes_by_feature(answers, explainer.schema_)
    everything = counted.assign(count=range(1, 31), share=0.5, up=0.5, down=0.5)
    assert set(short) <= set(drawn_texts(plots.change_frequencies(everything, most=30)))
    matrix = pd.DataFrame(np.ones((30, 30)), index=TEXTS, columns=TEXTS)
    assert {cut(text, 24) for text in TEXTS} <= set(drawn_texts(plots.pair_heatmap(matrix, most=30)))
    burden = pd.DataFrame(
        {"measure": "distance", "group": TEXTS, "n_rows": 5, "estimate": 1.0, "low": 0.5, "high": 2.0}
    )
    assert {f"{cut(text, 28)} (n = 5)" for text in TEXTS} <= set(drawn_texts(plots.burden(burden)))
    scores = pd.DataFrame({"method": TEXTS, "a": 1.0, "b": 0.5, "c": 0.2})
    assert set(short) <= set(drawn_texts(plots.radar(scores, ["a", "b", "c"], title=TEXTS[24])))
    ax = plots.cover(explainer, TEXTS[20], TEXTS[27])
    assert {visible(TEXTS[20]), visible(TEXTS[27])} <= set(drawn_texts(ax))
    answer = next(answer for answer in answers if answer.counterfactuals)
    drawn = drawn_texts(plots.before_after(answer.counterfactuals[0]))
    assert {next(s for s, t in short.items() if t == name) for name in answer.counterfactuals[0].changed} <= set(drawn)


def test_the_notebook_view_is_text(answers):
    page = Page()
    page.feed(answers._repr_html_())
    assert page.tags <= {"div", "table", "thead", "tbody", "tr", "th", "td", "p"}
    text = "".join(page.text)
    assert not [mark for mark in "\x1b\u202e\u200f\x07" if mark in text]
    for payload in (TEXTS[0], TEXTS[20], TEXTS[28]):  # the labels
        assert visible(payload) in text


def test_no_sentence_is_evaluated_as_a_template(report):
    assert "{{ 7 * 7 }}" in report.content["findings"]
    assert "{{ 7 * 7 }}" in report.html()
