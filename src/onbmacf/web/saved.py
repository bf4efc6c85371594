"""Saved plans: side by side, only what changes; to take away as JSON or CSV, or to print."""

import json
from collections.abc import Hashable
from typing import Any

import pandas as pd
from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf._text.frames import as_csv
from onbmacf._text.records import FORMAT, VERSION
from onbmacf._text.wording import shown, works_in
from onbmacf._views.plans import distance_words, percent, plausibility_words
from onbmacf.web.cases import Saved
from onbmacf.web.person import download
from onbmacf.web.service import session_of
from onbmacf.web.shell import form_of, see, show

router = APIRouter(include_in_schema=False)


@router.get("/saved")
def saved_page(request: Request) -> Response:
    """Compare what was saved."""
    plans = session_of(request).saved
    return show(request, "saved.html", "saved", plans=[_view(plan) for plan in plans], lines=_lines(plans))


@router.post("/saved/remove")
async def remove(request: Request) -> Response:
    """Remove a plan."""
    form = await form_of(request)
    session_of(request).forget(form.get("plan", ""))
    return see("/saved")


@router.get("/saved.json")
def as_json(request: Request) -> Response:
    """Return the saved plans as one document."""
    records = [_record(plan) for plan in session_of(request).saved]
    content = {"format": FORMAT, "version": VERSION, "warnings": [], "answers": records}
    return download(json.dumps(content, indent=1, allow_nan=False) + "\n", "application/json", "saved.json")


@router.get("/saved.csv")
def as_table(request: Request) -> Response:
    """Return the saved plans as a table, one line per plan."""
    plans = session_of(request).saved
    frames = [plan.answers.to_frame().iloc[[plan.place]].assign(plan=plan.title) for plan in plans]
    frame = pd.concat(frames) if frames else pd.DataFrame({"plan": []})
    return download(as_csv(frame, None), "text/csv; charset=utf-8", "saved.csv")


def _record(plan: Saved) -> dict[str, Any]:
    """Return the answer of a row with this counterfactual alone."""
    record = plan.answers[0].to_dict()
    return record | {"counterfactuals": [record["counterfactuals"][plan.place]]}


def _view(plan: Saved) -> dict[str, Any]:
    found = plan.answers[0].counterfactuals[plan.place]
    return {
        "id": plan.id,
        "case": plan.case,
        "title": plan.title,
        "label": shown(found.label),
        "probability": percent(found.probability),
        "distance": distance_words(found),
        "plausibility": plausibility_words(found),
    }


def _lines(plans: list[Saved]) -> list[tuple[str, list[str]]]:
    """Return one line per feature that any plan changes: its name, and per plan what changes; empty where nothing."""
    found = [plan.answers[0].counterfactuals[plan.place] for plan in plans]
    names: dict[Hashable, None] = dict.fromkeys(name for one in found for name in one.changed)
    return [(str(name), [_cell(one, name) for one in found]) for name in names]


def _cell(found: Any, name: Hashable) -> str:
    if name not in found.changed:
        return ""
    works = works_in(found, name)
    return f"{shown(found.factual[name])} \u2192 {shown(found.values[name])}{f' ({works})' if works else ''}"
