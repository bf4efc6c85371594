"""The model of a command: the caller's own, or one trained on the target column.

Request, table, target column  ->  chosen_model  ->  Chosen: the model, its name, and what a report says of it
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from onbmacf._base.checks import listed
from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say
from onbmacf.io.models import load_model
from onbmacf.io.trained import train_network, train_trees


class Chosen(NamedTuple):
    """A model, what to call it, and what the reader should know of it."""

    model: Any
    name: str
    notes: tuple[str, ...] = ()


def chosen_model(table: pd.DataFrame, y: "pd.Series[Any] | None", request: Request) -> Chosen:
    """Return the model that a request names; without one, a model that takes the table, trained on its labels."""
    if request.model:
        return Chosen(own_model(table, request), request.model if "://" in request.model else Path(request.model).name)
    assert y is not None  # prepare has made sure of it
    return _trained(table, y)


def own_model(table: pd.DataFrame, request: Request) -> Any:
    """Return the model that the caller gives."""
    _look_here_too(request.model)
    return load_model(request.model, table, trust_pickle=request.trust_pickle)


def _trained(table: pd.DataFrame, y: "pd.Series[Any]") -> Chosen:
    """Train on the rows that have a label: a network, or boosted trees where values are missing (decision 0062)."""
    known, lacking = y.notna(), [name for name in table.columns if table[name].isna().any()]
    trained = (train_trees if lacking else train_network)(table[known], y[known])
    why = f" and values are missing in {listed(lacking)}: {trained.kind}, which take them, were" if lacking else ""
    of_rows = f"{len(table):,} rows" if known.all() else f"{int(known.sum()):,} rows that have a label"
    note = (
        f"No model was given{why or f': {trained.kind} was'} trained on {y.name!r} with {trained.n_trained:,} of "
        f"{of_rows} (seed 0); {trained.comparison}. What follows is about that model."
    )
    say(note)
    name = f"{'boosted trees' if lacking else 'a 32-16 network'} trained here"
    return Chosen(trained.model, name, (note, f"Warning: {trained.warning}") if trained.warning else (note,))


def _look_here_too(model: str) -> None:
    """Let modules of the working folder be found, after all others: a file there must not stand in for a library."""
    if ":" in model and "://" not in model and not Path(model).exists() and not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
        say(f"note: {model} is also looked for in the working folder, {Path.cwd()}, after the installed modules.")
