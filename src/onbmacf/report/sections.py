"""The sections of a report: each has a title, an introduction, tables, and plots with text alternatives."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from onbmacf import audit, plots
from onbmacf.explanations import Explanations
from onbmacf.report.first_page import bars
from onbmacf.report.groups import Compared, GroupPart, group_section
from onbmacf.report.tables import new_figure, picture, table
from onbmacf.schema import Schema

Section = dict[str, Any]
MEASURES = {  # of semifactuals
    "distance": "distance of the counterfactual",
    "semifactual_distance": "distance of the semifactual",
    "share_of_way": "share of the way that the semifactual goes",
}


def sections(
    answers: Explanations,
    schema: Schema,
    compared: Compared,
    places: Iterator[int],
) -> list[Section]:
    """Return the report's sections in order; one with nothing to say is left out."""
    parts = [_outcome(answers, schema)]
    parts += [_groups(part, compared, at, places) for at, part in enumerate(compared.parts)]
    if len(answers.batch.factual):
        parts += [
            _features(answers, schema, places),
            _together(answers, schema, places),
            _semifactuals(answers, schema),
        ]
    return parts


def _groups(part: GroupPart, compared: Compared, at: int, places: Iterator[int]) -> Section:
    drawn = [bars(part.burden, measure, part.name, next(places)) for measure in _drawn(part.burden)]
    return group_section(part, compared, at, drawn)


def _tables(section: str, answers: Explanations, schema: Schema) -> list[Any]:
    """Return the audit's tables of a section; lines that count nothing are left out, and empty tables."""
    frames = [(entry.caption, entry.make(answers, schema)) for entry in audit.TABLES if entry.section == section]
    frames = [(caption, frame[frame["count"] > 0] if "count" in frame else frame) for caption, frame in frames]
    frames = [
        (caption, frame.replace({"measure": MEASURES}) if "measure" in frame else frame) for caption, frame in frames
    ]
    return [table(caption, frame) for caption, frame in frames if len(frame)]


def _section(name: str, title: str, intro: str, tables: list[Any], pictures: list[Any] | None = None) -> Section:
    return {"id": name, "title": title, "intro": intro, "tables": tables, "pictures": pictures or []}


def _outcome(answers: Explanations, schema: Schema) -> Section:
    intro = "Every row has a status, and a row without a counterfactual has a reason. Counts are rows."
    tables = _tables("outcome", answers, schema)
    return _section("outcome", "Which rows have a counterfactual, and what was released", intro, tables)


def _drawn(burden: pd.DataFrame) -> list[str]:
    """Return the measures worth plotting: those in which the groups differ."""
    spread = burden.groupby("measure", sort=False)["estimate"].agg(lambda means: means.max() - means.min())
    return [str(measure) for measure, width in spread.items() if width > 0]


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
    tables = _tables("features", answers, schema)
    return _section("features", "Which features change decisions", intro, tables, [drawn])


def _together(answers: Explanations, schema: Schema, places: Iterator[int]) -> Section:
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


def beside(answers: Explanations, others: Mapping[str, Explanations]) -> Section:
    """Return the section that sets other models or methods beside this one."""
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
