"""The decisions themselves, by group: how often each gets the favourable one, and how often that is right.

    explainer, target, truth  ->  Decisions  ->  selection_rates, error_rates, decision_gaps

Burden looks at the rows that were refused; these figures look at every row of the table. Each function says where its
definition comes from.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import listed
from onbmacf._explain.request import target_labels
from onbmacf.audit.arguments import check_per_row, numbers, per_row, typed
from onbmacf.audit.grouping import MISSING, members_of
from onbmacf.audit.groups import gaps_of
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF

Values = NDArray[np.float64]
RATES = ["group", "n_rows", "n_selected", "selection_rate", "impact_ratio"]
ERRORS = ["group", "n_rows", "n_unknown", "accuracy", "true_positive_rate", "false_positive_rate"]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What the model decides about each row of a table.

    Attributes
    ----------
    rows : DataFrame
        The rows of the table.
    selected : array of bool
        Per row: whether the model gives it a favourable label.
    truth : array of float or None
        Per row: 1 where its true label is favourable, 0 where it is not, NaN where it is not known; None where no true
        labels were given.

    Examples
    --------
    >>> audit.Decisions.of(explainer, "fine").selected.mean().round(2)
    np.float64(0.7)

    """

    rows: pd.DataFrame
    selected: NDArray[np.bool_]
    truth: Values | None = None

    @classmethod
    @typed
    def of(cls, explainer: ONBMACF, target: Any, truth: Any = None) -> "Decisions":
        """Return the decisions about the rows that an explainer was fitted on; `target` is the favourable label.

        Parameters
        ----------
        explainer : ONBMACF
            Fitted.
        target : label or list of labels
            What counts as favourable.
        truth : array-like, optional
            The true label of each fitted row, missing where it is not known.

        """
        favourable = target_labels(target, explainer.classes_.tolist())
        labels = pd.Series(explainer.classes_[explainer.labels_], dtype=object)
        rows = explainer.fitted_.space.decode(explainer.Z_)
        known = None if truth is None else _as_truth(truth, favourable, labels)
        return cls(rows, labels.isin(favourable).to_numpy(), known)

    @property
    def n_unknown(self) -> int:
        """How many rows have no true label; 0 where no true labels were given."""
        return 0 if self.truth is None else int(np.isnan(self.truth).sum())

    def measures(self) -> dict[str, Values]:
        """Return one value per row for each rate: 0 or 1, NaN where the row does not count."""
        selected = self.selected.astype(np.float64)
        if self.truth is None:
            return {"selected": selected}
        return {
            "selected": selected,
            "true_positive": np.where(self.truth == 1, selected, np.nan),
            "false_positive": np.where(self.truth == 0, selected, np.nan),
        }


@typed
def selection_rates(selected: Any, groups: Any) -> pd.DataFrame:
    """Return how often each group is selected, and that rate over the highest one.

    The form is that of New York City's rules for Local Law 144 (6 RCNY 5-301): the selection rate is the number
    selected over the number in the category, the impact ratio the rate over that of the most selected category; rows of
    an unknown category are counted and left out of the ratios. The four-fifths rule of the US Uniform Guidelines
    (29 CFR 1607.4 D) looks at ratios below 0.8.

    Parameters
    ----------
    selected : array-like of bool
        Per row: whether it gets the favourable decision.
    groups : array-like
        One group per row; missing where it is unknown.

    Returns
    -------
    DataFrame
        One line per ``group``: ``n_rows``, ``n_selected``, ``selection_rate`` and ``impact_ratio``; the last line, if
        there are any, is of the rows whose group is missing, without a ratio.

    Examples
    --------
    >>> audit.selection_rates([1, 1, 0, 1, 0, 0, 1], ["a", "a", "b", "b", "b", "b", None])
           group  n_rows  n_selected  selection_rate  impact_ratio
    0          a       2           2            1.00          1.00
    1          b       4           1            0.25          0.25
    2  (missing)       1           1            1.00           NaN

    """
    chosen = numbers("selected", selected)
    lines = []
    for group, rows in members_of(per_row("groups", groups, len(chosen))).items():
        lines.append((group, len(rows), int(chosen[rows].sum()), float(chosen[rows].mean()), np.nan))
    frame = pd.DataFrame(lines, columns=RATES)
    known = frame["group"] != MISSING
    highest = frame.loc[known, "selection_rate"].max()
    if known.any() and highest > 0:
        frame.loc[known, "impact_ratio"] = frame.loc[known, "selection_rate"] / highest
    return frame


@typed
def error_rates(selected: Any, truth: Any, groups: Any) -> pd.DataFrame:
    """Return how often the decisions about each group are right.

    Equalised odds (Hardt, Price and Srebro, 2016) asks for equal true and false positive rates, equal opportunity for
    equal true positive rates.

    Parameters
    ----------
    selected : array-like of bool
        Per row: whether it gets the favourable decision.
    truth : array-like of float
        Per row: 1 where the favourable decision would be right, 0 where it would not, NaN where that is not known.
    groups : array-like
        One group per row.

    Returns
    -------
    DataFrame
        One line per ``group``: ``n_rows`` with a known true label, ``n_unknown`` without; ``accuracy``, the share of
        right decisions; ``true_positive_rate``, the share selected among rows whose true label is favourable;
        ``false_positive_rate``, the share selected among those whose true label is not. NaN where there is no such row.

    Examples
    --------
    >>> audit.error_rates([1, 0, 1, 0], [1, 1, 0, np.nan], ["a"] * 4).round(2)
      group  n_rows  n_unknown  accuracy  true_positive_rate  false_positive_rate
    0     a       3          1      0.33                 0.5                  1.0

    """
    chosen = numbers("selected", selected)
    right = numbers("truth", per_row("truth", truth, len(chosen)))
    lines = []
    for group, rows in members_of(per_row("groups", groups, len(chosen))).items():
        said, known = chosen[rows], right[rows]
        is_known = ~np.isnan(known)
        rates = _mean(said[known == 1]), _mean(said[known == 0])
        lines.append((group, int(is_known.sum()), int((~is_known).sum()), _mean((said == known)[is_known]), *rates))
    return pd.DataFrame(lines, columns=ERRORS)


@typed
def decision_gaps(decisions: Decisions, groups: Any, **options: Any) -> pd.DataFrame:
    """Return the differences between groups in how often they are selected, and wrongly so; tested together.

    Parameters
    ----------
    decisions : Decisions
        The decisions about a table.
    groups : array-like
        One group per row of it.
    **options
        As for `pairwise_gaps`.

    Returns
    -------
    DataFrame
        As `burden_gaps` gives it, for the measures ``selected`` and, where true labels are known, ``true_positive`` and
        ``false_positive``.

    Examples
    --------
    >>> audit.decision_gaps(audit.Decisions.of(explainer, "fine"), table["famhist"])[["measure", "gap"]].round(2)
        measure   gap
    0  selected  0.15

    """
    return gaps_of(decisions.measures(), groups, **options)


def _as_truth(truth: Any, favourable: list[Any], labels: "pd.Series[Any]") -> Values:
    """Return true labels as 1, 0 and NaN, checked against the rows and against the model's labels."""
    check_per_row("truth", truth)
    column = pd.Series(list(truth), dtype=object)
    if len(column) != len(labels):
        raise ParameterError(f"truth has {len(column):,} labels for {len(labels):,} fitted rows.")
    known = column.dropna()
    if len(known) and not known.isin(favourable + list(labels.unique())).any():
        said = f"the model says {_some(labels.unique())}"
        raise ParameterError(f"truth has none of the model's labels: it has {_some(known.unique())}, {said}.")
    return np.where(column.isna(), np.nan, column.isin(favourable).to_numpy(dtype=np.float64))


def _some(labels: Iterable[Any], most: int = 5) -> str:
    return listed(list(labels)[:most])


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")
