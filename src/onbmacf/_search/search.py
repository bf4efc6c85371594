"""All that is needed to explain some factuals together, and how points near them are asked about.

Search  ->  room_of (how many points)  ->  ask: placed, new ones added to the Record, asked, written down
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search import choose
from onbmacf._search.kernels import rounds as kernels
from onbmacf._search.options import Options, effort_of
from onbmacf._search.oracle import Oracle, Reply
from onbmacf._search.partition import Partition
from onbmacf._search.record import Record
from onbmacf._search.table import SearchTable
from onbmacf._table.model import FAILED
from onbmacf._table.values import Values

CAPS = (240, 160, 145, 135)  # points per factual and round
SHARES_OF_ROUNDS = (0.4, 0.25, 0.2, 0.15)  # of a limited number of rows
LACKING = 1.0  # the margin that all neighbours are worth where there is a bound
SLIGHT = 1e-9  # the margin of a point that is accepted for its label alone


class Proposed(NamedTuple):
    """Points to ask about, before they are placed, one line each."""

    raw: Matrix
    owner: Rows  # the factual
    part: NDArray[np.int8]  # 0 where it may be nearer, 1 where it may be better

    @classmethod
    def of(cls, raw: Matrix, owner: Rows) -> "Proposed":
        """Return points that are all of one part."""
        return cls(raw, owner, np.zeros(len(raw), dtype=np.int8))


@dataclass(frozen=True, eq=False)
class Search:
    """Everything that is needed to explain some factuals together."""

    table: SearchTable
    values: Values
    oracle: Oracle
    factuals: Matrix  # the factuals, as numbers
    free: Mask  # factuals x features: what may change
    targets: Rows | None  # labels to reach; None: any but the factual's own
    options: Options
    n: int  # counterfactuals per factual
    max_changes: int | None
    encode: Callable[[Matrix], Matrix]  # numbers -> encoded points
    neighbours: Callable[[Matrix, Rows], Matrix]  # numbers, labels -> share of neighbours that have the label
    least_share: float  # of neighbours that an answer must have; 0 where there is no bound
    reach: Callable[[Matrix, int], Matrix | None]  # a factual -> all that it may become; None: more than so many
    plausible: Callable[[Matrix, Mask], Rows]  # encoded factual, wanted labels -> fitted rows in the interior of theirs
    distance: Callable[[Matrix, Matrix], Matrix] | None  # of numbers, where the kernels do not know the metric
    # Actions, factuals -> with what follows; None: nothing does.
    complete: Callable[[Matrix, Matrix], Matrix] | None = None
    blocks: Partition | None = None  # features that change together, to the values of a fitted row
    apart: Callable[[Matrix, Rows], Matrix] | None = None  # a factual, fitted rows -> distances; None: in the table

    def whole(self, points: Matrix, owner: Rows) -> Matrix:
        """Return points of actions with all that follows, as the model, the neighbours and the balls see them."""
        return points if self.complete is None else self.complete(points, self.factuals[owner])

    def share(self, points: Matrix, owner: Rows, label: Rows) -> Matrix:
        """Return the share of neighbours that have a label, of points of actions."""
        return self.neighbours(self.whole(points, owner), label)

    @property
    def effort(self) -> float:
        """How many points are asked about, in parts of the usual number."""
        return effort_of(self.options.effort)

    def features(self, farther: float) -> kernels.Features:
        """Return the features for the kernels; numbers may go so much farther to a rounder one."""
        each = np.where(self.values.is_written, farther, 0.0)
        return self.table.features(self.values.steps, self.options.metric, self.max_changes, each)

    @property
    def is_ruled(self) -> bool:
        """Whether rules or a number of changes bind the answers more than to steps."""
        return self.max_changes is not None or not self.values.constraints.has_only_steps

    @property
    def reserve(self) -> int:
        """How many points of a factual the last call asks about at least: the answers, and the factual itself."""
        return self.n + self.oracle.sees_scores

    @property
    def n_classes(self) -> int:
        """How many labels the fitted rows have."""
        return len(self.oracle.box.classes)


# --- asking --------------------------------------------------------------------------------------------------------


def wanted_labels(codes: Rows, targets: Rows | None, n_classes: int) -> Mask:
    """Return per factual which labels are to be reached; none where it has a target already or no label at all."""
    allowed = np.full(n_classes, targets is None)
    allowed[targets if targets is not None else []] = True
    known = np.clip(codes, -1, n_classes)  # a label that no fitted row has is beyond all others
    is_there = np.append(allowed, [False, False])[known] & (targets is not None)
    return allowed & (np.arange(n_classes) != codes[:, np.newaxis]) & ~(is_there | (codes == FAILED))[:, np.newaxis]


def ask(search: Search, record: Record, wanted: Mask, proposed: Proposed, room: Rows, nearer: float = 1.0) -> None:
    """Place points, ask about those that are new, and write down what comes back.

    Those that may be nearer get their share of the room before those that may be better.
    """
    start = search.factuals[proposed.owner]
    points = search.values.placed(proposed.raw, start)
    allowed = search.values.allowed(points, start)
    note_limits(search, proposed.owner[allowed], room)
    row, slot, _ = record.add(points, proposed.owner, allowed, room, proposed.part, nearer)
    if len(row):
        write_down(search, record, wanted, row, slot, search.oracle.ask(record.points[row, slot], row))


def note_limits(search: Search, owner: Rows, room: Rows) -> None:
    """Note which factuals have more to ask about than their budget allows."""
    if search.oracle.is_limited:
        search.oracle.ran_out |= np.bincount(owner, minlength=len(room)) > room


def write_down(search: Search, record: Record, wanted: Mask, row: Rows, slot: Rows, reply: Reply) -> None:
    """Write down what came back about points that were added."""
    points = record.points[row, slot]
    if search.distance is not None:
        apart = search.distance(search.factuals[row], points)
        record.base[row, slot] = apart + choose.SPARSITY * record.n_changed[row, slot]
    record.code[row, slot] = reply.codes
    if reply.probability is not None:
        known = np.clip(reply.codes, 0, reply.probability.shape[1] - 1)
        record.probability[row, slot] = reply.probability[np.arange(len(row)), known]
    record.margin[row, slot] = margins(search, reply, points, row, wanted)


def margins(search: Search, reply: Reply, points: Matrix, owner: Rows, wanted: Mask) -> Matrix:
    """Return by how much points are answers; what the model accepts with too few neighbours is as far from one."""
    margin = search.oracle.margins(reply, points, owner, wanted)
    if search.least_share > 0.0:
        good = np.flatnonzero(margin > 0)
        lacks = LACKING * np.maximum(
            0.0, search.least_share - search.share(points[good], owner[good], reply.codes[good])
        )
        margin[good] = np.where(lacks > 0, -lacks, margin[good])
    return margin


def accept_labels(search: Search, record: Record, wanted: Mask, rows: Mask) -> None:
    """Accept, of some factuals, every point that has a wanted label, however little more is known of it.

    A bound on neighbours holds for these, too.
    """
    row, slot = np.nonzero(rows[:, np.newaxis] & ~np.isnan(record.margin) & (record.code >= 0))
    known = record.code[row, slot] < wanted.shape[1]
    row, slot = row[known], slot[known]
    good = wanted[row, record.code[row, slot]]
    if search.least_share > 0.0:
        good &= search.share(record.points[row, slot], row, record.code[row, slot]) >= search.least_share
    record.margin[row[good], slot[good]] = np.maximum(record.margin[row[good], slot[good]], SLIGHT)


def room_of(search: Search, turn: int) -> Rows:
    """Return how many points each factual may ask about in a round: fewer within a budget, which lasts to the end."""
    room = search.oracle.room(search.reserve)
    if search.oracle.is_limited:
        n_rounds = min(len(CAPS), search.oracle.calls_left - 1 + turn)  # the last call confirms
        shares = SHARES_OF_ROUNDS[turn:n_rounds]
        room = (room * (shares[0] / sum(shares))).astype(np.intp) if shares else np.zeros_like(room)
    return np.minimum(room, usual_room(search, turn))


def usual_room(search: Search, turn: int) -> int:
    """Return how many points a factual may ask about in a round where nothing is limited."""
    return int(CAPS[min(turn, len(CAPS) - 1)] * search.effort)
