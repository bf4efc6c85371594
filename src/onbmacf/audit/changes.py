"""Which features change: alone or together, how often, in which direction, how far, and how much that says of each.

Explanations  ->  batch.changed (counterfactuals x features)  ->  frames
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._columns.converters import converter_of, days_in, measured
from onbmacf._table.scales import weight_of
from onbmacf._text.wording import shown
from onbmacf.audit.arguments import as_answers, typed
from onbmacf.audit.groups import is_number
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation
from onbmacf.explanations import Explanations
from onbmacf.schema import Feature, Schema

Shares = NDArray[np.float64]


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
    1      ldl      5   0.24   1.0         3.25

    """
    if schema is not None:
        check_same(answers, schema)
    n_found, lines = len(answers.batch.changed), []
    for place, feature in enumerate(_features(answers, schema)):
        before, after = _changed_values(answers, place)
        count, steps = len(after), _steps(feature, before, after)
        line: dict[str, Any] = {"feature": feature.name, "immutable": feature.immutable, "count": count}
        line["share"] = count / n_found if n_found else np.nan
        line["up"] = float((steps > 0).mean()) if steps is not None and count else np.nan
        line["down"] = float((steps < 0).mean()) if steps is not None and count else np.nan
        sizes = np.abs(steps[~np.isnan(steps)]) if feature.is_numeric and steps is not None else np.empty(0)
        line["median_size"] = float(np.median(sizes)) if len(sizes) else np.nan
        line["most_frequent"] = "" if feature.is_numeric or not count else _most_frequent(before, after)
        lines.append(line)
    return pd.DataFrame(lines).sort_values("count", ascending=False, kind="stable").reset_index(drop=True)


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
    0  tobacco     16   0.76                  0.84
    1      ldl      2   0.10                  0.40

    """
    changed = answers.batch.changed
    alone = changed[changed.sum(axis=1) == 1].sum(axis=0)
    frame = pd.DataFrame({"feature": pd.Series(list(answers.rows.columns), dtype=object), "count": alone})
    frame["share"] = _over(alone, len(changed))
    frame["share_of_its_changes"] = _over(alone, changed.sum(axis=0))
    frame = frame[frame["count"] > 0].sort_values("count", ascending=False, kind="stable")
    return frame.head(most if most is not None else len(frame)).reset_index(drop=True)


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
    0  tobacco    ldl      3   0.14      0.22  0.66

    """
    changed = answers.batch.changed
    names, together = list(answers.rows.columns), _together(changed)
    lines = [(names[i], names[j], int(together[i, j])) for i, j in combinations(range(len(names)), 2) if together[i, j]]
    frame = pd.DataFrame(lines, columns=["first", "second", "count"])
    share = dict(zip(names, _over(changed.sum(axis=0), len(changed)), strict=True))
    frame["share"] = _over(frame["count"].to_numpy(), len(changed))
    frame["expected"] = [share[one] * share[other] for one, other in zip(frame["first"], frame["second"], strict=True)]
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
    tobacco       19    3
    ldl            3    5

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
    0     0.250                 0.234         0.937
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


@typed
def local_importance(answers: Explanations | Explanation) -> pd.DataFrame:
    """Return, for each row, how often its counterfactuals change each feature.

    Parameters
    ----------
    answers : Explanations or Explanation
        What `explain` returned, best with several counterfactuals per row: with one, a share is 0 or 1.

    Returns
    -------
    DataFrame
        One line per row with the caller's index, one column per feature: the share, from 0 to 1, of the row's
        counterfactuals that change it; NaN for a row without one.

    Examples
    --------
    >>> audit.local_importance(answers)[["tobacco", "ldl"]].head(2)
       tobacco  ldl
    0      1.0  0.0
    1      NaN  NaN

    """
    answers = as_answers(answers)
    return pd.DataFrame(_per_row(answers, answers.batch.changed), answers.rows.index, answers.rows.columns)


@typed
def importance(answers: Explanations | Explanation, explainer: ONBMACF | None = None) -> pd.DataFrame:
    """Return how often, and how much, each feature has to change, the most important first.

    Parameters
    ----------
    answers : Explanations or Explanation
        What `explain` returned; of one explanation, the importance to its row.
    explainer : ONBMACF, optional
        The fitted explainer, which knows the range of each feature; without it there is no ``part_of_range``.

    Returns
    -------
    DataFrame
        ``feature``; ``importance``, the mean over rows of the share of a row's counterfactuals that change it, from 0
        to 1; ``alone``, the same for those that change nothing else; ``n_changes``, the counterfactuals that change it;
        ``median_change``, the median absolute change in the feature's own unit, of dates and durations in days
        (NaN without numbers);
        ``part_of_range``, the mean absolute change as a part of the fitted range (of ranks for levels with an order),
        and 1 for another level.

    Examples
    --------
    >>> audit.importance(answers, explainer).head(2).round(2)
       feature  importance  alone  n_changes  median_change  part_of_range
    0  tobacco        0.90   0.76         19           5.70           0.19
    1      ldl        0.24   0.10          5           3.25           0.25

    """
    answers = as_answers(answers)
    changed = answers.batch.changed
    is_alone = changed & (changed.sum(axis=1) == 1)[:, None]
    frame = pd.DataFrame({"feature": pd.Series(list(answers.rows.columns), dtype=object)})
    frame["importance"] = _mean_of_rows(_per_row(answers, changed))
    frame["alone"] = _mean_of_rows(_per_row(answers, is_alone))
    frame["n_changes"] = changed.sum(axis=0)
    features = _features(answers, None if explainer is None else explainer.schema_)
    sizes = []
    for place, feature in enumerate(features):
        before, after = _changed_values(answers, place)
        steps = _steps(feature, before, after)
        sizes.append(np.ones(len(after)) if steps is None else np.abs(steps))
    frame["median_change"] = [
        float(np.median(size)) if feature.is_numeric and len(size) else np.nan
        for feature, size in zip(features, sizes, strict=True)
    ]
    if explainer is not None:
        frame["part_of_range"] = [
            float(np.nanmean(size) / width) if width > 0 and not np.isnan(size).all() else np.nan
            for size, width in zip(sizes, _ranges(explainer, features), strict=True)
        ]
    return frame.sort_values("importance", ascending=False, kind="stable").reset_index(drop=True)


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
        known = {feature.name: feature for feature in schema.features}
        for name in answers.rows.columns:
            if name not in known:
                raise ParameterError(
                    f"the explainer was fitted without {name!r}: give the one that gave these answers."
                )
        return [known[name] for name in answers.rows.columns]
    features = []
    for name in answers.rows.columns:
        column = answers.rows[name]
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
            features.append(Feature(name, "ordinal", levels=tuple(column.dtype.categories.tolist())))
        else:
            has_numbers = is_number(column) or converter_of(column) is not None
            features.append(Feature(name, "continuous" if has_numbers else "categorical"))
    return features


def _changed_values(answers: Explanations, place: int) -> "tuple[pd.Series[Any], pd.Series[Any]]":
    """Return a feature's values before and after, of the counterfactuals that change it."""
    lines = np.flatnonzero(answers.batch.changed[:, place])
    return answers.rows.iloc[answers.batch.factual[lines], place], answers.batch.values.iloc[lines, place]


def _steps(feature: Feature, before: "pd.Series[Any]", after: "pd.Series[Any]") -> NDArray[np.float64] | None:
    """Return after minus before as numbers or ranks, NaN for what was filled in; None for levels without an order."""
    if feature.is_numeric:
        return measured(after) - measured(before)
    if feature.kind != "ordinal":
        return None
    rank = {level: float(place) for place, level in enumerate(feature.levels or ())}
    return np.array([rank[new] - rank.get(old, np.nan) for old, new in zip(before, after, strict=True)], dtype=float)


def _together(changed: NDArray[np.bool_]) -> NDArray[np.int64]:
    counts = changed.astype(np.int64)
    return counts.T @ counts


def _over(part: Any, whole: Any) -> Any:
    """Return part / whole; NaN where the whole is 0."""
    part = np.asarray(part, dtype=np.float64)
    whole = np.broadcast_to(np.asarray(whole, dtype=np.float64), part.shape)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)


def _per_row(answers: Explanations, marked: NDArray[np.bool_]) -> Shares:
    """Return, per row, the share of its counterfactuals that are marked, feature by feature; NaN without any."""
    totals = np.zeros((len(answers), marked.shape[1]))
    np.add.at(totals, answers.batch.factual, marked)
    found = np.bincount(answers.batch.factual, minlength=len(answers))[:, None]
    return np.asarray(_over(totals, found))


def _mean_of_rows(shares: Shares) -> Shares:
    """Return the mean over the rows that have a counterfactual; NaN where none has."""
    known = shares[~np.isnan(shares).any(axis=1)]
    return known.mean(axis=0) if len(known) else np.full(shares.shape[1], np.nan)


def _ranges(explainer: ONBMACF, features: list[Feature]) -> list[float]:
    """Return the width of each feature's fitted range, in the units of `_steps` and without the weights of rules."""
    space = explainer.fitted_.space
    widths = {
        feature.name: width * weight_of(space.schema, feature.name) * days_in(space.form.converter(place))
        if feature.is_numeric
        else 1.0
        for place, (feature, width) in enumerate(zip(space.schema.features, space.span, strict=True))
    }
    widths |= {one.name: float(len(one.levels or ()) - 1) for one in features if one.kind == "ordinal"}
    return [float(widths[feature.name]) for feature in features]
