"""Pages to pick or type a row: the table page by page, a form made from the schema, or JSON."""

import json

from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf._text.records import cell
from onbmacf._views.fields import read_row, written_row
from onbmacf._views.plans import frame_of
from onbmacf.errors import OnbmacfError
from onbmacf.web.bodies import strict_json
from onbmacf.web.cases import Case, new_id
from onbmacf.web.problems import Problem
from onbmacf.web.service import service_of, session_of
from onbmacf.web.shell import form_of, see, show

router = APIRouter(include_in_schema=False)


def first_page(request: Request) -> Response:
    """Show a page of the table, and how to find rows in it."""
    service, query = service_of(request), request.query_params
    words, label, number = query.get("q", ""), query.get("label", ""), query.get("page", "1")
    found = service.browser.page(words, label, int(number) if number.isdecimal() and len(number) < 9 else 1)
    return show(
        request, "people.html", "people", found=found, words=words, label=label,
        columns=[(str(field.name), field.is_number) for field in service.fields],
        labels=[str(label) for label in service.source.classes] if service.source.labels is not None else [],
    )  # fmt: skip


@router.get("/type")
def type_page(request: Request) -> Response:
    """Show the form for a row of one's own, filled with the first row of the table as an example."""
    return _type_page(request)


@router.post("/type")
async def typed(request: Request) -> Response:
    """Open a row that was typed."""
    form = await form_of(request)
    try:
        row = read_row(form, service_of(request).fields, "typed")
    except OnbmacfError as error:
        return _type_page(request, form, error=str(error))
    return _opened(request, row)


@router.post("/paste")
async def pasted(request: Request) -> Response:
    """Open a row that was pasted as JSON."""
    text = (await form_of(request)).get("json", "")
    try:
        found = strict_json(text.encode("utf-8", "replace"))
        record = found[0] if isinstance(found, list) and len(found) == 1 else found
        if not isinstance(record, dict):
            raise Problem(422, "Unexpected JSON", "Paste one row: an object with the columns' names as keys.")
        row = frame_of([record], service_of(request).source.column_of).set_axis(["pasted"])
    except (OnbmacfError, Problem) as error:
        return _type_page(request, text=text, paste_error=getattr(error, "detail", str(error)))
    return _opened(request, row)


def _opened(request: Request, row: object) -> Response:
    service = service_of(request)
    case = Case(new_id(), service.source.explainer.fitted_.space.form.arrange(row)[0], "Your row", service.first_wishes)
    return see(f"/case/{session_of(request).keep(case).id}")


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
    is_wrong = bool(error or paste_error)
    looks = {"values": values, "text": text, "error": error, "paste_error": paste_error}
    return show(request, "type.html", "type", 422 if is_wrong else 200, fields=service.fields, **looks)
