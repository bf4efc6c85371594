"""What a caller has in hand, as answers: a whole batch, or one explanation of it.

Explanations or Explanation  ->  as_answers  ->  Explanations
"""

from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import objects
from onbmacf._table.lazy_rows import LazyRows
from onbmacf.errors import ParameterError
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.explanations import Batch, Explanations


def as_answers(given: Any) -> Explanations:
    """Return answers as they are, and one explanation as the answers for one row; anything else is an error."""
    if isinstance(given, Explanations):
        return given
    if not isinstance(given, Explanation):
        raise ParameterError(f"give what explain returned, or one of its explanations; got {type(given).__name__}.")
    status, reason = objects([str(given.status)]), objects([given.reason])
    certificates = None if given.certificate is None else objects([given.certificate])
    rows = pd.DataFrame([given.factual]).infer_objects()
    needs, labels = objects([given.would_need]), objects([given.label])
    return Explanations(rows, labels, status, reason, needs, _batch(given), certificates=certificates)


def _batch(given: Explanation) -> Batch:
    found, names = given.counterfactuals, list(given.factual.index)
    kept = [one.semifactual for one in found]
    has_probability = bool(found) and found[0].probability is not None
    return Batch(
        factual=np.zeros(len(found), dtype=np.intp),
        rows=_lines([one.values for one in found], given.factual),
        label=objects([one.label for one in found]),
        distance=np.array([one.distance for one in found], dtype=float),
        changed=_mask([one.changed for one in found], names),
        released=_mask([one.released for one in found], names),
        relaxation=objects([str(one.relaxation) for one in found]),
        ball=np.array([-1 if one.ball is None else one.ball for one in found], dtype=np.intp),
        plausibility=np.array([one.plausibility for one in found], dtype=float),
        margin=np.array([one.margin for one in found], dtype=float),
        probability=_numbers("probability", found) if has_probability else None,
        semifactual_rows=_lines([given.factual if one is None else one.values for one in kept], given.factual),
        semifactual_distance=np.array([np.nan if one is None else one.distance for one in kept], dtype=float),
        semifactual_changed=_mask([() if one is None else one.changed for one in kept], names),
    )


def _numbers(name: str, found: tuple[Counterfactual, ...]) -> Any:
    return np.array([getattr(one, name) for one in found], dtype=float)


def _mask(changed: list[Any], names: list[Any]) -> Any:
    return np.array([[name in one for name in names] for one in changed], dtype=bool).reshape(-1, len(names))


def _lines(rows: list[Any], factual: Any) -> LazyRows:
    """Return rows as numbered lines with a dtype per column, those of the factual where there are none."""
    lines = pd.DataFrame(rows or [factual]).infer_objects().reset_index(drop=True)
    return LazyRows.of_frame(lines if rows else lines.iloc[:0])
