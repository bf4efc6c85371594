"""What a report is about, the comparison of its groups, and the sections that need no further call of the model.

answers, by, decisions  ->  Comparison.of  ->  ColumnComparison, one per column
Subject  ->  sections  ->  dicts of a title, an introduction, tables, and plots with text alternatives
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf import audit, plots
from onbmacf.audit.figures import wilson_interval
from onbmacf.audit.sentences import CLEAR, MEASURE_NAMES, could_miss
from onbmacf.audit.tables import MOST
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.elements import bars, new_figure, picture, table
from onbmacf.schema import Schema

Section = dict[str, Any]
MOST_GAPS = 12
SEMIFACTUAL_MEASURES = {
    "distance": "distance of the counterfactual",
    "semifactual_distance": "distance of the semifactual",
    "share_of_way": "share of the way that the semifactual goes",
}


# --- groups -----------------------------------------------------------------------------------------------------------


class ColumnComparison(NamedTuple):
    """What is known of the groups of one column."""

    name: str
    grouped: audit.GroupedBy
    burden: pd.DataFrame
    rates: pd.DataFrame | None  # as `burden`, of the decisions
    gaps: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Comparison:
    """All comparisons of groups in a report."""

    columns: tuple[ColumnComparison, ...]  # and pairs of columns
    decisions: audit.Decisions | None
    single: frozenset[str]  # columns, without intersections

    @classmethod
    def of(
        cls,
        answers: Explanations,
        by: Sequence[Hashable] | Mapping[str, Any],
        decisions: audit.Decisions | None,
        cost: Mapping[Hashable, float] | None,
        seed: int,
        bands: Mapping[Hashable, Any] | None = None,
    ) -> "Comparison":
        """Group the rows by each column and each pair of columns, and compare."""
        groups = audit.grouped(answers, by, decisions, bands)
        gaps = audit.group_gaps(answers, groups, decisions, cost=cost, seed=seed)
        columns = tuple(
            ColumnComparison(
                group.name,
                group,
                audit.burden(answers, group.rows, cost=cost, seed=seed),
                _rates(decisions, group.table),
                gaps[group.name],
            )
            for group in groups
        )
        return cls(columns, decisions, frozenset(str(name) for name in by))

    @cached_property
    def gaps(self) -> dict[str, pd.DataFrame]:
        """The gaps of each column."""
        return {column.name: column.gaps for column in self.columns}

    @cached_property
    def verdicts(self) -> list[audit.Verdict]:
        """The verdict on each column."""
        return audit.verdicts(self.gaps)

    @property
    def notes(self) -> dict[str, str]:
        """What the reader should know about the groups of each column."""
        return {column.name: column.grouped.note for column in self.columns}

    @property
    def has_truth(self) -> bool:
        """Whether true labels are known."""
        return self.decisions is not None and self.decisions.truth is not None

    @property
    def first(self) -> ColumnComparison | None:
        """The column with the largest clear difference; the first one where there is none."""
        claims = audit.corrected(self.gaps)
        clear = [name for name in claims.loc[claims["clear"], "by"] if name in self.single]
        named = {column.name: column for column in self.columns}
        return named[clear[0]] if clear else self.columns[0] if self.columns else None


class Subject(NamedTuple):
    """What a report is about; it shows columns and levels as people call them, and asks the model in its own."""

    explainer: ONBMACF
    asked: Explanations  # the answers as the model knows them
    answers: Explanations  # as people do
    schema: Schema  # the features as people call them
    comparison: Comparison
    target: Any
    n_actions: int


def _rates(decisions: audit.Decisions | None, groups: "pd.Series[Any] | None") -> pd.DataFrame | None:
    """Return selection rates with intervals, in the form of `audit.burden`."""
    if decisions is None or groups is None:
        return None
    frame = audit.selection_rates(decisions.selected, groups)
    ends = [wilson_interval(line.n_selected, line.n_rows, 0.95) for line in frame.itertuples()]
    lines = [("selected", line.group, line.n_rows, *end) for line, end in zip(frame.itertuples(), ends, strict=True)]
    return pd.DataFrame(lines, columns=["measure", "group", "n_rows", "estimate", "low", "high"])


# --- sections ---------------------------------------------------------------------------------------------------------


def sections(subject: Subject, places: Iterator[int]) -> list[Section]:
    """Return the report's sections in order, without those that have nothing to say; `places` number the pictures."""
    answers, schema, comparison = subject.answers, subject.schema, subject.comparison
    found = [_outcome(answers, schema)]
    found += [_groups(column, comparison, at, places) for at, column in enumerate(comparison.columns)]
    if len(answers.batch.factual):
        found += [
            _features(answers, schema, places),
            _together(answers, schema, places),
            _semifactuals(answers, schema),
        ]
    return found


def section(name: str, title: str, intro: str, tables: list[Any], pictures: list[Any] | None = None) -> Section:
    """Return a section as the templates take it."""
    return {"id": name, "title": title, "intro": intro, "tables": tables, "pictures": pictures or []}


def _outcome(answers: Explanations, schema: Schema) -> Section:
    intro = "Every row has a status, and a row without a counterfactual has a reason. Counts are rows."
    tables = _audit_tables("outcome", answers, schema)
    return section("outcome", "Which rows have a counterfactual, and what was released", intro, tables)


def _groups(column: ColumnComparison, comparison: Comparison, at: int, places: Iterator[int]) -> Section:
    """Return everything about the groups of one column."""
    burden, name = column.burden, column.name
    spread = burden.groupby("measure", sort=False)["estimate"].agg(lambda means: means.max() - means.min())
    spread = spread[spread > 0]  # a measure in which no two groups differ is left out
    drawn = [bars(burden, str(measure), name, next(places)) for measure in spread.index]
    verdict = next(verdict for verdict in comparison.verdicts if verdict.by == name)
    told = f"{verdict.sentence}{could_miss(verdict.claims) if verdict.kind == CLEAR else ''} {column.grouped.note}"
    intro = (
        f"{told.strip()} Means have 95 % intervals, each for itself. A gap is the first group's mean minus the "
        "other's; the intervals of who gets the decision, of how often it is right, and of burden each hold together, "
        "and p is that of the same test."
    )
    differing = burden[burden["measure"].isin(spread.index)]
    tables = [*_rate_tables(column, comparison), table(f"Burden by {name}", _in_words(differing))]
    claims = verdict.claims.head(MOST_GAPS)
    if len(claims):
        cut = "" if len(claims) == len(verdict.claims) else f" (the first {MOST_GAPS} of {len(verdict.claims)})"
        kept = ["measure", "group", "other", "gap", "low", "high", "p", "size", "clear"]
        tables.append(table(f"Gaps between groups of {name}{cut}", _in_words(claims)[kept]))
    with_rows = [one for one in tables if one["rows"]]
    found = section(f"burden-{at}", f"Burden by {name}", intro, with_rows, drawn)
    return {**found, "is_clear": verdict.kind == CLEAR}


def _rate_tables(column: ColumnComparison, comparison: Comparison) -> list[Any]:
    decisions, groups = comparison.decisions, column.grouped.table
    if decisions is None or groups is None:
        return []
    rates = audit.selection_rates(decisions.selected, groups)
    tables = [table(f"Selection rates by {column.name}", rates)]
    if decisions.truth is not None:
        errors = audit.error_rates(decisions.selected, decisions.truth, groups)
        tables.append(table(f"How often decisions are right, by {column.name}", errors))
    return tables


def _in_words(frame: pd.DataFrame) -> pd.DataFrame:
    names = [plots.AXIS_NAMES.get(measure, MEASURE_NAMES.get(measure, measure)) for measure in frame["measure"]]
    return frame.assign(measure=np.array(names, dtype=object))


def _features(answers: Explanations, schema: Schema, places: Iterator[int]) -> Section:
    counted = audit.changes_by_feature(answers, schema)
    counts = ", ".join(f"{line.feature} {line.count_}" for line in _named(counted[counted["count"] > 0]))
    chart = plots.change_frequencies(counted, ax=new_figure())
    drawn = picture(next(places), "How often each feature changes", f"{counts}.", chart)
    in_days = any(feature.holds in ("date", "time", "duration") for feature in schema.features)
    intro = (
        "Counts and shares are over counterfactuals; up and down are shares of a feature's changes; the median size is "
        f"in the feature's own units{', of dates, times and durations in days' if in_days else ''}."
    )
    tables = _audit_tables("features", answers, schema)
    return section("features", "Which features change decisions", intro, tables, [drawn])


def _together(answers: Explanations, schema: Schema, places: Iterator[int]) -> Section:
    together = audit.pairs(answers, MOST)
    counts = "; ".join(f"{line.first} and {line.second} {line.count_}" for line in _named(together)) or "no pair"
    drawn = picture(
        next(places),
        "Features changed together",
        "Number of counterfactuals that change both features; on the diagonal, that change the feature. "
        f"Most frequent: {counts}.",
        plots.pair_heatmap(audit.pair_matrix(answers), ax=new_figure()),
    )
    intro = (
        "Lift is the observed share divided by the share expected if the features changed independently: above 1 two "
        "features tend to change together, below 1 one tends to change instead of the other."
    )
    tables = _audit_tables("pairs", answers, schema)
    return section("pairs", "Which features change together", intro, tables, [drawn])


def _named(frame: pd.DataFrame) -> Any:
    """Return the lines of a frame as tuples whose `count` is a field: a tuple has a method of that name."""
    return frame.rename(columns={"count": "count_"}).itertuples()


def _semifactuals(answers: Explanations, schema: Schema) -> Section:
    intro = (
        "A semifactual is the furthest point tried on the way to a counterfactual at which the decision is still the "
        "same: this much can change without changing the decision."
    )
    tables = _audit_tables("semifactuals", answers, schema)
    return section("semifactuals", "How much can change without changing the decision", intro, tables)


def _audit_tables(name: str, answers: Explanations, schema: Schema) -> list[Any]:
    """Return the audit's tables of a section; lines that count nothing are left out, and empty tables."""
    tables = []
    for entry in audit.TABLES:
        if entry.section == name:
            frame = entry.make(answers, schema)
            frame = frame[frame["count"] > 0] if "count" in frame else frame
            frame = frame.replace({"measure": SEMIFACTUAL_MEASURES}) if "measure" in frame else frame
            tables += [table(entry.caption, frame)] if len(frame) else []
    return tables


def beside(answers: Explanations, others: Mapping[str, Explanations]) -> Section:
    """Return the section that sets other models or methods beside this one."""
    batches = {"this report": answers, **others}
    tables = [
        table("Figures side by side", audit.compare(batches)),
        table("Share of counterfactuals that change a feature", audit.compare_changes(batches)),
    ]
    intro = "The answers of this report beside those of others."
    return section("beside", "Comparison with other models or methods", intro, tables)
