"""The strategies, and one search with any of them. A new strategy is one file and one line in STRATEGIES.

Map, Options, Asked  ->  opposing_pairs  ->  Problem  ->  Strategy.find  ->  Found
"""

import numpy as np

from onbmacf._base.arrays import Mask
from onbmacf._base.checks import check_choice
from onbmacf._search.budget import Meter, last_checks
from onbmacf._search.options import Options, check_options
from onbmacf._search.pairs import opposing_pairs, rounds_of
from onbmacf._search.paper import PAPER
from onbmacf._search.problem import Asked, Features, Found, Map, Problem, Strategy
from onbmacf._search.refined import REFINED

STRATEGIES: dict[str, Strategy] = {"refined": REFINED, "paper": PAPER}


def checked(options: Options) -> Options:
    """Return the options if all of them are allowed."""
    check_choice("strategy", options.strategy, STRATEGIES)
    return check_options(options)


def search(fitted: Map, features: Features, options: Options, asked: Asked, n: int) -> tuple[Found, Mask]:
    """Explain some factuals together; also return whose budget of questions ran out before the balls did.

    Nothing here sees pandas, the schema or the model. The answers do not depend on which factuals are asked together.
    """
    strategy = STRATEGIES[options.strategy]
    home, balls, pairs = opposing_pairs(fitted, options, asked)
    reserve = n * strategy.reserve(options) + last_checks(n)
    per_ball = 1 + len(features.starts)  # the projection, then each feature put back once
    meter = Meter(asked.label_of, len(asked.z), options.max_model_rows, reserve, per_ball, strategy.ball_share)
    problem = Problem(
        z=asked.z,
        codes=asked.codes,
        home=home,
        pairs=pairs,
        balls=balls,
        features=features,
        options=options,
        n=n,
        rounds=rounds_of(options.search, pairs),
        label_of=meter.label_of,
        afford=meter.afford,
        ask=asked.label_of,
        snap=asked.snap,
        share=fitted.share,
    )
    found = strategy.find(problem)
    return found._replace(ball=np.where(found.ball < len(fitted.cover), found.ball, -1)), meter.ran_out
