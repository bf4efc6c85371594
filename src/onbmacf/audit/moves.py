"""One action for many rows: a few moves of features, applied, asked about, put into words, and improved.

    rows, Action  ->  moved  ->  points, numbers, who may take it  ->  RefusedRows.outcomes  ->  flips, costs
    actions  ->  improved (a local search over variations of each, beside the others)  ->  actions that help more

What an action is worth to a row is 1 less the price of its cost, 0 where it does not help. A set of actions is worth
what each row has of its best one. Decision 0070.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.missing import differs
from onbmacf._columns.converters import MOMENTS, days_in, holds, size_unit
from onbmacf._explain.fitted import Fitted
from onbmacf._explain.request import target_labels
from onbmacf._table.model import BlackBox
from onbmacf._text.wording import joined, shown

AT_MOST, AT_LEAST, BY, TO = "at most", "at least", "by", "to"
IN_TIME = {AT_MOST: "no later than", AT_LEAST: "no earlier than"}  # of dates, times and periods
ROWS_AT_ONCE = 20_000  # that are made ready together
DOUBLINGS = 4  # of a chunk, where many rows are asked about
ROUNDS = 40  # at most, of every action
QUANTILES = np.linspace(0.05, 0.95, 10)  # of a feature's fitted values: where a move may end
AMOUNTS = (-0.3, -0.15, -0.05, 0.05, 0.15, 0.3)  # of a feature's range: by how much a move may go
STEPS = (-0.15, -0.05, -0.02, -0.01, 0.01, 0.02, 0.05, 0.15)  # of its range: how a move is varied
MOST_LEVELS = 10  # of a category that are tried
SCREENED = 50  # rows that no action helps, at least, that all variations are asked about
PROMISING = 40  # variations that are then asked about all rows


# --- moves ------------------------------------------------------------------------------------------------------------


class Move(NamedTuple):
    """Where one feature goes.

    Attributes
    ----------
    feature : int
        Its position among the columns.
    how : {"at most", "at least", "by", "to"}
        To at most or at least the value, by that much, or to the level with this number.
    value : float
        The value, amount or number of the level.

    """

    feature: int
    how: str
    value: float


Action = tuple[Move, ...]
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RefusedRows:
    """Rows to be helped, as numbers and points, and the model to ask."""

    fitted: Fitted
    box: BlackBox
    N: Matrix
    z: Matrix
    favourable: Rows  # codes of the favourable labels

    @classmethod
    def of(cls, fitted: Fitted, rows: Any, target: Any) -> "RefusedRows":
        """Return rows of the caller, ready to be asked about; `target` is the favourable label, or several."""
        N = fitted.space.form.numbers(fitted.space.form.arrange(rows)[0])
        known = fitted.black_box.classes.tolist()
        codes = np.array([known.index(label) for label in target_labels(target, known)], dtype=np.intp)
        return cls(fitted, fitted.black_box.counting(), N, fitted.space.encode_numbers(N), codes)

    def some(self, lines: Rows) -> "RefusedRows":
        """Return some of the rows."""
        return replace(self, N=self.N[lines], z=self.z[lines])

    def in_large_calls(self) -> "RefusedRows":
        """Return the same rows, asked about in larger calls, where the size of a call does not change the answers.

        That was seen of smaller calls only, so these are for choosing: what is told of an action is asked as usual.
        """
        sizes = self.box.sizes
        larger = {self.box.chunk << k for k in range(1, DOUBLINGS + 1)} if sizes else set()
        return replace(self, box=replace(self.box, sizes=tuple(sorted(larger.union(sizes)))))

    def outcomes(
        self, actions: Sequence[Action], matters: Callable[[Matrix], Mask] | None = None
    ) -> tuple[Mask, Matrix]:
        """Return, per row and action, whether it leads to a favourable label, and its cost; NaN where it is forbidden.

        The cost is the distance that the row moves, 0 for one that is there already. `matters` says of costs which are
        worth a question; where it says no, the model is not asked and the row counts as not led there.
        """
        if not actions:
            return np.zeros((len(self.N), 0), dtype=bool), np.zeros((len(self.N), 0))
        at_a_time = max(1, ROWS_AT_ONCE // max(len(self.N), 1))
        starts = range(0, len(actions), at_a_time)
        parts = [self._outcomes(actions[start : start + at_a_time], matters) for start in starts]
        flips, costs = zip(*parts, strict=True)
        return np.concatenate(flips, axis=1), np.concatenate(costs, axis=1)

    def _outcomes(self, actions: Sequence[Action], matters: Callable[[Matrix], Mask] | None) -> tuple[Mask, Matrix]:
        """Ask about some actions in one call of the model: most models take longer to be called than to answer."""
        parts = [moved(self.fitted, action, self.z, self.N) for action in actions]
        metric = self.fitted.options["metric"]
        costs = np.stack([np.where(may, paired(self.z, points, metric), np.nan) for points, _, may in parts], axis=1)
        is_open = ~np.isnan(costs) if matters is None else ~np.isnan(costs) & matters(costs)
        flips = np.zeros(costs.shape, dtype=bool).T
        questions = np.concatenate([N[lines] for (_, N, _), lines in zip(parts, is_open.T, strict=True)])
        flips[is_open.T] = np.isin(self.box.ask(questions), self.favourable)
        return flips.T, costs


def moved(fitted: Fitted, action: Action, z: Matrix, N: Matrix) -> tuple[Matrix, Matrix, Mask]:
    """Apply an action to rows; return the points, their numbers, and which rows may take it."""
    space, wanted = fitted.space, N.copy()
    for move in action:
        old, feature = N[:, move.feature], space.schema.features[move.feature]
        stays = np.isnan(old) & (not feature.fillable)  # missing values are filled in only where that is allowed
        wanted[:, move.feature] = np.where(stays, old, _target(move, old, fitted.ranges[move.feature]))
    points = np.where(differs(wanted, N)[:, space.feature_of], space.encode_numbers(wanted), z)
    points = fitted.constraints.constrain(space.to_grid(points, z), z)
    result = space.decode_numbers(points, near=(z, N))
    changed, most = differs(result, N), space.schema.rules.max_changes
    may = fitted.constraints.allowed(result, N) & ~(space.is_immutable & changed).any(axis=1)
    if most is not None:
        may &= changed.sum(axis=1) <= most
    return points, result if space.effects is None else space.effects.whole(result, N), may


def _target(move: Move, old: Matrix, ends: Matrix) -> NDArray[np.float64]:
    if move.how == AT_MOST:
        return np.minimum(old, move.value)
    if move.how == AT_LEAST:
        return np.maximum(old, move.value)
    if move.how == BY:
        low, high = np.minimum(ends[0], old), np.maximum(ends[1], old)
        return np.clip(old + move.value, low, high)
    return np.full(len(old), move.value)


def in_words(fitted: Fitted, action: Action) -> str:
    """Return an action as a reader says it: 'ldl at most 3.3 and tobacco lower by 2 (not below 0)'."""
    return joined([_move_in_words(fitted, move) for move in action]) if action else "nothing"


def _move_in_words(fitted: Fitted, move: Move) -> str:
    feature, words = fitted.space.schema.features[move.feature], fitted.space.schema.labels
    name = words.name(feature.name)
    if not feature.is_numeric:
        level = words.value(feature.name, (feature.levels or ())[int(move.value)])
        how = f"{move.how} " if move.how in (AT_MOST, AT_LEAST) else ""
        return f"{name} {how}{level}"
    by = dict(fitted.space.form.converters).get(move.feature)
    is_time = holds(by) in MOMENTS
    if move.how == BY:
        way = ("earlier", "later") if is_time else ("lower", "higher")
        amount = f"{shown(_plain(abs(move.value) * days_in(by)))} {size_unit(by)}".rstrip()
        amount = amount.removesuffix("s") if amount.startswith("1 ") else amount
        end = words.value(feature.name, _value(fitted.ranges[move.feature][int(move.value > 0)], by))
        # Who is at that end already stays there.
        limit = ("not before", "not after") if is_time else ("not below", "not above")
        return f"{name} {way[int(move.value > 0)]} by {amount} ({limit[int(move.value > 0)]} {end})"
    value = _value(move.value, by)
    return f"{name} {IN_TIME[move.how] if is_time else move.how} {words.value(feature.name, value)}"


def _value(number: float, by: Any) -> Any:
    return _plain(number) if by is None else by.values(np.array([number])).iloc[0]


def _plain(value: float) -> float | int:
    """Return a number without the error of its last bits."""
    value = float(f"{value:.12g}")
    return int(value) if value == int(value) else value


# --- improvement ------------------------------------------------------------------------------------------------------


class Valued(NamedTuple):
    """An action, and what it is worth to each row."""

    action: Action
    worth: Values


def worths(rows: RefusedRows, actions: Sequence[Action], price: float, held: Values | float = 0.0) -> Values:
    """Return what each action is worth to each row, 0 where it does not help.

    Where it cannot be worth more to a row than what the row holds already, the model is not asked, and it says 0.
    """
    floor = np.broadcast_to(held, len(rows.N))[:, np.newaxis]
    flips, costs = rows.outcomes(actions, lambda costs: 1 - price * costs > floor)
    return np.where(flips, 1 - price * np.nan_to_num(costs), 0.0)


def held_by(chosen: Sequence[Valued], n_rows: int) -> Values:
    """Return what each row has of the action that is worth most to it; 0 where there are none."""
    return np.max([np.zeros(n_rows), *(valued.worth for valued in chosen)], axis=0)


def improved(
    rows: RefusedRows, chosen: Sequence[Valued], price: float, most_features: int, first: int = 0
) -> list[Valued]:
    """Improve the actions from the place `first` on, in turn, beside those before, until none gets better."""
    moves, chosen, unchanged = possible_moves(rows.fitted), list(chosen), 0
    n_open = len(chosen) - first
    for turn in range(ROUNDS * n_open):
        at = first + turn % n_open
        better = _better(rows, chosen, at, moves, price, most_features)
        if better is None:
            unchanged += 1
        else:
            chosen[at], unchanged = better, 0
        if unchanged == n_open:
            break
    return chosen


def most_missed(chosen: Sequence[Valued], n_kept: int) -> list[Valued]:
    """Take out the action without which the others are worth most, until so many are left; of equals the last."""
    left = list(chosen)
    while len(left) > n_kept:
        rests = [[*left[:at], *left[at + 1 :]] for at in reversed(range(len(left)))]
        left = max(rests, key=lambda rest: held_by(rest, len(chosen[0].worth)).sum())
    return left


def by_gain(chosen: Sequence[Valued]) -> tuple[Action, ...]:
    """Return the actions in the order of what each adds."""
    left, ordered, held = list(chosen), [], np.zeros(len(chosen[0].worth) if chosen else 0)
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
    return {
        at: (_numeric_moves if feature.is_numeric else _level_moves)(fitted, at, seen[~np.isnan(seen[:, at]), at])
        for at, feature in enumerate(space.schema.features)
        if not space.is_immutable[at]
    }


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """Return up to so many of n places, evenly spread.

    >>> evenly(9, 3)
    array([0, 4, 8])
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)) if n else np.empty(0, dtype=np.intp)


def readable(fitted: Fitted, at: int, value: float) -> float:
    """Return a value of a feature as it would be written: whole for counts, in its column's steps."""
    feature = fitted.space.schema.features[at]
    if feature.step is not None:
        return float(feature.step * np.round(value / feature.step))
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
    rows: RefusedRows, chosen: list[Valued], at: int, moves: dict[int, list[Move]], price: float, most_features: int
) -> Valued | None:
    """Return the variation of one action with which all of them are worth most; None if none is better."""
    held = held_by([*chosen[:at], *chosen[at + 1 :]], len(rows.N))
    tried = list(dict.fromkeys(_variations(rows.fitted, chosen[at].action, moves, most_features)))
    if not tried:
        return None
    # All variations are asked about some rows, and those that are worth most to these about all rows.
    lines, stand_for = _screening_rows(held)
    screened = np.maximum(worths(rows.some(lines), tried, price, held[lines]), held[lines, np.newaxis])
    order = np.argsort(-(screened * stand_for[:, np.newaxis]).sum(axis=0), kind="stable")
    tried = [tried[place] for place in order[:PROMISING]]
    found = worths(rows, tried, price, held)
    totals = np.maximum(found, held[:, np.newaxis]).sum(axis=0)
    best = int(totals.argmax())  # a tie goes to the first
    if totals[best] <= np.maximum(chosen[at].worth, held).sum() + 1e-9:
        return None
    # Its worth also where another action is worth more to the row now: that one may change.
    return Valued(tried[best], worths(rows, [tried[best]], price)[:, 0])


def _screening_rows(held: Values) -> tuple[NDArray[np.intp], Values]:
    """Return the rows that all variations are asked about, and how many rows each of them stands for.

    Every third of the rows that are helped; more of those that are not, which a variation is to reach, where few are
    left (decision 0070).
    """
    if len(held) < 3 * SCREENED:
        return np.arange(len(held)), np.ones(len(held))
    left, helped = np.flatnonzero(held <= 0), np.flatnonzero(held > 0)
    step = max(1, len(left) // max(SCREENED, len(held) // 6))
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
