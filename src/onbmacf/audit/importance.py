"""Counterfactual feature importance: how often, and how much, each feature has to change.

    Explanations  ->  share of each row's counterfactuals that change a feature (local)  ->  mean over rows (global)

A feature is important to a row if the row's counterfactuals change it: the share of them that do, as in Sharma,
Henderson and Ghosh (CERTIFAI, 2020) and in Mothilal, Mahajan, Tan and Sharma (Towards unifying feature attribution and
counterfactual explanations, 2021). Its importance in a batch is the mean of these shares over the rows that have a
counterfactual, so that every such row counts once, however many counterfactuals it has (decision 0065).
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._columns.converters import converter_of, days_in, measured
from onbmacf._columns.kinds import Kind
from onbmacf._table.scales import weight_of
from onbmacf.audit.arguments import typed
from onbmacf.audit.given import as_answers
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation
from onbmacf.explanations import Explanations
from onbmacf.schema import Feature

Shares = NDArray[np.float64]


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
    0  tobacco        0.90   0.81         19           5.70           0.19
    1      ldl        0.19   0.10          4           4.56           0.30

    """
    answers = as_answers(answers)
    changed = answers.batch.changed
    is_alone = changed & (changed.sum(axis=1) == 1)[:, None]
    frame = pd.DataFrame({"feature": pd.Series(list(answers.rows.columns), dtype=object)})
    frame["importance"] = _mean(_per_row(answers, changed))
    frame["alone"] = _mean(_per_row(answers, is_alone))
    frame["n_changes"] = changed.sum(axis=0)
    features = _features(answers, explainer)
    sizes = [_sizes(answers, place, feature) for place, feature in enumerate(features)]
    frame["median_change"] = [
        float(np.median(own)) if feature.is_numeric and len(own) else np.nan
        for feature, own in zip(features, sizes, strict=True)
    ]
    if explainer is not None:
        ranges = _ranges(explainer, features)
        frame["part_of_range"] = [_part(own, width) for own, width in zip(sizes, ranges, strict=True)]
    return frame.sort_values("importance", ascending=False, kind="stable").reset_index(drop=True)


def _per_row(answers: Explanations, marked: NDArray[np.bool_]) -> Shares:
    """Return, per row, the share of its counterfactuals that are marked, feature by feature; NaN without any."""
    totals = np.zeros((len(answers), marked.shape[1]))
    np.add.at(totals, answers.batch.factual, marked)
    found = np.bincount(answers.batch.factual, minlength=len(answers))[:, None]
    return np.divide(totals, found, out=np.full(totals.shape, np.nan), where=found > 0)


def _mean(shares: Shares) -> Shares:
    """Return the mean over the rows that have a counterfactual; NaN where none has."""
    known = shares[~np.isnan(shares).any(axis=1)]
    return known.mean(axis=0) if len(known) else np.full(shares.shape[1], np.nan)


def _features(answers: Explanations, explainer: ONBMACF | None) -> list[Feature]:
    """Return what each column is: as fitted, or by its dtype."""
    if explainer is None:
        return [Feature(name, _kind(answers.rows[name])) for name in answers.rows.columns]
    known = {feature.name: feature for feature in explainer.schema_.features}
    missing = [name for name in answers.rows.columns if name not in known]
    if missing:
        raise ParameterError(f"the explainer was fitted without {missing[0]!r}: give the one that gave these answers.")
    return [known[name] for name in answers.rows.columns]


def _kind(column: "pd.Series[Any]") -> Kind:
    is_number = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    return "continuous" if is_number or converter_of(column) is not None else "categorical"


def _sizes(answers: Explanations, place: int, feature: Feature) -> Shares:
    """Return the absolute changes of a feature: in its own unit, in ranks of an order, 1 for another level."""
    lines = np.flatnonzero(answers.batch.changed[:, place])
    before = answers.rows.iloc[answers.batch.factual[lines], place]
    after = answers.batch.values.iloc[lines, place]
    if feature.kind == "ordinal" and feature.levels:
        rank = {level: float(at) for at, level in enumerate(feature.levels)}
        before, after = before.astype(object).map(rank), after.astype(object).map(rank)
    elif not feature.is_numeric:
        return np.ones(len(lines))
    return np.abs(_numbers(after) - _numbers(before))


def _numbers(column: "pd.Series[Any]") -> Shares:
    return measured(column)


def _ranges(explainer: ONBMACF, features: list[Feature]) -> list[float]:
    """Return the width of each feature's fitted range, in the units of `_sizes` and without the weights of rules."""
    space = explainer.fitted_.space
    widths = {
        feature.name: width * weight_of(space.schema, feature.name) * days_in(space.form.converter(place))
        if feature.is_numeric
        else 1.0
        for place, (feature, width) in enumerate(zip(space.schema.features, space.span, strict=True))
    }
    widths |= {one.name: float(len(one.levels or ()) - 1) for one in features if one.kind == "ordinal"}
    return [float(widths[feature.name]) for feature in features]


def _part(own: Shares, width: float) -> float:
    return float(np.nanmean(own) / width) if width > 0 and not np.isnan(own).all() else float("nan")
