"""Map a pure function over pieces of work: in this process, or in several. Nobody else knows what runs it.

function, pieces  ->  run_all  ->  results in the order of the pieces, whatever ran them
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from onbmacf.errors import OnbmacfWarning

Piece = TypeVar("Piece")
Result = TypeVar("Result")

PATIENCE = 1.0  # seconds before a progress bar appears


def run_all(
    function: Callable[[Piece], Result], pieces: Sequence[Piece], n_jobs: int = 1, describe: str = ""
) -> list[Result]:
    """Return function(piece) for every piece, in order, with a progress bar on a terminal if it takes long."""
    if n_jobs == 1 or len(pieces) < 2 or not _can_travel((function, pieces[0])):
        return [function(piece) for piece in _watched(pieces, len(pieces), describe)]
    from joblib import Parallel, delayed

    results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(piece) for piece in pieces)
    return list(_watched(results, len(pieces), describe))


def _watched(items: Iterable[Any], total: int, describe: str) -> Iterable[Any]:
    from tqdm import tqdm

    return tqdm(items, total=total, desc=describe, disable=None, delay=PATIENCE, leave=False)  # None: off a terminal


def _can_travel(work: Any) -> bool:
    """Say whether work and what it holds can be sent to another process; warn if not."""
    try:
        _cloudpickle().dumps(work)
    except Exception as error:
        message = f"the model cannot be sent to other processes ({error}): everything runs in this one."
        warnings.warn(message, OnbmacfWarning, stacklevel=2)
        return False
    return True


def _cloudpickle() -> Any:
    """Return what joblib itself pickles with: a package of its own, or in older releases a part of joblib."""
    try:
        return import_module("cloudpickle")
    except ImportError:
        return import_module("joblib.externals.cloudpickle")
