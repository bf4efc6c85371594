"""What the tested gaps say, in words: a verdict per column, and a sentence per clear difference.

    {column: gaps}  ->  corrected  ->  verdicts, claim_sentences

A difference is clear where it survives the correction for all comparisons of the audit (decision 0069). One that is not
clear is not "no difference": the verdict says how large a difference could have gone unnoticed.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from onbmacf._text.wording import quoted
from onbmacf.audit.arguments import typed
from onbmacf.audit.pairwise import LEAST, LEVEL, corrected

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


class Verdict(NamedTuple):
    """What the audit says about one column.

    Attributes
    ----------
    by : str
        The column.
    kind : {"clear difference", "no clear difference", "too few rows", "one group"}
        The verdict.
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
def verdicts(gaps: Mapping[str, pd.DataFrame], level: float = LEVEL) -> list[Verdict]:
    """Return a verdict for each column by which rows were grouped.

    Parameters
    ----------
    gaps : mapping of str to DataFrame
        What `burden_gaps` or `decision_gaps` returned, by the name of the column.
    level : float, default 0.05
        How often an audit without any difference may state one.

    Returns
    -------
    list of Verdict
        In the order given.

    Examples
    --------
    >>> audit.verdicts({"famhist": audit.burden_gaps(answers, "famhist")})[0].kind
    'too few rows'

    """
    claims = corrected(gaps, level)
    return [_verdict(name, frame, claims[claims["by"] == name]) for name, frame in gaps.items()]


def claim_sentences(gaps: Mapping[str, pd.DataFrame], level: float = LEVEL) -> list[str]:
    """Return a sentence per column and measure with a clear difference, the largest first, then the other verdicts."""
    claims = corrected(gaps, level)
    clear = claims[claims["clear"]].drop_duplicates(["by", "measure"])
    others = [verdict.sentence for verdict in verdicts(gaps, level) if verdict.kind != CLEAR]
    return [*(claim_sentence(line) for line in clear.itertuples()), *others]


def claim_sentence(line: Any) -> str:
    """Return a line of `corrected` as a sentence."""
    gap, low, high = (in_unit(line.measure, size) for size in _sizes(line))
    first, second = (value_in_words(line.measure, value) for value in (line.mean, line.mean_other))
    group, other = quoted(line.group), quoted(line.other)
    if line.measure in SHARES:
        fact = f"{AMONG.get(line.measure, '')}{first} of {group} {SHARES[line.measure]}, against {second} of {other}"
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


def _sizes(line: Any) -> tuple[float, float, float]:
    """Return the gap and its interval without their sign; an interval with 0 in it keeps the sign of its lower end."""
    ends = (line.low, line.high) if line.gap > 0 else (-line.high, -line.low)
    return abs(line.gap), float(ends[0]), float(ends[1])


def _verdict(name: str, frame: pd.DataFrame, claims: pd.DataFrame) -> Verdict:
    if not len(frame):
        return Verdict(
            name, ONE_GROUP, f"By {name}: all rows are in one group, so there is nothing to compare.", claims
        )
    if not len(claims):
        text = f"By {name}: no two groups have at least {LEAST} rows, so no difference between groups is tested."
        return Verdict(name, TOO_FEW, text, claims)
    clear = claims[claims["clear"]]
    if len(clear):
        return Verdict(name, CLEAR, claim_sentence(_telling(clear)), claims)
    text = (
        f"By {name}: no difference between groups of at least {LEAST} rows is clear once all comparisons are taken "
        "together."
    )
    return Verdict(name, NOT_CLEAR, text + _unnoticed(claims), claims)


def _telling(clear: pd.DataFrame) -> Any:
    """Return the claim to tell first: who gets the decision, if that differs more than a little; else the largest."""
    decided = clear[(clear["measure"] == "selected") & (clear["size"] != "small")]
    return next((decided if len(decided) else clear).itertuples())


def _unnoticed(claims: pd.DataFrame) -> str:
    """Return how large a difference could have gone unnoticed, in the first measure that has any spread."""
    half = (claims["high"] - claims["low"]) / 2
    for measure, name in MEASURE_NAMES.items():
        widest = half[(claims["measure"] == measure) & (half > 0) & (half < float("inf"))].max()
        if widest > 0:
            size = f"{in_unit(measure, widest)}{_unit(measure)}"
            return f" A difference of up to {size} in {name} could have gone unnoticed."
    return ""
