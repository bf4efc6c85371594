"""From what a search found to what is returned: decoded, asked again, kept where it holds, with a reason where not.

    Found  ->  answered  ->  Explanations

A counterfactual that does not hold when the model is asked again, about the very values returned, is dropped, and the
reason says so.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows, objects, take
from onbmacf._base.enums import Relaxation, Status
from onbmacf._batch.factuals import Asker
from onbmacf._batch.front import on_the_front
from onbmacf._search.problem import Found
from onbmacf._search.strategies import Effort
from onbmacf._search.walk import margins
from onbmacf.explanation import Batch, Explanations


def answered(asker: Asker, found: Found, effort: Effort, frame: pd.DataFrame) -> Explanations:
    """Decode what was found, ask the model again about the very rows returned, and keep what holds."""
    call, factuals = asker.call, asker.factuals
    N = asker.numbers(found.counterfactual, found.factual)
    labels = asker.box.ask_labels(N)
    holds = _hold(asker, found, N, labels)
    n_found = np.bincount(found.factual, minlength=len(frame))
    n_held = np.bincount(found.factual[holds], minlength=len(frame))
    raised = {int(row): error for row, error in zip(found.factual, labels, strict=True) if isinstance(error, Exception)}
    batch, n = _batch(asker, take(found, holds), N[holds], labels[holds]), call.options.n_counterfactuals
    if call.query.front:
        batch, n = take(batch, on_the_front(batch)), 0
    statuses, reasons = factuals.statuses.copy(), factuals.reasons.copy()
    for row in factuals.open_lines():
        own = Effort(*(column[row] for column in effort))
        outcome = int(n_found[row]), int(n_held[row]), n, raised.get(int(row)), own, asker.box.counts.error
        statuses[row], reasons[row] = _verdict(*outcome)
    return Explanations(frame, factuals.labels, statuses, reasons, objects([()] * len(frame)), batch)


def _hold(asker: Asker, found: Found, N: Matrix, labels: NDArray[Any]) -> Mask:
    """Say which counterfactuals have their label when asked again, probably enough, and repeat none before."""
    holds = asker.box.codes(labels) == found.label
    least = asker.call.query.min_probability
    if least > 0:
        sure = asker.box.probability(N[holds], found.label[holds])
        holds[holds] = False if sure is None else sure >= least  # NaN is not sure
    if asker.call.strategy.is_distinct:
        holds &= ~repeats(found.factual, N)
    return holds


def repeats(factual: Rows, N: Matrix) -> Mask:
    """Say which lines give a factual the values of a line before: points may differ in bits that no value shows."""
    return pd.DataFrame(np.column_stack([factual, N])).duplicated().to_numpy()


def _verdict(
    n_found: int, n_held: int, n: int, error: Exception | None, effort: Effort, raised: str
) -> tuple[Status, str]:
    """Return status and reason of a row that was searched; `effort` is that of the row."""
    if n_held == 0 and error is not None:
        return Status.MODEL_ERROR, f"the model raised {type(error).__name__}: {error}"
    if n_found > n_held == 0:
        reason = "the model gave another label when it was asked again about the very values to be returned: "
        return Status.MODEL_ERROR, reason + "it is not deterministic, or separates rows that are equal once scaled."
    if n_held == 0:
        return _nothing(effort, raised)
    if effort.ran_out:
        return Status.FOUND, f"max_model_rows was used up: the best {n_held} so far, others may be nearer."
    if n_held < n:
        return Status.FOUND, f"{n_held} of {n} counterfactuals were found."
    return Status.FOUND, ""


def _nothing(effort: Effort, raised: str) -> tuple[Status, str]:
    """Return status and reason of a row for which nothing was found."""
    asked = f"{effort.asked:,} questions"
    if effort.failed:
        return Status.MODEL_ERROR, f"the model raised {raised} (on {effort.failed:,} of {asked})."
    if effort.ran_out:
        return Status.NONE_FOUND, f"none was found with {asked}, then max_model_rows was used up: raise it."
    if effort.is_proven:
        return Status.INFEASIBLE, "none exists: every combination of allowed values in the fitted ranges was asked."
    return Status.NONE_FOUND, f"none was found with {asked} to the model."


def _batch(asker: Asker, found: Found, N: Matrix, labels: NDArray[Any]) -> Batch:
    fitted, metric = asker.call.fitted, asker.call.options.metric
    space, z = fitted.space, asker.factuals.z[found.factual]
    distance, changed = paired(z, found.counterfactual, metric), space.changed(z, found.counterfactual)
    to_semifactual = paired(z, found.semifactual, metric)
    return Batch(
        factual=found.factual,
        values=space.form.frame(N),
        label=objects(labels.tolist()),
        distance=distance,
        changed=changed,
        released=changed & _breaks(asker, found.factual, N),
        relaxation=np.array([*Relaxation], dtype=object)[found.relaxation],
        ball=found.ball,
        plausibility=fitted.neighbours.share(found.counterfactual, found.label),
        margin=distance * _margins(asker, found, z),
        probability=asker.box.probability(N, found.label),
        semifactual_values=space.form.frame(asker.numbers(found.semifactual, found.factual)),
        semifactual_distance=np.where(found.has_semifactual, to_semifactual, np.nan),
        semifactual_changed=space.changed(z, found.semifactual),
    )


def _breaks(asker: Asker, factual: Rows, N: Matrix) -> Mask:
    """Per line and feature: whether changing it breaks what the schema says: it is immutable, or its rule is broken."""
    call = asker.call
    return call.fitted.space.is_immutable | ~call.own_rules.kept(N, asker.factuals.N[factual])


def _margins(asker: Asker, found: Found, z: Matrix) -> Matrix:
    space = asker.call.fitted.space

    def holds(points: Matrix, lines: Rows) -> Mask:
        snapped = space.snap(points, z[lines], found.counterfactual[lines])
        return asker.box.ask(asker.numbers(snapped, found.factual[lines])) == found.label[lines]

    return margins(z, found.counterfactual, holds)
