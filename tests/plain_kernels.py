"""The kernels of proofs, run from their source whether or not they are compiled: the twins of the compiled ones."""

import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import onbmacf._prove.kernels

FOLDER = Path(onbmacf._prove.kernels.__file__).parent
NAMES = ("search", "trees", "additive", "network")  # the others derive from the first


@cache
def plain_kernels():
    """Return the modules, loaded from their source; `onbmacf` itself keeps the ones that it has."""
    found = SimpleNamespace()
    with mock.patch.dict(sys.modules):
        for name in NAMES:
            full = f"onbmacf._prove.kernels.{name}"
            loader = SourceFileLoader(full, str(FOLDER / f"{name}.py"))
            sys.modules[full] = module_from_spec(spec_from_loader(full, loader))
            loader.exec_module(sys.modules[full])
            setattr(found, name, sys.modules[full])
    return found


def steps(search, n_steps=120):
    """Run a search one step at a time, and return what can be seen of it after each; candidates are refused."""
    seen = []
    for _ in range(n_steps):
        search.run(1)
        is_over, point = search.is_over(), search.candidate()
        seen.append((search.limit, search.least_bound(), None if point is None else point.tolist()))
        if is_over:
            break
        if search.has_candidate():
            seen.append(search.is_firm())
            search.refuse()
    return seen
