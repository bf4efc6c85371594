"""Figures of one batch: statuses, immutable features released; which features first counterfactuals need, and to what.

Explanations  ->  overview, status_counts, released        Explanations  ->  change_shares, responsiveness, thresholds

What counts rows looks at each row's first counterfactual.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask
from onbmacf._base.checks import check_between
from onbmacf._base.enums import Relaxation, Status
from onbmacf._text.wording import shown
from onbmacf.audit.arguments import typed, with_columns
from onbmacf.audit.changes import check_same
from onbmacf.audit.groups import is_number, mean_of
from onbmacf.audit.moves import evenly
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema

WINDOW = 0.05  # of a feature's range: values that count as one threshold


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
    after_retraining = {} if batch.stability is None else {"stability": mean_of(batch.stability[first[found]])}
    return pd.Series(
        {
            "rows": len(answers),
            "asked": int(asked.sum()),
            "found": int(found.sum()),
            "share_found": mean_of(found[asked]),
            "released": int(is_released(answers).sum()),
            "share_released": mean_of(is_released(answers)[asked]),
            "counterfactuals": len(batch.factual),
            "distance": mean_of(batch.distance[first[found]]),
            "n_changes": mean_of(batch.changed.sum(axis=1)[first[found]]),
            "share_semifactual": mean_of(~np.isnan(batch.semifactual_distance)),
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
    # A feature that only the question kept counts where it was released because it had to be kept.
    is_free = np.array([one == Relaxation.IMMUTABILITY for one in answers.batch.relaxation], dtype=bool)
    changed = np.where(in_schema, answers.batch.changed, answers.batch.released & is_free[:, None])
    changed = np.vstack([changed, np.zeros((1, len(names)), dtype=bool)])[first]  # -1: the last
    needed = [[str(name) in needs for name in names] for needs in answers.would_need]
    counts = (changed | np.array(needed, dtype=bool).reshape(changed.shape)).sum(axis=0)
    kept = np.flatnonzero(in_schema | (counts > 0))
    frame = pd.DataFrame({"feature": pd.Series([names[at] for at in kept], dtype=object), "n_rows": counts[kept]})
    frame["n_asked"] = n_asked
    frame["share"] = frame["n_rows"] / n_asked if n_asked else np.nan
    return frame.sort_values("n_rows", ascending=False, kind="stable").reset_index(drop=True)


def first_lines(answers: Explanations) -> NDArray[np.intp]:
    """Return the line of each row's first counterfactual; -1 where it has none."""
    first = np.full(len(answers), -1, dtype=np.intp)
    factual = answers.batch.factual
    first[factual[::-1]] = np.arange(len(factual))[::-1]
    return first


def first_found(answers: Explanations) -> NDArray[np.intp]:
    """Return the lines of first counterfactuals, for the rows that have one."""
    first = first_lines(answers)
    return first[first >= 0]


def is_asked(answers: Explanations) -> Mask:
    """Return, per row, whether it was searched: it could be encoded and did not have the target label already."""
    return np.isin(answers.statuses.astype(str), [Status.FOUND, Status.NONE_FOUND, Status.INFEASIBLE])


def is_released(answers: Explanations) -> Mask:
    """Return, per row, whether a counterfactual is found only if an immutable feature changes."""
    first, names = first_lines(answers), {str(name) for name in answers.rows.columns}
    free = [Relaxation.IMMUTABILITY, Relaxation.BOTH]
    released_lines = np.append([one in free for one in answers.batch.relaxation], False).astype(bool)  # -1: the last
    needed = np.array([not names.isdisjoint(needs) for needs in answers.would_need], dtype=bool)
    return np.asarray(released_lines[first] | needed, dtype=bool)


def keeps_immutables(answers: Explanations, schema: Schema) -> bool:
    """Return whether no row's first counterfactual changes an immutable feature, for whatever reason."""
    is_immutable = np.array([name in schema.immutable for name in answers.rows.columns], dtype=bool)
    return not answers.batch.changed[first_found(answers)][:, is_immutable].any()


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
    1      ldl   0.24  0.11  0.45      21

    """
    changed = answers.batch.changed[first_found(answers)]
    lines = [
        (name, *wilson_interval(int(changed[:, at].sum()), len(changed), confidence), len(changed))
        for at, name in enumerate(answers.rows.columns)
    ]
    frame = pd.DataFrame(lines, columns=["feature", "share", "low", "high", "n_rows"])
    return frame.sort_values("share", ascending=False, kind="stable").reset_index(drop=True)


@typed
def responsiveness(
    answers: Explanations, explainer: ONBMACF, *, target: Any = None, most_rows: int = 200
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
    lines = []
    for name in [feature.name for feature in explainer.schema_.features if not feature.immutable]:
        helped = asked.loc[(asked["feature"] == name).to_numpy(), "n_reached"].to_numpy() > 0
        lines.append((name, *wilson_interval(int(helped.sum()), len(helped), 0.95), len(helped)))
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
    idle = responsive.loc[responsive["responsiveness"] == 0, "feature"]
    return [name for name in idle if name in unused]


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
       feature    threshold  n_rows     share
    0  tobacco  at most 1.8       5  0.238095
    1      ldl  at most 6.4       3  0.142857

    """
    first = first_found(answers)
    lines = []
    for at, name in enumerate(answers.rows.columns):
        changed = first[answers.batch.changed[first, at]]
        after = answers.batch.values.iloc[changed, at]
        before = answers.rows.iloc[answers.batch.factual[changed], at]
        lines += [(name, *found, found[1] / len(first)) for found in _recurring(before, after) if found[1] >= least]
    frame = pd.DataFrame(lines, columns=["feature", "threshold", "n_rows", "share"])
    return frame.sort_values("n_rows", ascending=False, kind="stable").reset_index(drop=True)


def _recurring(before: "pd.Series[Any]", after: "pd.Series[Any]") -> list[tuple[str, int]]:
    """Return the value most rows end at, in words, and how many do; for numbers in each direction."""
    if not len(after):
        return []
    if not is_number(after):
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


def _densest(values: NDArray[np.float64], width: float, takes_high: bool) -> tuple[float, int]:
    """Return the end of the window of this width that holds most values, and how many it holds."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, ordered + width, side="right") - np.arange(len(ordered))
    start = int(counts.argmax())
    inside = ordered[start : start + counts[start]]
    return float(inside[-1] if takes_high else inside[0]), int(counts[start])


def wilson_interval(count: int, total: int, confidence: float) -> tuple[float, float, float]:
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
