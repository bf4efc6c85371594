"""Which features change: alone or together, how often, in which direction and how far.

Explanations  ->  batch.changed (counterfactuals x features)  ->  frames
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._columns.converters import converter_of, measured
from onbmacf._text.wording import shown
from onbmacf.audit.arguments import typed
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations
from onbmacf.schema import Feature, Schema

PAIRS = ["first", "second", "count", "share", "expected", "lift"]
SINGLES = ["feature", "count", "share", "share_of_its_changes"]


@typed
def changes_by_feature(answers: Explanations, schema: Schema | None = None) -> pd.DataFrame:
    """Return one line per feature, most changed first.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    schema : Schema, optional
        Gives the order of ordinal levels and says which features are immutable; without it the kinds are read off
        the dtypes of the explained rows.

    Returns
    -------
    DataFrame
        ``feature``; ``immutable``; ``count`` and ``share`` of the counterfactuals that change it; ``up`` and
        ``down``, shares of its changes (NaN where its values have no order); ``median_size``, the median absolute
        change in the feature's own unit, of dates and durations in days; ``most_frequent``, the most frequent
        replacement of a level.

    Examples
    --------
    >>> changes = audit.changes_by_feature(answers, schema)
    >>> changes[["feature", "count", "share", "down", "median_size"]].head(2).round(2)
       feature  count  share  down  median_size
    0  tobacco     19   0.90   1.0         5.70
    1      ldl      4   0.19   1.0         4.56

    """
    features = _features(answers, schema)
    lines = [_of_feature(answers, position, feature) for position, feature in enumerate(features)]
    frame = pd.DataFrame(lines)
    return frame.sort_values("count", ascending=False, kind="stable").reset_index(drop=True)


@typed
def single_changes(answers: Explanations, most: int | None = None) -> pd.DataFrame:
    """Return how often a feature is a counterfactual's only change, most frequent first.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    most : int, optional
        The most lines to return; all by default.

    Returns
    -------
    DataFrame
        ``feature``; ``count`` and ``share`` of the counterfactuals that change nothing else;
        ``share_of_its_changes``, how often it is enough alone when it changes.

    Examples
    --------
    >>> audit.single_changes(answers).round(2)
       feature  count  share  share_of_its_changes
    0  tobacco     17   0.81                  0.89
    1      ldl      2   0.10                  0.50

    """
    changed = answers.batch.changed
    alone = changed[changed.sum(axis=1) == 1].sum(axis=0)
    frame = pd.DataFrame({"feature": pd.Series(list(answers.rows.columns), dtype=object), "count": alone})
    frame["share"] = _over(alone, len(changed))
    frame["share_of_its_changes"] = _over(alone, changed.sum(axis=0))
    frame = frame[frame["count"] > 0].sort_values("count", ascending=False, kind="stable")
    return frame[SINGLES].head(most if most is not None else len(frame)).reset_index(drop=True)


@typed
def pairs(answers: Explanations, most: int | None = None) -> pd.DataFrame:
    """Return the pairs of features that change together, most frequent first.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    most : int, optional
        The most lines to return; all by default.

    Returns
    -------
    DataFrame
        ``first`` and ``second`` feature; ``count`` and ``share`` of the counterfactuals that change both;
        ``expected``, the share if features changed independently, each as often as it does; ``lift``, which is
        share / expected: above 1 the two change together, below 1 one replaces the other.

    Examples
    --------
    >>> audit.pairs(answers).round(2)
         first second  count  share  expected  lift
    0  tobacco    ldl      2    0.1      0.17  0.55

    """
    changed = answers.batch.changed
    names, together = list(answers.rows.columns), _together(changed)
    lines = [(names[i], names[j], int(together[i, j])) for i, j in combinations(range(len(names)), 2) if together[i, j]]
    frame = pd.DataFrame(lines, columns=PAIRS[:3])
    share = dict(zip(names, _over(changed.sum(axis=0), len(changed)), strict=True))
    frame["share"] = _over(frame["count"].to_numpy(), len(changed))
    frame["expected"] = [
        share[first] * share[second] for first, second in zip(frame["first"], frame["second"], strict=True)
    ]
    frame["lift"] = _over(frame["share"].to_numpy(), frame["expected"].to_numpy(dtype=float))
    frame = frame.sort_values("count", ascending=False, kind="stable")
    return frame.head(most if most is not None else len(frame)).reset_index(drop=True)


@typed
def pair_matrix(answers: Explanations) -> pd.DataFrame:
    """Return how often two features change together, as a square; on the diagonal how often each changes.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.

    Returns
    -------
    DataFrame
        Counts of counterfactuals, with the features as index and columns.

    Examples
    --------
    >>> audit.pair_matrix(answers).loc[["tobacco", "ldl"], ["tobacco", "ldl"]]
             tobacco  ldl
    tobacco       19    2
    ldl            2    4

    """
    names = pd.Index(list(answers.rows.columns), dtype=object)
    return pd.DataFrame(_together(answers.batch.changed), index=names, columns=names)


@typed
def semifactual_distances(answers: Explanations) -> pd.DataFrame:
    """Return how far each counterfactual and its semifactual are from the row.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.

    Returns
    -------
    DataFrame
        One line per counterfactual, with the index of its row: ``distance`` and ``semifactual_distance`` in encoded
        units (1 is the whole range of a feature) and ``share_of_way``, the second over the first. NaN where there is
        no semifactual. A share near 1 says that the row can change almost as much without any effect.

    Examples
    --------
    >>> audit.semifactual_distances(answers).head(2).round(3)
       distance  semifactual_distance  share_of_way
    0     0.248                 0.232         0.938
    3     0.125                 0.118         0.939

    """
    batch = answers.batch
    frame = pd.DataFrame({"distance": batch.distance, "semifactual_distance": batch.semifactual_distance})
    frame["share_of_way"] = _over(batch.semifactual_distance, batch.distance)
    frame.index = answers.rows.index[batch.factual]
    return frame


@typed
def semifactual_summary(answers: Explanations) -> pd.DataFrame:
    """Return number, mean and quartiles of the distances to counterfactuals and semifactuals.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.

    Returns
    -------
    DataFrame
        One line per ``measure`` of `semifactual_distances`: ``number``, ``mean``, ``min``, ``25%``, ``50%``, ``75%``
        and ``max``, in encoded units (``share_of_way`` from 0 to 1).

    Examples
    --------
    >>> audit.semifactual_summary(answers)[["measure", "number", "mean", "50%"]].round(1)
                    measure  number  mean  50%
    0              distance      21   0.2  0.2
    1  semifactual_distance      21   0.2  0.2
    2          share_of_way      21   0.8  0.9

    """
    figures = semifactual_distances(answers).describe(percentiles=[0.25, 0.5, 0.75]).T
    figures = figures.rename(columns={"count": "number"}).drop(columns="std")
    return figures.rename_axis("measure").reset_index().astype({"number": int})


def _of_feature(answers: Explanations, position: int, feature: Feature) -> dict[str, Any]:
    batch = answers.batch
    lines = np.flatnonzero(batch.changed[:, position])
    before = answers.rows.iloc[batch.factual[lines], position]
    after = batch.values.iloc[lines, position]
    count = len(lines)
    line: dict[str, Any] = {"feature": feature.name, "immutable": feature.immutable, "count": count}
    line["share"] = count / len(batch.changed) if len(batch.changed) else np.nan
    step = _steps(feature, before, after)
    line["up"] = float((step > 0).mean()) if step is not None and count else np.nan
    line["down"] = float((step < 0).mean()) if step is not None and count else np.nan
    sizes = np.abs(step[~np.isnan(step)]) if feature.is_numeric and step is not None else np.empty(0)
    line["median_size"] = float(np.median(sizes)) if len(sizes) else np.nan
    line["most_frequent"] = "" if feature.is_numeric or not count else _most_frequent(before, after)
    return line


def _steps(feature: Feature, before: "pd.Series[Any]", after: "pd.Series[Any]") -> NDArray[np.float64] | None:
    """Return after minus before as numbers or ranks, NaN for what was filled in; None for levels without an order."""
    if feature.is_numeric:
        return measured(after) - measured(before)
    if feature.kind != "ordinal":
        return None
    rank = {level: place for place, level in enumerate(feature.levels or ())}
    steps = [rank[new] - rank.get(old, np.nan) for old, new in zip(before, after, strict=True)]
    return np.array(steps, dtype=np.float64)


def _most_frequent(before: "pd.Series[Any]", after: "pd.Series[Any]") -> str:
    moves = pd.Series([f"{shown(old)} \u2192 {shown(new)}" for old, new in zip(before, after, strict=True)])
    counts = moves.value_counts(sort=False)  # in order of appearance, so a tie goes to the first
    return str(counts.index[int(counts.to_numpy().argmax())])


def check_same(answers: Explanations, schema: Schema) -> None:
    """Raise where a schema is of another table than the explained rows."""
    if set(schema.names) != set(answers.rows.columns):
        raise ParameterError("the schema does not describe the columns of these explanations.")


def _features(answers: Explanations, schema: Schema | None) -> list[Feature]:
    """Return the features of the explained rows: from the schema, or inferred from the dtypes of the rows."""
    if schema is not None:
        check_same(answers, schema)
        known = {feature.name: feature for feature in schema.features}
        return [known[name] for name in answers.rows.columns]
    return [_inferred(answers.rows[name]) for name in answers.rows.columns]


def _inferred(column: "pd.Series[Any]") -> Feature:
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return Feature(column.name, "ordinal", levels=tuple(column.dtype.categories.tolist()))
    is_number = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    is_number = is_number or converter_of(column) is not None
    return Feature(column.name, "continuous" if is_number else "categorical")


def _together(changed: NDArray[np.bool_]) -> NDArray[np.int64]:
    counts = changed.astype(np.int64)
    return counts.T @ counts


def _over(part: Any, whole: Any) -> Any:
    """Return part / whole; NaN where the whole is 0."""
    part = np.asarray(part, dtype=np.float64)
    whole = np.broadcast_to(np.asarray(whole, dtype=np.float64), part.shape)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)
