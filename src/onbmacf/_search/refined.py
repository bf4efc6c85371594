"""The refined strategy: five rounds of questions, all factuals in lock-step.

    singles and donors -> combinations -> refined -> refined finer -> confirmed

1. Every free feature alone, both ways, and the nearest fitted rows and ball centres of the wanted label.
2. What the singles gain adds up to a guess of any combination: the cheapest that should do, and parts of donors.
3. The best point of each set of changes: changes dropped and shrunk, refused points repaired; for the dial, points
   with more neighbours of the label.
4. The same again for factuals that still get better, up to twice; then the best point with each change undone. At dial
   0 the nearest points are refined a few times more.
5. The points chosen are asked about again by `predict`, as they will be printed, with the way back to the factual.

`search.py` has what is known and how it is asked about, `rounds.py` and its kernels 1 to 4, `joint.py` what is tried
where they find nothing, `interior.py` the dial at 1 and bounds on neighbours, `confirm.py` 5.
"""

from dataclasses import replace

import numpy as np

from onbmacf._base.arrays import Mask
from onbmacf._search import choose
from onbmacf._search.confirm import Outcome, confirm, merged
from onbmacf._search.interior import into_the_interior
from onbmacf._search.joint import ask_all, last_resort
from onbmacf._search.problem import Strategy
from onbmacf._search.rounds import (
    FEW_JOINT,
    USUAL,
    first_round,
    nearest_of_all,
    needed_of_all,
    search_rounds,
    without_rules,
)
from onbmacf._search.search import Search, accept_labels


def find(search: Search, active: Mask | None = None) -> Outcome:
    """Return up to n counterfactuals per factual, the best first; of some factuals, where they are named."""
    if 1 in (search.options.max_model_rows, search.options.max_model_calls) and not search.oracle.reads:
        search = replace(search, oracle=search.oracle.by_labels())  # scores could not be confirmed
    record, wanted, to_center = first_round(search, None, active)
    is_open: Mask = np.asarray(wanted.any(axis=1))
    # Points are looked for at one and the same price whatever the dial, which then only chooses: so it never reverses.
    usual = choose.price_of(USUAL, to_center)
    price = choose.price_of(search.options.plausibility, to_center)
    is_proven = ask_all(search, record, wanted, is_open, FEW_JOINT)
    active = is_open & ~is_proven
    if search.is_ruled and not search.oracle.is_limited and not search.oracle.is_late:
        active &= ~without_rules(search, record, wanted, active, usual)
    score = search_rounds(search, record, wanted, active, usual)
    is_short = search.oracle.settle_for_less(is_open & ~np.isfinite(score).any(axis=1))
    if is_short.any() and (search.oracle.is_limited or search.oracle.is_late):
        accept_labels(search, record, wanted, is_short)  # there is nothing left to ask with
        score = choose.worth(record, usual, 1, search.neighbours)
    elif is_short.any():
        is_open &= ~is_short
    last_resort(search, record, wanted, is_open, is_proven, usual, score)
    if (search.options.plausibility == 1.0 or search.least_share > 0.0) and not search.oracle.is_late:
        into_the_interior(search, record, wanted, is_open & ~is_proven, price)
    if search.options.plausibility > 0.0:
        score = choose.worth(record, price, search.n, search.neighbours)
        if search.n > 1 and not search.oracle.is_late:
            score = needed_of_all(search, record, wanted, price, score)
    else:
        score = nearest_of_all(search, record, wanted, is_open & ~is_proven, is_proven)
    score[is_short & ~is_open] = np.inf
    outcome = confirm(search, record, is_proven, score, find)
    is_short &= search.oracle.settled & ~is_open  # none where a copy of the model was wrong, and all began again
    return merged(outcome, find(search, is_short), is_short) if is_short.any() else outcome


REFINED = Strategy(
    find,
    reserve=lambda options: 0,
    release="nothing",
    ignores=("step_ratio", "max_steps", "association", "boundary", "search"),
    is_readable=True,
    is_distinct=True,
    finds_labels=True,
)
