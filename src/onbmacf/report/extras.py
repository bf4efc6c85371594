"""Sections that ask the model more: group actions, recourse figures, responsive features, and another model beside.

Asked, against  ->  more_sections  ->  sections with something to say
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf import audit, plots
from onbmacf._base.enums import Status
from onbmacf._text.wording import rounded
from onbmacf.audit.figures import is_asked
from onbmacf.audit.sentences import claim_sentences
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.groups import Compared, GroupPart
from onbmacf.report.tables import new_figure, picture, table

Section = dict[str, Any]
Against = tuple[str, ONBMACF, Explanations]


class Asked(NamedTuple):
    """What a report is about."""

    explainer: ONBMACF
    answers: Explanations
    compared: Compared
    target: Any
    n_actions: int


def more_sections(asked: Asked, against: Against | None, truth: Any, places: Iterator[int]) -> list[Section]:
    """Return the sections on recourse, actions, single features and another model; those with nothing are left out."""
    chosen = _chosen(asked)
    parts = [_recourse(asked, chosen, truth), _actions(asked, chosen, places), _single_features(asked)]
    parts.append(None if against is None else _against(asked, against))
    return [part for part in parts if part is not None]


def _section(name: str, title: str, intro: str, tables: list[Any], pictures: list[Any] | None = None) -> Section | None:
    kept = [one for one in tables if one["rows"]]
    return {"id": name, "title": title, "intro": intro, "tables": kept, "pictures": pictures or []} if kept else None


def _chosen(asked: Asked) -> audit.Actions | None:
    if not asked.n_actions or asked.target is None or not is_asked(asked.answers).any():
        return None
    group = asked.compared.first
    by = None if group is None else group.grouped.rows
    return audit.actions(asked.answers, asked.explainer, asked.n_actions, by, target=asked.target)


def _recourse(asked: Asked, chosen: audit.Actions | None, truth: Any) -> Section | None:
    """Return the recourse figures of the literature, by the column that matters most."""
    group = asked.compared.first
    if group is None or asked.target is None:
        return None
    answers, groups = asked.answers, group.grouped.rows
    costs, searched = audit.recourse_costs(answers), is_asked(answers)
    known = costs[searched & np.isfinite(costs)]
    tables = [table("Rows without a way to the favourable decision", audit.without_recourse(answers.statuses, groups))]
    if len(known):
        budget, own = float(np.median(known)), audit.individual(costs[searched])
        tables.append(
            table(f"By own counterfactuals (budget {rounded(budget)})", _wide(own, groups[searched], budget, "micro"))
        )
        if chosen is not None and chosen.actions:
            pair = chosen.flips, chosen.costs
            caption = "By the group actions below, one action for all"
            tables.append(table(caption, _wide(pair, groups.iloc[chosen.positions], budget, "macro")))
    tables += _by_truth(asked, group, truth, costs)
    intro = (
        f"What it takes the groups of {group.name} to get the favourable decision, as FACTS (Kavouras et al. 2023) and "
        "others define it: the share that is helped, at any cost and within a budget (the median distance), the cost "
        "at which half are helped, and the mean cost. The trade-off is the largest gap in the share helped over all "
        "budgets."
    )
    return _section("recourse", f"Recourse by {group.name}", intro, tables)


def _wide(pair: tuple[Any, Any], groups: "pd.Series[Any]", budget: float, view: str) -> pd.DataFrame:
    frame = audit.recourse_fairness(*pair, groups, budget)
    frame = frame[frame["viewpoint"] == view]
    is_pair = frame["figure"] == "trade_off"
    wide = frame[~is_pair].pivot_table(index="group", columns="figure", values="value", sort=False, observed=True)
    worst = (
        frame[(frame["viewpoint"] == view) & (frame["figure"] == "trade_off")]
        .groupby("group", sort=False)["value"]
        .max()
    )
    wide = wide.rename_axis(columns=None).reset_index()
    return wide.assign(largest_trade_off=wide["group"].map(worst))


def _by_truth(asked: Asked, group: GroupPart, truth: Any, costs: Any) -> list[Any]:
    """Return social burden and NAWB, where the true labels of the explained rows can be told by their index."""
    right = truth_of(truth, asked)
    decisions, table_groups = asked.compared.decisions, group.grouped.table
    if right is None or decisions is None or decisions.truth is None or table_groups is None:
        return []
    n_features = len(asked.explainer.schema_.features)
    refused = costs[(right == 1) & (costs > 0)]
    lines = []
    rates = audit.error_rates(decisions.selected, decisions.truth, table_groups).set_index("group")[
        "true_positive_rate"
    ]
    for name, rate in rates.items():
        own = costs[(right == 1) & (costs > 0) & np.isfinite(costs) & (group.grouped.rows == name).to_numpy()]
        burden = float(own.mean()) if len(own) else np.nan
        lines.append((name, len(own), 1 - rate, burden, (1 - rate) * burden, (1 - rate) * burden / n_features))
    columns = ["group", "n_rows", "false_negative_rate", "burden", "social_burden", "nawb"]
    caption = "Those who are refused although they should not be"
    return [table(caption, pd.DataFrame(lines, columns=columns))] if len(refused) else []


def truth_of(truth: Any, asked: Asked) -> Any:
    """Return 1, 0 or NaN per explained row, by its index; None where the true labels have no such index."""
    answers, target = asked.answers, asked.target
    if not isinstance(truth, pd.Series) or not truth.index.is_unique or not answers.rows.index.isin(truth.index).all():
        return None
    own = truth.astype(object).loc[answers.rows.index]
    favourable = list(target) if isinstance(target, list | tuple | set) else [target]
    return np.where(own.isna(), np.nan, own.isin(favourable).to_numpy(dtype=float))


def _actions(asked: Asked, chosen: audit.Actions | None, places: Iterator[int]) -> Section | None:
    if chosen is None or not chosen.actions:
        return None
    intro = (
        f"{len(chosen.actions)} actions lead {100 * chosen.effectiveness:.0f} % of the {len(chosen.positions):,} "
        f"refused rows to the favourable decision, at a mean distance of {rounded(chosen.mean_cost)}. They start from "
        "the rows' own counterfactuals and were varied to help more rows at less distance; each was asked of the model "
        "for every row, and keeps rules and immutable features. Effectiveness is of an action alone; added, what it "
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
    tables.append(table("Which action for whom", audit.action_tree(chosen, asked.answers)))
    return _section("actions", "Few actions that help many", intro, tables, [drawn])


def _single_features(asked: Asked) -> Section | None:
    important = audit.change_shares(asked.answers)
    tables = [table("How often the first counterfactual changes a feature", important[important["share"] > 0])]
    tables.append(table("Values at which counterfactuals often end", audit.thresholds(asked.answers).head(8)))
    intro = "Shares of rows, with 95 % intervals."
    if asked.n_actions and is_asked(asked.answers).any():
        responsive = audit.responsiveness(asked.answers, asked.explainer, target=asked.target)
        intro += _tried(responsive, int(is_asked(asked.answers).sum()))
        tables.append(table("Rows for which one feature alone is enough", responsive[responsive["responsiveness"] > 0]))
        never = audit.never_help(important, responsive)
        intro += f" Features that never help: {', '.join(str(name) for name in never)}." if never else ""
    return _section("single", "How often each feature is enough", intro, tables)


def _tried(responsive: pd.DataFrame, n_rows: int) -> str:
    """Return how many rows one feature alone was tried for, where not for all."""
    n_tried = int(responsive["n_rows"].max()) if len(responsive) else n_rows
    return f" One feature alone was tried for {n_tried:,} of {n_rows:,} rows." if n_tried < n_rows else ""


def _against(asked: Asked, against: Against) -> Section | None:
    name, other, after = against
    before, group = asked.answers, asked.compared.first
    by = None if group is None else group.grouped.rows
    holds = audit.still_holds(before, other)
    intro = f"The same rows with {name} ('after'): who gets another decision, and whose burden changes."
    if not (before.statuses == Status.ALREADY).any():
        intro += " All these rows are refused by the model of this report, so that nobody can lose the decision here."
    intro += f" {100 * holds.mean():.0f} % of the counterfactuals of this report hold with it." if len(holds) else ""
    if group is not None:
        gaps = audit.version_gaps(before, after, by)
        intro += "".join(f" {text}" for text in claim_sentences({group.name: gaps}))
    tables = [
        table("Who changes sides", audit.side_changes(before, after, by)),
        table("How the burden of those refused by both changes", audit.burden_changes(before, after, by)),
    ]
    return _section("against", f"Compared with {name}", intro, tables)
