"""The last round: the points that are chosen, asked about again by the model's own `predict`, as they will be printed.

Record, scores  ->  confirm  ->  Outcome: what was found, with the way back to each factual
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.missing import differs
from onbmacf._search.budget import UNASKED
from onbmacf._search.problem import Found
from onbmacf._search.record import Record
from onbmacf._search.rounds import chosen
from onbmacf._search.search import Search
from onbmacf._search.table import SearchTable
from onbmacf._search.walk import WAY_BACK, margins
from onbmacf._table.model import FAILED

LADDER, TRIES = 16, 8  # where `predict` contradicts scores: points that are asked about, choices made again


class Outcome(NamedTuple):
    """What was found, what every combination of values proves, and what the model says of the factuals."""

    found: Found
    is_proven: Mask
    codes: Rows
    labels: NDArray[Any]  # the model's own labels, or the error that it raised; None where it was not asked


Find = Callable[[Search, Mask | None], Outcome]  # of some factuals, or of all


def confirm(search: Search, record: Record, is_proven: Mask, score: Matrix, find: Find) -> Outcome:
    """Choose, and ask the model's own `predict` about what was chosen, as it will be printed.

    A point that it gives another label is dropped for the next best, some times. Where it says something else of a
    factual, this one is searched again by labels alone; within a budget, it gets its label and no answer. Where it
    contradicts the copy of the model, all are asked about again without. `find` is how factuals are searched again.
    """
    oracle, codes = search.oracle, np.where(record.size > 0, record.code[:, 0], UNASKED)  # the time may have been up
    labels = oracle.named(codes)
    row, slot = chosen(search, record, score)
    confirmed = _look_back(search, record, row, slot, codes, with_own=not oracle.has_limits or oracle.sees_scores)
    if oracle.reads and _is_other(confirmed, record, row, slot, codes):
        oracle.distrust()
        return find(search, None)
    is_known = confirmed.factual_codes != UNASKED
    is_other = is_known & (
        confirmed.factual_codes != codes
    )  # factuals whose label is not the one with the highest score
    codes, labels = np.where(is_known, confirmed.factual_codes, codes), np.where(is_known, confirmed.labels, labels)
    is_doubted = is_other & (not oracle.has_limits and oracle.sees_scores)
    again = find(search, is_doubted) if oracle.doubt(is_doubted) else None
    oracle.ran_out |= is_other & ~is_doubted
    doubted = np.zeros(len(score), dtype=bool)
    for _ in range(TRIES):
        wrong = confirmed.again != record.code[row, slot]
        wrong &= (confirmed.again != UNASKED) & (confirmed.again != FAILED)
        if not wrong.any():
            break
        others = np.where(np.isin(np.arange(len(score)), row[wrong])[:, np.newaxis], score, np.inf)
        doubted[row[wrong]] = True
        right = score[row[~wrong], slot[~wrong]]
        for r in np.unique(row[wrong]).tolist():
            weak = np.isin(np.arange(score.shape[1]), slot[wrong & (row == r)])
            if oracle.has_scores(r):
                weak |= record.margin[r] <= _believed_from(search, record, r, slot[wrong & (row == r)])
            score[r, weak] = others[r, weak] = np.inf
        score[row[~wrong], slot[~wrong]] = right
        others[row[~wrong], slot[~wrong]] = np.where(np.isin(row[~wrong], row[wrong]), right, np.inf)
        if not np.isfinite(others).any():
            break
        more, places = chosen(search, record, others)
        stays = ~np.isin(row, row[wrong])
        row, slot = np.concatenate([row[stays], more]), np.concatenate([slot[stays], places])
        order = np.argsort(row, kind="stable")
        row, slot = row[order], slot[order]
        confirmed = _look_back(search, record, row, slot, codes, with_own=False)
    found = _found(search, record, row, slot, confirmed)
    is_sure = ~doubted[row] | (confirmed.again != UNASKED)  # scores were wrong of such a row, so they are not believed
    outcome = Outcome(take(found, is_sure & ~is_other[row]), is_proven & ~is_other, codes, labels)
    return outcome if again is None else merged(outcome, again, is_doubted)


def merged(outcome: Outcome, again: Outcome, rows: Mask) -> Outcome:
    """Return an outcome with what was found when some rows were searched again."""
    found = stack([outcome.found, again.found])
    found = take(found, np.argsort(found.factual, kind="stable"))
    parts = zip(outcome[1:], again[1:], strict=True)
    return Outcome(found, *(np.where(rows, new, old) for old, new in parts))


def _believed_from(search: Search, record: Record, row: int, wrong: Rows) -> float:
    """Return the margin up to which `predict` contradicts the scores of a factual's points, by asking about some.

    Some are known to be wrong; within limits, nothing more is asked.
    """
    good = np.flatnonzero(record.accepted()[row] & (not search.oracle.has_limits))
    some = good[np.argsort(record.margin[row, good], kind="stable")][:: max(1, len(good) // LADDER)]
    said, _ = search.oracle.confirm(record.points[row, some], np.full(len(some), row, dtype=np.intp))
    others = some[(said != record.code[row, some]) & (said != UNASKED)]
    return float(record.margin[row, np.append(wrong, others)].max())


class LookedBack(NamedTuple):
    """What lies between points and their factuals, one line per point; and what the model says of the factuals."""

    semifactual: Matrix  # the factual itself where there is none
    has_semifactual: Mask
    again: Rows  # the label of the point when it was asked again
    margin: Matrix  # share of the way; NaN where it was not asked
    factual_codes: Rows  # UNASKED where it was not asked
    labels: NDArray[Any]


def _is_other(confirmed: LookedBack, record: Record, row: Rows, slot: Rows, codes: Rows) -> bool:
    """Say whether the model contradicts its copy."""
    again = (confirmed.again != record.code[row, slot]) & (confirmed.again != UNASKED)
    return bool(again.any() or ((confirmed.factual_codes != codes) & (confirmed.factual_codes != UNASKED)).any())


def _look_back(search: Search, record: Record, row: Rows, slot: Rows, codes: Rows, with_own: bool) -> LookedBack:
    """Ask again about points, and about the way from each back to its factual; and about the factuals themselves.

    The semifactual is the place nearest to the point that has the factual's label and keeps the rules. The margin is
    the share of the way on which the point's label holds without a gap.
    """
    points, start = record.points[row, slot], search.factuals[row]
    shares = np.arange(WAY_BACK, 0, -1) / WAY_BACK  # the point first: a budget may end on the way
    line = np.repeat(np.arange(len(row)), WAY_BACK)
    way = (search.table, start[line], points[line], np.tile(shares, len(row)))
    raw = _between(*way) if search.blocks is None else search.blocks.on_the_way(*way)
    places = search.values.placed(raw, start[line])
    places[::WAY_BACK] = points
    known = np.flatnonzero((record.size > 0) & with_own)
    n_factuals, asked = len(known), np.concatenate([search.factuals[known], places])
    # Points first, then all places next to them, and so on: where a budget ends, it ends for all alike.
    turn = np.concatenate([np.full(n_factuals, -1), np.tile(np.arange(WAY_BACK), len(row))])
    order = np.argsort(turn, kind="stable")
    said, names = search.oracle.confirm(asked[order], np.concatenate([known, row[line]])[order])
    codes_said, labels = np.empty_like(said), np.empty_like(names)
    codes_said[order], labels[order] = said, names
    said = codes_said[n_factuals:].reshape(-1, WAY_BACK)
    moved = differs(places, start[line]).any(axis=1) & _lies_between(start[line], places, points[line])
    same = (codes_said[n_factuals:] == codes[row[line]]) & moved
    same[same] = search.values.allowed(places[same], start[line[same]])
    same = same.reshape(-1, WAY_BACK)
    has, first = same.any(axis=1), np.arange(0, len(line), WAY_BACK) + same.argmax(axis=1)
    semifactual = np.where(has[:, np.newaxis], places[first], start) if len(row) else start
    margin = margins(said[:, 1:], record.code[row, slot])
    factual_codes, factual_labels = (
        np.full(len(search.factuals), UNASKED),
        np.full(len(search.factuals), None, dtype=object),
    )
    factual_codes[known], factual_labels[known] = codes_said[:n_factuals], labels[:n_factuals]
    return LookedBack(semifactual, has, said[:, 0], margin, factual_codes, factual_labels)


def _between(table: SearchTable, start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return places on the way: levels change, and what is missing is filled in, from the middle on."""
    share = share[:, np.newaxis]
    places = start + share * (goal - start)
    return np.where(table.is_level | np.isnan(start), np.where(share < 0.5, start, goal), places)


def _lies_between(start: Matrix, points: Matrix, goal: Matrix) -> Mask:
    """Say which points are, in every feature, between their factual and their goal: rules may push one beyond."""
    low, high = np.fmin(start, goal), np.fmax(start, goal)
    edge = 1e-12 * (np.abs(low) + np.abs(high))
    return np.asarray((np.isnan(points) | ((points >= low - edge) & (points <= high + edge))).all(axis=1))


def _found(search: Search, record: Record, row: Rows, slot: Rows, back: LookedBack) -> Found:
    points, label = record.points[row, slot], record.code[row, slot]
    is_label, whole = np.arange(search.n_classes) == label[:, np.newaxis], search.whole(points, row)
    return Found(
        factual=row,
        ball=search.table.nearest_balls(whole, np.ones(points.shape, dtype=bool), is_label, 1)[:, 0],
        label=label,
        relaxation=np.zeros(len(row), dtype=np.intp),
        counterfactual=search.encode(points),
        semifactual=search.encode(back.semifactual),
        has_semifactual=back.has_semifactual,
        again=back.again,
        margin=back.margin,
        numbers=whole,
        semifactual_numbers=search.whole(back.semifactual, row),
        probability=record.probability[row, slot],
        donor=None if record.donor is None else record.donor[row, slot],
    )
