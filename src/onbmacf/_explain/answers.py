"""From what a search found to what is returned: decoded, asked again, kept where it holds, with a reason where not.

The Pareto front keeps what no other beats in distance, changes and plausibility at once.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows, objects, take
from onbmacf._base.enums import Relaxation, Status
from onbmacf._explain.request import Request
from onbmacf._explain.rows import NOT_REACHED, Asker
from onbmacf._search.budget import UNASKED, turns
from onbmacf._search.problem import Effort, Found
from onbmacf._table.calls import ENDLESS, Notes
from onbmacf._table.lazy_rows import LazyRows
from onbmacf._table.model import FAILED
from onbmacf._text import wording
from onbmacf.explanations import Batch, Explanations

# --- the Pareto front -------------------------------------------------------------------------------------------------


def on_the_front(batch: Batch) -> Rows:
    """Return the lines that no other of the same factual beats, nearest first."""
    figures = np.column_stack([batch.distance, batch.changed.sum(axis=1), -batch.plausibility])
    kept = []
    for place in np.unique(batch.factual):
        lines = np.flatnonzero(batch.factual == place)
        some = figures[lines]
        no_worse = (some[:, np.newaxis] <= some[np.newaxis]).all(axis=2)
        better = no_worse & (some[:, np.newaxis] < some[np.newaxis]).any(axis=2)
        twin = np.tril(no_worse & no_worse.T, k=-1).any(axis=1)  # an equal one stands before
        best = lines[~better.any(axis=0) & ~twin]
        kept.append(best[np.lexsort((best, batch.distance[best]))])
    return np.concatenate(kept) if kept else np.empty(0, dtype=np.intp)


# --- answers ----------------------------------------------------------------------------------------------------------


def answered(asker: Asker, found: Found, effort: Effort, frame: pd.DataFrame) -> Explanations:
    """Decode what was found, ask the model again about the very rows returned, and keep what holds."""
    asker = replace(asker, notes=Notes())  # of what the model does from here on
    request, factuals = asker.request, asker.factuals
    N = found.numbers
    assert N is not None, "every search says its answers in the caller's units"
    if request.min_neighbours > 0:  # what a limit has left unasked, or the paper's last stop, may have fewer
        has_neighbours = request.has_neighbours(N, found.label)
        found, N = take(found, has_neighbours), N[has_neighbours]
    holds = (found.again == found.label) | (found.again == UNASKED)  # the same label when asked again, or not asked
    if request.strategy.is_distinct:
        holds &= ~repeats(found.factual, N)
    n_found = np.bincount(found.factual, minlength=len(frame))
    n_held = np.bincount(found.factual[holds], minlength=len(frame))
    raised = set(found.factual[found.again == FAILED].tolist())
    batch, n = _batch(asker, take(found, holds), N[holds], effort), request.options.n_counterfactuals
    unknown, is_weak = asker.notes.raised(len(frame)), _weak(request, batch, len(frame))
    if request.front:
        batch, n = take(batch, on_the_front(batch)), 0
    statuses, reasons = factuals.statuses.copy(), factuals.reasons.copy()
    for row in factuals.open_lines():
        spent = Effort(*(column[row] for column in effort))
        is_raised = int(row) in raised
        statuses[row], reasons[row] = _verdict(request, int(n_found[row]), int(n_held[row]), n, is_raised, spent)
        if is_weak[row]:
            reasons[row] = f"{wording.may_not_last(request.min_probability)} {reasons[row]}".strip()
        if unknown[row]:
            reasons[row] = f"{reasons[row]} Some probabilities are not known: {unknown[row]}.".strip()
    of_rows = (frame, factuals.labels, statuses, reasons, objects([()] * len(frame)))
    form = request.fitted.space.form
    answers = Explanations(*of_rows, batch, n_members=request.n_members)
    words, blocks = form.schema.labels, request.fitted.blocks
    return replace(answers, polars=form.polars, days=form.days, words=words, blocks=blocks)


def _weak(request: Request, batch: Batch, n_rows: int) -> Mask:
    """Say which rows got answers of less than the probability that was looked for."""
    if not request.settles or batch.probability is None:
        return np.zeros(n_rows, dtype=bool)
    return np.bincount(batch.factual, weights=batch.probability < request.min_probability, minlength=n_rows) > 0


def repeats(factual: Rows, N: Matrix) -> Mask:
    """Say which lines give a factual the values of a line before: points may differ in bits that no value shows."""
    if len(np.unique(factual)) == len(factual):
        return np.zeros(len(factual), dtype=bool)
    return pd.DataFrame(np.column_stack([factual, N])).duplicated().to_numpy()


def _verdict(
    request: Request, n_found: int, n_held: int, n: int, is_raised: bool, effort: Effort
) -> tuple[Status, str]:
    """Return status and reason of a row that was searched; `effort` is that of the row."""
    if n_held == 0 and is_raised:
        return Status.MODEL_ERROR, wording.as_sentence(effort.raised)
    if n_found > n_held == 0:
        reason = "The model gave another label when it was asked again about the very values to be returned: "
        return Status.MODEL_ERROR, reason + (
            "it is not deterministic, has changed since fit, or separates rows that are equal once scaled."
        )
    if n_held == 0:
        return _nothing(request, effort)
    if effort.ran_out:
        return Status.FOUND, _told(f"{request.limits} limited the search: others may be nearer.", effort)
    if n_held < n:
        return Status.FOUND, _told(f"{n_held} of {n} counterfactuals {'was' if n_held == 1 else 'were'} found.", effort)
    return Status.FOUND, _told("", effort)


def _told(reason: str, effort: Effort) -> str:
    """Return a reason with what the model did on the way beside saying a known label."""
    raised = f"On some points asked, {effort.raised}." if effort.raised else ""
    unseen = f"On some points asked, the model said {effort.unseen}, as on no fitted row." if effort.unseen else ""
    return " ".join(part for part in (reason, raised, unseen) if part)


def _nothing(request: Request, effort: Effort) -> tuple[Status, str]:
    """Return status and reason of a row for which nothing was found."""
    asked, limits = f"{effort.asked:,} questions", request.limits
    terms = " and ".join(part for part in (request.sure, request.near) if part)
    sure = f" {terms}" if terms else ""
    agreed = f" on which {request.committee} agree" if request.needs_agreement else ""
    none = f"None was found{sure}{agreed}{',' if sure or agreed else ''}"
    if effort.failed:
        return Status.MODEL_ERROR, f"{wording.as_sentence(effort.raised)} (on {effort.failed:,} of {asked})."
    if effort.ran_out and not effort.asked and limits == "max_seconds":
        return Status.NONE_FOUND, NOT_REACHED
    if effort.ran_out:
        return Status.NONE_FOUND, _told(f"{none} with {asked} within {limits}: raise it.", effort)
    if effort.is_proven and not agreed and not effort.raised:
        proven = f"None exists{sure}: every combination of allowed values in the fitted ranges was asked."
        return Status.INFEASIBLE, _told(proven, effort)
    return Status.NONE_FOUND, _told(f"{none} with {asked} to the model.", effort)


def _batch(asker: Asker, found: Found, N: Matrix, effort: Effort) -> Batch:
    request, fitted, metric = asker.request, asker.request.fitted, asker.request.options.metric
    committee = request.committee
    # A change is a release where the feature is immutable, or the schema's own rule for it is broken.
    breaks = fitted.space.is_immutable | ~fitted.constraints.kept(N, asker.factuals.N[found.factual])
    space, z = fitted.space, asker.factuals.z[found.factual]
    distance, changed = paired(z, found.counterfactual, metric), space.changed(z, found.counterfactual)
    less_changed, effects, less_effects = space.changed(z, found.semifactual), None, None
    whole = found.counterfactual
    if space.effects is not None:
        assert found.semifactual_numbers is not None
        own, whole = asker.factuals.N[found.factual], space.encode_numbers(N)
        effects = space.effects.followed(N, own, changed)
        less_effects = space.effects.followed(found.semifactual_numbers, own, less_changed)
    to_semifactual = paired(z, found.semifactual, metric)
    predicted = None if request.options.limits else asker.box.predicted(np.vstack([asker.factuals.N[found.factual], N]))
    return Batch(
        factual=found.factual,
        rows=LazyRows(space.form, N),
        label=asker.box.named(found.label),
        distance=distance,
        changed=changed,
        released=changed & breaks,
        relaxation=np.array([*Relaxation], dtype=object)[found.relaxation],
        ball=found.ball if fitted.embedding is None else fitted.nearest_balls(N, found.label, metric),
        plausibility=(
            fitted.neighbours.share(whole, found.label) if fitted.embedding is None else fitted.share(N, found.label)
        ),
        margin=distance * found.margin,
        probability=_probabilities(asker, found, N, effort),
        semifactual_rows=LazyRows(space.form, found.semifactual_numbers),
        semifactual_distance=np.where(found.has_semifactual, to_semifactual, np.nan),
        semifactual_changed=less_changed,
        stability=None if committee is None else committee.share(N, found.label, asker.box.counts),
        predicted=None if predicted is None else np.column_stack(np.split(predicted, 2)),
        effects=effects,
        semifactual_effects=less_effects,
        **({} if fitted.blocks is None else _donors(asker, found)),
    )


def _donors(asker: Asker, found: Found) -> dict[str, Any]:
    """Return the donor of each counterfactual, and its values."""
    table, none = asker.request.fitted.map.table, np.empty(0, dtype=np.intp)
    donor = none if found.donor is None else found.donor  # no part was reached
    return {"donor": donor, "donor_rows": LazyRows(asker.request.fitted.space.form, table.N[donor])}


def _probabilities(asker: Asker, found: Found, N: Matrix, effort: Effort) -> Matrix | None:
    """Return the probability of each counterfactual's label; NaN where the budget does not allow to ask or it raised.

    What the search has asked is not asked again. No answer loses its probability to another one's error, and the asker
    notes the errors.
    """
    assert found.probability is not None
    every, unknown = found.probability.copy(), np.flatnonzero(np.isnan(found.probability))
    within = unknown[turns(found.factual[unknown]) < effort.left[found.factual[unknown]]]

    def noted(lines: Rows, error: Exception) -> None:
        asker.notes.raise_on(found.factual[within[lines]], error)

    if len(unknown) == 0 and len(every):
        return every
    known = asker.box.probability(N[within], found.label[within], noted, ENDLESS)
    if known is None:
        return None
    every[within] = known
    return every
