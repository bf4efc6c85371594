"""Chosen actions made better: one of them at a time is varied while that is worth more to the rows.

    Asked, valued actions  ->  improved  ->  valued actions  ->  by_gain  ->  actions, in the order of what each adds

A row that an action helps is worth 1 less a price times what the action costs it; a row counts with the action that is
worth most to it. A variation drops a feature, moves it somewhat, puts another value of the table in its place, or adds
a feature. All variations of an action are asked about some rows, the most promising ones about all of them, and the
best is taken if it is better than the action; this ends where no action has a better variation (decisions 0086, 0102).
A row that an action cannot help more cheaply than it is helped already is not asked about.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._explain.fitted import Fitted
from onbmacf.audit.moves import AT_LEAST, AT_MOST, BY, TO, Action, Asked, Move

Values = NDArray[np.float64]
ROUNDS = 40  # at most, of every action
QUANTILES = np.linspace(0.05, 0.95, 10)  # of a feature's fitted values: where a move may end
AMOUNTS = (-0.3, -0.15, -0.05, 0.05, 0.15, 0.3)  # of a feature's range: by how much a move may go
STEPS = (-0.15, -0.05, -0.02, -0.01, 0.01, 0.02, 0.05, 0.15)  # of its range: how a move is varied
MOST_LEVELS = 10  # of a category that are tried
FIRST_ASKED = 50  # rows that no action helps, at least, that all variations are asked about
PROMISING = 40  # variations that are then asked about all rows


class Valued(NamedTuple):
    """An action, and what it is worth to each row."""

    action: Action
    worth: Values


def worths(some: Asked, actions: Sequence[Action], price: float, held: Values | float = 0.0) -> Values:
    """Return what each action is worth to each row, 0 where it does not help.

    Where it cannot be worth more to a row than what the row holds already, the model is not asked, and it says 0.
    """
    floor = np.broadcast_to(held, len(some.N))[:, np.newaxis]
    flips, costs = some.asked(actions, lambda costs: 1 - price * costs > floor)
    return np.where(flips, 1 - price * np.nan_to_num(costs), 0.0)


def held_by(own: Sequence[Valued], n_rows: int) -> Values:
    """Return what each row has of the action that is worth most to it; 0 where there are none."""
    return np.max([np.zeros(n_rows), *(valued.worth for valued in own)], axis=0)


def improved(some: Asked, own: Sequence[Valued], price: float, most_features: int, first: int = 0) -> list[Valued]:
    """Improve the actions from the place `first` on, in turn, beside those before, until none gets better."""
    moves, own, unchanged = possible_moves(some.fitted), list(own), 0
    n_open = len(own) - first
    for turn in range(ROUNDS * n_open):
        at = first + turn % n_open
        better = _better(some, own, at, moves, price, most_features)
        unchanged = 0 if better is not None else unchanged + 1
        if unchanged == n_open:
            break
        own[at] = own[at] if better is None else better
    return own


def most_missed(own: Sequence[Valued], n_kept: int) -> list[Valued]:
    """Take out the action without which the others are worth most, until so many are left; of equals the last."""
    left = list(own)
    while len(left) > n_kept:
        rests = [[*left[:at], *left[at + 1 :]] for at in reversed(range(len(left)))]
        left = max(rests, key=lambda rest: held_by(rest, len(own[0].worth)).sum())
    return left


def by_gain(own: Sequence[Valued]) -> tuple[Action, ...]:
    """Return the actions in the order of what each adds."""
    left, ordered, held = list(own), [], np.zeros(len(own[0].worth) if own else 0)
    while left:
        gains = [np.maximum(held, valued.worth).sum() for valued in left]
        taken = left.pop(int(np.argmax(gains)))
        ordered.append(taken.action)
        held = np.maximum(held, taken.worth)
    return tuple(ordered)


def possible_moves(fitted: Fitted) -> dict[int, list[Move]]:
    """Return, per feature that may change, the moves that an action may take: to quantiles, by shares of its range."""
    space = fitted.space
    seen = space.decode_numbers(fitted.Z[evenly(len(fitted.Z), 5000)])
    kinds = {True: _numeric_moves, False: _level_moves}
    return {
        at: kinds[feature.is_numeric](fitted, at, seen[~np.isnan(seen[:, at]), at])
        for at, feature in enumerate(space.schema.features)
        if not feature.immutable
    }


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """Return up to so many of n places, evenly spread.

    >>> evenly(9, 3)
    array([0, 4, 8])
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)) if n else np.empty(0, dtype=np.intp)


def readable(fitted: Fitted, at: int, value: float) -> float:
    """Return a value of a feature as it would be written: whole for counts."""
    feature = fitted.space.schema.features[at]
    decimals = fitted.space.readable[at] if feature.kind == "continuous" else 0
    return float(np.round(value, decimals or 0))


def _numeric_moves(fitted: Fitted, at: int, seen: Values) -> list[Move]:
    ends = dict.fromkeys(readable(fitted, at, value) for value in np.quantile(seen, QUANTILES)) if len(seen) else {}
    span = float(fitted.ranges[at][1] - fitted.ranges[at][0])
    amounts = dict.fromkeys(readable(fitted, at, share * span) for share in AMOUNTS)
    to_ends = [Move(at, how, value) for how in (AT_MOST, AT_LEAST) for value in ends]
    return [*to_ends, *(Move(at, BY, amount) for amount in amounts if amount)]


def _level_moves(fitted: Fitted, at: int, seen: Values) -> list[Move]:
    levels, counts = np.unique(seen, return_counts=True)
    kept = np.sort(levels[np.argsort(-counts, kind="stable")[:MOST_LEVELS]])
    hows = (AT_MOST, AT_LEAST) if fitted.space.schema.features[at].kind == "ordinal" else (TO,)
    return [Move(at, how, float(level)) for how in hows for level in kept]


def _better(
    some: Asked, own: list[Valued], at: int, moves: dict[int, list[Move]], price: float, most_features: int
) -> Valued | None:
    """Return the variation of one action with which all of them are worth most; None if none is better."""
    held = held_by([*own[:at], *own[at + 1 :]], len(some.N))
    tried = list(dict.fromkeys(_variations(some.fitted, own[at].action, moves, most_features)))
    tried = _promising(some, tried, price, held)
    if not tried:
        return None
    found = worths(some, tried, price, held)
    totals = np.maximum(found, held[:, np.newaxis]).sum(axis=0)
    best = int(totals.argmax())  # a tie goes to the first
    is_better = totals[best] > np.maximum(own[at].worth, held).sum() + 1e-9
    if not is_better:
        return None
    own_worth = worths(some, [tried[best]], price)[
        :, 0
    ]  # also where another action holds more now: that one may change
    return Valued(tried[best], own_worth)


def _promising(some: Asked, tried: list[Action], price: float, held: Values) -> list[Action]:
    """Return the variations that are worth most to some of the rows."""
    lines, stand_for = _first_asked(held)
    found = np.maximum(worths(some.some(lines), tried, price, held[lines]), held[lines, np.newaxis])
    totals = (found * stand_for[:, np.newaxis]).sum(axis=0)
    return [tried[place] for place in np.argsort(-totals, kind="stable")[:PROMISING]]


def _first_asked(held: Values) -> tuple[NDArray[np.intp], Values]:
    """Return the rows that all variations are asked about, and how many rows each of them stands for.

    Every third of the rows that are helped; more of those that are not, which a variation is to reach, where few are
    left (decision 0102).
    """
    if len(held) < 3 * FIRST_ASKED:
        return np.arange(len(held)), np.ones(len(held))
    left, helped = np.flatnonzero(held <= 0), np.flatnonzero(held > 0)
    step = max(1, len(left) // max(FIRST_ASKED, len(held) // 6))
    parts = [left[::step], helped[::3]]
    return np.concatenate(parts), np.repeat([float(step), 3.0], [len(part) for part in parts])


def _variations(fitted: Fitted, action: Action, moves: dict[int, list[Move]], most_features: int) -> Iterator[Action]:
    for place, move in enumerate(action):
        before, after = action[:place], action[place + 1 :]
        if before or after:
            yield before + after
        others = [*_nearby(fitted, move), *(other for other in moves.get(move.feature, ()) if other != move)]
        yield from ((*before, other, *after) for other in others)
    named = {move.feature for move in action}
    if len(action) < most_features:
        yield from ((*action, move) for at, several in moves.items() if at not in named for move in several)


def _nearby(fitted: Fitted, move: Move) -> Iterable[Move]:
    """Yield a move that goes somewhat farther or less far."""
    if move.how == TO or not fitted.space.schema.features[move.feature].is_numeric:
        return
    low, high = fitted.ranges[move.feature]
    for step in STEPS:
        value = readable(fitted, move.feature, move.value + step * (high - low))
        inside = value if move.how == BY else float(np.clip(value, low, high))
        if inside != move.value and not (move.how == BY and inside == 0):
            yield move._replace(value=inside)
