"""The notebooks of docs/ run, show a picture wherever they draw, and show what a fresh kernel gives."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
pytest.importorskip("PIL")

import nbformat

import notebooks
import pages

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
MACHINE = re.compile(r"/(home|root|tmp|work|Users|usr|opt)/|[A-Z]:\\\\|0x[0-9a-f]{6,}|site-packages|ipykernel_\d")

in_order = pytest.mark.xdist_group("notebooks")  # one process runs them


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def pair(request, tmp_path_factory):
    """A notebook as a fresh kernel leaves it, and as the file shows it."""
    ran = notebooks.run(request.param, tmp_path_factory.mktemp("kernel"))
    if pages.WRITES:
        nbformat.write(ran, request.param)
    return ran, nbformat.read(request.param, as_version=4)


@in_order
def test_every_cell_that_draws_has_an_image(pair):
    for notebook in pair:
        cells = notebooks.code_cells(notebook)
        drawing = [cell for cell in cells if notebooks.draws(cell.source)]
        assert len(drawing) >= 8
        for cell in drawing:
            assert len(notebooks.pictures(cell)) == 1, cell.source
            width, height = notebooks.size_of(notebooks.pictures(cell)[0])
            assert width > 300, cell.source
            assert height > 80, cell.source


@in_order
def test_a_fresh_kernel_says_and_draws_what_the_notebook_shows(pair):
    ran, shown = (notebooks.code_cells(notebook) for notebook in pair)
    for new, old in zip(ran, shown, strict=True):
        assert words(notebooks.said(new)) == words(notebooks.said(old)), new.source
        for drawn, kept in zip(notebooks.pictures(new), notebooks.pictures(old), strict=True):
            assert pages.difference(drawn, kept) < pages.ALIKE, new.source


def words(text):
    """Return a text without its numbers: another release of a library trains another model."""
    return re.sub(r"\s+", " ", pages.without_numbers(text))


@in_order
def test_nothing_is_warned_of_and_every_check_holds(pair):
    ran, _ = pair
    text = "\n".join(notebooks.said(cell) for cell in notebooks.code_cells(ran))
    assert not [
        output for cell in notebooks.code_cells(ran) for output in cell.outputs if output.get("name") == "stderr"
    ]
    assert "all as the model says: True" in text


@in_order
def test_the_file_holds_no_trace_of_a_machine(pair):
    _, shown = pair
    text = nbformat.writes(shown)
    without_pictures = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not MACHINE.findall(without_pictures)
    assert len(text) < 1_000_000


@pytest.mark.long
def test_a_plot_outside_pyplot_is_noticed(tmp_path):
    """What the plots once were: a bare figure, of which a notebook shows no image."""
    source = "from matplotlib.figure import Figure\nfrom onbmacf import plots\n"
    source += "plots.radar = lambda: Figure().add_subplot()\nplots.radar()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbformat.write(notebook, tmp_path / "bare.ipynb")
    (cell,) = notebooks.code_cells(notebooks.run(tmp_path / "bare.ipynb", tmp_path))
    assert notebooks.draws(cell.source)
    assert notebooks.pictures(cell) == []
