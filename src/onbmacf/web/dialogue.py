"""What a case is answered: each question is asked once and kept; plans in the order of what they cost a person."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from onbmacf._base.arrays import take
from onbmacf._text.wording import shown
from onbmacf._views.plans import Prediction, Source, explained, no_plan, percent, plan_views, predicted
from onbmacf.explanation import Counterfactual
from onbmacf.explanations import Explanations
from onbmacf.web.cases import COSTS, Case, Wishes
from onbmacf.web.service import Service

# --- the order of plans -----------------------------------------------------------------------------------------------


def ordered_by_ease(answers: Explanations, wishes: Wishes, source: Source) -> Explanations:
    """Return the answers for one row with its cheapest plans first, where features are easy or hard; as many as wished.

    The cost of a plan is the sum of its changes, each as a share of the feature's range, times what the feature costs.
    """
    if not wishes.ease or not len(answers.batch.factual):
        return answers
    costs = [_cost(found, wishes, source) for found in answers[0].counterfactuals]
    order = np.argsort(costs, kind="stable")[: wishes.n]
    return replace(answers, batch=take(answers.batch, order))


def _cost(found: Counterfactual, wishes: Wishes, source: Source) -> float:
    return sum(COSTS[wishes.ease.get(name, "usual")] * _size(found, name, source) for name in found.changed)


def _size(found: Counterfactual, name: Hashable, source: Source) -> float:
    if name not in source.ends:
        return 1.0
    low, high = source.ends[name]
    return abs(float(found.values[name]) - float(found.factual[name])) / (float(high - low) or 1.0)


# --- answers ----------------------------------------------------------------------------------------------------------


async def plans_of(service: Service, case: Case, ranges: bool = False) -> Explanations:
    """Return the plans of a case; with ranges where they are wanted or known already."""
    known: dict[Any, Any] = case.answers
    wanted = ranges or True in known
    if wanted not in known:
        ask = case.wishes.ask(service.source.explainer, ranges=wanted)
        answers = await service.engine.ask(explained, case.row, ask)
        service.metrics.count_rows(1, answers.n_model_rows)
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
