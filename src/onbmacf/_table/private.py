"""k-anonymity of the fitted rows: groups of at least k rows, each row moved to the middle of its group.

    N (rows as numbers), points (the same, scaled)  ->  groups_of_k  ->  moved  ->  the rows that are fitted instead

Of every column, a group has at least k values or none: those of its rows that lack one get the group's, or all lack it.
A group whose middle happens to be the values of fewer than k rows is merged with the nearest other. So a map of moved
rows holds no row, and whatever is computed from it and the model is computed from groups. Nothing else is kept of the
rows: an answer withheld because of them would tell their values (docs/decisions/0061-private.md).
"""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import listed
from onbmacf._base.missing import as_nan, has_missing, is_missing
from onbmacf._table.form import TableForm
from onbmacf._table.scales import FEW, of_range, own_decimals, present
from onbmacf.errors import ParameterError, TableError

UNORDERED = ("categorical", "binary")


def groups_of_k(points: Matrix, k: int, lacks: Mask | None = None) -> list[Rows]:
    """Cut rows into groups of k to 2k - 1: always in two halves, along the most varied column of a group.

    Ties go to the lower row and the first column, so the same table gives the same groups. `lacks` says which values
    of which features are missing: rows that lack one are cut off first where both sides are large enough, and no cut
    leaves a side with from 1 to k - 1 values of a feature, so groups may be larger than 2k - 1.
    """
    lacks = np.zeros((len(points), 0), dtype=bool) if lacks is None else lacks[:, lacks.any(axis=0)]
    groups, open_groups = [], [np.arange(len(points))]
    while open_groups:
        rows = open_groups.pop()
        halves = next((cut for cut in _cuts(points, lacks, rows, k) if _may_cut(lacks, cut, k)), None)
        if halves is None:
            groups.append(rows)
        else:
            open_groups += [np.sort(half) for half in halves]
    return groups


def _cuts(points: Matrix, lacks: Mask, rows: Rows, k: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield the ways to cut a group in two, the better first: by what rows lack, then at the median of a column."""
    if len(rows) < 2 * k:
        return
    for is_lacking in lacks[rows].T:
        yield rows[is_lacking], rows[~is_lacking]
    half = len(rows) // 2
    for column in np.argsort(-points[rows].var(axis=0), kind="stable"):
        order = rows[np.argsort(points[rows, column], kind="stable")]
        yield order[half:], order[:half]
        if not lacks.shape[1]:
            return


def _may_cut(lacks: Mask, halves: tuple[Rows, Rows], k: int) -> bool:
    """Say whether both halves have k rows, and of each feature k values or none."""
    counts = [(~lacks[half]).sum(axis=0) for half in halves]
    return all(len(half) >= k for half in halves) and all(((n == 0) | (n >= k)).all() for n in counts)


def moved(form: TableForm, N: Matrix, points: Matrix, k: int) -> Matrix:
    """Return the rows, each with the values of its group: means of numbers and ranks, the commonest of other levels.

    `points` has no missing values; what a row lacks is at the middle of the column there.
    """
    check_private(form, N, k)
    common = [
        _common(N[:, at], k) if feature.kind in UNORDERED else None for at, feature in enumerate(form.schema.features)
    ]
    groups = groups_of_k(points, k, np.isnan(N))
    means = np.stack([_middle(N[rows], common) for rows in groups])
    decimals = [
        _decimals(form, N, means, at, k) if feature.kind == "continuous" else 0
        for at, feature in enumerate(form.schema.features)
    ]

    def middle(rows: Rows) -> Matrix:
        values = zip(_middle(N[rows], common).tolist(), decimals, strict=True)
        return np.array([np.round(value, places) for value, places in values])

    result = np.empty_like(N)
    for rows in _unlike_rows(groups, N, points, middle, k):
        result[rows] = middle(rows)
    return result


def _middle(values: Matrix, common: list[Matrix | None]) -> Matrix:
    """Return the values of a group: means, or of these levels the commonest; NaN where all rows lack one."""
    known = [present(column) for column in values.T]
    means = [
        np.nan if not len(column) else column.mean() if levels is None else _commonest(column, levels)
        for column, levels in zip(known, common, strict=True)
    ]
    return np.array(means, dtype=np.float64)


def _unlike_rows(groups: list[Rows], N: Matrix, points: Matrix, middle: Callable[[Rows], Matrix], k: int) -> list[Rows]:
    """Merge every group whose middle is the values of 1 to k - 1 rows with the nearest other, until there is none."""
    counts = Counter(_key(row) for row in N)
    groups = list(groups)
    centers = np.stack([points[rows].mean(axis=0) for rows in groups])
    open_groups = [at for at, rows in enumerate(groups) if 0 < counts[_key(middle(rows))] < k]
    while open_groups:
        at = open_groups.pop()
        apart = np.square(centers - centers[at]).sum(axis=1)
        apart[at] = np.inf
        nearest = int(apart.argmin())
        if not np.isfinite(apart[nearest]):
            raise TableError(
                f"private={k}: the middle of every group of rows is a row of the table that fewer than {k} rows are "
                "like. Round its numbers, or merge levels, until more rows are alike."
            )
        groups[nearest] = np.sort(np.concatenate([groups[nearest], groups[at]]))
        centers[nearest], centers[at], groups[at] = points[groups[nearest]].mean(axis=0), np.inf, groups[at][:0]
        open_groups = [other for other in open_groups if other != nearest]
        if 0 < counts[_key(middle(groups[nearest]))] < k:
            open_groups.append(nearest)
    return [rows for rows in groups if len(rows)]


def _key(row: Matrix) -> bytes:
    """Return what tells rows apart: a missing value is like another, and 0 like -0."""
    return np.where(np.isnan(row), np.nan, row + 0.0).tobytes()


def _decimals(form: TableForm, N: Matrix, means: Matrix, at: int, k: int) -> int:
    """Return the decimals of a column's means: the caller's own word, or those of all values but fewer than k."""
    said = form.schema.features[at].decimals
    needed = of_range(float(np.ptp(present(means[:, at]))))
    found = own_decimals(present(N[:, at]), form.dtypes[at], max(FEW, needed), k - 1) if said is None else said
    return needed if found is None else found


def filled(points: Matrix) -> Matrix:
    """Return points with the mean of a column in place of its missing values."""
    if not has_missing(points):
        return points
    means = np.nanmean(as_nan(points), axis=0)
    return np.where(is_missing(points), means, points)


def check_private(form: TableForm, N: Matrix, k: int) -> None:
    """Raise an error where groups of k rows of two labels cannot be made, or a dtype would carry rare levels along."""
    if len(N) < 4 * k:
        raise ParameterError(f"private={k} needs at least {4 * k} rows, got {len(N)}.")
    n_values = (~np.isnan(N)).sum(axis=0)
    few = [feature.name for feature, n in zip(form.schema.features, n_values, strict=True) if n < k]
    if few:
        raise TableError(f"private={k}: fewer than {k} rows have a value in column {listed(few)}. Leave it out.")
    own = [f.name for at, f in enumerate(form.schema.features) if f.kind in UNORDERED and not len(_common(N[:, at], k))]
    if own:
        raise TableError(f"private={k}: no value of column {listed(own)} is that of {k} rows. Leave it out.")
    for at, (feature, dtype) in enumerate(zip(form.schema.features, form.dtypes, strict=True)):
        if hasattr(dtype, "categories"):
            counts = np.bincount(present(N[:, at]).astype(np.intp), minlength=len(feature.levels or ()))
            rare = [level for level, count in zip(feature.levels or (), counts, strict=True) if count < k]
            if rare:
                raise TableError(
                    f"column {feature.name!r}: fewer than private={k} rows have {listed(rare)}, and its category dtype "
                    "would carry these names into the map. Merge them, or give the column as text."
                )


def check_groups(N: Matrix, k: int) -> bool:
    """Say whether every different row is there at least k times."""
    lacks = np.isnan(N)
    known = np.column_stack([np.where(lacks, 0.0, N), lacks])  # a missing value is like another
    return int(np.unique(known, axis=0, return_counts=True)[1].min()) >= k


def _common(codes: Matrix, k: int) -> Matrix:
    """Return the levels that at least k rows have."""
    levels, counts = np.unique(present(codes), return_counts=True)
    kept: Matrix = levels[counts >= k]
    return kept


def _commonest(codes: Matrix, among: Matrix) -> float:
    counts = (codes[:, np.newaxis] == among).sum(axis=0)
    return float(among[np.argmax(counts)])
