"""Sections that ask the model more: group actions, recourse figures, responsive features, and another model beside.

Subject, against  ->  more_sections  ->  sections with something to say
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import audit, plots
from onbmacf._base.enums import Status
from onbmacf._text.wording import rounded
from onbmacf.audit.figures import is_asked
from onbmacf.audit.sentences import claim_sentences
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.elements import new_figure, picture, table
from onbmacf.report.sections import ColumnComparison, Section, Subject, section

Against = tuple[str, ONBMACF, Explanations]  # another model: its name, its explainer, its answers for the same rows


def more_sections(subject: Subject, against: Against | None, truth: Any, places: Iterator[int]) -> list[Section]:
    """Return the sections on recourse, actions, single features and another model; those with nothing are left out."""
    chosen = None
    if subject.n_actions and subject.target is not None and is_asked(subject.answers).any():
        column = subject.comparison.first
        by = None if column is None else column.grouped.rows
        chosen = audit.actions(subject.asked, subject.explainer, subject.n_actions, by, target=subject.target)
    found = [_recourse(subject, chosen, truth), _actions(subject, chosen, places), _single_features(subject)]
    found.append(None if against is None else _against(subject, against))
    return [one for one in found if one is not None]


def _section(name: str, title: str, intro: str, tables: list[Any], pictures: list[Any] | None = None) -> Section | None:
    """Return a section with the tables that have rows; None where none has."""
    kept = [one for one in tables if one["rows"]]
    return section(name, title, intro, kept, pictures) if kept else None


def _recourse(subject: Subject, chosen: audit.Actions | None, truth: Any) -> Section | None:
    """Return the recourse figures of the literature, by the column that matters most."""
    column = subject.comparison.first
    if column is None or subject.target is None:
        return None
    answers, groups = subject.answers, column.grouped.rows
    costs, searched = audit.recourse_costs(answers), is_asked(answers)
    known = costs[searched & np.isfinite(costs)]
    tables = [table("Rows without a way to the favourable decision", audit.without_recourse(answers.statuses, groups))]
    if len(known):
        budget, pair = float(np.median(known)), audit.individual(costs[searched])
        tables.append(
            table(f"By own counterfactuals (budget {rounded(budget)})", _wide(pair, groups[searched], budget, "micro"))
        )
        if chosen is not None and chosen.actions:
            pair = chosen.flips, chosen.costs
            caption = "By the group actions below, one action for all"
            tables.append(table(caption, _wide(pair, groups.iloc[chosen.positions], budget, "macro")))
    tables += _by_truth(subject, column, truth, costs)
    intro = (
        f"What it takes the groups of {column.name} to get the favourable decision, as FACTS (Kavouras et al. 2023) "
        "and others define it: the share that is helped, at any cost and within a budget (the median distance), the "
        "cost at which half are helped, and the mean cost. The trade-off is the largest gap in the share helped over "
        "all budgets."
    )
    return _section("recourse", f"Recourse by {column.name}", intro, tables)


def _wide(pair: tuple[Any, Any], groups: "pd.Series[Any]", budget: float, view: str) -> pd.DataFrame:
    """Return the recourse figures of one viewpoint, a line per group; `pair` is whom what helps, and at which cost."""
    frame = audit.recourse_fairness(*pair, groups, budget)
    frame = frame[frame["viewpoint"] == view]
    is_pair = frame["figure"] == "trade_off"
    wide = frame[~is_pair].pivot_table(index="group", columns="figure", values="value", sort=False, observed=True)
    worst = frame[is_pair].groupby("group", sort=False)["value"].max()
    wide = wide.rename_axis(columns=None).reset_index()
    return wide.assign(largest_trade_off=wide["group"].map(worst))


def _by_truth(subject: Subject, column: ColumnComparison, truth: Any, costs: Any) -> list[Any]:
    """Return social burden and NAWB, where the true labels of the explained rows can be told by their index."""
    right = _truth_of(truth, subject)
    decisions, table_groups = subject.comparison.decisions, column.grouped.table
    if right is None or decisions is None or decisions.truth is None or table_groups is None:
        return []
    n_features = len(subject.schema.features)
    is_refused = (right == 1) & (costs > 0)
    if not is_refused.any():
        return []
    lines = []
    rates = audit.error_rates(decisions.selected, decisions.truth, table_groups).set_index("group")[
        "true_positive_rate"
    ]
    for name, rate in rates.items():
        known = costs[is_refused & np.isfinite(costs) & (column.grouped.rows == name).to_numpy()]
        burden = float(known.mean()) if len(known) else np.nan
        lines.append((name, len(known), 1 - rate, burden, (1 - rate) * burden, (1 - rate) * burden / n_features))
    columns = ["group", "n_rows", "false_negative_rate", "burden", "social_burden", "nawb"]
    caption = "Those who are refused although they should not be"
    return [table(caption, pd.DataFrame(lines, columns=columns))]


def _truth_of(truth: Any, subject: Subject) -> Any:
    """Return 1, 0 or NaN per explained row, by its index; None where the true labels have no such index."""
    index, target = subject.answers.rows.index, subject.target
    if not isinstance(truth, pd.Series) or not truth.index.is_unique or not index.isin(truth.index).all():
        return None
    labels = truth.astype(object).loc[index]
    favourable = list(target) if isinstance(target, list | tuple | set) else [target]
    return np.where(labels.isna(), np.nan, labels.isin(favourable).to_numpy(dtype=float))


def _actions(subject: Subject, chosen: audit.Actions | None, places: Iterator[int]) -> Section | None:
    if chosen is None or not chosen.actions:
        return None
    intro = (
        f"{'One action leads' if len(chosen.actions) == 1 else f'{len(chosen.actions)} actions lead'} "
        f"{100 * chosen.effectiveness:.0f} % of the {len(chosen.positions):,} refused rows to the favourable decision, "
        f"at a mean distance of {rounded(chosen.mean_cost)}. Actions start from the rows' own counterfactuals and are "
        "varied to help more rows at less distance; the model was asked about each for every row, and each keeps rules "
        "and immutable features. Effectiveness is of an action alone; added, what it "
        "adds to those above it."
    )
    curve = chosen.curve()
    told = "; ".join(
        f"{line.k}: {100 * line.effectiveness:.0f} % at {rounded(line.mean_cost)}" for line in curve.itertuples()
    )
    drawn = picture(
        next(places), "Effectiveness and cost as actions are added", f"{told}.", plots.action_curve(curve, new_figure())
    )
    tables = [table("Actions", chosen.to_frame())]
    if chosen.groups is not None:
        tables.append(table("Whom the actions help", chosen.by_group()))
    tables.append(table("Which action for whom", audit.action_tree(chosen, subject.answers)))
    return _section("actions", "Few actions that help many", intro, tables, [drawn])


def _single_features(subject: Subject) -> Section | None:
    answers = subject.answers
    important = audit.change_shares(answers)
    tables = [table("How often the first counterfactual changes a feature", important[important["share"] > 0])]
    tables.append(table("Values at which counterfactuals often end", audit.thresholds(answers).head(8)))
    intro, n_rows = "Shares of rows, with 95 % intervals.", int(is_asked(answers).sum())
    if subject.n_actions and n_rows:
        responsive = audit.responsiveness(subject.asked, subject.explainer, target=subject.target)
        responsive["feature"] = responsive["feature"].map(dict(zip(subject.asked.rows, answers.rows, strict=True)))
        n_tried = int(responsive["n_rows"].max()) if len(responsive) else n_rows
        intro += f" One feature alone was tried for {n_tried:,} of {n_rows:,} rows." if n_tried < n_rows else ""
        tables.append(table("Rows for which one feature alone is enough", responsive[responsive["responsiveness"] > 0]))
        never = audit.never_help(important, responsive)
        intro += f" Features that never help: {', '.join(str(name) for name in never)}." if never else ""
    return _section("single", "How often each feature is enough", intro, tables)


def _against(subject: Subject, against: Against) -> Section | None:
    name, other, after = against
    before, column = subject.asked, subject.comparison.first
    by = None if column is None else column.grouped.rows
    holds = audit.still_holds(before, other)
    intro = f"The same rows with {name} ('after'): who gets another decision, and whose burden changes."
    if not (before.statuses == Status.ALREADY).any():
        intro += " All these rows are refused by the model of this report, so that nobody can lose the decision here."
    intro += f" {100 * holds.mean():.0f} % of the counterfactuals of this report hold with it." if len(holds) else ""
    if column is not None:
        gaps = audit.version_gaps(before, after, by)
        intro += "".join(f" {text}" for text in claim_sentences({column.name: gaps}))
    tables = [
        table("Who changes sides", audit.side_changes(before, after, by)),
        table("How the burden of those refused by both changes", audit.burden_changes(before, after, by)),
    ]
    return _section("against", f"Compared with {name}", intro, tables)
