"""What a case is answered: each question is asked once and kept with the case."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from onbmacf._text.wording import shown
from onbmacf._views.plans import Prediction, explained, no_plan, percent, plan_views, predicted
from onbmacf.explanations import Explanations
from onbmacf.web.cases import Case
from onbmacf.web.plans import ordered_by_ease
from onbmacf.web.service import Service


async def plans_of(service: Service, case: Case, ranges: bool = False) -> Explanations:
    """Return the plans of a case; with ranges where they are wanted or known already."""
    known: dict[Any, Any] = case.answers
    wanted = ranges or True in known
    if wanted not in known:
        ask = case.wishes.ask(service.source.explainer, ranges=wanted)
        answers = await service.engine.ask(explained, case.row, ask)
        service.metrics.explained(1, answers.n_model_rows)
        known[wanted] = ordered_by_ease(answers, case.wishes, service.source)
    found: Explanations = known[wanted]
    return found


async def said_of(service: Service, case: Case) -> Prediction:
    """Return what the model says of the row."""
    known: dict[Any, Any] = case.answers
    if "said" not in known:
        known["said"] = await service.engine.ask(predicted, case.row)
    found: Prediction = known["said"]
    return found


async def front_of(service: Service, case: Case) -> Explanations:
    """Return every plan that no other beats in distance, changes and plausibility at once."""
    known: dict[Any, Any] = case.answers
    if "front" not in known:
        ask = replace(case.wishes.ask(service.source.explainer), front=True, plausibility=None, n=None)
        known["front"] = await service.engine.ask(explained, case.row, ask)
    found: Explanations = known["front"]
    return found


async def what_if_of(service: Service, case: Case, ids: dict[Hashable, str]) -> dict[str, Any] | None:
    """Return what the model says of other values, and the nearest plan from there."""
    if case.what_if is None:
        return None
    said = await service.engine.ask(predicted, case.what_if)
    ask = replace(case.wishes.ask(service.source.explainer), n=1)
    answers = await service.engine.ask(explained, case.what_if, ask)
    return {
        "label": shown(said.labels[0]) if said.statuses[0] == "predicted" else "",
        "reason": said.reasons[0],
        "probability": percent(said.probabilities[0]),
        "plans": plan_views(answers[0], ids),
        "no_plan": no_plan(answers[0]),
    }
