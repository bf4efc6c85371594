"""How the points of a search ask about trial points: the model must say their label and, if asked for, neighbours too.

Problem, Points  ->  asking_about  ->  Asking, with lines that are those of the points
"""

from collections.abc import Callable

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._search.problem import UNKNOWN, Asking, Problem
from onbmacf._search.ranking import Points

Holds = Callable[[Matrix, Rows], Mask]  # points, lines -> which are accepted


def asking_about(problem: Problem, points: Points) -> Asking:
    """Return how these points ask about trial points: the model must say their label."""

    def known(trial: Matrix, lines: Rows) -> Rows:
        said = problem.known(trial, points.factual[lines])
        return np.where(said == UNKNOWN, -1, said == points.label[lines])

    return asking_for(problem, points, has_label(problem, points))._replace(known=known)


def asking_for(problem: Problem, points: Points, holds: Holds) -> Asking:
    """Return the same with another condition on what is accepted."""

    def ahead(trial: Matrix, lines: Rows, n_again: int = 0) -> bool:
        return problem.ahead(trial, points.factual[lines], n_again)

    return Asking(holds, ahead, problem.places, problem.is_late, problem.spare)


def has_label(problem: Problem, points: Points) -> Holds:
    """Return the test whether the model says the label of the line."""
    return lambda trial, lines: problem.label_of(trial, points.factual[lines]) == points.label[lines]


def is_plausible(problem: Problem, points: Points, least: Matrix) -> Holds:
    """Return the test: the model says the label, and enough neighbours do. Only then are the neighbours looked at."""
    says_label = has_label(problem, points)

    def test(trial: Matrix, lines: Rows) -> Mask:
        holds = says_label(trial, lines)
        holds[holds] = problem.share(trial[holds], points.label[lines[holds]]) >= least[lines[holds]]
        return holds

    return test
