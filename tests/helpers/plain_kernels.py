"""Kernels run from their source whether or not they are compiled: the twins of the compiled ones."""

import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import onbmacf._prove.kernels


def from_source(package, *names):
    """Return modules of a package, loaded from their source; `onbmacf` itself keeps the ones that it has."""
    found, folder = SimpleNamespace(), Path(package.__file__).parent
    with mock.patch.dict(sys.modules):
        for name in names:
            full = f"{package.__name__}.{name}"
            loader = SourceFileLoader(full, str(folder / f"{name}.py"))
            sys.modules[full] = module_from_spec(spec_from_loader(full, loader))
            loader.exec_module(sys.modules[full])
            setattr(found, name, sys.modules[full])
    return found


@cache
def plain_kernels():
    """Return the kernels of proofs from their source."""
    return from_source(
        onbmacf._prove.kernels, "search", "trees", "additive", "network"
    )  # the others derive from the first


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
