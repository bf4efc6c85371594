"""A surrogate for the scores of a model that gives labels alone: boosted trees, learnt from the fitted rows' labels.

    rows as numbers, labels  ->  Surrogate.of  ->  Surrogate(points): how much a point is of each label, a guess

A search needs to know how far a refused point is from being an answer. Only the model says what is an answer.
"""

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from onbmacf._base.arrays import Matrix, Rows
from onbmacf._prove.recipes import Program, Recipe
from onbmacf._prove.structures import reader_of
from onbmacf._prove.sums import Sums, sums_of

N_TREES, N_LEAVES = 50, 15  # more say with more certainty what is less true: answers were farther
MOST_ROWS = 20_000


class Surrogate(NamedTuple):
    """Trees, laid out for the kernels."""

    program: Program
    sums: Sums
    labels: Rows  # those of the fitted rows
    width: int

    @classmethod
    def of(cls, N: Matrix, labels: Rows, n_labels: int) -> "Surrogate | None":
        """Learn from rows, evenly spaced ones of many; None where all have one label."""
        step = max(1, len(N) // MOST_ROWS)
        N, labels = N[::step], labels[::step]
        if len(np.unique(labels)) < 2:
            return None
        how = {"max_iter": N_TREES, "max_leaf_nodes": N_LEAVES, "early_stopping": False, "random_state": 0}
        trees = HistGradientBoostingClassifier(**how).fit(N, labels)
        largest = np.nanmax(np.abs(N), axis=0, initial=0.0)
        may_lack = np.ones(N.shape[1], dtype=bool)
        recipes = [Recipe(at) for at in range(N.shape[1])]
        recipes, sums = sums_of(reader_of(trees)(trees, N, largest), trees, recipes, may_lack)
        return cls(Program.of(recipes), sums, trees.classes_, n_labels + 1)

    def __call__(self, N: Matrix) -> Matrix:
        """Return a number per point and label, the last for labels that no fitted row has."""
        found = np.full((len(N), self.width), -np.inf)
        sums = self.sums.of(self.program.columns(np.ascontiguousarray(N)))
        if sums.shape[1] == 1:  # of the second label against the first
            sums = np.concatenate([np.zeros_like(sums), sums], axis=1)
        found[:, self.labels] = sums
        return found
