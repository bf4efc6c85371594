"""The first page: a verdict per column, the three figures that carry it, what to look at next, and the words used.

verdicts, groups, answers  ->  front  ->  dict of the template
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import audit, plots
from onbmacf._columns.converters import converter_of, days_in, size_unit
from onbmacf._text.wording import rounded, sentence, shown, visible
from onbmacf.audit.sentences import CLEAR, NOT_CLEAR
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.groups import Compared
from onbmacf.report.tables import new_figure, picture, representatives

MARKS = {CLEAR: "clear", NOT_CLEAR: "none"}
NO_COLUMN = (
    "No column was named to compare groups by (by=..., --by): whether the model treats groups differently was not "
    "looked at."
)
MOST_UNITS = 3  # features in whose units a distance is told
CLEAR_WORDS = (
    "A difference that would arise by chance in fewer than 5 of 100 audits like this, all comparisons taken together. "
    "Small, medium and large say how big it is, not how sure. Figures are rounded each by itself, so that a difference "
    "may be 0.1 away from that of the rounded ones."
)


def front(explainer: ONBMACF, answers: Explanations, compared: Compared, target: Any, places: Any) -> dict[str, Any]:
    """Return what the first page shows."""
    return {
        "verdicts": _verdicts(compared),
        "figures": _figures(explainer, answers, compared, places),
        "next": _next(explainer, answers, compared, target),
        "words": _words(explainer, answers),
    }


def _verdicts(compared: Compared) -> list[dict[str, str]]:
    """Return the verdicts on single columns, and on intersections where a difference is clear."""
    shown_ones = [v for v in compared.verdicts if v.kind == CLEAR or v.by in compared.single]
    cards = [
        {
            "by": verdict.by,
            "kind": verdict.kind,
            "mark": MARKS.get(verdict.kind, "few"),
            "text": _text(verdict, compared),
        }
        for verdict in shown_ones
    ]
    return cards or [{"by": "Groups", "kind": "not compared", "mark": "few", "text": NO_COLUMN}]


def _text(verdict: audit.Verdict, compared: Compared) -> str:
    text = verdict.sentence.removeprefix(f"By {verdict.by}: ")
    note = compared.notes.get(verdict.by, "")
    return f"{text[:1].upper()}{text[1:]}" + (f" {note}" if note else "")


def _figures(explainer: ONBMACF, answers: Explanations, compared: Compared, places: Any) -> list[Any]:
    """Return up to three pictures: selection rates and burden by the column that matters most, and the features."""
    drawn = []
    group = compared.first
    if group is not None and group.rates is not None and len(group.rates) > 1:
        drawn.append(bars(group.rates, "selected", group.name, next(places)))
    if group is not None and (group.burden["measure"] == "distance").sum() > 1:
        drawn.append(bars(group.burden, "distance", group.name, next(places)))
    if len(answers.batch.factual):
        counted = audit.changes_by_feature(answers, explainer.schema_)
        top = "; ".join(
            f"{line.feature} {100 * line.share:.0f} %" for line in counted.head(5).itertuples() if line.share
        )
        ax = plots.change_frequencies(counted, 6, ax=new_figure())
        drawn.append(picture(next(places), "Features that counterfactuals change", f"{top}.", ax))
    return drawn


def bars(frame: pd.DataFrame, measure: str, name: str, place: int) -> dict[str, Any]:
    """Return a picture of a measure's mean and interval per group, with its values in words."""
    lines = frame[frame["measure"] == measure]
    values = "; ".join(
        f"{line.group}: {rounded(line.estimate)} ({rounded(line.low)} to {rounded(line.high)}), n = {line.n_rows:,}"
        for line in lines.itertuples()
    )
    title = f"{plots.AXIS_NAMES.get(measure, measure).capitalize()} by {name}"
    return picture(place, title, f"Mean and interval: {values}.", plots.burden(frame, measure, new_figure()))


def _next(explainer: ONBMACF, answers: Explanations, compared: Compared, target: Any) -> list[str]:
    """Return what a reader should look at next, by what was found."""
    kinds = {verdict.kind for verdict in compared.verdicts}
    clear = [verdict for verdict in compared.verdicts if verdict.kind == CLEAR]
    steps = [_about_clear(verdict, compared.has_truth) for verdict in clear[:2]]
    if "too few rows" in kinds:
        steps.append("Explain more rows (--most), so that small groups can be compared.")
    if target is None:
        steps.append("Name the favourable label (--target): only then can selection rates be compared.")
    elif compared.single and not compared.has_truth:
        steps.append(
            "Give true labels, in the model's own words (truth=..., or --target-column), to compare how often "
            "decisions are right."
        )
    n_released = int(audit.overview(answers)["released"])
    if n_released:
        steps.append(f"{n_released:,} rows depend on features that cannot change: see which, under the rows' outcomes.")
    if not compared.single:
        steps.append("Name the columns to compare groups by (--by).")
    return steps or [
        "Read the representative cases, and check with somebody who knows the table whether they make sense."
    ]


def _about_clear(verdict: audit.Verdict, has_truth: bool) -> str:
    where, line = f"the section on {verdict.by}", next(verdict.claims.itertuples())
    if has_truth and line.measure == "selected":
        return f"See in {where} whether decisions are right equally often."
    return f"See {where}: which groups, and how large the difference is in each measure."


def _words(explainer: ONBMACF, answers: Explanations) -> list[tuple[str, str]]:
    """Return the words of the report, each with an example from these rows."""
    places = representatives(explainer, answers, 1)
    case = answers[places[0]] if places else None
    found = case.counterfactuals[0] if case is not None and case.counterfactuals else None
    words = [("Counterfactual", "A changed row to which the model gives another label." + _example(case, found))]
    words.append(("Distance", _distance(explainer, answers, found)))
    words.append(
        ("Burden", "The mean distance of the refused rows of a group: how far they are from the other decision.")
    )
    if found is not None:
        share = f" In the example: {100 * found.plausibility:.0f} %."
        words.append(("Plausibility", f"The share of the 5 nearest rows of the table with the same label.{share}"))
    words.append(("Semifactual", _semifactual(found)))
    words.append(("Clear", CLEAR_WORDS))
    return words


def _example(case: Any, found: Any) -> str:
    if found is None:
        return ""
    return f" Row {shown(case.factual.name)}, for example: {sentence(case.label, found).partition(' Even if ')[0]}"


def _distance(explainer: ONBMACF, answers: Explanations, found: Any) -> str:
    text = "The sum of the changes, each as a share of its feature's range; another level of a category counts 1."
    units = _units(explainer, answers)
    text += f" A distance of 0.1 is {', or '.join(units)}." if units else ""
    return text + (f" In the example: {rounded(found.distance)}." if found is not None else "")


def _units(explainer: ONBMACF, answers: Explanations) -> list[str]:
    """Return a tenth of the range of the numbers that change most, in their own units."""
    counted = audit.changes_by_feature(answers, explainer.schema_)
    names = [name for name, count in zip(counted["feature"], counted["count"], strict=True) if count]
    schema, ranges = explainer.schema_, explainer.fitted_.ranges
    places = [schema.names.index(name) for name in names]
    numbers = [at for at in places if schema.features[at].is_numeric][:MOST_UNITS]
    return [_tenth(explainer, answers, at) for at in numbers if np.ptp(ranges[at])]


def _tenth(explainer: ONBMACF, answers: Explanations, at: int) -> str:
    """Return a tenth of a number's range with its unit: '8100 of income', '690 days of since'."""
    name = explainer.schema_.names[at]
    by = converter_of(answers.rows[name])
    size = f"{float(f'{0.1 * explainer.fitted_.space.span[at] * days_in(by):.2g}'):g} {size_unit(by)}".rstrip()
    return f"{size} of {visible(name)}"


def _semifactual(found: Any) -> str:
    text = "A changed row to which the model still gives the row's own label: this much can change without effect."
    kept = None if found is None else found.semifactual
    if kept is None:
        return text
    moves = [f"{name} were {shown(kept.values[name])}" for name in kept.changed]
    return f"{text} In the example: even if {' and '.join(moves)}."


def listed_verdicts(verdicts: Sequence[audit.Verdict]) -> str:
    """Return the verdicts in one line, for the terminal."""
    return "; ".join(f"{verdict.by}: {verdict.kind}" for verdict in verdicts)
