"""The strategies, and one search with any of them. A new strategy is one file and one line in STRATEGIES.

Problem  ->  Strategy.find  ->  Found, Effort
"""

from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Mask, Rows
from onbmacf._base.checks import check_choice
from onbmacf._search.options import Options, check_options
from onbmacf._search.paper import PAPER
from onbmacf._search.problem import Found, Problem, Strategy
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


def search(problem: Problem) -> tuple[Found, Effort]:
    """Explain some factuals together by walking the map; also return how hard the search looked.

    Nothing here sees pandas, the schema or the model. The answers do not depend on which factuals are asked together.
    """
    found, is_proven = STRATEGIES[problem.options.strategy].find(problem)
    found = found._replace(ball=np.where(found.ball < len(problem.fitted.cover), found.ball, -1))
    meter = problem.meter
    is_proven = is_proven & ~meter.ran_out & (meter.failed == 0)
    return found, Effort(meter.asked, meter.ran_out, is_proven, meter.failed, meter.left)
