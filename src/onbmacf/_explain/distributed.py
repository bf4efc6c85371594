"""Explaining on a Dask cluster: rows go out in pieces, answers come back as one, in the order of the rows.

    frame           ->  explain_on          ->  Explanations
    Dask DataFrame  ->  explain_partitions  ->  Dask DataFrame

`explain`, the function from rows to answers, holds the map and the model: it travels once to each worker. Dask is
imported only when a Dask object comes in.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import pandas as pd

from onbmacf._base.executor import Parcel, call, check_client, run_all, send, shares
from onbmacf._text.frames import line_frame
from onbmacf.explanations import Explanations

Explain = Callable[[pd.DataFrame], Explanations]
MOST_ROWS = 10_000  # that a worker explains at a time


def explain_on(client: Any, explain: Explain, frame: pd.DataFrame) -> Explanations:
    """Explain the rows on a cluster's workers."""
    places = shares(len(frame), client, most=MOST_ROWS)
    pieces = [frame.iloc[place] for place in places]
    noticed: list[str] = []
    alone = partial(_without_rows, explain)
    parts = run_all(alone, pieces, describe="explaining", client=client, told=noticed.append)
    answers = Explanations.concat([replace(part, rows=piece) for part, piece in zip(parts, pieces, strict=True)])
    return replace(answers, warnings=(*noticed, *answers.warnings))


def explain_partitions(explain: Explain, table: Any, sample: pd.DataFrame, client: Any = None) -> Any:
    """Return the answers to a Dask DataFrame as one, lazily: each partition's `to_frame`, with status and reason.

    A row without a counterfactual has a line, too. The columns and dtypes are those of the answers to a sample.
    """
    meta = line_frame(explain(sample)).iloc[:0].set_axis(table._meta.index)
    parcel: Any = Parcel(partial(_frame_of, explain, meta.dtypes))
    client = current_client() if client is None else client
    if client is not None:
        check_client(client)
        parcel = send(client, parcel)
    return table.map_partitions(_apply, parcel, meta=meta)


def _without_rows(explain: Explain, frame: pd.DataFrame) -> Explanations:
    """Explain, and leave out what the caller has: the rows."""
    answers = explain(frame)
    return replace(answers, rows=answers.rows.iloc[:0])


def _frame_of(explain: Explain, dtypes: "pd.Series[Any]", frame: pd.DataFrame) -> pd.DataFrame:
    """Explain a partition; one without a counterfactual has the dtypes of the others."""
    return line_frame(explain(frame)).astype(dtypes.to_dict())


def _apply(frame: pd.DataFrame, parcel: Any) -> pd.DataFrame:
    """Call a parcel the way `map_partitions` calls: the partition first."""
    found: pd.DataFrame = call(parcel, frame)
    return found


def current_client() -> Any:
    """Return the client that Dask would compute with, or None: then it computes in this process."""
    try:
        return import_module("distributed").default_client()
    except (ImportError, ValueError):
        return None
