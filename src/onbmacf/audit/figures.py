"""Summary figures of one batch, the immutable features it released, and several batches side by side.

Explanations  ->  overview, released        {name: Explanations}  ->  compare, compare_changes
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.enums import Relaxation, Status
from onbmacf.audit.arguments import typed
from onbmacf.audit.changes import changes_by_feature, check_same
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema

RELEASED = ["feature", "n_rows", "n_asked", "share"]
Flags = NDArray[np.bool_]


@typed
def overview(answers: Explanations) -> "pd.Series[Any]":
    """Return the main figures of a batch.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.

    Returns
    -------
    Series
        ``rows``; ``asked``, the rows that were searched; ``found``, those with a counterfactual, and ``share_found``
        of the asked; ``released``, those that needed an immutable feature changed, and ``share_released``;
        ``counterfactuals``; mean ``distance`` (encoded units) and mean ``n_changes`` of each row's first
        counterfactual; ``share_semifactual`` of the counterfactuals; ``model_rows`` handed to the model. With a
        committee also ``stability``: the mean share of its members that agree with each row's first counterfactual.

    Examples
    --------
    >>> audit.overview(answers)[["rows", "asked", "found", "share_found"]].to_dict()
    {'rows': 50, 'asked': 21, 'found': 21, 'share_found': 1.0}

    """
    first, asked = first_lines(answers), is_asked(answers)
    found = first >= 0
    batch = answers.batch
    after_retraining = {} if batch.stability is None else {"stability": _mean(batch.stability[first[found]])}
    return pd.Series(
        {
            "rows": len(answers),
            "asked": int(asked.sum()),
            "found": int(found.sum()),
            "share_found": _mean(found[asked]),
            "released": int(is_released(answers).sum()),
            "share_released": _mean(is_released(answers)[asked]),
            "counterfactuals": len(batch.factual),
            "distance": _mean(batch.distance[first[found]]),
            "n_changes": _mean(batch.changed.sum(axis=1)[first[found]]),
            "share_semifactual": _mean(~np.isnan(batch.semifactual_distance)),
            "model_rows": answers.n_model_rows,
            **after_retraining,
        },
        dtype=object,
    )


@typed
def status_counts(answers: Explanations) -> pd.DataFrame:
    """Return how many rows have each status, and why.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.

    Returns
    -------
    DataFrame
        One line per status that occurs: ``status``, ``n_rows`` and ``most_frequent_reason``.

    Examples
    --------
    >>> audit.status_counts(answers)[["status", "n_rows"]]
        status  n_rows
    0    found      21
    1  already      29

    """
    frame = answers.status_frame()
    lines = []
    for status in Status:
        reasons = frame.loc[frame["status"] == status, "reason"]
        if len(reasons):
            given = reasons[reasons != ""].value_counts()
            lines.append((str(status), len(reasons), given.index[0] if len(given) else ""))
    return pd.DataFrame(lines, columns=["status", "n_rows", "most_frequent_reason"])


@typed
def released(answers: Explanations, schema: Schema) -> pd.DataFrame:
    """Return the immutable features that had to change, and for how many rows.

    A row counts if its first counterfactual changes the feature, or if it has none and one is found as soon as the
    feature may change.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    schema : Schema
        Says which features are immutable; `explainer.schema_`.

    Returns
    -------
    DataFrame
        One line per immutable feature, and per feature that only the question kept (``vary``, ``immutable``) and a
        row needed: ``feature``, ``n_rows`` that needed it changed, ``n_asked`` rows that were searched, and
        ``share``, the first over the second.

    Examples
    --------
    >>> audit.released(answers, schema)
      feature  n_rows  n_asked  share
    0     age       0       21    0.0

    """
    check_same(answers, schema)
    first, n_asked = first_lines(answers), int(is_asked(answers).sum())
    names = list(answers.rows.columns)
    in_schema = np.array([name in schema.immutable for name in names], dtype=bool)
    changed = np.where(in_schema, answers.batch.changed, _given_up(answers))
    changed = np.vstack([changed, np.zeros((1, len(names)), dtype=bool)])[first]  # -1: the last
    needed = [[str(name) in needs for name in names] for needs in answers.would_need]
    counts = (changed | np.array(needed, dtype=bool).reshape(changed.shape)).sum(axis=0)
    kept = np.flatnonzero(in_schema | (counts > 0))
    frame = pd.DataFrame({"feature": pd.Series([names[at] for at in kept], dtype=object), "n_rows": counts[kept]})
    frame["n_asked"] = n_asked
    frame["share"] = frame["n_rows"] / n_asked if n_asked else np.nan
    return frame[RELEASED].sort_values("n_rows", ascending=False, kind="stable").reset_index(drop=True)


def _given_up(answers: Explanations) -> Flags:
    """Return, per counterfactual and feature, whether the feature was released because it had to be kept."""
    free = np.array([one == Relaxation.IMMUTABILITY for one in answers.batch.relaxation], dtype=bool)
    return np.asarray(answers.batch.released & free[:, None], dtype=bool)


@typed
def compare(batches: Mapping[str, Explanations]) -> pd.DataFrame:
    """Return the figures of several models or methods side by side.

    Parameters
    ----------
    batches : mapping of str to Explanations
        Answers by name.

    Returns
    -------
    DataFrame
        One line per name, with the columns of `overview`.

    Examples
    --------
    >>> paper = ONBMACF(strategy="paper").fit(table, model, schema=schema)
    >>> both = {"refined": answers, "paper": paper.explain(table.head(50), target="fine")}
    >>> audit.compare(both)[["name", "share_found", "n_changes", "share_semifactual"]].round(2)
          name  share_found  n_changes  share_semifactual
    0  refined          1.0       1.10               1.00
    1    paper          1.0       1.14               0.29

    """
    _check_some(batches)
    lines = [{"name": name, **overview(answers)} for name, answers in batches.items()]
    return pd.DataFrame(lines).infer_objects()


@typed
def compare_changes(batches: Mapping[str, Explanations]) -> pd.DataFrame:
    """Return the share of counterfactuals that change each feature, for several models or methods.

    Parameters
    ----------
    batches : mapping of str to Explanations
        Answers by name.

    Returns
    -------
    DataFrame
        One line per feature, one column per name.

    Examples
    --------
    >>> paper = ONBMACF(strategy="paper").fit(table, model, schema=schema)
    >>> both = {"refined": answers, "paper": paper.explain(table.head(50), target="fine")}
    >>> audit.compare_changes(both).round(2).iloc[1:3]
       feature  refined  paper
    1  tobacco     0.90   0.95
    2      ldl     0.19   0.19

    """
    _check_some(batches)
    shares = {
        name: changes_by_feature(answers).set_index("feature")["share"].reindex(list(answers.rows.columns))
        for name, answers in batches.items()
    }
    frame = pd.DataFrame(shares)
    frame.index = frame.index.set_names("feature")
    return frame.reset_index()


def first_lines(answers: Explanations) -> NDArray[np.intp]:
    """Return the line of each row's first counterfactual; -1 where it has none."""
    first = np.full(len(answers), -1, dtype=np.intp)
    factual = answers.batch.factual
    first[factual[::-1]] = np.arange(len(factual))[::-1]
    return first


def is_asked(answers: Explanations) -> Flags:
    """Return, per row, whether it was searched: it could be encoded and did not have the target label already."""
    return np.isin(answers.statuses.astype(str), [Status.FOUND, Status.NONE_FOUND, Status.INFEASIBLE])


def is_released(answers: Explanations) -> Flags:
    """Return, per row, whether a counterfactual is found only if an immutable feature changes."""
    first, names = first_lines(answers), {str(name) for name in answers.rows.columns}
    free = [Relaxation.IMMUTABILITY, Relaxation.BOTH]
    released_lines = np.append([one in free for one in answers.batch.relaxation], False).astype(bool)  # -1: the last
    needed = np.array([not names.isdisjoint(needs) for needs in answers.would_need], dtype=bool)
    return np.asarray(released_lines[first] | needed, dtype=bool)


def keeps_immutables(answers: Explanations, schema: Schema) -> bool:
    """Return whether no row's first counterfactual changes an immutable feature, for whatever reason."""
    first = first_lines(answers)
    is_immutable = np.array([name in schema.immutable for name in answers.rows.columns], dtype=bool)
    return not answers.batch.changed[first[first >= 0]][:, is_immutable].any()


def _check_some(batches: Mapping[str, Explanations]) -> None:
    if not batches:
        raise ParameterError("nothing to compare: give explanations by name, e.g. {'forest': answers}.")


def _mean(values: Iterable[Any]) -> float:
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()) if len(numbers) else float("nan")
