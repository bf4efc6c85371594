"""The page of one case: the decision, plans side by side, what may change, what if, pictures, what to take away.

    form  ->  Case with other Preferences, values or view  ->  redirect  ->  page
    Case  ->  prediction_of, plans_of, front_of  ->  the engine, each question once

What is asked about a case is kept with it (`Case.memo`), so a reload costs nothing.
"""

import io
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import pandas as pd
from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf import plots
from onbmacf._base.checks import whole_number
from onbmacf._text.frames import as_csv
from onbmacf._text.wording import shown
from onbmacf._views.fields import read_row, written_row
from onbmacf._views.plans import Prediction, Source, explained, no_plan, percent, plan_views, predicted
from onbmacf.errors import OnbmacfError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.web.cases import MOST_PLANS, Case, Preferences, order_by_ease
from onbmacf.web.responses import as_problem, download, not_found, picture, redirect
from onbmacf.web.service import Service, read_form, service_of, session_of, show

PICTURE_SIZE = (7.2, 4.2)  # inches
N_BALLS = 6  # the most populous ones: more hide each other
router = APIRouter(prefix="/case/{name}", include_in_schema=False)


# --- answers ----------------------------------------------------------------------------------------------------------


async def prediction_of(service: Service, case: Case) -> Prediction:
    """Return what the model says of the row."""
    return await _once(service, case, "prediction", predicted)


async def plans_of(service: Service, case: Case, ranges: bool = False) -> Explanations:
    """Return the plans of a case; with ranges where they are wanted or known already."""
    key = ("plans", ranges or ("plans", True) in case.memo)
    if key not in case.memo:
        ask = case.preferences.ask(service.source.explainer, ranges=key[1])
        answers = await service.engine.call(explained, case.row, ask)
        service.metrics.count_rows(1, answers.n_model_rows)
        case.memo[key] = order_by_ease(answers, case.preferences, service.source.explainer)
    found: Explanations = case.memo[key]
    return found


async def front_of(service: Service, case: Case) -> Explanations:
    """Return the Pareto front: every plan that no other beats in distance, changes and plausibility at once."""
    ask = replace(case.preferences.ask(service.source.explainer), front=True, plausibility=None, n=None)
    return await _once(service, case, "front", explained, ask)


async def _once(service: Service, case: Case, key: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return function(explainer, row, *arguments), from the memo of the case where it is there."""
    if key not in case.memo:
        case.memo[key] = await service.engine.call(function, case.row, *arguments)
    return case.memo[key]


async def _what_if(service: Service, case: Case, ids: dict[Hashable, str]) -> dict[str, Any] | None:
    """Return what the model says of the values that are tried, and the nearest plan from there."""
    if case.what_if is None:
        return None
    prediction = await service.engine.call(predicted, case.what_if)
    ask = replace(case.preferences.ask(service.source.explainer), n=1)
    answers = await service.engine.call(explained, case.what_if, ask)
    return {
        "label": shown(prediction.labels[0]) if prediction.statuses[0] == "predicted" else "",
        "reason": prediction.reasons[0],
        "probability": percent(prediction.probabilities[0]),
        "plans": plan_views(answers[0], ids),
        "no_plan": no_plan(answers[0]),
    }


# --- the page ---------------------------------------------------------------------------------------------------------


@router.get("")
async def case_page(request: Request, name: str, ranges: bool = False) -> Response:
    """Show one case."""
    return await _page(request, _case(request, name), ranges)


@router.get("/print")
async def printable(request: Request, name: str) -> Response:
    """Show the plans as a page to print."""
    case = _case(request, name)
    return show(request, "print.html", case=case, **await _content(service_of(request), case, ranges=True))


def _case(request: Request, name: str) -> Case:
    service = service_of(request)
    return session_of(request).case(name, service.source.table, service.initial_preferences)


async def _page(request: Request, case: Case, ranges: bool = False, error: str = "") -> Response:
    content = await _content(service_of(request), case, ranges)
    return show(request, "case.html", "table", 422 if error else 200, case=case, error=error, **content)


async def _content(service: Service, case: Case, ranges: bool) -> dict[str, Any]:
    """Return everything that the page of a case shows."""
    prediction = await prediction_of(service, case)
    answers = await plans_of(service, case, ranges)
    ids = {field.name: field.id for field in service.fields}
    view = case.view or default_view(answers, service.source)
    dial = case.preferences.dial
    return {
        "label": shown(prediction.labels[0]) if prediction.statuses[0] == "predicted" else "",
        "probability": percent(prediction.probabilities[0]),
        "answer": answers[0],
        "plans": plan_views(answers[0], ids),
        "has_ranges": answers.batch.ranges is not None,
        "fields": service.fields,
        "values": written_row(case.row, service.fields),
        "preferences": case.preferences,
        "ids": ids,
        "most_plans": MOST_PLANS,
        "dial": service.source.explainer.plausibility if dial is None else dial,
        "labels": [shown(label) for label in service.source.classes],
        "what_if": await _what_if(service, case, ids),
        "what_if_values": written_row(case.row if case.what_if is None else case.what_if, service.fields),
        "view": view,
        "picture_key": f"{hash((view, id(case.memo))) & 0xFFFFFFFF:x}",  # other plans have a picture of their own
        "axes": axes_of(service.source),
    }


# --- forms ------------------------------------------------------------------------------------------------------------


@router.post("/ask")
async def ask(request: Request, name: str) -> Response:
    """Take new preferences."""
    case, service, form = _case(request, name), service_of(request), await read_form(request)
    try:
        preferences = Preferences.from_form(form, service.fields, service.source)
    except OnbmacfError as error:
        return await _page(request, case, error=as_problem(error).detail)
    return await _with_preferences(request, case, preferences)


@router.post("/lock")
async def lock(request: Request, name: str) -> Response:
    """Lock or unlock one feature, and look for other plans."""
    case, service, form = _case(request, name), service_of(request), await read_form(request)
    feature = next((field.name for field in service.fields if field.id == form.get("feature")), None)
    if feature is None:
        raise not_found("feature")
    locked = case.preferences.locked - {feature} if form.get("unlock") else case.preferences.locked | {feature}
    return await _with_preferences(request, case, replace(case.preferences, locked=locked))


async def _with_preferences(request: Request, case: Case, preferences: Preferences) -> Response:
    """Go on with other preferences; where they contradict each other, say so and keep the old ones."""
    changed = case.with_preferences(preferences)
    try:
        await plans_of(service_of(request), changed)
    except OnbmacfError as error:
        return await _page(request, case, error=as_problem(error).detail)
    session_of(request).keep(changed)
    return redirect(f"/case/{case.id}")


@router.post("/what-if")
async def what_if(request: Request, name: str) -> Response:
    """Take other values, to see what the model would say of them."""
    case, service, form = _case(request, name), service_of(request), await read_form(request)
    row = None
    if not form.get("reset"):
        try:
            typed = read_row(form, service.fields, case.row.index[0])
            row = service.source.explainer.fitted_.space.form.arrange(typed)[0]
        except OnbmacfError as error:
            return await _page(request, case, error=as_problem(error).detail)
    session_of(request).keep(replace(case, what_if=row))
    return redirect(f"/case/{name}#what-if")


@router.post("/view")
async def choose_view(request: Request, name: str) -> Response:
    """Choose the two features and the plan of the picture."""
    case, service, form = _case(request, name), service_of(request), await read_form(request)
    numbers = {field.id: field.name for field in service.fields if field.is_number}
    x, y, place = form.get("x", ""), form.get("y", ""), whole_number(form.get("plan", "0"))
    if x not in numbers or y not in numbers or place < 0:
        raise not_found("picture")
    session_of(request).keep(replace(case, view=(numbers[x], numbers[y], place)))
    return redirect(f"/case/{name}#pictures")


@router.post("/save")
async def save(request: Request, name: str) -> Response:
    """Save a plan."""
    case, form = _case(request, name), await read_form(request)
    answers, place = await plans_of(service_of(request), case), whole_number(form.get("plan", ""))
    if not 0 <= place < len(answers.batch.factual):
        raise not_found("plan")
    session_of(request).save(case, answers, place)
    return redirect(f"/case/{name}#plan-{place}")


# --- files ------------------------------------------------------------------------------------------------------------


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


# --- pictures ---------------------------------------------------------------------------------------------------------


@router.get("/walk.svg")
async def walk(request: Request, name: str) -> Response:
    """Draw the way to a plan over the map."""
    case, service = _case(request, name), service_of(request)
    answers = await plans_of(service, case)
    view = case.view or default_view(answers, service.source)
    if view is None or view[2] >= len(answers.batch.factual):
        raise not_found("picture")
    return picture(await service.engine.draw(walk_svg, service.source.explainer, answers, *view))


@router.get("/front.svg")
async def front(request: Request, name: str) -> Response:
    """Draw the Pareto front."""
    service = service_of(request)
    found = await front_of(service, _case(request, name))
    if not len(found.batch.factual):
        raise not_found("picture")
    return picture(await service.engine.draw(front_svg, found.to_frame()))


def axes_of(source: Source) -> list[Hashable]:
    """Return the features that a picture may have as an axis: numbers."""
    return [feature.name for feature in source.explainer.schema_.features if feature.is_numeric]


def default_view(answers: Explanations, source: Source) -> tuple[Hashable, Hashable, int] | None:
    """Return the two features to draw first: those that the first plan changes, then others; None where too few."""
    axes = axes_of(source)
    if len(axes) < 2 or not len(answers.batch.factual):
        return None
    changed = [name for name in answers[0].counterfactuals[0].changed if name in axes]
    x, y = [*changed, *(name for name in axes if name not in changed)][:2]
    return x, y, 0


def walk_svg(explainer: ONBMACF, answers: Explanations, x: Hashable, y: Hashable, place: int) -> bytes:
    """Draw the way from the row to a plan over the balls."""
    ax = _axes()
    plots.cover(explainer, x, y, largest=N_BALLS, ax=ax)
    plots.walk(answers[0], x, y, place=place, ax=ax)
    return _svg(ax)


def front_svg(frame: pd.DataFrame) -> bytes:
    """Draw the Pareto front."""
    return _svg(plots.front(frame, ax=_axes()))


def _axes() -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=PICTURE_SIZE, layout="constrained").add_subplot()


def _svg(ax: Any) -> bytes:
    import warnings

    from matplotlib import rc_context

    sink = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "onbmacf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has its own fonts
        ax.figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue()
