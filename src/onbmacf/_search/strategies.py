"""The strategies by name. A new one is one file with a function from Problem to Found, and a line in STRATEGIES."""

from onbmacf._base.checks import check_choice
from onbmacf._search.options import Options, check_options
from onbmacf._search.paper import PAPER
from onbmacf._search.problem import Strategy
from onbmacf._search.refined import REFINED
from onbmacf.errors import ParameterError

STRATEGIES: dict[str, Strategy] = {"refined": REFINED, "paper": PAPER}


def checked(options: Options) -> Options:
    """Return the options if all of them are allowed and none is without effect."""
    check_choice("strategy", options.strategy, STRATEGIES)
    for name in STRATEGIES[options.strategy].ignores:
        if not options.has_default(name):
            raise ParameterError(f"{name} does nothing with strategy={options.strategy!r}: leave it out.")
    return check_options(options)
