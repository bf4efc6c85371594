"""Numbers, missing ones too, <-> the scaled space in which distances are measured.

    frame  ->  encode  ->  Z        Z  ->  decode  ->  frame        points between two rows  ->  snap

Continuous and integer features are min-max scaled, ordinal and binary ones are scaled ranks. A categorical
feature is a group of columns in which the column of the active level is `height`, chosen by the metric so that a
changed category costs 1 (docs/decisions/0015-one-hot-weight.md); one of very many levels that fit holds is a single
column, next to no distance apart (docs/decisions/0022-inference.md). A missing category is one more level, any other
missing value a code of its own (`_base/missing.py`). Symbols: docs/glossary.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, Rows, in_steps, shared
from onbmacf._base.missing import is_missing, known_ends, may_lack, missing_code
from onbmacf._table.effects import Effects
from onbmacf._table.form import TableForm
from onbmacf._table.scales import (
    ASIDE,
    MOST,
    Rounding,
    exact_decimals,
    most_decimals,
    present,
    readable_of,
    scales_of,
    weights_of,
)
from onbmacf.schema import Schema

SAME = 1e-12  # of a feature's range: two encoded values closer than this are one
TIE = 1e-9  # two values closer than this are a tie when a point is rounded


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """The encoding of a table, one block of columns of Z per feature."""

    form: TableForm
    height: float  # of an active level at weight 1
    low: Matrix  # per feature; 0 where the feature has levels
    span: Matrix  # per feature: high - low, number of ranks - 1, or 1; divided by its weight
    decimals: tuple[int | None, ...]  # per feature: decimals that represent its fitted values exactly, or None
    known: dict[int, Matrix]  # the fitted values of features without such a number of decimals
    readable: tuple[int | None, ...]  # per continuous feature: decimals of the values it may change to
    origin: "FeatureSpace | None" = None  # of which this is a view with other immutable features and rules
    effects: Effects | None = None  # what follows from what, where the caller has said so

    @classmethod
    def fit(cls, table: Any, schema: Schema | None = None, height: float = 0.5) -> "FeatureSpace":
        """Check a table and learn its encoding."""
        form = TableForm.fit(table, schema)
        return cls.of_numbers(form, form.numbers(form.arrange(table)[0]), height)

    @classmethod
    def of_numbers(cls, form: TableForm, N: Matrix, height: float) -> "FeatureSpace":
        """Learn the scales from rows already turned into numbers."""
        low, span = scales_of(form, N)
        span = span / weights_of(form.schema)  # a feature that costs twice as much is twice as long
        decimals: list[int | None] = []
        known = {}
        for position, feature in enumerate(form.schema.features):
            values = present(N[:, position])
            exact = 0 if feature.kind != "continuous" else exact_decimals(values, form.dtypes[position])
            decimals.append(exact)
            if exact is None:
                known[position] = np.unique(values)
        return cls(form, height, low, span, tuple(decimals), known, readable_of(form, N))

    @property
    def schema(self) -> Schema:
        """The features, with their levels."""
        return self.form.schema

    def under(self, schema: Schema) -> "FeatureSpace":
        """Return the same encoding with other immutable features and rules; costs must be the same."""
        return replace(self, form=self.form.under(schema), origin=self.origin or self)

    @shared
    def blocks(self) -> tuple[slice, ...]:
        """Columns of Z that belong to each feature."""
        of_groups = [len(feature.levels or ()) + feature.missing for feature in self.schema.features]
        widths = np.where(self.is_group, of_groups, 1)
        return tuple(slice(int(end - width), int(end)) for end, width in zip(np.cumsum(widths), widths, strict=True))

    @shared
    def feature_of(self) -> Rows:
        """Feature that each column of Z belongs to."""
        return np.repeat(np.arange(len(self.blocks)), [block.stop - block.start for block in self.blocks])

    @shared
    def width(self) -> int:
        """Number of columns of Z."""
        return int(self.blocks[-1].stop)

    @shared
    def heights(self) -> Matrix:
        """Per feature: the height of an active level; 0 where it is no group of columns."""
        return np.where(self.is_group, self.height / self.span, 0.0)  # the span of a group is 1 over its weight

    @cached_property
    def is_immutable(self) -> Mask:
        """Per feature: whether it must keep its value, or is computed and never chosen."""
        return np.array([feature.immutable for feature in self.schema.features]) | self.is_derived

    @shared
    def is_derived(self) -> Mask:
        """Per feature: whether it is computed from others."""
        return np.zeros(len(self.blocks), dtype=bool) if self.effects is None else self.effects.derived

    @shared
    def is_fillable(self) -> Mask:
        """Per feature: whether a value may be filled in where a row lacks it."""
        return np.array([feature.fillable for feature in self.schema.features])

    @shared
    def to_unit(self) -> Matrix:
        """Per column of Z: the factor that scales an active level or a column's range to 1, whatever its weight."""
        weights = weights_of(self.schema)
        heights = [self.heights[p] if self.is_group[p] else weights[p] for p in range(len(weights))]
        return 1.0 / np.array(heights)[self.feature_of]

    def ranges(self, Z: Matrix) -> Matrix:
        """Return the smallest and largest value of each numeric feature in encoded rows, in its own unit."""
        ends = np.stack(known_ends(Z[:, self._first_columns]), axis=1)
        return self.low[:, np.newaxis] + ends * self.span[:, np.newaxis]

    def encode(self, table: Any) -> Matrix:
        """Return rows of the caller as encoded points."""
        return self.encode_numbers(self.form.numbers(self.form.arrange(table)[0]))

    def decode(self, Z: Matrix) -> pd.DataFrame:
        """Return encoded points as rows of the caller: the inverse of `encode` on the fitted rows."""
        return self.form.frame(self.decode_numbers(Z))

    def encode_numbers(self, N: Matrix) -> Matrix:
        """Scale numbers and spread categories over their columns."""
        Z = np.zeros((len(N), self.width))
        for lines in in_steps(len(N), self.width):
            self._encode(N[lines], Z[lines])
        return Z

    def _encode(self, N: Matrix, Z: Matrix) -> None:
        """Write numbers into rows of zeros."""
        single = self._singles
        values = (N[:, single] - self.low[single]) / self.span[single]
        if self.may_lack:
            values = np.where(np.isnan(values), missing_code(weights_of(self.schema)[single]), values)
        Z[:, self._first_columns[single]] = values
        starts, last, heights, group = self._groups
        codes = N[:, group]
        columns = starts + (np.where(np.isnan(codes), last, codes) if self.may_lack else codes).astype(np.intp)
        Z[np.arange(len(N))[:, np.newaxis], columns] = heights

    @property
    def to_columns(self) -> tuple[Matrix, Matrix, Matrix, Any, Matrix]:
        """How a row becomes one column per feature of 0 to 1, levels by position: `Scales` in `_balls/neighbours.py`.

        The last position of a group stands for a missing category.
        """
        unit, last = self.to_unit[self._first_columns], np.array([b.stop - b.start - 1.0 for b in self.blocks])
        absent = np.where(self.is_group, last, missing_code(weights_of(self.schema)) * unit)
        low, span = (np.ascontiguousarray(ends, dtype=np.float64) for ends in (self.low, self.span))
        return low, span, np.ascontiguousarray(unit), self.is_group.astype(np.int8), absent

    @shared
    def _groups(self) -> tuple[Rows, Rows, Matrix, Rows]:
        """Per category: its first column, the last within the group, which is a missing one, and the height; which."""
        group = np.flatnonzero(self.is_group)
        sizes = np.array([block.stop - block.start for block in self.blocks], dtype=np.intp)
        return self._first_columns[group], sizes[group] - 1, self.heights[group], group

    def decode_numbers(self, Z: Matrix, near: tuple[Matrix, Matrix] | None = None) -> Matrix:
        """Return encoded points as numbers.

        `near` = (z, numbers) of the factual of each point: an unchanged feature gets the factual's own number
        back, to the bit.
        """
        if near is None:
            N, changed = np.empty((len(Z), len(self.blocks))), np.ones((len(Z), len(self.blocks)), dtype=bool)
        else:
            N, changed = near[1].copy(), self.changed(Z, near[0])
        cells, places, features = self._cells(changed & ~self.is_group)
        N.reshape(-1)[cells] = self._unscaled(Z.reshape(-1)[places], features)
        for position, lines in _lines_of(changed, self.is_group):
            levels = Z[lines, self.blocks[position]].argmax(axis=1)
            n_levels = len(self.schema.features[position].levels or ())
            N[lines, position] = np.where(levels < n_levels, levels, np.nan)
        return N

    def _unscaled(self, codes: Matrix, features: Rows) -> Matrix:
        """Return numbers for encoded values: the fitted one that is encoded there, or one with few decimals."""
        values = self.low[features] + codes * self.span[features]
        rounded = self._fine.of(values, features)
        if self.known:
            searched = self._has_known[features] & (self._has_known_grid[features] | ~self._on_grid(codes, features))
            for position, cells in _cells_of(features, np.flatnonzero(searched)):
                place = np.minimum(
                    np.searchsorted(self._known_codes[position], codes[cells]), len(self.known[position]) - 1
                )
                is_known = self._known_codes[position][place] == codes[cells]
                rounded[cells] = np.where(is_known, self.known[position][place], rounded[cells])
        return np.where(is_missing(codes), np.nan, rounded) if may_lack(codes) else rounded

    def _on_grid(self, codes: Matrix, features: Rows) -> Mask:
        """Say which encoded values are readable ones: no fitted value that is not readable is encoded there."""
        return self._gridded(codes, features) == codes

    def _gridded(self, codes: Matrix, features: Rows) -> Matrix:
        low, span = self.low[features], self.span[features]
        return (self._grid.of(low + codes * span, features) - low) / span

    def snap(self, points: Matrix, z: Matrix, goal: Matrix) -> Matrix:
        """Round discrete features in original units; halves and ties go towards the goal.

        points, z (the factual) and goal have one line each per point. A feature that is the same in the goal and in z
        is not rounded, and neither is a number that z lacks: it has the goal's value or none.
        docs/decisions/0012-rounding.md.
        """
        snapped = points.copy()
        to_round = self.changed(goal, z)
        if self.may_lack:
            to_round &= ~is_missing(z[:, self._first_columns])
        _, places, features = self._cells(to_round & self._is_whole)
        rounded = self._round(features, points.reshape(-1)[places], goal.reshape(-1)[places])
        snapped.reshape(-1)[places] = rounded
        for position, lines in _lines_of(to_round, self.is_group):
            block = self.blocks[position]
            snapped[lines, block] = _strongest(points[lines, block], goal[lines, block], self.heights[position])
        return snapped

    def to_grid(self, points: Matrix, z: Matrix) -> Matrix:
        """Round changed continuous values to their readable decimals; one that rounds to the factual's is its own."""
        gridded = points.copy()
        _, places, features = self._cells(self.changed(points, z) & self._is_continuous)
        rounded, kept = self._gridded(points.reshape(-1)[places], features), z.reshape(-1)[places]
        gridded.reshape(-1)[places] = np.where(np.abs(rounded - kept) <= SAME, kept, rounded)
        return gridded

    def _cells(self, mask: Mask) -> tuple[Rows, Rows, Rows]:
        """Return where marked features lie in rows of numbers and in encoded rows, all in one line, and which they are.

        Of features that are one column each; one number per place is found and used sooner than two.
        """
        cells = np.flatnonzero(mask)
        lines, features = np.divmod(cells, len(self.blocks))
        return cells, lines * self.width + self._first_columns[features], features

    def changed(self, A: Matrix, B: Matrix) -> Mask:
        """Per line and feature: whether two sets of points differ."""
        differs = A != B
        if self.width == len(self.blocks):
            return differs
        return np.logical_or.reduceat(differs, self._first_columns, axis=1)

    def lacks(self, Z: Matrix) -> Mask:
        """Per line and feature: whether its value is missing."""
        missing = is_missing(Z[:, self._first_columns])
        for position in np.flatnonzero(self.is_group):
            if self.schema.features[position].missing:
                missing[:, position] = Z[:, self.blocks[position].stop - 1] > 0
        return missing

    @shared
    def may_lack(self) -> bool:
        """Whether values of any feature may be missing."""
        return any(feature.missing for feature in self.schema.features)

    @shared
    def _first_columns(self) -> Rows:
        return np.array([block.start for block in self.blocks])

    @shared
    def _fine(self) -> Rounding:
        """The decimals that remove the error of scaling; those of levels do not matter."""
        return Rounding.to(
            [most_decimals(self.known[p], MOST) if d is None else d for p, d in enumerate(self.decimals)]
        )

    @shared
    def _grid(self) -> Rounding:
        """The readable decimals."""
        return Rounding.to([0 if decimals is None else decimals for decimals in self.readable])

    @shared
    def _known_codes(self) -> dict[int, Matrix]:
        """The encoded fitted values."""
        return {at: (known - self.low[at]) / self.span[at] for at, known in self.known.items()}

    @shared
    def _has_known(self) -> Mask:
        return np.isin(np.arange(len(self.blocks)), list(self.known))

    @shared
    def _has_known_grid(self) -> Mask:
        """Per feature: whether one of its fitted values is a readable one."""
        codes = self._known_codes
        found = [at in codes and self._on_grid(codes[at], np.array([at])).any() for at in range(len(self.blocks))]
        return np.array(found, dtype=bool)

    @shared
    def is_group(self) -> Mask:
        """Per feature: whether it is a group of columns, one per level and one for a missing one.

        The span tells a category that is set aside: so do maps saved when none was.
        """
        is_aside = self.span * weights_of(self.schema) > ASIDE / 2
        return np.array([feature.kind == "categorical" for feature in self.schema.features]) & ~is_aside

    @shared
    def _singles(self) -> Rows:
        return np.flatnonzero(~self.is_group)

    @shared
    def _is_continuous(self) -> Mask:
        return np.array([feature.kind == "continuous" for feature in self.schema.features])

    @shared
    def _is_whole(self) -> Mask:
        """Per feature: whether it is a whole number or a rank."""
        return ~(self._is_continuous | self.is_group)

    def _round(self, features: Rows, codes: Matrix, goal: Matrix) -> Matrix:
        low, span = self.low[features], self.span[features]
        value, wanted = low + codes * span, low + goal * span
        below = np.floor(value)
        part = value - below
        nearest = np.where(np.abs(part - 0.5) <= TIE, wanted > value, part > 0.5)
        return (below + nearest - low) / span


def _lines_of(changed: Mask, among: Mask) -> Iterator[tuple[int, Rows]]:
    """Yield each of some features that changes in any line, with those lines: most points change few features."""
    for position in np.flatnonzero(changed.any(axis=0) & among):
        yield int(position), np.flatnonzero(changed[:, position])


def _cells_of(features: Rows, cells: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield each feature that some cells belong to, with those cells."""
    of_cell = features[cells]
    order = np.argsort(of_cell, kind="stable")
    for part in np.split(cells[order], np.flatnonzero(np.diff(of_cell[order])) + 1) if len(cells) else []:
        yield int(features[part[0]]), part


def _strongest(points: Matrix, goal: Matrix, height: float) -> Matrix:
    """Return one active level per line: the highest; ties go to the goal's level if it is tied, else to the first."""
    highest = points.max(axis=1, keepdims=True)
    tied = points >= highest - TIE
    wanted = goal.argmax(axis=1)
    lines = np.arange(len(points))
    level = np.where(tied[lines, wanted], wanted, tied.argmax(axis=1))
    active = np.zeros_like(points)
    active[lines, level] = height
    return active
