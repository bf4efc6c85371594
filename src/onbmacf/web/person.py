"""The page for one person: the decision, plans side by side, what may change, what if, pictures, what to take away."""

import io
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import pandas as pd
from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf import plots
from onbmacf._text.frames import as_csv
from onbmacf._text.wording import shown
from onbmacf._views.fields import read_row, written_row
from onbmacf._views.plans import Source, percent, plan_views
from onbmacf.errors import OnbmacfError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.web import person as pictures
from onbmacf.web.cases import MOST_PLANS, Case, case_of
from onbmacf.web.dialogue import front_of, plans_of, said_of, what_if_of
from onbmacf.web.forms import read_wishes
from onbmacf.web.problems import not_found
from onbmacf.web.service import Service, service_of, session_of
from onbmacf.web.shell import form_of, see, show

SIZE = (7.2, 4.2)
N_BALLS = 6  # the most populous ones: more hide each other
# A picture is a document of its own where it is opened alone: it may have its own styles, and nothing else.
HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
router = APIRouter(prefix="/case/{name}", include_in_schema=False)


# --- pictures ---------------------------------------------------------------------------------------------------------


def axes_of(source: Source) -> list[Hashable]:
    """Return the features that a picture may have as an axis: numbers."""
    return [feature.name for feature in source.explainer.schema_.features if feature.is_numeric]


def walk_svg(explainer: ONBMACF, answers: Explanations, x: Hashable, y: Hashable, place: int) -> bytes:
    """Draw the way from the row to a plan over the balls."""
    ax = _axes()
    plots.cover(explainer, x, y, largest=N_BALLS, ax=ax)
    plots.walk(answers[0], x, y, place=place, ax=ax)
    return _svg(ax)


def front_svg(frame: pd.DataFrame) -> bytes:
    """Draw the front: plans that no other beats in distance, changes and plausibility at once."""
    return _svg(plots.front(frame, ax=_axes()))


def default_view(answers: Explanations, source: Source) -> tuple[Hashable, Hashable, int] | None:
    """Return the two features to draw first: those that the first plan changes, then others; None where too few."""
    known = axes_of(source)
    if len(known) < 2 or not len(answers.batch.factual):
        return None
    changed = [name for name in answers[0].counterfactuals[0].changed if name in known]
    x, y = [*changed, *(name for name in known if name not in changed)][:2]
    return x, y, 0


def _axes() -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained").add_subplot()


def _svg(ax: Any) -> bytes:
    import warnings

    from matplotlib import rc_context

    sink = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "onbmacf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has its own fonts
        ax.figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue()


# --- the page ---------------------------------------------------------------------------------------------------------


def _case(request: Request, name: str) -> Case:
    service = service_of(request)
    return case_of(session_of(request), name, service.source.table, service.first_wishes)


@router.get("")
async def case_page(request: Request, name: str, ranges: bool = False) -> Response:
    """Show one person."""
    return await _page(request, _case(request, name), ranges)


async def _page(request: Request, case: Case, ranges: bool = False, error: str = "") -> Response:
    service = service_of(request)
    content = await _content(service, case, ranges)
    return show(request, "case.html", "people", 422 if error else 200, case=case, error=error, **content)


async def _content(service: Service, case: Case, ranges: bool) -> dict[str, Any]:
    """Return everything that the page of a case shows."""
    said = await said_of(service, case)
    answers = await plans_of(service, case, ranges)
    ids = {field.name: field.id for field in service.fields}
    answer = answers[0]
    view = case.view or pictures.default_view(answers, service.source)
    return {
        "label": shown(said.labels[0]) if said.statuses[0] == "predicted" else "",
        "probability": percent(said.probabilities[0]),
        "answer": answer,
        "plans": plan_views(answer, ids),
        "has_ranges": answers.batch.ranges is not None,
        "fields": service.fields,
        "values": written_row(case.row, service.fields),
        "wishes": case.wishes,
        "ids": ids,
        "most_plans": MOST_PLANS,
        "dial": service.source.explainer.plausibility if case.wishes.dial is None else case.wishes.dial,
        "labels": [shown(label) for label in service.source.classes],
        "what_if": await what_if_of(service, case, ids),
        "what_if_values": written_row(case.row if case.what_if is None else case.what_if, service.fields),
        "view": view,
        "picture_key": f"{hash((view, id(case.answers))) & 0xFFFFFFFF:x}",  # a picture of other plans is another one
        "axes": pictures.axes_of(service.source),
    }


@router.post("/ask")
async def ask(request: Request, name: str) -> Response:
    """Take new wishes; where they contradict each other, say so and keep the old ones."""
    case, service, form = _case(request, name), service_of(request), await form_of(request)
    try:
        new = case.with_wishes(read_wishes(form, service.fields, service.source))
        await plans_of(service, new)
    except OnbmacfError as error:
        return await _page(request, case, error=str(error))
    session_of(request).keep(new)
    return see(f"/case/{name}")


@router.post("/lock")
async def lock(request: Request, name: str) -> Response:
    """Lock or unlock one feature, and look for other plans."""
    case, service, form = _case(request, name), service_of(request), await form_of(request)
    feature = next((field.name for field in service.fields if field.id == form.get("feature")), None)
    if feature is None:
        raise not_found("feature")
    locked = case.wishes.locked - {feature} if form.get("unlock") else case.wishes.locked | {feature}
    new = case.with_wishes(replace(case.wishes, locked=locked))
    try:
        await plans_of(service, new)
    except OnbmacfError as error:
        return await _page(request, case, error=str(error))
    session_of(request).keep(new)
    return see(f"/case/{name}")


@router.post("/what-if")
async def what_if(request: Request, name: str) -> Response:
    """Take other values, to see what the model would say of them."""
    case, service, form = _case(request, name), service_of(request), await form_of(request)
    try:
        row = None if form.get("reset") else read_row(form, service.fields, case.row.index[0])
        row = None if row is None else service.source.explainer.fitted_.space.form.arrange(row)[0]
    except OnbmacfError as error:
        return await _page(request, case, error=str(error))
    session_of(request).keep(replace(case, what_if=row))
    return see(f"/case/{name}#what-if")


@router.post("/view")
async def choose_view(request: Request, name: str) -> Response:
    """Choose the two features and the plan of the picture."""
    case, service, form = _case(request, name), service_of(request), await form_of(request)
    known = {field.id: field.name for field in service.fields if field.is_number}
    x, y, place = form.get("x", ""), form.get("y", ""), form.get("plan", "0")
    if x not in known or y not in known or not place.isdecimal():
        raise not_found("picture")
    session_of(request).keep(replace(case, view=(known[x], known[y], int(place))))
    return see(f"/case/{name}#pictures")


@router.post("/save")
async def save(request: Request, name: str) -> Response:
    """Save a plan."""
    case, form = _case(request, name), await form_of(request)
    answers, place = await plans_of(service_of(request), case), form.get("plan", "")
    if not place.isdecimal() or int(place) >= len(answers.batch.factual):
        raise not_found("plan")
    session_of(request).save(case, answers, int(place))
    return see(f"/case/{name}#plan-{place}")


@router.get("/walk.svg")
async def walk(request: Request, name: str) -> Response:
    """Draw the way to a plan over the map."""
    case, service = _case(request, name), service_of(request)
    answers = await plans_of(service, case)
    view = case.view or pictures.default_view(answers, service.source)
    if view is None or view[2] >= len(answers.batch.factual):
        raise not_found("picture")
    drawn = await service.engine.draw(pictures.walk_svg, service.source.explainer, answers, *view)
    return Response(drawn, media_type="image/svg+xml", headers=pictures.HEADERS)


@router.get("/front.svg")
async def front(request: Request, name: str) -> Response:
    """Draw the front."""
    service = service_of(request)
    found = await front_of(service, _case(request, name))
    if not len(found.batch.factual):
        raise not_found("picture")
    drawn = await service.engine.draw(pictures.front_svg, found.to_frame())
    return Response(drawn, media_type="image/svg+xml", headers=pictures.HEADERS)


@router.get("/plans.json")
async def as_json(request: Request, name: str) -> Response:
    """Return the plans as the library writes them."""
    answers = await plans_of(service_of(request), _case(request, name))
    return download(answers.to_json(indent=1), "application/json", "plans.json")


@router.get("/plans.csv")
async def as_table(request: Request, name: str) -> Response:
    """Return the plans as a table for spreadsheets."""
    answers = await plans_of(service_of(request), _case(request, name))
    return download(as_csv(answers.to_frame(), None), "text/csv; charset=utf-8", "plans.csv")


@router.get("/print")
async def printable(request: Request, name: str) -> Response:
    """Show the plans as a page to print."""
    case = _case(request, name)
    return show(request, "print.html", case=case, **await _content(service_of(request), case, ranges=True))


def download(text: str, kind: str, name: str) -> Response:
    """Return text as a file for the browser to keep."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode("utf-8", "backslashreplace"), media_type=kind, headers=headers)
