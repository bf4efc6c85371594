"""The sections of a report: each has a title, an introduction, tables, and plots with text alternatives."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pandas as pd

from onbmacf import audit, plots
from onbmacf._text.wording import rounded
from onbmacf.explanations import Explanations
from onbmacf.report.tables import new_figure, picture, table
from onbmacf.schema import Schema

MOST_GAPS = 40
Section = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Groups:
    """The burden by the groups of one column."""

    name: str
    burden: pd.DataFrame
    gaps: pd.DataFrame

    @classmethod
    def of(cls, answers: Explanations, name: Hashable, cost: Mapping[Hashable, float] | None, seed: int) -> "Groups":
        """Group the explained rows by a column and compare."""
        by: Any = audit.as_groups(answers.rows[name]) if name in answers.rows.columns else name
        both = [measure(answers, by, cost=cost, seed=seed) for measure in (audit.burden, audit.burden_gaps)]
        return cls(str(name), *both)


def sections(
    answers: Explanations,
    schema: Schema,
    groups: Sequence[Groups],
    others: Mapping[str, Explanations] | None,
) -> list[Section]:
    """Return the report's sections in order; one with nothing to say is left out."""
    places = count(1)
    parts = [_outcome(answers, schema), *(_burden(group, place, places) for place, group in enumerate(groups))]
    if len(answers.batch.factual):
        parts += [
            _features(answers, schema, places),
            _together(answers, schema, places),
            _semifactuals(answers, schema),
        ]
    if others:
        parts.append(_beside(answers, others))
    return parts


def _tables(section: str, answers: Explanations, schema: Schema) -> list[Any]:
    """Return the audit's tables of a section; those without lines are left out."""
    frames = [(entry.caption, entry.make(answers, schema)) for entry in audit.TABLES if entry.section == section]
    return [table(caption, frame) for caption, frame in frames if len(frame)]


def _section(name: str, title: str, intro: str, tables: list[Any], pictures: list[Any] | None = None) -> Section:
    return {"id": name, "title": title, "intro": intro, "tables": tables, "pictures": pictures or []}


def _outcome(answers: Explanations, schema: Schema) -> Section:
    intro = "Every row has a status, and a row without a counterfactual has a reason. Counts are rows."
    tables = _tables("outcome", answers, schema)
    return _section("outcome", "Which rows have a counterfactual, and what was released", intro, tables)


def _burden(group: Groups, place: int, places: Any) -> Section:
    drawn = [_burden_picture(group, measure, next(places)) for measure in _drawn(group.burden)]
    gaps = group.gaps.head(MOST_GAPS)
    cut = "" if len(gaps) == len(group.gaps) else f" (the first {MOST_GAPS} of {len(group.gaps)})"
    intro = (
        f"The effort of reaching another decision, by {group.name}: means over rows with 95 % bootstrap intervals. A "
        "gap is the first group's mean minus the other's; if its interval excludes 0, all of it lies on one side of 0."
    )
    tables = [
        table(f"Burden by {group.name}", _in_words(group.burden)),
        table(f"Gaps between groups of {group.name}{cut}", _in_words(gaps)),
    ]
    return _section(f"burden-{place}", f"Burden by {group.name}", intro, tables, drawn)


def _in_words(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(measure=[plots.AXIS_NAMES.get(measure, measure) for measure in frame["measure"]])


def _drawn(burden: pd.DataFrame) -> list[str]:
    """Return the measures worth plotting: those in which the groups differ."""
    spread = burden.groupby("measure", sort=False)["estimate"].agg(lambda means: means.max() - means.min())
    return [str(measure) for measure, width in spread.items() if width > 0]


def _burden_picture(group: Groups, measure: str, place: int) -> dict[str, Any]:
    lines = group.burden[group.burden["measure"] == measure]
    values = "; ".join(
        f"{line.group}: {rounded(line.estimate)} ({rounded(line.low)} to {rounded(line.high)}), n = {line.n_rows:,}"
        for line in lines.itertuples()
    )
    title = f"{plots.AXIS_NAMES.get(measure, measure).capitalize()} by {group.name}"
    return picture(place, title, f"Mean and interval: {values}.", plots.burden(group.burden, measure, new_figure()))


def _features(answers: Explanations, schema: Schema, places: Any) -> Section:
    counted = audit.changes_by_feature(answers, schema)
    counts = ", ".join(f"{line.feature} {line.count_}" for line in _named(counted[counted["count"] > 0]))
    bars = plots.change_frequencies(counted, ax=new_figure())
    drawn = picture(next(places), "How often each feature changes", f"{counts}.", bars)
    intro = (
        "Counts and shares are over counterfactuals; up and down are shares of a feature's changes; the median size is "
        "in the feature's own units."
    )
    tables = _tables("features", answers, schema)
    return _section("features", "Which features change decisions", intro, tables, [drawn])


def _together(answers: Explanations, schema: Schema, places: Any) -> Section:
    together = audit.pairs(answers, audit.MOST)
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
    tables = _tables("pairs", answers, schema)
    return _section("pairs", "Which features change together", intro, tables, [drawn])


def _semifactuals(answers: Explanations, schema: Schema) -> Section:
    intro = (
        "A semifactual is the furthest point tried on the way to a counterfactual at which the decision is still the "
        "same: this much can change without changing the decision."
    )
    tables = _tables("semifactuals", answers, schema)
    return _section("semifactuals", "How much can change without changing the decision", intro, tables)


def _beside(answers: Explanations, others: Mapping[str, Explanations]) -> Section:
    batches = {"this report": answers, **others}
    figures = audit.compare(batches)
    tables = [
        table("Figures side by side", figures),
        table("Share of counterfactuals that change a feature", audit.compare_changes(batches)),
    ]
    return _section(
        "beside",
        "Comparison with other models or methods",
        "The answers of this report beside those of others.",
        tables,
    )


def _named(frame: pd.DataFrame) -> Any:
    return frame.rename(columns={"count": "count_"}).itertuples()
