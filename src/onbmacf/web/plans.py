"""Plans in the order of what they cost a person, where features are easy or hard (decision 0075)."""

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from onbmacf._base.arrays import take
from onbmacf._views.plans import Source
from onbmacf.explanation import Counterfactual
from onbmacf.explanations import Explanations
from onbmacf.web.cases import COSTS, Wishes


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
