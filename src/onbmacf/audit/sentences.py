"""The findings: sentences made from the numbers in the audit's frames.

Explanations, Schema, gaps  ->  findings  ->  list of sentences
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from onbmacf._columns.converters import converter_of, size_unit
from onbmacf._text.wording import joined, quoted, rounded
from onbmacf.audit.arguments import typed
from onbmacf.audit.changes import changes_by_feature, pairs, semifactual_distances, single_changes
from onbmacf.audit.figures import first_lines, keeps_immutables, overview, released
from onbmacf.audit.verdicts import claim_sentences
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema

MOST_NAMED = 3
FEW = 20  # with fewer counterfactuals, shares are not reported as findings


@typed
def findings(
    answers: Explanations, schema: Schema, gaps: Mapping[str, pd.DataFrame] | None = None, target: Any = None
) -> list[str]:
    """Return what was found, the most serious first: releases, burden, features, pairs, semifactuals, retraining.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    schema : Schema
        The table's features; `explainer.schema_`.
    gaps : mapping of str to DataFrame, optional
        What `burden_gaps` or `decision_gaps` returned, by the name of what grouped the rows. A gap is a finding where
        it is clear once all comparisons of all columns are taken together.
    target : label or list of labels, optional
        What was asked of `explain`, for the wording.

    Returns
    -------
    list of str
        Sentences made of the numbers of the other functions.

    Examples
    --------
    >>> audit.findings(answers, schema, target="fine")[1]
    'Every row with a counterfactual has one that keeps the immutable features (age).'

    """
    sentences = [_answered(answers, target), *_released(answers, schema)]
    sentences += claim_sentences(gaps or {})
    sentences += [*_features(answers, schema), *_pairs(answers), *_semifactuals(answers)]
    return [*sentences, *_after_retraining(answers)]


def _answered(answers: Explanations, target: Any) -> str:
    figures = overview(answers)
    goal = "another decision" if target is None else f"the decision {_labels(target)}"
    text = (
        f"Of {len(answers):,} rows, {figures['asked']:,} were searched for a change that leads to {goal}; "
        f"one was found for {figures['found']:,} ({_percent(figures['share_found'])})"
    )
    if figures["found"]:
        text += f", with {figures['n_changes']:.2f} changed features on average"
    return text + "."


def _released(answers: Explanations, schema: Schema) -> list[str]:
    figures = overview(answers)
    n_asked, n_released = int(figures["asked"]), int(figures["released"])
    if not n_released:
        return _kept(answers, schema) if figures["found"] and schema.immutable else []
    counts = [f"{line.feature} for {line.n_rows:,}" for line in released(answers, schema).itertuples() if line.n_rows]
    return [
        f"For {n_released:,} of {n_asked:,} rows ({_percent(n_released / n_asked)}), a counterfactual is found only if "
        f"an immutable feature changes: {joined(counts)}."
    ]


def _kept(answers: Explanations, schema: Schema) -> list[str]:
    names = joined([str(name) for name in schema.immutable])
    kept = f"Every row with a counterfactual has one that keeps the immutable features ({names})."
    return [kept] if keeps_immutables(answers, schema) else []


def _features(answers: Explanations, schema: Schema) -> list[str]:
    counted = changes_by_feature(answers, schema)
    counted = counted[counted["count"] > 0].head(MOST_NAMED)
    if not len(counted):
        return []
    of_what = [" of counterfactuals", *[""] * (len(counted) - 1)]  # said only once
    parts = [
        f"{line.feature} (in {_percent(line.share)}{of}{_way(line, answers.rows[line.feature])})"
        for line, of in zip(counted.itertuples(), of_what, strict=True)
    ]
    text = (
        f"The most changed features are {joined(parts)}."
        if len(parts) > 1
        else f"The only feature that changes is {parts[0]}."
    )
    alone = single_changes(answers, 1)
    if len(alone):
        line = alone.iloc[0]
        share = _percent(line["share"])
        text += f" The most frequent single change is {line['feature']}: it is the only change in {share}."
    return [text]


def _way(line: Any, column: "pd.Series[Any]") -> str:
    if line.most_frequent:
        return f", mostly {line.most_frequent}"
    if pd.isna(line.up):
        return ""
    way, unit = "up" if line.up >= line.down else "down", size_unit(converter_of(column))
    size = f"{rounded(line.median_size)} {unit}".rstrip()
    return f", {way} in {_percent(max(line.up, line.down))} of these, median change {size}"


def _pairs(answers: Explanations) -> list[str]:
    together = pairs(answers)
    enough = together[(together["count"] >= FEW // 4)]
    if len(answers.batch.factual) < FEW or not len(enough):
        return []
    first = enough.iloc[0]
    times = "as often as" if 0.9 <= first["lift"] <= 1.1 else f"{first['lift']:.1f} times as often as"
    return [
        f"The two features that most often change together are {first['first']} and {first['second']} "
        f"({_percent(first['share'])} of counterfactuals, {times} if they changed independently)."
    ]


def _semifactuals(answers: Explanations) -> list[str]:
    shares = semifactual_distances(answers)["share_of_way"].dropna()
    if len(shares) < FEW:
        return []
    return [
        f"{len(shares):,} counterfactuals have a semifactual; the median one covers {_percent(shares.median())} of the "
        "distance to its counterfactual without changing the decision."
    ]


def _after_retraining(answers: Explanations) -> list[str]:
    stability, first = answers.batch.stability, first_lines(answers)
    if stability is None or not len(stability):
        return []
    own = stability[first[first >= 0]]
    return [
        f"After retraining, {_percent(own.mean())} of the counterfactuals hold: the mean share of {answers.n_members} "
        f"retrained models that agree. All of them agree on {(own == 1).sum():,} of {len(own):,}."
    ]


def _labels(target: Any) -> str:
    several = isinstance(target, list | tuple | set)
    return joined([quoted(label) for label in target], "or") if several else quoted(target)


def _percent(share: float) -> str:
    return "-" if pd.isna(share) else f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"
