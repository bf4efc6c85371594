"""Pages to pick or type a row: the table page by page, a form made from the schema, or JSON.

words, label  ->  find_rows  ->  TablePage (20 rows, never the whole table)
form or JSON  ->  Case  ->  its page
"""

import json
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf._base.checks import whole_number
from onbmacf._text.records import cell
from onbmacf._text.wording import shown
from onbmacf._views.fields import read_row, written_row
from onbmacf._views.plans import frame_of
from onbmacf.errors import OnbmacfError
from onbmacf.web.api import strict_json
from onbmacf.web.cases import Case
from onbmacf.web.responses import HTTPProblem, as_problem, redirect
from onbmacf.web.security import new_id
from onbmacf.web.service import Service, read_form, service_of, session_of, show

PER_PAGE = 20
LONGEST_SEARCH = 200  # characters
router = APIRouter(include_in_schema=False)


# --- the table --------------------------------------------------------------------------------------------------------


class TableLine(NamedTuple):
    """One row as a page shows it."""

    place: int
    name: str
    label: str
    cells: list[str]


class TablePage(NamedTuple):
    """Some rows of the table, and where they are among those found."""

    lines: list[TableLine]
    number: int  # from 1
    n_pages: int
    n_found: int
    n_rows: int


def find_rows(service: Service, search: str, label: str, number: int) -> TablePage:
    """Return a page of the rows that hold all words of a search and have the label."""
    source = service.source
    matches = np.ones(len(source.table), dtype=bool)
    if label and source.labels is not None:
        matches &= np.array([str(known) == label for known in source.classes])[source.explainer.labels_]
    for word in search[:LONGEST_SEARCH].lower().split():
        matches &= service.row_texts.str.contains(word, regex=False).to_numpy(dtype=bool)
    found = np.flatnonzero(matches)
    n_pages = max(1, -(-len(found) // PER_PAGE))
    number = min(max(number, 1), n_pages)
    places = found[(number - 1) * PER_PAGE : number * PER_PAGE]
    rows = source.table.iloc[places]
    names = [shown(name) for name in rows.index]
    labels = [""] * len(places) if source.labels is None else [str(known) for known in source.labels[places]]
    words = source.explainer.schema_.labels
    columns = [[words.value(name, value) for value in rows[name].array] for name in rows.columns]
    cells = [list(line) for line in zip(*columns, strict=True)] if len(places) else []
    lines = [TableLine(*line) for line in zip(places.tolist(), names, labels, cells, strict=True)]
    return TablePage(lines, number, n_pages, len(found), len(source.table))


def first_page(request: Request) -> Response:
    """Show a page of the table, and how to find rows in it."""
    service, query = service_of(request), request.query_params
    search, label, number = query.get("q", ""), query.get("label", ""), whole_number(query.get("page", "1"))
    found = find_rows(service, search, label, number)
    return show(
        request, "table.html", "table", found=found, search=search, label=label,
        columns=[(field.said, field.is_number) for field in service.fields],
        labels=[str(label) for label in service.source.classes] if service.source.labels is not None else [],
    )  # fmt: skip


# --- a row of one's own -----------------------------------------------------------------------------------------------


@router.get("/type")
def type_page(request: Request) -> Response:
    """Show the form for a row of one's own, filled with the first row of the table as an example."""
    return _type_page(request)


@router.post("/type")
async def typed(request: Request) -> Response:
    """Open a row that was typed."""
    form = await read_form(request)
    try:
        row = read_row(form, service_of(request).fields, "typed")
    except OnbmacfError as error:
        return _type_page(request, form, error=as_problem(error).detail)
    return _open_case(request, row)


@router.post("/paste")
async def pasted(request: Request) -> Response:
    """Open a row that was pasted as JSON."""
    text = (await read_form(request)).get("json", "")
    try:
        found = strict_json(text.encode("utf-8", "replace"))
        record = found[0] if isinstance(found, list) and len(found) == 1 else found
        if not isinstance(record, dict):
            raise HTTPProblem(422, "Unexpected JSON", "Paste one row: an object with the columns' names as keys.")
        row = frame_of([record], service_of(request).source.column_of).set_axis(["pasted"])
    except (OnbmacfError, HTTPProblem) as error:
        return _type_page(request, text=text, paste_error=as_problem(error).detail)
    return _open_case(request, row)


def _open_case(request: Request, row: pd.DataFrame) -> Response:
    service = service_of(request)
    arranged = service.source.explainer.fitted_.space.form.arrange(row)[0]
    case = session_of(request).start(Case(new_id(), arranged, "Your row", service.initial_preferences))
    return redirect(f"/case/{case.id}")


def _type_page(
    request: Request, form: dict[str, str] | None = None, text: str = "", error: str = "", paste_error: str = ""
) -> Response:
    service = service_of(request)
    example = service.source.table.head(1)
    values = form or (written_row(example, service.fields) if len(example) else {})
    if not text and len(example):
        days = service.source.explainer.fitted_.space.form.days
        cells = {str(name): cell(example[name].iloc[0], name in days) for name in example.columns}
        text = json.dumps(cells, indent=1)
    content: dict[str, Any] = {"values": values, "text": text, "error": error, "paste_error": paste_error}
    return show(request, "type.html", "type", 422 if error or paste_error else 200, fields=service.fields, **content)
