"""Summary figures of one batch, the immutable features it released, and several batches side by side.

Explanations  ->  overview, released        {name: Explanations}  ->  compare, compare_changes
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf.audit.changes import changes_by_feature
from onbmacf.errors import ParameterError
from onbmacf.explanation import Explanations, Relaxation, Status
from onbmacf.schema import Schema

RELEASED = ["feature", "n_rows", "n_asked", "share"]
Flags = NDArray[np.bool_]


def overview(answers: Explanations) -> "pd.Series[Any]":
    """Return the figures of a batch: rows asked and answered, what it took, and the questions to the model."""
    first, asked = first_lines(answers), is_asked(answers)
    found = first >= 0
    batch = answers.batch
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
        },
        dtype=object,
    )


def status_counts(answers: Explanations) -> pd.DataFrame:
    """Return one line per status that occurs: how many rows, and the most frequent reason."""
    frame = answers.status_frame()
    lines = []
    for status in Status:
        reasons = frame.loc[frame["status"] == status, "reason"]
        if len(reasons):
            given = reasons[reasons != ""].value_counts()
            lines.append((str(status), len(reasons), given.index[0] if len(given) else ""))
    return pd.DataFrame(lines, columns=["status", "n_rows", "most_frequent_reason"])


def released(answers: Explanations, schema: Schema) -> pd.DataFrame:
    """Return one line per immutable feature: the rows for which no counterfactual was found without changing it.

    A row counts if its first counterfactual could only be found with the immutables released and changes the feature.
    n_asked is the number of rows that were searched.
    """
    _check_same(answers, schema)
    changed = answers.batch.changed[first_lines(answers)[is_released(answers)]]
    n_asked = int(is_asked(answers).sum())
    names = list(answers.rows.columns)
    counts = [int(changed[:, names.index(name)].sum()) for name in schema.immutable]
    frame = pd.DataFrame({"feature": pd.Series(list(schema.immutable), dtype=object), "n_rows": counts})
    frame["n_asked"] = n_asked
    frame["share"] = frame["n_rows"] / n_asked if n_asked else np.nan
    return frame[RELEASED].sort_values("n_rows", ascending=False, kind="stable").reset_index(drop=True)


def compare(batches: Mapping[str, Explanations]) -> pd.DataFrame:
    """Return the figures of several models or methods side by side, one line each."""
    _check_some(batches)
    lines = [{"name": name, **overview(answers)} for name, answers in batches.items()]
    return pd.DataFrame(lines).infer_objects()


def compare_changes(batches: Mapping[str, Explanations]) -> pd.DataFrame:
    """Return the share of counterfactuals that change each feature: a line per feature, a column per name."""
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
    return np.isin(answers.statuses.astype(str), [Status.FOUND, Status.INFEASIBLE])


def is_released(answers: Explanations) -> Flags:
    """Return, per row, whether its first counterfactual was found only after the immutables were released."""
    first = first_lines(answers)
    released_lines = np.append(answers.batch.relaxation == Relaxation.IMMUTABILITY, False)  # -1: the last entry
    return np.asarray(released_lines[first], dtype=bool)


def keeps_immutables(answers: Explanations, schema: Schema) -> bool:
    """Return whether no row's first counterfactual changes an immutable feature, for whatever reason."""
    first = first_lines(answers)
    is_immutable = np.isin(np.array(answers.rows.columns, dtype=object), list(schema.immutable))
    return not answers.batch.changed[first[first >= 0]][:, is_immutable].any()


def _check_same(answers: Explanations, schema: Schema) -> None:
    if set(schema.names) != set(answers.rows.columns):
        raise ParameterError("the schema does not describe the columns of these explanations.")


def _check_some(batches: Mapping[str, Explanations]) -> None:
    if not batches:
        raise ParameterError("nothing to compare: give explanations by name, e.g. {'forest': answers}.")


def _mean(values: Iterable[Any]) -> float:
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()) if len(numbers) else float("nan")
