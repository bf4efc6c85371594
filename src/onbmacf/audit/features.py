"""Features: how often and how much each must change, whether it suffices alone, which never help, values that recur."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import check_between
from onbmacf._columns.converters import converter_of, days_in, measured
from onbmacf._columns.kinds import Kind
from onbmacf._table.scales import weight_of
from onbmacf._text.wording import shown
from onbmacf.audit.arguments import as_answers, typed, with_columns
from onbmacf.audit.figures import first_lines, is_asked
from onbmacf.audit.moves import evenly
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation
from onbmacf.explanations import Explanations
from onbmacf.schema import Feature

Values = NDArray[np.float64]
WINDOW = 0.05  # of a feature's range: values that count as one threshold
MOST_ROWS = 200  # rows that are asked about one feature at a time
Shares = NDArray[np.float64]


# --- features ---------------------------------------------------------------------------------------------------------


@typed
def change_shares(answers: Explanations, confidence: float = 0.95) -> pd.DataFrame:
    """Return how often the first counterfactual changes each feature, with an interval.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    confidence : float, default 0.95
        Of the intervals, which are Wilson's for a share, each for itself.

    Returns
    -------
    DataFrame
        One line per ``feature``, the most frequent first: ``share``, of the rows with a counterfactual those whose
        first one changes it, ``low`` and ``high``, and ``n_rows``, how many such rows there are.

    Examples
    --------
    >>> audit.change_shares(answers).head(2).round(2)
       feature  share   low  high  n_rows
    0  tobacco   0.90  0.71  0.97      21
    1      ldl   0.19  0.08  0.40      21

    """
    first = first_lines(answers)
    changed = answers.batch.changed[first[first >= 0]]
    lines = [
        (name, *_share(int(changed[:, at].sum()), len(changed), confidence), len(changed))
        for at, name in enumerate(answers.rows.columns)
    ]
    frame = pd.DataFrame(lines, columns=["feature", "share", "low", "high", "n_rows"])
    return frame.sort_values("share", ascending=False, kind="stable").reset_index(drop=True)


@typed
def responsiveness(
    answers: Explanations, explainer: ONBMACF, *, target: Any = None, most_rows: int = MOST_ROWS
) -> pd.DataFrame:
    """Return for how many rows a change of one feature alone is enough.

    Cheon, Wernerfelt, Friedler and Ustun, "Feature Responsiveness Scores" (2024), count reachable values in the same
    way. The values are those of `ONBMACF.responsiveness`, up to 64 of the fitted ones; rules are kept (decision 0076).

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    explainer : ONBMACF
        The explainer that gave them; its model is asked.
    target : label or list of labels, optional
        What is favourable; by default any label but the row's own.
    most_rows : int, default 200
        Rows that are asked about, evenly spread over those that were searched.

    Returns
    -------
    DataFrame
        One line per ``feature`` that may change, the most responsive first: ``responsiveness``, the share of rows that
        some value of it alone leads to a favourable label, ``low`` and ``high`` (Wilson's 95 % interval), ``n_rows``.

    Examples
    --------
    >>> audit.responsiveness(answers, explainer).head(2).round(2)
       feature  responsiveness   low  high  n_rows
    0  tobacco            0.90  0.71  0.97      21
    1      ldl            0.57  0.37  0.76      21

    """
    places = np.flatnonzero(is_asked(answers))
    asked = explainer.responsiveness(answers.rows.iloc[places[evenly(len(places), most_rows)]], target)
    names = [feature.name for feature in explainer.schema_.features if not feature.immutable]
    lines = []
    for name in names:
        helped = asked.loc[(asked["feature"] == name).to_numpy(), "n_reached"].to_numpy() > 0
        lines.append((name, *_share(int(helped.sum()), len(helped), 0.95), len(helped)))
    frame = pd.DataFrame(lines, columns=["feature", "responsiveness", "low", "high", "n_rows"])
    return frame.sort_values("responsiveness", ascending=False, kind="stable").reset_index(drop=True)


@typed
def never_help(important: pd.DataFrame, responsive: pd.DataFrame) -> list[Hashable]:
    """Return the features that no first counterfactual changes, and that alone changed no decision that was asked.

    Parameters
    ----------
    important, responsive : DataFrame
        What `change_shares` and `responsiveness` returned.

    Returns
    -------
    list
        Names of features that may change and never helped.

    Examples
    --------
    >>> audit.never_help(audit.change_shares(answers), audit.responsiveness(answers, explainer))
    ['sbp', 'adiposity', 'famhist', 'typea', 'obesity', 'alcohol']

    """
    with_columns("important", important, ("feature", "share"), "change_shares")
    with_columns("responsive", responsive, ("feature", "responsiveness"), "responsiveness")
    unused = set(important.loc[important["share"] == 0, "feature"])
    return [name for name, share in zip(responsive["feature"], responsive["responsiveness"], strict=True)
            if share == 0 and name in unused]  # fmt: skip


@typed
def thresholds(answers: Explanations, least: int = 5) -> pd.DataFrame:
    """Return the values at which first counterfactuals often end.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    least : int, default 5
        A threshold that fewer rows share is left out.

    Returns
    -------
    DataFrame
        One line per ``feature`` and direction: ``threshold`` in words, ``n_rows`` whose first counterfactual ends
        there, within a twentieth of the range of the values seen, and ``share`` of the rows that have one; most shared
        first.

    Examples
    --------
    >>> audit.thresholds(answers, least=2)
       feature     threshold  n_rows     share
    0  tobacco  at most 2.68       5  0.238095

    """
    first = first_lines(answers)
    lines_of = first[first >= 0]
    lines = []
    for at, name in enumerate(answers.rows.columns):
        changed = lines_of[answers.batch.changed[lines_of, at]]
        after = answers.batch.values.iloc[changed, at]
        before = answers.rows.iloc[answers.batch.factual[changed], at]
        lines += [(name, *found, found[1] / len(lines_of)) for found in _recurring(before, after) if found[1] >= least]
    frame = pd.DataFrame(lines, columns=["feature", "threshold", "n_rows", "share"])
    return frame.sort_values("n_rows", ascending=False, kind="stable").reset_index(drop=True)


def _recurring(before: "pd.Series[Any]", after: "pd.Series[Any]") -> list[tuple[str, int]]:
    """Return the value most rows end at, in words, and how many do; for numbers in each direction."""
    if not len(after):
        return []
    if not pd.api.types.is_numeric_dtype(after.dtype) or pd.api.types.is_bool_dtype(after.dtype):
        counts = after.astype(object).value_counts(sort=False)
        best = int(counts.to_numpy().argmax())
        return [(shown(counts.index[best]), int(counts.iloc[best]))]
    old, new = before.to_numpy(dtype=np.float64), after.to_numpy(dtype=np.float64)
    seen = np.concatenate([old[~np.isnan(old)], new])  # a value that was missing has no place
    width = WINDOW * np.ptp(seen)
    found = []
    for words, is_way in (("at most", new < old), ("at least", new > old)):
        if is_way.any():
            value, count = _densest(new[is_way], width, words == "at most")
            found.append((f"{words} {shown(value)}", count))
    return found


def _densest(values: Values, width: float, takes_high: bool) -> tuple[float, int]:
    """Return the end of the window of this width that holds most values, and how many it holds."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, ordered + width, side="right") - np.arange(len(ordered))
    start = int(counts.argmax())
    inside = ordered[start : start + counts[start]]
    return float(inside[-1] if takes_high else inside[0]), int(counts[start])


def _share(count: int, total: int, confidence: float) -> tuple[float, float, float]:
    """Return a share with Wilson's interval; NaN of nothing."""
    from scipy.special import ndtri  # scipy.stats, which has it as norm.ppf, takes a second to import

    if not total:
        return float("nan"), float("nan"), float("nan")
    z = float(ndtri(1 - (1 - check_between("confidence", confidence, 0, 1)) / 2))
    share = count / total
    middle, scale = share + z**2 / (2 * total), 1 + z**2 / total
    half = z * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    low, high = (middle - half) / scale, (middle + half) / scale
    return share, float(max(low, 0.0)) if count else 0.0, float(min(high, 1.0)) if count < total else 1.0


# --- importance -------------------------------------------------------------------------------------------------------


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
        float(np.median(size)) if feature.is_numeric and len(size) else np.nan
        for feature, size in zip(features, sizes, strict=True)
    ]
    if explainer is not None:
        ranges = _ranges(explainer, features)
        frame["part_of_range"] = [_part(size, width) for size, width in zip(sizes, ranges, strict=True)]
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


def _part(sizes: Shares, width: float) -> float:
    return float(np.nanmean(sizes) / width) if width > 0 and not np.isnan(sizes).all() else float("nan")
