"""The fitted rows as a search sees them: numbers in the caller's units, one column per feature, and where balls lie.

Map, kinds and scales of the features  ->  SearchTable  ->  nearest donors, singles, costs
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.metrics import Metric, power_of, proven_power
from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.kernels import donors, rounds

N_RANKS = 101  # fitted values that are kept of each number, at even ranks; and levels of a category
MOST_DONORS = 20_000  # rows of a label among which the nearest are looked for; of more, evenly spaced ones


@dataclass(frozen=True, eq=False)
class SearchTable:
    """What a search needs of a fitted map, made once."""

    N: Matrix  # the fitted rows
    labels: Rows
    centers: Rows  # rows that are centres of balls
    radii: Matrix
    is_level: Mask  # per feature: whether it is a category, whose levels have no order
    scale: Matrix  # per feature: what a number costs per unit, and another level
    absent: Matrix  # per feature: what it costs to fill in a missing value

    @cached_property
    def ranks(self) -> Matrix:
        """Per feature: values at even ranks; of a category its levels, the most frequent first, NaN behind them."""
        ranks = np.full((self.N.shape[1], N_RANKS), np.nan)
        for at, column in enumerate(self.N.T):
            known = np.sort(column[~np.isnan(column)])
            if self.is_level[at]:
                levels, counts = np.unique(known, return_counts=True)
                levels = levels[np.argsort(-counts, kind="stable")][:N_RANKS]
                ranks[at, : len(levels)] = levels
            else:
                ranks[at] = known[np.rint(np.linspace(0, len(known) - 1, N_RANKS)).astype(np.intp)]
        return ranks

    @cached_property
    def telling(self) -> Rows:
        """The features, those first whose values differ most between labels."""
        means, spread = [], np.nanstd(self.N, axis=0) + 1e-300
        with np.errstate(all="ignore"):
            for label in np.unique(self.labels):
                rows = self.N[self.labels == label]
                known = np.maximum(1, (~np.isnan(rows)).sum(axis=0))
                means.append(np.nansum(rows, axis=0) / known)
        apart = (np.max(means, axis=0) - np.min(means, axis=0)) / spread
        return np.argsort(-np.where(self.is_level, np.inf, np.nan_to_num(apart)), kind="stable")

    @cached_property
    def _salt(self) -> NDArray[np.uint64]:
        """Numbers by whose sums the kernels tell sets of features apart."""
        return np.random.default_rng(0).integers(1, 1 << 61, len(self.scale), dtype=np.uint64)

    @cached_property
    def sample(self) -> Rows:
        """The rows that donate values, and teach a surrogate: all, or evenly spaced ones of each label."""
        parts = []
        for label in np.unique(self.labels):
            rows = np.flatnonzero(self.labels == label)
            step = max(1, len(rows) // MOST_DONORS)
            parts.append(rows[::step])
        return np.sort(np.concatenate(parts))

    @cached_property
    def _rows(self) -> tuple[Matrix, Rows, Matrix]:
        return np.ascontiguousarray(self.N[self.sample]), self.labels[self.sample], np.zeros(len(self.sample))

    @cached_property
    def _balls(self) -> tuple[Matrix, Rows, Matrix]:
        return np.ascontiguousarray(self.N[self.centers]), self.labels[self.centers], np.array(self.radii)

    def features(self, step: Matrix, metric: Metric, most_changes: int | None, farther: Matrix) -> rounds.Features:
        """Return the features for the kernels; a metric of which nothing is known is taken for Manhattan's.

        `farther` is by which part of its way a number may go on to a rounder one.
        """
        power = proven_power(metric)
        most = len(self.scale) if most_changes is None else min(most_changes, len(self.scale))
        kinds = self.is_level.astype(np.int8)
        given = kinds, self.scale, self.absent, step, self.ranks, self._salt, 1 if power is None else power, most
        return rounds.Features(*given, farther)

    def nearest_rows(self, factuals: Matrix, free: Mask, wanted: Mask, most: int) -> Rows:
        """Return the fitted rows of wanted labels nearest to each factual, -1 where there are fewer."""
        places = self._nearest(factuals, free, wanted, most, *self._rows)
        return np.where(places >= 0, self.sample[places], -1)

    def nearest_balls(self, factuals: Matrix, free: Mask, wanted: Mask, most: int) -> Rows:
        """Return the balls of wanted labels whose surfaces are nearest, -1 where there are fewer."""
        return self._nearest(factuals, free, wanted, most, *self._balls)

    def _nearest(
        self, factuals: Matrix, free: Mask, wanted: Mask, most: int, rows: Matrix, labels: Rows, radii: Matrix
    ) -> Rows:
        found, apart = np.empty((len(factuals), most), dtype=np.intp), np.empty((len(factuals), most))
        flags = free.astype(np.int8), self.is_level.astype(np.int8)
        known = np.zeros((len(factuals), int(self.labels.max()) + 1), dtype=np.int8)
        known[:, : wanted.shape[1]] = wanted[:, : known.shape[1]]
        donors.nearest(factuals, *flags, self.scale, self.absent, rows, labels, known, radii, found, apart)
        return found


def is_known(metric: Metric) -> bool:
    """Say whether the kernels know a metric."""
    return power_of(metric) is not None
