"""The page of one case: the decision, plans side by side, what may change, what if, pictures, what to take away.

    form  ->  Case with other Preferences, values or view  ->  redirect  ->  page
    Case  ->  prediction_of, plans_of, front_of  ->  the engine, each question once

What is asked about a case is kept with it (`Case.memo`), so a reload costs nothing.
"""

import datetime
import io
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf import plots
from onbmacf._balls.distance import paired
from onbmacf._base.checks import whole_number
from onbmacf._base.missing import known_ends
from onbmacf._text.frames import as_csv
from onbmacf._text.wording import joined, shown
from onbmacf._views.fields import outside_known, read_row, said_row, written_row
from onbmacf._views.plans import Prediction, Source, explained, no_plan, percent, plan_views, predicted, rules_said
from onbmacf.errors import OnbmacfError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Counterfactual
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema
from onbmacf.web.cases import MOST_PLANS, Case, Preferences, order_by_ease
from onbmacf.web.responses import HTTPProblem, as_problem, download, not_found, picture, redirect
from onbmacf.web.service import Service, read_form, service_of, session_of, show

PICTURE_SIZE = (7.2, 4.2)  # inches
N_FACTS = 12  # of a row that are shown at once; the others fold
N_BALLS = 6  # the most populous ones: more hide each other
SUGGESTS = {"up": ("only goes up", "only go up"), "immutable": ("stays as it is", "stay as they are")}
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
        "outside": outside_known(case.what_if, service.source, service.fields),
    }


# --- the page ---------------------------------------------------------------------------------------------------------


@router.get("")
async def case_page(request: Request, name: str, ranges: bool = False) -> Response:
    """Show one case."""
    return await _page(request, _case(request, name), ranges)


@router.get("/print")
async def printable(request: Request, name: str) -> Response:
    """Show the plans as a page to print, with the day and what they keep to."""
    case, service = _case(request, name), service_of(request)
    content = await _content(service, case, ranges=True)
    conditions = case.preferences.conditions(service.source.explainer)
    today = datetime.date.today().isoformat()
    return show(request, "print.html", case=case, today=today, conditions=conditions, **content)


def _case(request: Request, name: str) -> Case:
    service = service_of(request)
    return session_of(request).case(name, service.source.table, service.initial_preferences)


async def _page(
    request: Request, case: Case, ranges: bool = False, problem: HTTPProblem | None = None, **more: Any
) -> Response:
    """Show a case; where its plans could not be had, the page says why in their place."""
    content = await _content(service_of(request), case, ranges, problem) | more
    failed = content["problem"] or content["failed"]
    schema, is_open = service_of(request).source.explainer.schema_, session_of(request).suggested is None
    content["suggested"] = suggested_words(schema) if is_open else ""
    return show(request, "case.html", "table", failed.status if failed else 200, case=case, **content)


class Answered(NamedTuple):
    """What the model was asked about a case, as far as it could be."""

    prediction: Prediction | None = None
    answers: Explanations | None = None
    what_if: dict[str, Any] | None = None
    problem: HTTPProblem | None = None  # why there are no plans
    failed: HTTPProblem | None = None  # why nothing is said of the values that are tried
    no_ranges: str = ""  # why there are plans without ranges
    rules: tuple[str, ...] = ()  # what each plan crosses of the model; none where nothing is known


async def _answered(service: Service, case: Case, ranges: bool, ids: dict[Hashable, str]) -> Answered:
    """Ask about a case; a problem takes the place of what it was met at."""
    found = Answered()
    try:
        found = found._replace(prediction=await prediction_of(service, case))
        if ranges:
            try:
                await plans_of(service, case, ranges)
            except (OnbmacfError, HTTPProblem) as error:
                found = found._replace(no_ranges=as_problem(error).detail)
        found = found._replace(answers=await plans_of(service, case))
        if ranges and found.answers is not None and not found.no_ranges:  # asked for once the plans are there
            said = await _once(service, case, "rules", rules_said, found.answers)
            found = found._replace(rules=tuple(said))
    except (OnbmacfError, HTTPProblem) as error:
        return found._replace(problem=as_problem(error))
    try:
        return found._replace(what_if=await _what_if(service, case, ids))
    except (OnbmacfError, HTTPProblem) as error:
        return found._replace(failed=as_problem(error))


async def _content(
    service: Service, case: Case, ranges: bool = False, problem: HTTPProblem | None = None
) -> dict[str, Any]:
    """Return everything that the page of a case shows."""
    ids = {field.name: field.id for field in service.fields}
    found = Answered(case.memo.get("prediction"), problem=problem)
    if problem is None:
        found = await _answered(service, case, ranges, ids)
    said, answers, dial = found.prediction, found.answers, case.preferences.dial
    view = None if answers is None else case.view or default_view(answers, service.source)
    return {
        "label": shown(said.labels[0]) if said and said.statuses[0] == "predicted" else "",
        "probability": percent(said.probabilities[0]) if said else "",
        "unasked": said.reasons[0] if said else "",
        "answer": None if answers is None else answers[0].in_words(),
        "plans": [] if answers is None else plan_views(answers[0], ids, found.rules),
        "problem": found.problem,
        "has_ranges": answers is not None and answers.batch.ranges is not None,
        "no_ranges": found.no_ranges,
        "fields": service.fields,
        "facts_said": said_row(case.row, service.fields),
        "called": service.source.explainer.schema_.labels.name,
        "n_facts": N_FACTS,
        "preferences": case.preferences,
        "ids": ids,
        "most_plans": MOST_PLANS,
        "dial": service.source.explainer.plausibility if dial is None else dial,
        "labels": [shown(label) for label in service.source.classes],
        "what_if": found.what_if,
        "what_if_values": written_row(case.row if case.what_if is None else case.what_if, service.fields),
        "failed": found.failed,
        "view": view,
        "has_walk": view is not None and _has_walk(service.source.explainer, answers, *view),
        "picture_key": f"{hash((view, id(case.memo))) & 0xFFFFFFFF:x}",  # other plans have a picture of their own
        "axes": axes_of(service.source),
    }


def suggested_words(schema: Schema) -> str:
    """Return what names of columns suggest, in words: 'age only goes up, and sex stays as it is'; often nothing."""
    called = {way: [schema.labels.name(n) for n, what in schema.suggested.items() if what == way] for way in SUGGESTS}
    parts = [f"{joined(names)} {SUGGESTS[way][len(names) > 1]}" for way, names in called.items() if names]
    return ", and ".join(parts)


# --- forms ------------------------------------------------------------------------------------------------------------


@router.post("/ask")
async def ask(request: Request, name: str) -> Response:
    """Take new preferences."""
    case, service, form = _case(request, name), service_of(request), await read_form(request)
    try:
        preferences = Preferences.from_form(form, service.fields, service.source)
    except (OnbmacfError, HTTPProblem) as error:
        return await _page(request, case, problem=as_problem(error))
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


@router.post("/suggested")
async def answer_suggestions(request: Request, name: str) -> Response:
    """Take the answer to what names of columns suggest: it is asked once, and holds for all rows of this browser."""
    case, service, form = _case(request, name), service_of(request), await read_form(request)
    session_of(request).answer_suggestions(service.source.explainer.schema_.suggested if form.get("keep") else {})
    return redirect(f"/case/{case.id}")


async def _with_preferences(request: Request, case: Case, preferences: Preferences) -> Response:
    """Go on with other preferences; where there is no answer to them, say why, and keep the old ones."""
    changed = case.with_preferences(preferences)
    try:
        await plans_of(service_of(request), changed)
    except (OnbmacfError, HTTPProblem) as error:  # the plans of before are not those of these preferences
        return await _page(request, changed, problem=as_problem(error))
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
            tried = replace(case, what_if=None)
            return await _page(request, tried, failed=as_problem(error), what_if_values=form)
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


def _has_walk(explainer: ONBMACF, answers: Any, x: Hashable, y: Hashable, place: int) -> bool:
    found = answers[0].counterfactuals
    return place < len(found) and divides(explainer, found[place], x, y)


def default_view(answers: Explanations, source: Source) -> tuple[Hashable, Hashable, int] | None:
    """Return the two features to draw first: those that the first plan changes, then others; None where too few."""
    axes = axes_of(source)
    if len(axes) < 2 or not len(answers.batch.factual):
        return None
    changed = [name for name in answers[0].counterfactuals[0].changed if name in axes]
    x, y = [*changed, *(name for name in axes if name not in changed)][:2]
    return x, y, 0


def divides(explainer: ONBMACF, found: Counterfactual, x: Hashable, y: Hashable) -> bool:
    """Say whether the way to a plan can be seen in two features: it moves there, and not all in one colour.

    In tables of many columns the balls are so large that each fills the whole plane of two features.
    """
    metric, names, Z = explainer.metric, explainer.schema_.names, explainer.Z_
    if explainer.fitted_.embedding is not None or (x not in found.changed and y not in found.changed):
        return False
    if not isinstance(metric, str):  # nothing is drawn of its balls
        return True
    columns = [explainer.fitted_.space.blocks[names.index(name)].start for name in (x, y)]
    balls, (low, high) = explainer.cover_, known_ends(Z[:, columns])
    largest = np.argsort(-np.bincount(balls.owner[balls.owner >= 0], minlength=len(balls)), kind="stable")[:N_BALLS]
    centers = Z[balls.centers[largest]][:, columns]
    corner = np.where(centers - low > high - centers, low, high)  # the farthest of the plane
    return bool((paired(centers, corner, metric) > balls.radii[largest]).any())


def walk_svg(explainer: ONBMACF, answers: Explanations, x: Hashable, y: Hashable, place: int) -> str:
    """Draw the way from the row to a plan over the balls."""
    ax = _axes()
    plots.cover(explainer, x, y, largest=N_BALLS, ax=ax)
    plots.walk(answers[0], x, y, place=place, ax=ax)
    return _svg(ax)


def front_svg(frame: pd.DataFrame) -> str:
    """Draw the Pareto front."""
    return _svg(plots.front(frame, ax=_axes()))


def _axes() -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=PICTURE_SIZE, layout="constrained").add_subplot()


def _svg(ax: Any) -> str:
    import warnings

    from matplotlib import rc_context

    sink = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "onbmacf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has its own fonts
        ax.figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue().decode("utf-8")
