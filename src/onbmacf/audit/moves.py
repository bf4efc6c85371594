"""One action for many rows: a few moves of features, applied, asked about, and put into words.

    Move(feature, how, value), ...  ->  moved  ->  rows that may be returned  ->  asked  ->  flips, costs

An action says where each feature should go: to at most a value, to at least a value, by an amount, or to a level. A row
that is there already keeps its value. Values are made readable, rules are kept, and a row for which that is not
possible may not take the action. Every row is asked of the model.
"""

from collections.abc import Callable, Sequence
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
from onbmacf._text.wording import shown

AT_MOST, AT_LEAST, BY, TO = "at most", "at least", "by", "to"
IN_TIME = {AT_MOST: "no later than", AT_LEAST: "no earlier than"}  # of dates, times and periods
ROWS_AT_ONCE = 20_000  # that are made ready together
DOUBLINGS = 4  # of a chunk, where many rows are asked about


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


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows to be helped, as numbers and points, and the model to ask."""

    fitted: Fitted
    box: BlackBox
    N: Matrix
    z: Matrix
    wanted: Rows  # codes of the favourable labels

    @classmethod
    def of(cls, fitted: Fitted, rows: Any, wanted: Any) -> "Asked":
        """Return rows of the caller, ready to be asked about; `wanted` is the favourable label, or several."""
        N = fitted.space.form.numbers(fitted.space.form.arrange(rows)[0])
        known = fitted.black_box.classes.tolist()
        codes = np.array([known.index(label) for label in target_labels(wanted, known)], dtype=np.intp)
        return cls(fitted, fitted.black_box.counting(), N, fitted.space.encode_numbers(N), codes)

    def some(self, lines: Rows) -> "Asked":
        """Return some of the rows."""
        return replace(self, N=self.N[lines], z=self.z[lines])

    def in_large_calls(self) -> "Asked":
        """Return the same rows, asked about in larger calls, where the size of a call does not change the answers.

        That was seen of smaller calls only, so these are for choosing: what is told of an action is asked as usual.
        """
        sizes = self.box.sizes
        larger = {self.box.chunk << k for k in range(1, DOUBLINGS + 1)} if sizes else set()
        return replace(self, box=replace(self.box, sizes=tuple(sorted(larger.union(sizes)))))

    def asked(self, actions: Sequence[Action], matters: Callable[[Matrix], Mask] | None = None) -> tuple[Mask, Matrix]:
        """Return, per row and action, whether it leads to a favourable label, and its cost; NaN where it is forbidden.

        The cost is the distance that the row moves, 0 for one that is there already. `matters` says of costs which are
        worth a question; where it says no, the model is not asked and the row counts as not led there.
        """
        if not actions:
            return np.zeros((len(self.N), 0), dtype=bool), np.zeros((len(self.N), 0))
        at_a_time = max(1, ROWS_AT_ONCE // max(len(self.N), 1))
        starts = range(0, len(actions), at_a_time)
        parts = [self._asked(actions[start : start + at_a_time], matters) for start in starts]
        flips, costs = zip(*parts, strict=True)
        return np.concatenate(flips, axis=1), np.concatenate(costs, axis=1)

    def _asked(self, actions: Sequence[Action], matters: Callable[[Matrix], Mask] | None) -> tuple[Mask, Matrix]:
        """Ask about some actions in one call of the model: most models take longer to be called than to answer."""
        parts = [moved(self.fitted, action, self.z, self.N) for action in actions]
        metric = self.fitted.options["metric"]
        costs = np.stack([np.where(may, paired(self.z, points, metric), np.nan) for points, _, may in parts], axis=1)
        is_open = ~np.isnan(costs) if matters is None else ~np.isnan(costs) & matters(costs)
        flips = np.zeros(costs.shape, dtype=bool).T
        asked = np.concatenate([N[lines] for (_, N, _), lines in zip(parts, is_open.T, strict=True)])
        flips[is_open.T] = np.isin(self.box.ask(asked), self.wanted)
        return flips.T, costs


def moved(fitted: Fitted, action: Action, z: Matrix, N: Matrix) -> tuple[Matrix, Matrix, Mask]:
    """Apply an action to rows; return the points, their numbers, and which rows may take it."""
    space, wanted = fitted.space, N.copy()
    for move in action:
        own, feature = N[:, move.feature], space.schema.features[move.feature]
        stays = np.isnan(own) & (not feature.fillable)  # missing values are filled in only where that is allowed
        wanted[:, move.feature] = np.where(stays, own, _target(move, own, fitted.ranges[move.feature]))
    points = np.where(differs(wanted, N)[:, space.feature_of], space.encode_numbers(wanted), z)
    points = fitted.constraints.constrain(space.to_grid(points, z), z)
    result = space.decode_numbers(points, near=(z, N))
    changed, most = differs(result, N), space.schema.rules.max_changes
    may = fitted.constraints.allowed(result, N) & ~(space.is_immutable & changed).any(axis=1)
    if most is not None:
        may &= changed.sum(axis=1) <= most
    return points, result, may


def _target(move: Move, own: Matrix, ends: Matrix) -> NDArray[np.float64]:
    if move.how == AT_MOST:
        return np.minimum(own, move.value)
    if move.how == AT_LEAST:
        return np.maximum(own, move.value)
    if move.how == BY:
        low, high = np.minimum(ends[0], own), np.maximum(ends[1], own)
        return np.clip(own + move.value, low, high)
    return np.full(len(own), move.value)


def in_words(fitted: Fitted, action: Action) -> str:
    """Return an action as a reader says it: 'ldl at most 3.3 and tobacco lower by 2'."""
    parts = [_move_in_words(fitted, move) for move in action]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "nothing"


def _move_in_words(fitted: Fitted, move: Move) -> str:
    feature = fitted.space.schema.features[move.feature]
    if not feature.is_numeric:
        level = shown((feature.levels or ())[int(move.value)])
        how = f"{move.how} " if move.how in (AT_MOST, AT_LEAST) else ""
        return f"{feature.name} {how}{level}"
    by = dict(fitted.space.form.converters).get(move.feature)
    is_time = holds(by) in MOMENTS
    if move.how == BY:
        way = ("earlier", "later") if is_time else ("lower", "higher")
        amount = f"{shown(_plain(abs(move.value) * days_in(by)))} {size_unit(by)}".rstrip()
        return (
            f"{feature.name} {way[int(move.value > 0)]} by {amount.removesuffix('s') if amount[:2] == '1 ' else amount}"
        )
    value = _plain(move.value) if by is None else by.values(np.array([move.value])).iloc[0]
    return f"{feature.name} {IN_TIME[move.how] if is_time else move.how} {shown(value)}"


def _plain(value: float) -> float | int:
    """Return a number without the error of its last bits."""
    value = float(f"{value:.12g}")
    return int(value) if value == int(value) else value
