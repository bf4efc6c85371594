"""Counterfactuals as plans for people: what changes, what works, what does not help, how far and how plausible.

Explanation  ->  plan_views  ->  plain values for a template
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from onbmacf._base.enums import Status
from onbmacf._text.wording import joined, quoted, rounded, shown, whole_percent
from onbmacf.explanation import Counterfactual, Explanation

STEPS = ((0.1, "A very small step"), (0.3, "A small step"), (0.75, "A medium step"), (1.5, "A large step"))
N_NEIGHBOURS = 5  # rows that plausibility counts


def plan_views(answer: Explanation, ids: dict[Hashable, str]) -> list[dict[str, Any]]:
    """Return the plans of one row as plain values."""
    return [_view(answer, place, ids) for place in range(len(answer.counterfactuals))]


def no_plan(answer: Explanation) -> str:
    """Return why there is no plan, for values that are tried."""
    return "That is what is wanted: no plan is needed." if answer.status == Status.ALREADY else answer.reason


def _view(answer: Explanation, place: int, ids: dict[Hashable, str]) -> dict[str, Any]:
    found = answer.counterfactuals[place]
    return {
        "place": place,
        "number": place + 1,
        "label": shown(found.label),
        "probability": percent(found.probability),
        "changes": [_change(found, name, ids) for name in found.changed],
        "even_if": _even_if(answer, found),
        "plausibility": plausibility_words(found),
        "distance": distance_words(found),
    }


def _change(found: Counterfactual, name: Hashable, ids: dict[Hashable, str]) -> dict[str, Any]:
    before, after = found.factual[name], found.values[name]
    return {
        "id": ids[name],
        "feature": str(name),
        "before": shown(before),
        "after": shown(after),
        "arrow": _way(before, after),
        "range": "" if found.box is None or name not in found.box else str(found.box[name]),  # which hold together
        "is_released": name in found.released,
    }


def _way(before: Any, after: Any) -> str:
    try:
        return "up" if float(after) > float(before) else "down"
    except (TypeError, ValueError):
        return "other"


def _even_if(answer: Explanation, found: Counterfactual) -> str:
    if found.semifactual is None:
        return ""
    kept = found.semifactual
    changes = joined([f"{name} {shown(kept.values[name])}" for name in kept.changed])
    return f"Even with {changes}, the model would still say {quoted(answer.label)}."


def plausibility_words(found: Counterfactual) -> str:
    """Return how plausible a plan is, in words and counts."""
    n_alike = round(found.plausibility * N_NEIGHBOURS)
    kind = "Typical" if n_alike >= 4 else "Fairly typical" if n_alike >= 2 else "Unusual"
    alike = "all" if n_alike == N_NEIGHBOURS else "none" if n_alike == 0 else str(n_alike)
    return f"{kind}: {alike} of the {N_NEIGHBOURS} most similar known rows get {quoted(found.label)}."


def distance_words(found: Counterfactual) -> str:
    """Return how far a plan is, in words and as a number."""
    words = next((words for most, words in STEPS if found.distance < most), "A very large step")
    return f"{words}: distance {rounded(found.distance)}, where 1 is the whole range of one feature."


def percent(share: float | None) -> str:
    """Return a probability as text; empty where there is none."""
    return "" if share is None or np.isnan(share) else f"{whole_percent(share)} %"
