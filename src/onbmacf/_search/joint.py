"""Where a search finds nothing, or what may be asked is little: all combinations of values, fitted rows, far corners.

ask_all  every point that a factual may become        last_resort  before "none found" is said
"""

from dataclasses import replace

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows, take
from onbmacf._search import choose
from onbmacf._search.budget import turns
from onbmacf._search.oracle import Reply
from onbmacf._search.record import Record
from onbmacf._search.rounds import FEW_JOINT, MOST_ROUNDS, REFINED_AGAIN, donors_among, needed_only, projected, propose
from onbmacf._search.search import CAPS, Proposed, Search, ask, margins, note_limits, room_of, write_down

MOST_JOINT = 1 << 14  # combinations that are asked about when a search finds nothing
MOST_CORNERS = 1 << 10
MOST_DONORS = 512
CLIMBS, STARTS, MOST_LEVELS = 6, 4, 48  # where nothing is found: rounds, points that each begins from, levels looked at
AT_ONCE = 1 << 16  # combinations in one step


def ask_all(search: Search, record: Record, wanted: Mask, is_open: Mask, most: int) -> Mask:
    """Ask about every point that a factual may become, for those with at most so many; say which they are."""
    is_proven = np.zeros(len(search.factuals), dtype=bool)
    points, owner = [], []
    room = search.oracle.room(search.reserve)
    for row in np.flatnonzero(is_open):
        every = search.reach(search.factuals[row], most)
        if every is None or len(every) > room[row]:
            continue
        is_proven[row] = True
        points.append(every)
        owner.append(np.full(len(every), row, dtype=np.intp))
        if sum(map(len, points)) > AT_ONCE:
            _ask_each(search, record, wanted, np.concatenate(points), np.concatenate(owner))
            points, owner = [], []
    if points:
        _ask_each(search, record, wanted, np.concatenate(points), np.concatenate(owner))
    ties = (record.margin == 0) & is_proven[:, np.newaxis]  # known from before
    if search.oracle.has_limits:
        is_proven &= ~ties.any(axis=1)
    else:
        tied, slot = np.nonzero(ties)
        write_down(search, record, wanted, tied, slot, _ask_and_settle(search, record.points[tied, slot], tied))
    return is_proven & ~search.oracle.ran_out


def _ask_and_settle(search: Search, points: Matrix, owner: Rows) -> Reply:
    reply = search.oracle.ask(points, owner)
    search.oracle.settle(reply, points, owner)
    return reply


def _ask_each(search: Search, record: Record, wanted: Mask, points: Matrix, owner: Rows) -> None:
    """Ask about points as they are; all are written down where there is room, else those that are answers."""
    endless = np.full(len(search.factuals), len(points), dtype=np.intp)
    if np.bincount(owner, minlength=1).max() <= FEW_JOINT:
        row, slot, line = record.add(points, owner, np.ones(len(points), dtype=bool), endless)
        write_down(search, record, wanted, row, slot, _ask_and_settle(search, points[line], row))
    else:
        _keep_best(search, record, wanted, points, owner, _ask_and_settle(search, points, owner))


def _keep_best(search: Search, record: Record, wanted: Mask, points: Matrix, owner: Rows, reply: Reply) -> None:
    """Write down what came back about more points than there is room for: answers, nearest first, and some others."""
    margin = margins(search, reply, points, owner, wanted)
    cost, _ = record.measured(points, owner)
    order = np.lexsort((np.where(margin > 0, cost, -margin), margin <= 0, owner))
    order = order[(margin[order] > 0) | (turns(owner[order]) < STARTS)]
    endless = np.full(len(search.factuals), len(points), dtype=np.intp)
    row, slot, line = record.add(points[order], owner[order], np.ones(len(order), dtype=bool), endless)
    write_down(search, record, wanted, row, slot, take(reply, order[line]))


def last_resort(
    search: Search, record: Record, wanted: Mask, is_open: Mask, is_proven: Mask, price: Matrix, score: Matrix
) -> None:
    """Try more for factuals without an answer: all combinations where they are few, else fitted rows, then corners.

    From the points with the highest margins it climbs on, one feature at a time, cost what it may. `is_proven` is told
    which of them have been asked about everything.
    """
    none = is_open & ~is_proven & ~np.isfinite(score).any(axis=1)
    if not none.any() or search.oracle.is_late:
        return
    is_proven |= ask_all(search, record, wanted, none, MOST_JOINT)
    none &= ~is_proven
    _ask_more_donors(search, record, wanted & none[:, np.newaxis])
    none &= ~record.accepted().any(axis=1)
    tried, climbed = _corners(search, record, none), np.zeros(record.margin.shape, dtype=bool)
    for _ in range(CLIMBS):
        if not len(tried.owner):
            break
        ask(search, record, wanted, tried, np.where(none, search.oracle.room(search.reserve), 0))
        none &= ~record.accepted().any(axis=1)
        tried = _climb(search, record, none, climbed)
    found = is_open & ~is_proven & record.accepted().any(axis=1) & ~np.isfinite(score).any(axis=1)
    for _ in range(REFINED_AGAIN if found.any() else 0):
        base = np.where(record.accepted(), record.base, np.inf)
        proposed = propose(record, found, base, len(CAPS))
        ask(search, record, wanted, proposed, np.where(found, room_of(search, len(CAPS)), 0))
    if found.any():
        score = choose.worth(record, price, 1, search.neighbours)
        needed_only(search, record, wanted, price, score, np.where(found, MOST_ROUNDS, 0))


def _ask_more_donors(search: Search, record: Record, wanted: Mask) -> None:
    """Ask about many fitted rows of the labels that are wanted, with immutable values put in."""
    if search.least_share > 0.0:
        points, owner = _donors_with_neighbours(search, wanted)
    else:
        found = search.table.nearest_rows(search.factuals, search.free, wanted, MOST_DONORS)
        owner, place = np.nonzero(found >= 0)
        points = search.values.placed(projected(search, found[owner, place], owner), search.factuals[owner])
    kept = np.flatnonzero(search.values.allowed(points, search.factuals[owner]))
    room = search.oracle.room(search.reserve)
    note_limits(search, owner[kept], room)
    kept = kept[turns(owner[kept]) < room[owner[kept]]]
    points, owner = points[kept], owner[kept]
    _keep_best(search, record, wanted, points, owner, search.oracle.ask(points, owner))


def _donors_with_neighbours(search: Search, wanted: Mask) -> tuple[Matrix, Rows]:
    """Return fitted rows that keep a bound on neighbours: of every row of a label, for one factual at a time."""
    every, parts = len(search.table.sample), [(np.empty((0, search.factuals.shape[1])), np.empty(0, dtype=np.intp))]
    for row in np.flatnonzero(wanted.any(axis=1)):
        alone = replace(search, factuals=search.factuals[[row]], free=search.free[[row]])
        points, owner, _ = donors_among(alone, wanted[[row]], every, MOST_DONORS)
        parts.append((points, owner + row))
    return np.concatenate([points for points, _ in parts]), np.concatenate([owner for _, owner in parts])


def _climb(search: Search, record: Record, rows: Mask, climbed: Mask) -> Proposed:
    """Return the points around the refused ones with the highest margins: each free feature at values of all sizes.

    No point is climbed from twice.
    """
    points, owner = [np.empty((0, search.factuals.shape[1]))], [np.empty(0, dtype=np.intp)]
    for row in np.flatnonzero(rows):
        margin = np.where(climbed[row] | np.isnan(record.margin[row]), -np.inf, record.margin[row])[: record.size[row]]
        best = np.argsort(-margin, kind="stable")[:STARTS]
        climbed[row, best] = True
        for start in record.points[row, best]:
            for at in np.flatnonzero(search.free[row]):
                ranks = search.table.ranks[at]
                values = ranks[~np.isnan(ranks)][:MOST_LEVELS] if search.table.is_level[at] else ranks[::10]
                trial = np.repeat(start[np.newaxis], len(values), axis=0)
                trial[:, at] = values
                points.append(trial)
                owner.append(np.full(len(trial), row, dtype=np.intp))
    return Proposed.of(np.concatenate(points), np.concatenate(owner))


def _corners(search: Search, record: Record, rows: Mask) -> Proposed:
    """Return the corners of the free features' ranges: all where they are few, else near the one that singles favour.

    Of a category the two levels that gain most alone stand for its ends.
    """
    points, owner = [np.empty((0, search.factuals.shape[1]))], [np.empty(0, dtype=np.intp)]
    for row in np.flatnonzero(rows):
        ends = _ends(search, record, int(row))
        free = [at for at in range(len(ends)) if len(ends[at]) > 1]
        if not free:
            continue
        n_all = np.prod([float(len(ends[at])) for at in free])
        if n_all <= MOST_CORNERS:
            grid = np.stack(np.meshgrid(*(ends[at] for at in free), indexing="ij"), axis=-1).reshape(-1, len(free))
        else:
            best = np.array([ends[at][0] for at in free])
            grid = np.repeat(best[np.newaxis], 1 + len(free), axis=0)
            for place, at in enumerate(free):
                grid[1 + place, place] = ends[at][1]
        corners = np.repeat(search.factuals[[row]], len(grid), axis=0)
        corners[:, free] = grid
        points.append(corners)
        owner.append(np.full(len(corners), row, dtype=np.intp))
    return Proposed.of(np.concatenate(points), np.concatenate(owner))


def _ends(search: Search, record: Record, row: int) -> list[Matrix]:
    """Return the values of each feature that make corners, the one that gains most alone first."""
    found, margin = [], record.margin[row, : record.size[row]]
    points = record.points[row, : record.size[row]]
    is_single = record.n_changed[row, : record.size[row]] == 1
    for at, start in enumerate(search.factuals[row].tolist()):
        if not search.free[row, at]:
            found.append(np.array([start]))
            continue
        if search.table.is_level[at]:
            single = np.flatnonzero(is_single & (points[:, at] != start))
            values = points[single[np.argsort(-margin[single], kind="stable")], at][:2]
            found.append(np.append(values, start))
            continue
        values = search.table.ranks[at, [0, -1]]
        gains = [margin[is_single & (points[:, at] == value)].max(initial=-np.inf) for value in values]
        found.append(values[np.argsort(-np.array(gains), kind="stable")])
    return found
