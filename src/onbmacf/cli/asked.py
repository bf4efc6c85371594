"""What a request asks of `explain` beside the rows and the target.

Request  ->  asked_of  ->  arguments of explain that were given
"""

from typing import Any

from onbmacf.cli.request import Request
from onbmacf.errors import ParameterError

FLAGS = ("front", "ranges", "prove")
SECONDS = ("prove_seconds", "max_seconds")


def check_asked(request: Request) -> None:
    """Raise an error, before any work, where options contradict each other or cannot be read."""
    if request.immutable and request.vary:
        raise ParameterError("give --immutable or --vary: one is what the other leaves out.")
    if request.prove_seconds is not None and not request.prove:
        raise ParameterError("--prove-seconds is the time for a proof: give --prove, too.")
    asked_of(request)


def asked_of(request: Request) -> dict[str, Any]:
    """Return the further arguments of explain; what was not given is as the library has it."""
    asked: dict[str, Any] = {name: True for name in FLAGS if getattr(request, name)}
    asked |= {name: getattr(request, name) for name in SECONDS if getattr(request, name) is not None}
    if request.min_probability:
        asked["min_probability"] = _probability(request.min_probability)
    return asked


def _probability(word: str) -> float | str:
    """Return a least probability as the library takes it; a word is left to it only where it is one of its own.

    >>> _probability("0.8"), _probability("lasting")
    (0.8, 'lasting')
    """
    if word == "lasting":
        return word
    try:
        return float(word)
    except ValueError:
        raise ParameterError(f"--min-probability must be in [0, 1], or 'lasting', got {word!r}.") from None
