"""The findings: sentences made from the numbers in the audit's frames, and a verdict per column by its tested gaps."""

from collections.abc import Mapping
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import pandas as pd

from onbmacf._columns.converters import MOMENTS, converter_of, holds, size_unit
from onbmacf._text.wording import joined, quoted, rounded
from onbmacf.audit.arguments import typed
from onbmacf.audit.changes import changes_by_feature, pairs, semifactual_distances, single_changes
from onbmacf.audit.figures import first_found, keeps_immutables, overview, released
from onbmacf.audit.pairwise import LEAST, LEVEL, corrected
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema

CLEAR, NOT_CLEAR, TOO_FEW, ONE_GROUP = "clear difference", "no clear difference", "too few rows", "one group"
MEASURE_NAMES = {
    "selected": "the share with the favourable decision",
    "true_positive": "the share with the favourable decision among rows whose true label is favourable",
    "false_positive": "the share with the favourable decision among rows whose true label is not favourable",
    "share_found": "the share of rows with a counterfactual",
    "share_released": "the share of rows with immutable features released",
    "distance": "the mean distance to the first counterfactual",
    "n_changes": "the mean number of changed features",
    "cost": "the mean cost",
    "changed_sides": "the share whose decision differs between the models",
    "burden_change": "the mean change of the distance to the first counterfactual",
}
SHARES = {  # what so many percent of a group do
    "selected": "get the favourable decision",
    "true_positive": "get the favourable decision",
    "false_positive": "get the favourable decision",
    "share_found": "have a counterfactual",
    "share_released": "get a counterfactual only with an immutable feature released",
    "changed_sides": "get another decision from the other model",
}
AMONG = {  # of which rows it is a share, where not of all
    "true_positive": "among rows whose true label is favourable, ",
    "false_positive": "among rows whose true label is not favourable, ",
}
DECISION = "selected"  # the measure that a verdict is about
POWER = 0.8  # a difference that is found less often may be missed
FEW = 20  # with fewer counterfactuals, shares are not reported as findings


# --- verdicts ---------------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """What the audit says about one column.

    Attributes
    ----------
    by : str
        The column.
    kind : {"clear difference", "no clear difference", "too few rows", "one group"}
        The verdict: on who gets the decision, where that is known, else on burden.
    sentence : str
        The verdict with the figures that carry it.
    claims : DataFrame
        Its lines of `corrected`, the clearest and largest first.

    """

    by: str
    kind: str
    sentence: str
    claims: pd.DataFrame


@typed
def verdicts(gaps: Mapping[str, pd.DataFrame]) -> list[Verdict]:
    """Return a verdict for each column by which rows were grouped.

    Where the decisions about a whole table are known, it is on these, and neither the rows that were explained nor the
    other columns have a part in it: of a column that makes no difference, a clear one is stated in at most 5 of 100
    audits.

    Parameters
    ----------
    gaps : mapping of str to DataFrame
        What `group_gaps`, `burden_gaps` or `decision_gaps` returned, by the name of the column.

    Returns
    -------
    list of Verdict
        In the order given.

    Examples
    --------
    >>> audit.verdicts({"famhist": audit.burden_gaps(answers, "famhist")})[0].kind
    'too few rows'

    """
    claims = corrected(gaps)
    return [_verdict(name, frame, claims[claims["by"] == name]) for name, frame in gaps.items()]


def claim_sentences(gaps: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return a sentence per column and measure with a clear difference, the largest first, then the other verdicts."""
    claims = corrected(gaps)
    clear = claims[claims["clear"]].drop_duplicates(["by", "measure"])
    others = [verdict.sentence for verdict in verdicts(gaps) if verdict.kind != CLEAR]
    return [*(claim_sentence(line) for line in clear.itertuples()), *others]


def claim_sentence(line: Any) -> str:
    """Return a line of `corrected` as a sentence."""
    # Without signs, as the larger group less the other; an interval with 0 in it keeps the sign of its lower end.
    ends = (line.low, line.high) if line.gap > 0 else (-line.high, -line.low)
    gap, low, high = (in_unit(line.measure, size) for size in (abs(line.gap), *ends))
    first, second = (value_in_words(line.measure, value) for value in (line.mean, line.mean_other))
    group, other = quoted(line.group), quoted(line.other)
    if line.measure in SHARES:
        did = f"of the group {group} {SHARES[line.measure]}"
        fact = f"{AMONG.get(line.measure, '')}{first} {did}, against {second} of {other}"
    else:
        fact = f"{MEASURE_NAMES.get(line.measure, line.measure)} is {first} for {group}, against {second} for {other}"
    return f"By {line.by}: {fact}: a {line.size} difference of {gap}{_unit(line.measure)} (interval {low} to {high})."


def value_in_words(measure: str, value: float) -> str:
    """Return a mean as people write it: a share in percent.

    >>> value_in_words("selected", 0.4567), value_in_words("distance", 0.4567)
    ('45.7 %', '0.457')
    """
    return f"{100 * value:.1f} %" if measure in SHARES else f"{value:.3g}"


def in_unit(measure: str, size: float) -> str:
    """Return a difference in the unit of its measure: percentage points for shares."""
    return f"{100 * size:.3g}" if measure in SHARES else f"{size:.3g}"


def _unit(measure: str) -> str:
    return " percentage points" if measure in SHARES else ""


def _verdict(name: str, frame: pd.DataFrame, claims: pd.DataFrame) -> Verdict:
    if not len(frame):
        text = f"By {name}: all rows are in one group, so there is nothing to compare."
        return Verdict(name, ONE_GROUP, text, claims)
    is_decided = bool((frame["measure"] == DECISION).any())
    tested = claims[claims["measure"] == DECISION] if is_decided else claims
    if not len(tested):
        text = f"By {name}: no two groups have at least {LEAST} rows, so no difference between groups is tested."
        return Verdict(name, TOO_FEW, text, claims)
    clear = tested[tested["clear"]]
    if len(clear):
        return Verdict(name, CLEAR, claim_sentence(next(clear.itertuples())), claims)
    where = f" in {MEASURE_NAMES[DECISION]}" if is_decided else ""
    text = f"By {name}: no difference{where} between groups of at least {LEAST} rows is clear."
    return Verdict(name, NOT_CLEAR, text + (could_miss(claims) if is_decided else _unnoticed(claims)), claims)


def could_miss(claims: pd.DataFrame) -> str:
    """Return how large a difference in decisions may be missed with so many rows, known before any test; or nothing.

    It is the least difference of the two smallest groups that a test of all pairs finds in four audits of five.
    """
    pairs_tested = claims[claims["measure"] == DECISION]
    sizes, rates = (
        dict(zip([*pairs_tested["group"], *pairs_tested["other"]], [*first, *other], strict=True))
        for first, other in (
            (pairs_tested["n_rows"], pairs_tested["n_other"]),
            (pairs_tested["mean"], pairs_tested["mean_other"]),
        )
    )
    rate = sum(size * rates[group] for group, size in sizes.items()) / max(1, sum(sizes.values()))
    if not 0 < rate < 1:
        return ""
    least, next_least = sorted(sizes.values())[:2]
    deviations = NormalDist().inv_cdf(1 - LEVEL / 2 / len(pairs_tested)) + NormalDist().inv_cdf(POWER)
    missed = min(1.0, deviations * sqrt(rate * (1 - rate) * (1 / least + 1 / next_least)))
    return f" With {least:,} rows in the smallest group, a difference of up to {100 * missed:.0f} points may be missed."


def _unnoticed(claims: pd.DataFrame) -> str:
    """Return how large a difference could have gone unnoticed, in the first measure that has any spread."""
    half = (claims["high"] - claims["low"]) / 2
    for measure, name in MEASURE_NAMES.items():
        widest = half[(claims["measure"] == measure) & (half > 0) & (half < float("inf"))].max()
        if widest > 0:
            size = f"{in_unit(measure, widest)}{_unit(measure)}"
            return f" A difference of up to {size} in {name} could have gone unnoticed."
    return ""


# --- findings ---------------------------------------------------------------------------------------------------------


@typed
def findings(
    answers: Explanations, schema: Schema, gaps: Mapping[str, pd.DataFrame] | None = None, target: Any = None
) -> list[str]:
    """Return what was found, the most serious first: releases, groups, features, pairs, semifactuals, retraining.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    schema : Schema
        The table's features; `explainer.schema_`.
    gaps : mapping of str to DataFrame, optional
        What `group_gaps`, `burden_gaps` or `decision_gaps` returned, by the name of what grouped the rows. A gap is a
        finding where its interval excludes 0.
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
    words, codes = answers.words, answers.words.codes_in(answers.rows)
    gaps = {words.name(by): words.groups(by, frame) for by, frame in (gaps or {}).items()}
    answers, schema = words.answers(answers, codes), words.schema(schema, codes)
    return [
        _answered(answers, target),
        *_released(answers, schema),
        *claim_sentences(gaps),
        *_features(answers, schema),
        *_pairs(answers),
        *_semifactuals(answers),
        *_after_retraining(answers),
    ]


def _answered(answers: Explanations, target: Any) -> str:
    figures = overview(answers)
    labels = target if isinstance(target, list | tuple | set) else [target]
    goal = "another decision" if target is None else f"the decision {joined([quoted(one) for one in labels], 'or')}"
    n_asked, n_found = int(figures["asked"]), int(figures["found"])
    if not n_asked:
        return f"None of the {len(answers):,} rows was searched for a change that leads to {goal}."
    some = "the row" if n_asked == 1 else f"{n_found:,} of {n_asked:,} rows ({_percent(figures['share_found'])})"
    some = f"all {n_asked:,} rows" if n_found == n_asked > 1 else some
    text = f"A change that leads to {goal} was {'not ' if not n_found else ''}found for {some}"
    if n_found:
        text += f", with {figures['n_changes']:.2f} changed features on average"
    if n_asked < len(answers):
        text += f"; {len(answers) - n_asked:,} of {len(answers):,} rows had nothing to search for"
    return text + "."


def _released(answers: Explanations, schema: Schema) -> list[str]:
    figures = overview(answers)
    n_asked, n_released = int(figures["asked"]), int(figures["released"])
    if not n_released:
        if not figures["found"] or not schema.immutable or not keeps_immutables(answers, schema):
            return []
        names = joined([str(name) for name in schema.immutable])
        return [f"Every row with a counterfactual has one that keeps the immutable features ({names})."]
    counts = [f"{line.feature} for {line.n_rows:,}" for line in released(answers, schema).itertuples() if line.n_rows]
    return [
        f"For {n_released:,} of {n_asked:,} rows ({_percent(n_released / n_asked)}), a counterfactual is found only if "
        f"an immutable feature changes: {joined(counts)}."
    ]


def _features(answers: Explanations, schema: Schema) -> list[str]:
    counted = changes_by_feature(answers, schema)
    counted = counted[counted["count"] > 0].head(3)
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
    by = converter_of(column)
    up, down = ("later", "earlier") if holds(by) in MOMENTS else ("up", "down")
    way, unit = up if line.up >= line.down else down, size_unit(by)
    size = f"{rounded(line.median_size)} {unit}".rstrip()
    return f", {way} in {_percent(max(line.up, line.down))} of these, median change {size}"


def _pairs(answers: Explanations) -> list[str]:
    together = pairs(answers)
    enough = together[together["count"] >= FEW // 4]
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
    stability = answers.batch.stability
    if stability is None or not len(stability):
        return []
    shares = stability[first_found(answers)]
    return [
        f"After retraining, {_percent(shares.mean())} of the counterfactuals hold: the mean share of "
        f"{answers.n_members} retrained models that agree. "
        f"All of them agree on {(shares == 1).sum():,} of {len(shares):,}."
    ]


def _percent(share: float) -> str:
    return "-" if pd.isna(share) else f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"
