"""The table for people: a page of rows at a time, found by words and by what the model says; never the whole of it."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._text.wording import shown
from onbmacf._views.plans import Source

PER_PAGE = 20
LONGEST = 200  # characters of a search


class Line(NamedTuple):
    """One row of a page."""

    place: int
    name: str
    label: str
    cells: list[str]


class Page(NamedTuple):
    """Some rows of the table, and where they are in it."""

    lines: list[Line]
    number: int  # from 1
    n_pages: int
    n_found: int
    n_rows: int


class Browser:
    """Finds rows. What is searched is made once, when the first search comes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._texts: pd.Series[Any] | None = None

    def page(self, words: str = "", label: str = "", number: int = 1) -> Page:
        """Return a page of the rows that hold all words and have the label."""
        places = self._found(words[:LONGEST].lower().split(), label)
        n_pages = max(1, -(-len(places) // PER_PAGE))
        number = min(max(number, 1), n_pages)
        chosen = places[(number - 1) * PER_PAGE : number * PER_PAGE]
        return Page(self._lines(chosen), number, n_pages, len(places), len(self.source.table))

    def _found(self, words: list[str], label: str) -> NDArray[np.intp]:
        fits = np.ones(len(self.source.table), dtype=bool)
        if label and self.source.labels is not None:
            fits &= np.array([str(own) == label for own in self.source.classes])[self.source.explainer.labels_]
        for word in words:
            fits &= self._searched().str.contains(word, regex=False).to_numpy(dtype=bool)
        return np.flatnonzero(fits)

    def _searched(self) -> "pd.Series[Any]":
        """Return each row as one text in lower case: its name and its values, with a mark between them."""
        if self._texts is None:
            table = self.source.table
            texts = pd.Series(table.index.astype(str), dtype=object)
            for name in table.columns:
                texts = texts + "\n" + pd.Series([shown(value) for value in table[name].array], dtype=object)
            self._texts = texts.str.lower()
        return self._texts

    def _lines(self, places: NDArray[np.intp]) -> list[Line]:
        rows, labels = self.source.table.iloc[places], self.source.labels
        said = [""] * len(places) if labels is None else [str(label) for label in labels[places]]
        columns = [[shown(value) for value in rows[name].array] for name in rows.columns]
        cells = [list(line) for line in zip(*columns, strict=True)] if len(places) else []
        names = [shown(name) for name in rows.index]
        lines = zip(places.tolist(), names, said, cells, strict=True)
        return [Line(*line) for line in lines]
