"""The first page: a verdict per column, the three figures that carry it, what to look at next, and the words used.

Subject  ->  first_page  ->  entries of the template's dict
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from onbmacf import audit, plots
from onbmacf._columns.converters import converter_of, days_in, size_unit
from onbmacf._text.wording import rounded, sentence, shown, visible
from onbmacf.audit.sentences import CLEAR, DECISION, NOT_CLEAR, claim_sentence
from onbmacf.explanation import Counterfactual
from onbmacf.report.elements import bars, new_figure, picture, representatives
from onbmacf.report.sections import Comparison, Subject

MARKS = {CLEAR: "clear", NOT_CLEAR: "none"}
NO_COLUMN = (
    "No column was named to compare groups by (by=..., --by): whether the model treats groups differently was not "
    "looked at."
)
MOST_UNITS = 3  # features in whose units a distance is told
CLEAR_WORDS = (
    "A difference that would arise by chance in fewer than 5 of 100 audits, all groups of the column compared with "
    "each other. Who gets the decision, how often it is right, and what another one would take are three questions, "
    "each tested by itself; so is every column. Small, medium and large say how big it is, not how sure. Figures are "
    "rounded each by itself, so that a difference may be 0.1 away from that of the rounded ones."
)


def first_page(subject: Subject, places: Iterator[int]) -> dict[str, Any]:
    """Return what the first page shows; `places` number the pictures."""
    return {
        "verdicts": _verdicts(subject.comparison),
        "figures": _figures(subject, places),
        "next": _next(subject),
        "words": _words(subject),
    }


def _verdicts(comparison: Comparison) -> list[dict[str, str]]:
    """Return the verdicts on single columns, and on intersections where a difference is clear."""
    cards = []
    for verdict in comparison.verdicts:
        if verdict.kind == CLEAR or verdict.by in comparison.single:
            text = verdict.sentence.removeprefix(f"By {verdict.by}: ")
            note = comparison.notes.get(verdict.by, "")
            text = " ".join(filter(None, (f"{text[:1].upper()}{text[1:]}", _also(verdict), note)))
            mark = MARKS.get(verdict.kind, "few")
            cards.append({"by": verdict.by, "kind": verdict.kind, "mark": mark, "text": text})
    return cards or [{"by": "Groups", "kind": "not compared", "mark": "few", "text": NO_COLUMN}]


def _also(verdict: audit.Verdict) -> str:
    """Return the largest clear difference in what the verdict is not about; often nothing."""
    claims = verdict.claims
    is_decided = bool((claims["measure"] == DECISION).any())
    told = DECISION if is_decided else claims["measure"].iloc[0] if verdict.kind == CLEAR else ""
    others = claims[claims["clear"] & (claims["measure"] != told)]
    if not len(others):
        return ""
    return f"Also: {claim_sentence(next(others.itertuples())).removeprefix(f'By {verdict.by}: ')}"


def _figures(subject: Subject, places: Iterator[int]) -> list[Any]:
    """Return up to three pictures: selection rates and burden by the column that matters most, and the features."""
    drawn = []
    column = subject.comparison.first
    if column is not None and column.rates is not None and len(column.rates) > 1:
        drawn.append(bars(column.rates, "selected", column.name, next(places)))
    if column is not None and (column.burden["measure"] == "distance").sum() > 1:
        drawn.append(bars(column.burden, "distance", column.name, next(places)))
    if len(subject.answers.batch.factual):
        counted = audit.changes_by_feature(subject.answers, subject.schema)
        top = "; ".join(
            f"{line.feature} {100 * line.share:.0f} %" for line in counted.head(5).itertuples() if line.share
        )
        ax = plots.change_frequencies(counted, 6, ax=new_figure())
        drawn.append(picture(next(places), "Features that counterfactuals change", f"{top}.", ax))
    return drawn


def _next(subject: Subject) -> list[str]:
    """Return what a reader should look at next, by what was found."""
    comparison = subject.comparison
    clear = [verdict for verdict in comparison.verdicts if verdict.kind == CLEAR]
    steps = [_about_clear(verdict, comparison.has_truth) for verdict in clear[:2]]
    if any(verdict.kind == "too few rows" for verdict in comparison.verdicts):
        steps.append("Explain more rows (--most), so that small groups can be compared.")
    if subject.target is None:
        steps.append("Name the favourable label (--target): only then can selection rates be compared.")
    elif comparison.single and not comparison.has_truth:
        steps.append(
            "Give true labels, in the model's own words (truth=..., or --target-column), to compare how often "
            "decisions are right."
        )
    n_released = int(audit.overview(subject.answers)["released"])
    if n_released:
        steps.append(f"{n_released:,} rows depend on features that cannot change: see which, under the rows' outcomes.")
    if not comparison.single:
        steps.append("Name the columns to compare groups by (--by).")
    return steps or [
        "Read the representative cases, and check with somebody who knows the table whether they make sense."
    ]


def _about_clear(verdict: audit.Verdict, has_truth: bool) -> str:
    where, line = f"the section on {verdict.by}", next(verdict.claims.itertuples())
    if has_truth and line.measure == "selected":
        return f"See in {where} whether decisions are right equally often."
    return f"See {where}: which groups, and how large the difference is in each measure."


def _words(subject: Subject) -> list[tuple[str, str]]:
    """Return the words of the report, each with an example from these rows where single rows may be shown."""
    is_private = subject.explainer.private is not None  # then the report shows no single row
    places = [] if is_private else representatives(subject.explainer, subject.asked, 1)
    case = subject.asked[places[0]].in_words() if places else None
    found = case.counterfactuals[0] if case is not None and case.counterfactuals else None
    text = "A changed row to which the model gives another label."
    if case is not None and found is not None:
        example = sentence(case.label, found).partition(" Even if ")[0]
        text += f" Row {shown(case.factual.name)}, for example: {example}"
    words = [("Counterfactual", text), ("Distance", _distance(subject, found))]
    words.append(
        ("Burden", "The mean distance of the refused rows of a group: how far they are from the other decision.")
    )
    if found is not None:
        share = f" In the example: {100 * found.plausibility:.0f} %."
        words.append(("Plausibility", f"The share of the 5 nearest rows of the table with the same label.{share}"))
    words.append(("Semifactual", _semifactual(found)))
    words.append(("Clear", CLEAR_WORDS))
    return words


def _distance(subject: Subject, found: Counterfactual | None) -> str:
    text = "The sum of the changes, each as a share of its feature's range; another level of a category counts 1."
    units = _units(subject)
    text += f" A distance of 0.1 is {', or '.join(units)}." if units else ""
    return text + (f" In the example: {rounded(found.distance)}." if found is not None else "")


def _units(subject: Subject) -> list[str]:
    """Return a tenth of the range of the numbers that change most: '8100 of income', '690 days of since'."""
    schema, fitted = subject.schema, subject.explainer.fitted_
    counted = audit.changes_by_feature(subject.answers, schema)
    changed = [name for name, count in zip(counted["feature"], counted["count"], strict=True) if count]
    places = [schema.names.index(name) for name in changed]
    tenths = []
    for at in [at for at in places if schema.features[at].is_numeric][:MOST_UNITS]:
        if np.ptp(fitted.ranges[at]):
            name = schema.names[at]
            by = converter_of(subject.answers.rows[name])
            unit = size_unit(by) or subject.explainer.schema_.labels.unit(fitted.space.schema.names[at]).strip()
            size = f"{float(f'{0.1 * fitted.space.span[at] * days_in(by):.2g}'):g} {unit}".rstrip()
            tenths.append(f"{size} of {visible(name)}")
    return tenths


def _semifactual(found: Counterfactual | None) -> str:
    text = "A changed row to which the model still gives the row's own label: this much can change without effect."
    kept = None if found is None else found.semifactual
    if kept is None:
        return text
    moves = [f"{name} were {shown(kept.values[name])}" for name in (*kept.changed, *kept.effects)]
    return f"{text} In the example: even if {' and '.join(moves)}."
