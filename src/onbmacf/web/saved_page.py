"""Saved plans: side by side, only what changes; to take away as JSON or CSV, or to print."""

import json
from collections.abc import Hashable

import pandas as pd
from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf._text.frames import as_csv
from onbmacf._text.records import FORMAT, VERSION
from onbmacf._text.wording import shown, works_in
from onbmacf._views.plans import distance_words, percent, plausibility_words
from onbmacf.explanation import Counterfactual
from onbmacf.web.responses import download, redirect
from onbmacf.web.service import read_form, session_of, show

router = APIRouter(include_in_schema=False)


@router.get("/saved")
def saved_page(request: Request) -> Response:
    """Compare what was saved: a column per plan, a line per feature that any of them changes."""
    saved = session_of(request).saved
    found = [plan.counterfactual for plan in saved]
    plans = [
        {
            "id": plan.id,
            "case": plan.case_id,
            "title": plan.title,
            "label": shown(plan.counterfactual.label),
            "probability": percent(plan.counterfactual.probability),
            "distance": distance_words(plan.counterfactual),
            "plausibility": plausibility_words(plan.counterfactual),
        }
        for plan in saved
    ]
    names: dict[Hashable, None] = dict.fromkeys(name for one in found for name in (*one.changed, *one.effects))
    lines = [(str(name), [_change(one, name) for one in found]) for name in names]
    return show(request, "saved.html", "saved", plans=plans, lines=lines)


def _change(plan: Counterfactual, name: Hashable) -> str:
    """Return how a plan changes a feature; empty where it does not."""
    if name not in (*plan.changed, *plan.effects):
        return ""
    works = works_in(plan, name) if name in plan.changed else "follows"
    return f"{shown(plan.factual[name])} \u2192 {shown(plan.values[name])}{f' ({works})' if works else ''}"


@router.post("/saved/remove")
async def remove(request: Request) -> Response:
    """Remove a plan."""
    form = await read_form(request)
    session_of(request).forget(form.get("plan", ""))
    return redirect("/saved")


@router.get("/saved.json")
def as_json(request: Request) -> Response:
    """Return the saved plans as one document: the answer of each row, with the saved counterfactual alone."""
    records = []
    for plan in session_of(request).saved:
        record = plan.answers[0].to_dict()
        records.append(record | {"counterfactuals": [record["counterfactuals"][plan.place]]})
    content = {"format": FORMAT, "version": VERSION, "warnings": [], "answers": records}
    return download(json.dumps(content, indent=1, allow_nan=False) + "\n", "application/json", "saved.json")


@router.get("/saved.csv")
def as_table(request: Request) -> Response:
    """Return the saved plans as a table, one line per plan."""
    plans = session_of(request).saved
    frames = [plan.answers.to_frame().iloc[[plan.place]].assign(plan=plan.title) for plan in plans]
    frame = pd.concat(frames) if frames else pd.DataFrame({"plan": []})
    return download(as_csv(frame, None), "text/csv; charset=utf-8", "saved.csv")
