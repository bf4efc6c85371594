"""What a model that has been read says of points: its columns, sums of trees, sums of products.

    points, recipes  ->  fill_columns  ->  columns  ->  add_leaves, add_trees or add_products  ->  scores

Each point by itself and each sum in a fixed order: no answer depends on which other points are in the call.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from onbmacf._base import plain_cython as cython


def fill_columns(
    points: cython.const[cython.double][:, ::1],
    feature: cython.const[cython.Py_ssize_t][::1],
    first: cython.const[cython.Py_ssize_t][::1],
    stages: cython.const[cython.double][:, ::1],
    start: cython.const[cython.Py_ssize_t][::1],
    tables: cython.const[cython.double][::1],
    narrow: cython.float[::1],
    columns: cython.double[:, ::1],
) -> None:
    """Fill each column from its feature: by its stages, or by its table where it has one.

    Stages of a column are those from `first[column]` to `first[column + 1]`, its table likewise. The last entry of a
    table is that of a missing value. `narrow` holds one number: what is put there has single precision.
    """
    i: cython.Py_ssize_t
    column: cython.Py_ssize_t
    stage: cython.Py_ssize_t
    own: cython.Py_ssize_t
    last: cython.Py_ssize_t
    x: cython.double
    for column in range(columns.shape[1]):
        own = feature[column]
        last = start[column + 1] - 1
        if last >= start[column]:
            for i in range(points.shape[0]):
                x = points[i, own]
                columns[i, column] = tables[_place(x, start[column], last)]
            continue
        for i in range(points.shape[0]):
            x = points[i, own]
            for stage in range(first[column], first[column + 1]):
                x = _exact(stages, stage, x) if stages[stage, 8] == 0 else _single(stages, stage, x, narrow)
            columns[i, column] = x


@cython.cfunc
@cython.exceptval(check=False)
def _place(x: cython.double, start: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return where the level of a code lies; that of a missing value is the last one."""
    place: cython.Py_ssize_t = last
    if x == x and x < last - start:
        place = start + cython.cast(cython.Py_ssize_t, int(x)) if x > 0 else start
    return place


@cython.cfunc
@cython.exceptval(check=False)
def _exact(stages: cython.const[cython.double][:, ::1], stage: cython.Py_ssize_t, x: cython.double) -> cython.double:
    """Return what a stage makes of a number. What a stage does not do has a number that changes nothing."""
    if x == 0:
        x = stages[stage, 0]
    if x != x:
        x = stages[stage, 1]
    x = (x - stages[stage, 2]) / stages[stage, 3]
    x = x * stages[stage, 4] + stages[stage, 5]
    if x < stages[stage, 6]:
        x = stages[stage, 6]
    if x > stages[stage, 7]:
        x = stages[stage, 7]
    return x


@cython.cfunc
@cython.exceptval(check=False)
def _single(
    stages: cython.const[cython.double][:, ::1], stage: cython.Py_ssize_t, x: cython.double, narrow: cython.float[::1]
) -> cython.double:
    """Return the same where each operation is rounded to single precision."""
    if x == 0:
        x = stages[stage, 0]
    if x != x:
        x = stages[stage, 1]
    narrow[0] = x - stages[stage, 2]
    narrow[0] = narrow[0] / stages[stage, 3]
    narrow[0] = narrow[0] * stages[stage, 4]
    narrow[0] = narrow[0] + stages[stage, 5]
    x = narrow[0]
    if x < stages[stage, 6]:
        x = stages[stage, 6]
    if x > stages[stage, 7]:
        x = stages[stage, 7]
    narrow[0] = x
    return narrow[0]


def add_trees(
    columns: cython.double[:, ::1],
    threshold: cython.const[cython.double][::1],
    link: cython.const[cython.longlong][::1],
    shift: cython.int,
    roots: cython.const[cython.Py_ssize_t][::1],
    place: cython.const[cython.Py_ssize_t][::1],
    values: cython.const[cython.double][:, ::1],
    at: cython.Py_ssize_t[::1],
    scores: cython.double[:, ::1],
) -> None:
    """Add to each point's scores, from `place[tree]` on, the values of the leaf that it reaches in each tree.

    A link holds the node on the left, behind which the one on the right lies, and in its lowest bits the column. A leaf
    leads to itself. `at` has room for the nodes of as many points as go down together.
    """
    tree: cython.Py_ssize_t
    i: cython.Py_ssize_t
    own: cython.Py_ssize_t
    node: cython.Py_ssize_t
    below: cython.Py_ssize_t
    first: cython.Py_ssize_t
    last: cython.Py_ssize_t
    is_moving: cython.bint
    there: cython.longlong
    mask: cython.longlong = (1 << shift) - 1
    n: cython.Py_ssize_t = columns.shape[0]
    for first in range(0, n, at.shape[0]):  # so few at a time that their columns stay at hand for all trees
        last = first + at.shape[0] if first + at.shape[0] < n else n
        for tree in range(roots.shape[0]):
            for i in range(first, last):
                at[i - first] = roots[tree]
            # All points go down one level at a time: while one waits for its node, those of others are on their way.
            is_moving = True
            while is_moving:
                is_moving = False
                for i in range(first, last):
                    node = at[i - first]
                    there = link[node]
                    below = (there >> shift) + (columns[i, there & mask] > threshold[node])
                    is_moving |= below != node
                    at[i - first] = below
            for i in range(first, last):
                for own in range(values.shape[1]):
                    scores[i, place[tree] + own] += values[at[i - first], own]


def add_leaves(
    columns: cython.double[:, ::1],
    threshold: cython.const[cython.double][::1],
    start: cython.const[cython.Py_ssize_t][::1],
    masks: cython.const[cython.uint][:, ::1],
    lowest: cython.const[cython.Py_ssize_t][::1],
    first: cython.const[cython.Py_ssize_t][::1],
    place: cython.const[cython.Py_ssize_t][::1],
    values: cython.const[cython.double][:, ::1],
    at: cython.Py_ssize_t[::1],
    left: cython.uint[::1],
    scores: cython.double[:, ::1],
) -> None:
    """Do what `add_trees` does for trees of at most 32 leaves, without going down any.

    A tree's leaves are bits, from left to right. Where a column lies among its thresholds, one line of `masks` says for
    every tree which leaves that still allows; of those that all columns allow, a point reaches the lowest
    (QuickScorer: Lucchese et al., SIGIR 2015). `lowest` finds the place of a single bit by a product. `at` has room
    for a place per column: points that follow each other seldom differ in many.
    """
    i: cython.Py_ssize_t
    column: cython.Py_ssize_t
    tree: cython.Py_ssize_t
    own: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    bits: cython.uint
    product: cython.ulonglong
    x: cython.double
    for i in range(columns.shape[0]):
        for column in range(columns.shape[1]):
            x = columns[i, column]
            if i == 0 or x != columns[i - 1, column]:
                low = start[column]
                high = start[column + 1]
                while low < high:  # how many thresholds lie below
                    middle = (low + high) // 2
                    if threshold[middle] < x:
                        low = middle + 1
                    else:
                        high = middle
                at[column] = low + column
            low = at[column]
            if column == 0:
                for tree in range(masks.shape[1]):
                    left[tree] = masks[low, tree]
            else:
                for tree in range(masks.shape[1]):
                    left[tree] &= masks[low, tree]
        for tree in range(masks.shape[1]):
            bits = left[tree]
            product = bits & (~bits + 1)
            product *= 125613361
            low = first[tree] + lowest[(product >> 27) & 31]
            if values.shape[1] > 1:
                for own in range(values.shape[1]):
                    scores[i, place[tree] + own] += values[low, own]
                continue
            if tree == 0 or place[tree] != place[tree - 1]:  # sums stay at hand as long as they are of one class
                if tree > 0:
                    scores[i, place[tree - 1]] = x
                x = scores[i, place[tree]]
            x += values[low, 0]
        if values.shape[1] == 1 and masks.shape[1] > 0:
            scores[i, place[masks.shape[1] - 1]] = x


def add_products(
    columns: cython.double[:, ::1], weights: cython.const[cython.double][:, ::1], scores: cython.double[:, ::1]
) -> None:
    """Add to each point's scores the products of its columns with their weights, column by column."""
    i: cython.Py_ssize_t
    column: cython.Py_ssize_t
    own: cython.Py_ssize_t
    x: cython.double
    for i in range(columns.shape[0]):
        for column in range(columns.shape[1]):
            x = columns[i, column]
            if x == 0:  # most columns of levels are
                continue
            for own in range(scores.shape[1]):
                scores[i, own] += x * weights[column, own]
