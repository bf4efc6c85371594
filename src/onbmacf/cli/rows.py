"""Which rows are explained: by number, by name, from a file, or by what the model says of them."""

from pathlib import Path

import numpy as np
import pandas as pd

from onbmacf.cli.cells import as_fitted
from onbmacf.cli.job import Job, read_file
from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say
from onbmacf.cli.words import label_of, named, numbered

FIRST = 10  # rows to explain where the request does not say which


def chosen_rows(job: Job, request: Request, most: int | None, seed: int | None = None) -> pd.DataFrame:
    """Return the rows that the request names; without any, those that do not have the target label.

    Of these at most `most` are taken, drawn with a seed, or the first ones without; a line on stderr says so.
    """
    return as_fitted(_chosen(job, request, most, seed), job.explainer.fitted_.space.form)


def _chosen(job: Job, request: Request, most: int | None, seed: int | None) -> pd.DataFrame:
    if request.rows_file is not None:
        return _from_file(job, request)
    if request.ids:
        return job.table.iloc[named(request.ids, job.table.index)]
    if request.rows:
        return job.table.iloc[numbered(request.rows, range(len(job.table)) if job.numbers is None else job.numbers)]
    places = _places(job, request)
    kept = places if most is None else places[:most] if seed is None else sampled(places, most, seed)
    if len(kept) < len(places):
        which = f"the first {len(kept):,}" if seed is None else f"a random {len(kept):,} (seed {seed})"
        say(f"Explaining {which} of {len(places):,} rows; choose others with --rows 3,17 or --rows all.")
    return job.table.iloc[kept]


def sampled(places: list[int], most: int, seed: int) -> list[int]:
    """Return the places, or so many of them drawn at random with a seed, in order."""
    if len(places) <= most:
        return places
    return sorted(np.random.default_rng(seed).choice(places, size=most, replace=False).tolist())


def _from_file(job: Job, request: Request) -> pd.DataFrame:
    rows = read_file(request.rows_file or Path(), request)
    known = [name for name in rows.columns if name in job.table.columns]
    return (rows.set_index(request.id_column) if request.id_column in rows.columns else rows)[known]


def _places(job: Job, request: Request) -> list[int]:
    """Return the positions of the rows to explain by what the model says of them."""
    explainer = job.explainer
    if len(explainer.labels_) != len(job.table):  # a map of another table: what the model says here is not known
        return list(range(len(job.table)))
    labels = explainer.classes_[explainer.labels_]
    if request.predicted:
        label = label_of(request.predicted, explainer.classes_, "--predicted")
        return [place for place, said in enumerate(labels) if said == label]
    wanted = job.target if isinstance(job.target, list) else [job.target]
    return [place for place, said in enumerate(labels) if said not in wanted]
