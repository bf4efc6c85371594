"""The comparison of groups in a report: everything about each column, and its section.

answers, by, decisions  ->  Compared.of  ->  GroupPart, one per column  ->  group_section
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from onbmacf import audit
from onbmacf.audit.features import _share
from onbmacf.audit.sentences import CLEAR, MEASURE_NAMES
from onbmacf.explanations import Explanations
from onbmacf.plots import AXIS_NAMES
from onbmacf.report.tables import table

MOST_GAPS = 12
Section = dict[str, Any]


class GroupPart(NamedTuple):
    """What is known of the groups of one column."""

    name: str
    grouped: audit.GroupedBy
    burden: pd.DataFrame
    rates: pd.DataFrame | None  # as `burden`, of the decisions
    gaps: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Compared:
    """All comparisons of a report."""

    parts: tuple[GroupPart, ...]
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
    ) -> "Compared":
        """Group the rows by each column and each pair of columns, and compare."""
        groups = audit.grouped(answers, by, decisions)
        gaps = audit.group_gaps(answers, groups, decisions, cost=cost, seed=seed)
        parts = tuple(
            GroupPart(
                group.name,
                group,
                audit.burden(answers, group.rows, cost=cost, seed=seed),
                _rates(decisions, group.table),
                gaps[group.name],
            )
            for group in groups
        )
        return cls(parts, decisions, frozenset(str(name) for name in by))

    @cached_property
    def gaps(self) -> dict[str, pd.DataFrame]:
        """The gaps of each column."""
        return {part.name: part.gaps for part in self.parts}

    @cached_property
    def verdicts(self) -> list[audit.Verdict]:
        """The verdict on each column."""
        return audit.verdicts(self.gaps)

    @property
    def notes(self) -> dict[str, str]:
        """What the reader should know about the groups of each column."""
        return {part.name: part.grouped.note for part in self.parts}

    @property
    def has_truth(self) -> bool:
        """Whether true labels are known."""
        return self.decisions is not None and self.decisions.truth is not None

    @property
    def first(self) -> GroupPart | None:
        """The column with the largest clear difference; the first one where there is none."""
        claims = audit.corrected(self.gaps)
        clear = [name for name in claims.loc[claims["clear"], "by"] if name in self.single]
        named = {part.name: part for part in self.parts}
        return named[clear[0]] if clear else self.parts[0] if self.parts else None


def group_section(part: GroupPart, compared: Compared, place: int, pictures: list[Any]) -> Section:
    """Return everything about the groups of one column."""
    verdict = next(verdict for verdict in compared.verdicts if verdict.by == part.name)
    intro = (
        f"{verdict.sentence} {part.grouped.note} Means have 95 % intervals, each for itself. A gap is the first "
        "group's mean minus the other's; its interval holds together with all others of this report, and p is "
        "corrected for their number."
    )
    tables = [*_rate_tables(part, compared), table(f"Burden by {part.name}", _in_words(_with_spread(part.burden)))]
    claims = verdict.claims.head(MOST_GAPS)
    if len(claims):
        cut = "" if len(claims) == len(verdict.claims) else f" (the first {MOST_GAPS} of {len(verdict.claims)})"
        kept = ["measure", "group", "other", "gap", "low", "high", "p_adjusted", "size", "clear"]
        tables.append(table(f"Gaps between groups of {part.name}{cut}", _in_words(claims)[kept]))
    kept_tables = [one for one in tables if one["rows"]]
    title = f"Burden by {part.name}"
    return {"id": f"burden-{place}", "title": title, "intro": intro, "tables": kept_tables, "pictures": pictures,
            "is_clear": verdict.kind == CLEAR}  # fmt: skip


def _rate_tables(part: GroupPart, compared: Compared) -> list[Any]:
    decisions, groups = compared.decisions, part.grouped.table
    if decisions is None or groups is None:
        return []
    rates = audit.selection_rates(decisions.selected, groups)
    tables = [table(f"Selection rates by {part.name}", rates)]
    if decisions.truth is not None:
        errors = audit.error_rates(decisions.selected, decisions.truth, groups)
        tables.append(table(f"How often decisions are right, by {part.name}", errors))
    return tables


def _rates(decisions: audit.Decisions | None, groups: "pd.Series[Any] | None") -> pd.DataFrame | None:
    """Return selection rates with intervals, in the form of `audit.burden`."""
    if decisions is None or groups is None:
        return None
    frame = audit.selection_rates(decisions.selected, groups)
    ends = [_share(line.n_selected, line.n_rows, 0.95) for line in frame.itertuples()]
    lines = [("selected", line.group, line.n_rows, *end) for line, end in zip(frame.itertuples(), ends, strict=True)]
    return pd.DataFrame(lines, columns=["measure", "group", "n_rows", "estimate", "low", "high"])


def _with_spread(burden: pd.DataFrame) -> pd.DataFrame:
    """Leave out measures in which no two groups differ."""
    spread = burden.groupby("measure", sort=False)["estimate"].agg(lambda means: means.max() - means.min())
    return burden[burden["measure"].map(spread).fillna(0) > 0]


def _in_words(frame: pd.DataFrame) -> pd.DataFrame:
    names = [AXIS_NAMES.get(measure, MEASURE_NAMES.get(measure, measure)) for measure in frame["measure"]]
    return frame.assign(measure=np.array(names, dtype=object))
