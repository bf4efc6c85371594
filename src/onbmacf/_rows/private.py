"""Fitted rows that nobody can be found by: groups of at least k rows, each row moved to the middle of its group.

    N (rows as numbers), points (the same, scaled)  ->  groups_of_k  ->  moved  ->  the rows that are fitted instead

A map of moved rows holds no row, and whatever is computed from it and the model is computed from groups.
`Guard` also keeps an answer from matching fewer than k of the rows themselves, as long as they are in memory; they
are never written to a file (docs/decisions/0061-private.md).
"""

from dataclasses import dataclass

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import listed
from onbmacf._rows.form import TableForm
from onbmacf.errors import ParameterError, TableError


def groups_of_k(points: Matrix, k: int) -> list[Rows]:
    """Cut rows into groups of k to 2k - 1: always the widest group in two halves, along its most varied column.

    Ties go to the lower row and the first column, so the same table gives the same groups.
    """
    groups, open_groups = [], [np.arange(len(points))]
    while open_groups:
        rows = open_groups.pop()
        if len(rows) < 2 * k:
            groups.append(rows)
            continue
        column = int(np.argmax(points[rows].var(axis=0)))
        order = rows[np.argsort(points[rows, column], kind="stable")]
        half = len(rows) // 2
        open_groups += [np.sort(order[half:]), np.sort(order[:half])]
    return groups


def moved(form: TableForm, N: Matrix, points: Matrix, k: int, decimals: tuple[int | None, ...]) -> Matrix:
    """Return the rows, each with the values of its group: means of numbers and ranks, the commonest of other levels."""
    check_private(form, N, k)
    common = [_common(N[:, at], k) if _is_level(form, at) else None for at in range(N.shape[1])]
    result = np.empty_like(N)
    for rows in groups_of_k(points, k):
        for at, levels in enumerate(common):
            values = N[rows, at]
            middle = values.mean() if levels is None else _commonest(values, levels)
            result[rows, at] = np.round(middle, decimals[at] or 0)
    return result


def check_private(form: TableForm, N: Matrix, k: int) -> None:
    """Raise an error where groups of k rows of two labels cannot be made, or a dtype would carry rare levels along."""
    if len(N) < 4 * k:
        raise ParameterError(f"private={k} needs at least {4 * k} rows, got {len(N)}.")
    lacking = [feature.name for at, feature in enumerate(form.schema.features) if np.isnan(N[:, at]).any()]
    if lacking:  # a mean of what is missing is none, and a row can be known by what it lacks
        raise TableError(
            f"private={k} needs rows without missing values, column {listed(lacking)} has some. Fill or drop them."
        )
    for at, (feature, dtype) in enumerate(zip(form.schema.features, form.dtypes, strict=True)):
        if hasattr(dtype, "categories"):
            counts = np.bincount(N[:, at].astype(np.intp), minlength=len(feature.levels or ()))
            rare = [level for level, count in zip(feature.levels or (), counts, strict=True) if count < k]
            if rare:
                raise TableError(
                    f"column {feature.name!r}: fewer than private={k} rows have {listed(rare)}, and its category dtype "
                    "would carry these names into the map. Merge them, or give the column as text."
                )


def check_groups(N: Matrix, k: int) -> bool:
    """Say whether every different row is there at least k times."""
    return int(np.unique(N, axis=0, return_counts=True)[1].min()) >= k


@dataclass(frozen=True, eq=False)
class Guard:
    """The rows as they were given, to keep answers from pointing to fewer than k of them."""

    N: Matrix
    k: int
    is_immutable: Mask

    def exposes(self, values: Matrix, before: Matrix) -> Mask:
        """Say which values match from 1 to k - 1 rows in all changed and immutable features together."""
        found = np.zeros(len(values), dtype=bool)
        for line, (value, own) in enumerate(zip(values, before, strict=True)):
            rows = np.arange(len(self.N))
            for at in np.flatnonzero((value != own) | self.is_immutable):
                rows = rows[self.N[rows, at] == value[at]]
            found[line] = 0 < len(rows) < self.k
        return found


def _is_level(form: TableForm, at: int) -> bool:
    return form.schema.features[at].kind in ("categorical", "binary")


def _common(codes: Matrix, k: int) -> Matrix:
    """Return the levels that at least k rows have; the commonest of all, where none is."""
    levels, counts = np.unique(codes, return_counts=True)
    kept: Matrix = levels[counts >= k]
    return kept if len(kept) else levels[[np.argmax(counts)]]


def _commonest(codes: Matrix, among: Matrix) -> float:
    counts = (codes[:, np.newaxis] == among).sum(axis=0)
    return float(among[np.argmax(counts)])
