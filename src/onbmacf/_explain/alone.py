"""Without a search: what the model says of rows, and which features would change the label by themselves.

    rows  ->  predictions  ->  frame: label, probability, status and reason of each row
    rows  ->  respond  ->  Responses  ->  responsiveness  ->  frame: one line per row and free feature

The share of a feature's values that reach a wanted label is its *responsiveness* (Cheon and others, "Feature
Responsiveness Scores", 2024: over the values that a person may change to; here those are the values of the fitted rows,
as far as the rules allow them). Decision 0076 says what is asked.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Matrix, Rows, objects, stack
from onbmacf._explain.fitted import Fitted
from onbmacf._explain.request import Question, Request
from onbmacf._explain.rows import Asker, Factuals
from onbmacf._search.options import Options
from onbmacf._search.strategies import checked
from onbmacf._table.calls import ENDLESS
from onbmacf._table.form import TableForm

MOST_VALUES = 64  # of one feature that are asked about
TOGETHER = 64  # pairs of a row and a feature that are asked about together


class Responses(NamedTuple):
    """Parallel arrays, one line per row and feature that may change."""

    row: Rows  # position among the rows
    feature: Rows  # position among the features
    n_asked: Rows  # values that the model was asked about
    n_reached: Rows  # of these, that reach a wanted label
    nearest: Matrix  # the nearest of those, as a number; NaN where there is none


def predictions(fitted: Fitted, options: Options, rows: Any) -> pd.DataFrame:
    """Return one line per row, with the caller's index."""
    fitted.check(checked(options))
    frame, _ = fitted.space.form.arrange(rows)
    box = fitted.black_box.counting()
    factuals = Factuals.of(frame, Request.of(fitted, options, Question()), box)
    known = np.flatnonzero((factuals.codes >= 0) & (factuals.codes < len(box.classes)))
    found = box.probability(factuals.N[known], factuals.codes[known], retries=ENDLESS)
    probability = np.full(len(frame), np.nan)
    if found is not None:
        probability[known] = found
    is_said = factuals.codes >= 0  # a label that no fitted row has is said, too
    columns = {
        "label": pd.Series(objects(factuals.labels), frame.index, dtype=object),  # None where there is none
        "probability": probability,
        "status": objects(np.where(is_said, "predicted", factuals.statuses)),
        "reason": objects(np.where(is_said, "", factuals.reasons)),
    }
    return pd.DataFrame(columns, index=frame.index)


def responsiveness(fitted: Fitted, options: Options, rows: Any, target: Any) -> pd.DataFrame:
    """Return one line per row and free feature, in the caller's index and units."""
    fitted.check(checked(options))
    form = fitted.space.form
    frame, _ = form.arrange(rows)
    found = respond(Request.of(fitted, options, Question(target)), frame)
    nearest = [_value(form, at, number) for at, number in zip(found.feature, found.nearest, strict=True)]
    columns = {
        "feature": objects(form.schema.names[at] for at in found.feature),
        "n_asked": found.n_asked,
        "n_reached": found.n_reached,
        "share": found.n_reached / np.where(found.n_asked, found.n_asked, np.nan),
        "nearest": objects(nearest),
    }
    return pd.DataFrame(columns, index=frame.index[found.row])


def respond(request: Request, frame: pd.DataFrame) -> Responses:
    """Ask about each free feature of each row alone."""
    box = request.fitted.black_box.counting()
    factuals = Factuals.of(frame, request, box)
    asker, free = Asker(request, box, factuals), np.flatnonzero(~request.is_held).tolist()
    values = {at: values_of(request.fitted.seen_values[at]) for at in free}
    cells = [(row, at) for row in factuals.open_lines().tolist() for at in free]
    parts = [_asked(asker, cells[at : at + TOGETHER], values) for at in range(0, len(cells), TOGETHER)]
    none = np.empty(0, dtype=np.intp)
    return stack([Responses(none, none, none, none, np.empty(0)), *parts])


def values_of(seen: Matrix) -> Matrix:
    """Return different values of a feature, in order: all, or the smallest, the largest and evenly spaced ones."""
    seen = seen[~np.isnan(seen)]
    if len(seen) <= MOST_VALUES:
        return seen
    return seen[np.linspace(0, len(seen) - 1, MOST_VALUES).round().astype(np.intp)]


def _asked(asker: Asker, cells: list[tuple[int, int]], values: dict[int, Matrix]) -> Responses:
    """Ask about some pairs of a row and a feature in one go."""
    trials = [_trials(asker, row, at, values[at]) for row, at in cells]
    lengths = np.array([len(trial) for trial in trials])
    N, line = np.concatenate(trials), np.repeat(np.arange(len(cells)), lengths)
    rows, features = np.array(cells, dtype=np.intp).T
    reached = asker.reached(asker.box.ask(N), rows[line])
    nearest = [_nearest(asker, *cells[cell], N[reached[line[reached] == cell]]) for cell in range(len(cells))]
    n_reached = np.bincount(line[reached], minlength=len(cells))
    return Responses(rows, features, lengths, n_reached, np.array(nearest, dtype=np.float64))


def _trials(asker: Asker, row: int, at: int, values: Matrix) -> Matrix:
    """Return a row with each other value of one feature that the rules allow."""
    factual = asker.factuals.N[row]
    trial = np.repeat(factual[np.newaxis], len(values), axis=0)
    trial[:, at] = values
    good = (values != factual[at]) & ~np.isnan(factual[at])  # a missing value is not filled in
    before, effects = np.broadcast_to(factual, trial.shape), asker.request.fitted.space.effects
    trial = trial[good & asker.request.constraints.allowed(trial, before)]
    return trial if effects is None else effects.whole(trial, before[: len(trial)])


def _nearest(asker: Asker, row: int, at: int, reached: Matrix) -> float:
    """Return the nearest of the values that reach a wanted label; of levels, the first; NaN where there is none."""
    if not len(reached):
        return np.nan
    is_number = asker.request.fitted.space.schema.features[at].is_numeric
    far = np.abs(reached[:, at] - asker.factuals.N[row, at]) if is_number else np.zeros(len(reached))
    return float(reached[far.argmin(), at])


def _value(form: TableForm, at: int, number: float) -> Any:
    """Return a number as the feature's value in the caller's dtype; None for NaN."""
    if np.isnan(number):
        return None
    line = np.zeros((1, len(form.schema.features)))
    line[0, at] = number
    return form.frame(line).iloc[0, at]
