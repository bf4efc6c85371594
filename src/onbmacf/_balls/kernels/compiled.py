"""The loops as they were compiled for this processor, and whether they were compiled at all."""

import warnings
from functools import cache
from importlib import import_module
from typing import Any

from onbmacf._balls.kernels.loops import has_avx2
from onbmacf.errors import OnbmacfWarning

ADVICE = "install a C compiler and then onbmacf again, or install onbmacf from a wheel"


def _widest() -> Any:
    """Return the loops with the widest instructions that this processor has."""
    name = "onbmacf._balls.kernels.loops"
    if has_avx2():
        try:
            return import_module(f"{name}_avx2")
        except ImportError:  # not built
            pass
    return import_module(name)


loops = _widest()


@cache
def are_compiled() -> bool:
    """Say whether the loops are compiled; where they are not, warn, once."""
    if not loops.COMPILED:
        warnings.warn(
            f"the kernels of onbmacf are not compiled, so everything takes many times as long: {ADVICE}.",
            OnbmacfWarning,
            stacklevel=2,
        )
    return bool(loops.COMPILED)
