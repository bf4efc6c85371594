"""What a model that has been read says of points: its columns, sums of trees, sums of products.

    points, recipes  ->  fill_columns  ->  columns  ->  add_trees or add_products  ->  scores

Each point by itself and each sum in a fixed order: no answer depends on which other points are in the call.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from onbmacf._base import plain_cython as cython


def fill_columns(
    points: cython.double[:, ::1],
    feature: cython.Py_ssize_t[::1],
    first: cython.Py_ssize_t[::1],
    stages: cython.double[:, ::1],
    start: cython.Py_ssize_t[::1],
    tables: cython.double[::1],
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
def _exact(stages: cython.double[:, ::1], stage: cython.Py_ssize_t, x: cython.double) -> cython.double:
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
    stages: cython.double[:, ::1], stage: cython.Py_ssize_t, x: cython.double, narrow: cython.float[::1]
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
    threshold: cython.double[::1],
    link: cython.longlong[::1],
    shift: cython.int,
    roots: cython.Py_ssize_t[::1],
    place: cython.Py_ssize_t[::1],
    values: cython.double[:, ::1],
    scores: cython.double[:, ::1],
) -> None:
    """Add to each point's scores, from `place[tree]` on, the values of the leaf that it reaches in each tree.

    A link holds the node on the left, behind which the one on the right lies, and in its lowest bits the column. A leaf
    leads to itself.
    """
    tree: cython.Py_ssize_t
    i: cython.Py_ssize_t
    last: cython.Py_ssize_t = columns.shape[0] - 1
    # Four points go down a tree together: while one waits for its node, the others' nodes are on their way.
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    c: cython.Py_ssize_t
    d: cython.Py_ssize_t
    at_a: cython.Py_ssize_t
    at_b: cython.Py_ssize_t
    at_c: cython.Py_ssize_t
    at_d: cython.Py_ssize_t
    to_a: cython.Py_ssize_t
    to_b: cython.Py_ssize_t
    to_c: cython.Py_ssize_t
    to_d: cython.Py_ssize_t
    own: cython.Py_ssize_t
    mask: cython.longlong = (1 << shift) - 1
    for tree in range(roots.shape[0]):
        for i in range(0, last + 1, 4):
            a = i
            b = i + 1 if i + 1 < last else last
            c = i + 2 if i + 2 < last else last
            d = i + 3 if i + 3 < last else last
            at_a = at_b = at_c = at_d = -1
            to_a = to_b = to_c = to_d = roots[tree]
            while (to_a != at_a) | (to_b != at_b) | (to_c != at_c) | (to_d != at_d):
                at_a = to_a
                at_b = to_b
                at_c = to_c
                at_d = to_d
                to_a = (link[at_a] >> shift) + (columns[a, link[at_a] & mask] > threshold[at_a])
                to_b = (link[at_b] >> shift) + (columns[b, link[at_b] & mask] > threshold[at_b])
                to_c = (link[at_c] >> shift) + (columns[c, link[at_c] & mask] > threshold[at_c])
                to_d = (link[at_d] >> shift) + (columns[d, link[at_d] & mask] > threshold[at_d])
            for own in range(values.shape[1]):
                scores[a, place[tree] + own] += values[at_a, own]
                if b > a:
                    scores[b, place[tree] + own] += values[at_b, own]
                if c > b:
                    scores[c, place[tree] + own] += values[at_c, own]
                if d > c:
                    scores[d, place[tree] + own] += values[at_d, own]


def add_products(columns: cython.double[:, ::1], weights: cython.double[:, ::1], scores: cython.double[:, ::1]) -> None:
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
