"""The strategies, and one search with any of them. A new strategy is one file and one line in STRATEGIES.

Map, Options, Asked  ->  opposing_pairs  ->  Problem  ->  Strategy.find  ->  Found, Effort
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import check_choice
from onbmacf._search.budget import Budget, Meter
from onbmacf._search.memo import Memo
from onbmacf._search.options import Options, check_options
from onbmacf._search.pairs import nearest_members, opposing_pairs, rounds_of
from onbmacf._search.paper import PAPER
from onbmacf._search.plausible import nearest_plausible
from onbmacf._search.problem import Asked, Features, Found, Map, Problem, Reach, Strategy
from onbmacf._search.refined import REFINED
from onbmacf.errors import ParameterError

STRATEGIES: dict[str, Strategy] = {"refined": REFINED, "paper": PAPER}


class Effort(NamedTuple):
    """How hard a search looked, per factual."""

    asked: Rows  # questions
    ran_out: Mask  # whether the budget ended it
    is_proven: Mask  # whether every allowed combination of values was asked about
    failed: Rows  # questions on which the model raised
    left: Rows  # questions that the budget still allows
    raised: Any = ""  # what the model did instead of answering, in words; this and the next are noted by who asks
    unseen: Any = ""  # labels that it said and that no fitted row has, in words


def checked(options: Options) -> Options:
    """Return the options if all of them are allowed and none is without effect."""
    check_choice("strategy", options.strategy, STRATEGIES)
    for name in STRATEGIES[options.strategy].ignores:
        if not options.has_default(name):
            raise ParameterError(f"{name} does nothing with strategy={options.strategy!r}: leave it out.")
    return check_options(options)


def search(fitted: Map, features: Features, options: Options, asked: Asked, n: int) -> tuple[Found, Effort]:
    """Explain some factuals together; also return how hard the search looked.

    Nothing here sees pandas, the schema or the model. The answers do not depend on which factuals are asked together.
    """
    budget = Budget.of(options, asked)
    meter = Meter(len(asked.z), budget)
    problem = _with_free(_problem(fitted, features, options, asked, n, budget, meter), asked, budget, meter)
    found, is_proven = STRATEGIES[options.strategy].find(problem)
    found = found._replace(ball=np.where(found.ball < len(fitted.cover), found.ball, -1))
    is_proven = is_proven & ~meter.ran_out & (meter.failed == 0)
    return found, Effort(meter.asked, meter.ran_out, is_proven, meter.failed, meter.left)


def _problem(
    fitted: Map, features: Features, options: Options, asked: Asked, n: int, budget: Budget, meter: Meter
) -> Problem:
    """Return what a strategy is given: the factuals, their opposing balls, and how points are asked about."""
    home, balls, pairs = opposing_pairs(fitted, options, asked)
    again = (meter.counted if budget.is_limited else meter.noting)(asked.plain_label_of)
    repeated = again if asked.knows_centers else None  # the same question only where nothing but the label counts
    n_reserved = n * STRATEGIES[options.strategy].reserve(options)
    memo = Memo(meter.counted(asked.label_of, n_reserved), len(asked.z), budget, repeated, asked.n_taken)
    return Problem(
        z=asked.z,
        codes=asked.codes,
        wanted=asked.wanted,
        home=home,
        pairs=pairs,
        balls=balls,
        features=features,
        options=options,
        n=n,
        rounds=rounds_of(options.search, pairs.sizes),
        label_of=memo.label_of,
        known=memo.known,
        ahead=memo.ahead,
        places=memo.places,
        spare=0 if budget.is_limited else memo.places,
        afford=meter.afford,
        ask=meter.counted(asked.label_of),
        ask_again=again if repeated is None else memo.again,
        is_allowed=asked.is_allowed,
        knows_centers=asked.knows_centers,
        nearest_members=partial(nearest_members, fitted, balls, features, asked.z) if budget.is_limited else None,
        plausible=partial(nearest_plausible, fitted, features, options.metric, asked.z, asked.wanted),
        snap=asked.snap,
        share=fitted.share,
        ends=fitted.ends,
        seen=fitted.seen,
        is_late=meter.is_late,
        reach=_within(asked.reach, meter),
    )


def _with_free(problem: Problem, asked: Asked, budget: Budget, meter: Meter) -> Problem:
    """Add the same problem without its rules; with a budget there is none, for it would cost as much again."""
    if asked.free_label_of is None or budget.is_limited:
        return problem
    features = problem.features._replace(constrain=asked.free_place, max_changes=None)
    memo = Memo(meter.in_time(asked.free_label_of), len(asked.z), budget, n_taken=asked.n_taken)
    free = replace(problem, features=features, snap=asked.free_snap, label_of=memo.label_of)
    free = replace(free, known=memo.known, ahead=memo.ahead)
    return replace(problem, free=free)


def _within(reach: Reach, meter: Meter) -> Reach:
    """Return the points a factual may become only where the budget allows to ask about all of them."""

    def points(factual: int, most: int) -> Matrix | None:
        every = reach(factual, most)
        return every if every is not None and len(every) <= meter.left[factual] else None

    return points
