"""The nearest point that additive trees give a label, by branch and bound over boxes of cells.

    RowTrees, Demand  ->  expand  ->  candidates in the order of their distance, and how far it has got

The box with the least bound is cut at the split that its trees disagree about most.
"""

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.jit import kernel, part
from onbmacf._prove.boxes import NEVER, Cells, Nodes, RowTrees, Scratch, bound_box
from onbmacf._prove.queue import (
    GOING,
    OPEN,
    Choosable,
    Demand,
    Queue,
    broken_pair,
    cheapest,
    cut_first,
    cut_in_half,
    give_back,
    is_hopeless,
    push,
    push_candidate,
    reach,
    state,
)


@part
def _sums(nodes: Nodes, cells: Cells, point: Rows, sums: Matrix) -> None:
    """Add up what the trees give a point."""
    for k in range(len(sums)):
        sums[k] = 0.0
    for tree in range(len(nodes.roots) - 1):
        node = nodes.roots[tree]
        while nodes.split[node] >= 0:
            split = nodes.split[node]
            cell, place = point[cells.feature[split]], cells.place[split]
            if place >= 0:
                goes_left = cell < place
            else:
                at = cells.table[split]
                goes_left = cells.counts[at + cell + 1] > cells.counts[at + cell]
            node = nodes.left[node] if goes_left else nodes.right[node]
        for k in range(len(sums)):
            sums[k] += nodes.values[node, k]


@part
def _choose_cut(
    choosable: Choosable, cells: Cells, demand: Demand, queue: Queue, room: Scratch, box: int, point: Rows
) -> None:
    """Write down where to cut a box: at the split with the most votes, if any has a choice on both sides."""
    cut, most = -1, -1.0
    for split in range(len(room.votes)):
        if room.votes[split] > most:
            cut, most = split, room.votes[split]
    if cut < 0:
        cut_in_half(choosable, demand, queue, box, point)
        return
    feature, place = cells.feature[cut], cells.place[cut]
    low, high = queue.lo[box, feature], queue.hi[box, feature]
    if place < 0:
        place = low + 1 if low == choosable.own[feature] else (low + high + 1) // 2
    queue.feature[box], queue.place[box] = feature, place


@part
def _enter(trees: RowTrees, demand: Demand, queue: Queue, room: Scratch, box: int) -> None:
    """Bound a box, and queue it unless it is known to hold nothing."""
    choosable, cells = trees.choosable, trees.cells
    lo, hi, limit, above = queue.lo[box], queue.hi[box], demand.limit[0], queue.bound[box]
    point, sums, bound = room.point, room.sums, NEVER
    cost = cheapest(choosable, lo, hi, point)
    if cost < limit and not is_hopeless(choosable, demand, lo, hi):
        bound = max(above, bound_box(trees, lo, hi, cost, demand.need, limit, room))
    if not bound < limit:
        give_back(queue, box)
        return
    _sums(trees.nodes, cells, point, sums)
    _choose_cut(choosable, cells, demand, queue, room, box, point)
    if reach(sums, demand.need) and broken_pair(choosable, demand, point) < 0:
        push_candidate(queue, demand, box, cost, reach(sums, demand.firm))
    else:
        push(queue, box, bound, OPEN)


@kernel
def expand(trees: RowTrees, demand: Demand, queue: Queue, room: Scratch, n_steps: int) -> int:
    """Cut boxes, those with the least bound first, so many times at most; return why it stopped."""
    for _ in range(n_steps):
        now = state(queue, demand)
        if now != GOING:
            return now
        for box in cut_first(queue):
            if box >= 0:
                _enter(trees, demand, queue, room, box)
    return state(queue, demand)
