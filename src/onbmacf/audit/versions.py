"""Several models, or dates of one, side by side: their figures; who changes sides, whose burden rises, what holds.

    {name: Explanations}  ->  compare, compare_changes
    answers before, answers after (same rows, same target)  ->  side_changes, burden_changes, version_gaps
    answers before, the explainer of the model after  ->  still_holds

Two batches, before and after, must be of the same rows; a row that has the target label already counts as selected.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.enums import Status
from onbmacf.audit.arguments import typed
from onbmacf.audit.changes import changes_by_feature
from onbmacf.audit.figures import first_found, overview
from onbmacf.audit.groups import checked_column, mean_of, members_of
from onbmacf.audit.pairwise import gaps_of
from onbmacf.audit.recourse import recourse_costs, resampled_means
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations

Values = NDArray[np.float64]


@typed
def side_changes(before: Explanations, after: Explanations, by: Any = None) -> pd.DataFrame:
    """Return whom the second model decides differently about.

    Parameters
    ----------
    before, after : Explanations
        What `explain` returned for the same rows and the same favourable target, with each model.
    by : hashable or array-like, optional
        A column of the rows, or one group per row; all rows together by default.

    Returns
    -------
    DataFrame
        Per ``group``: ``n_rows`` that both models could be asked about, ``n_gained`` that the second selects and the
        first does not, ``n_lost`` the other way round, ``share_changed`` of the rows, and the selection rates of both.

    Examples
    --------
    >>> stricter = ONBMACF().fit(table, lambda rows: (rows["ldl"] > 5).map({True: "risk", False: "fine"}))
    >>> both = answers, stricter.explain(table.head(50), target="fine")
    >>> audit.side_changes(*both)[["group", "n_rows", "n_gained", "n_lost"]]
      group  n_rows  n_gained  n_lost
    0   all      50         5       7

    """
    known, one, other = _sides(before, after)
    lines = []
    for group, rows in _groups(before, by).items():
        kept = rows[known[rows]]
        gained, lost = int((~one & other)[kept].sum()), int((one & ~other)[kept].sum())
        share = (gained + lost) / len(kept) if len(kept) else np.nan
        lines.append((group, len(kept), gained, lost, share, mean_of(one[kept]), mean_of(other[kept])))
    columns = ["group", "n_rows", "n_gained", "n_lost", "share_changed", "rate_before", "rate_after"]
    return pd.DataFrame(lines, columns=columns)


@typed
def burden_changes(
    before: Explanations, after: Explanations, by: Any = None, *, n_resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Return how the burden of the rows that both models refuse changes.

    Parameters
    ----------
    before, after, by
        As for `side_changes`.
    n_resamples, seed
        Of the bootstrap over rows that gives the intervals.

    Returns
    -------
    DataFrame
        Per ``group``: ``n_rows`` that both refuse and for which both found a counterfactual; the mean distance
        ``before`` and ``after``; their difference ``change`` with its 95 % interval ``low`` to ``high`` (each row is
        compared with itself); and ``share_higher``, of the rows whose distance is larger.

    Examples
    --------
    >>> stricter = ONBMACF().fit(table, lambda rows: (rows["ldl"] > 5).map({True: "risk", False: "fine"}))
    >>> both = answers, stricter.explain(table.head(50), target="fine")
    >>> audit.burden_changes(*both)[["group", "n_rows", "change"]].round(2)
      group  n_rows  change
    0   all      16    -0.0

    """
    change, costs = _change(before, after)
    lines = []
    for place, (group, rows) in enumerate(_groups(before, by).items()):
        kept = rows[~np.isnan(change[rows])]
        means = [mean_of(values[kept]) for values in (*costs, change)]
        low, high = np.quantile(resampled_means([change[kept]], n_resamples, seed, place)[0], [0.025, 0.975])
        lines.append((group, len(kept), *means, float(low), float(high), mean_of(change[kept] > 0)))
    columns = ["group", "n_rows", "before", "after", "change", "low", "high", "share_higher"]
    return pd.DataFrame(lines, columns=columns)


@typed
def version_gaps(before: Explanations, after: Explanations, by: Any, **options: Any) -> pd.DataFrame:
    """Return the differences between groups in who changes sides and in how their burden changes; tested together.

    Parameters
    ----------
    before, after, by
        As for `side_changes`; `by` must be given.
    **options
        As for `pairwise_gaps`.

    Returns
    -------
    DataFrame
        As `burden_gaps` gives it, for the measures ``changed_sides`` and ``burden_change``.

    Examples
    --------
    >>> audit.version_gaps(answers, answers, "famhist")[["measure", "gap"]]
             measure  gap
    0  changed_sides  0.0
    1  burden_change  0.0

    """
    known, one, other = _sides(before, after)
    measures = {"changed_sides": np.where(known, one != other, np.nan), "burden_change": _change(before, after)[0]}
    return gaps_of(measures, checked_column(before, by).reset_index(drop=True), **options)


@typed
def still_holds(before: Explanations, after: ONBMACF) -> "pd.Series[Any]":
    """Return whether each row's first counterfactual still has its label with another model.

    Parameters
    ----------
    before : Explanations
        What `explain` returned with the first model.
    after : ONBMACF
        Fitted with the second model on rows of the same columns; its model is asked.

    Returns
    -------
    Series
        One entry per row that has a counterfactual, with the caller's index: True where the label holds.

    Examples
    --------
    >>> audit.still_holds(answers, explainer).mean()
    np.float64(1.0)

    """
    lines = first_found(before)
    form = after.fitted_.space.form
    box = after.fitted_.black_box.counting()
    codes = box.ask(form.numbers(form.arrange(before.batch.values.iloc[lines])[0]))
    said = box.named(np.maximum(codes, 0))
    holds = [code >= 0 and now == then for code, now, then in zip(codes, said, before.batch.label[lines], strict=True)]
    return pd.Series(holds, index=before.rows.index[before.batch.factual[lines]], dtype=bool)


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
    0  refined          1.0       1.14               1.00
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
    2      ldl     0.24   0.19

    """
    _check_some(batches)
    shares = {
        name: changes_by_feature(answers).set_index("feature")["share"].reindex(list(answers.rows.columns))
        for name, answers in batches.items()
    }
    frame = pd.DataFrame(shares)
    frame.index = frame.index.set_names("feature")
    return frame.reset_index()


def _check_some(batches: Mapping[str, Explanations]) -> None:
    if not batches:
        raise ParameterError("nothing to compare: give explanations by name, e.g. {'forest': answers}.")


def _sides(before: Explanations, after: Explanations) -> tuple[NDArray[np.bool_], ...]:
    """Return which rows both models could be asked about, and whom each selects."""
    if len(before) != len(after) or not (before.rows.index == after.rows.index).all():
        raise ParameterError(
            f"the two batches are not of the same rows ({len(before):,} and {len(after):,}): explain the same twice."
        )
    unknown = [Status.INVALID_ROW, Status.MODEL_ERROR]
    asked = [~np.isin(batch.statuses.astype(str), unknown) for batch in (before, after)]
    selected = [np.asarray(batch.statuses == Status.ALREADY) for batch in (before, after)]
    return asked[0] & asked[1], selected[0], selected[1]


def _change(before: Explanations, after: Explanations) -> tuple[Values, tuple[Values, Values]]:
    """Return per row how its cost changes, NaN unless both refuse it and both have a way out; and both costs."""
    _sides(before, after)
    costs = recourse_costs(before), recourse_costs(after)
    is_paired = np.isfinite(costs[0]) & np.isfinite(costs[1]) & (costs[0] > 0) & (costs[1] > 0)
    change = np.full(len(before), np.nan)
    change[is_paired] = costs[1][is_paired] - costs[0][is_paired]
    return change, costs


def _groups(answers: Explanations, by: Any) -> dict[Any, NDArray[np.intp]]:
    return {"all": np.arange(len(answers))} if by is None else members_of(checked_column(answers, by))
