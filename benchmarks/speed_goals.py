"""What one row per call is judged by: ratios of measured figures, and the most that each may be.

    figures of a pair, the same of an earlier version  ->  goals  ->  ratios and the targets missed

What was not measured is None and meets no target.
"""

MOST_CALLS, MOST_CALLS_WORST, MOST_OF_NICE, MOST_SLOWDOWN = 12, 18, 2.0, 3.0
ROUNDING = 1e-9  # two means of the same answers may differ by this much
LIMITS = {  # the most that is allowed, and what a miss is called
    "calls": (MOST_CALLS, "calls"),
    "calls_worst": (MOST_CALLS_WORST, "worst calls"),
    "of_nice": (MOST_OF_NICE, "time of NICE"),
    "of_dice": (1.0, "time of DiCE"),
    "distance_of_before": (1.0 + ROUNDING, "distance"),
}


def pairs_of(results):
    """Yield table, model, the methods' figures, and the same of the baseline: none where the labels were others."""
    before = results.get("baseline", {})
    for name, models in results["pairs"].items():
        for model, found in models.items():
            earlier = before.get(name, {}).get(model, {})
            same = earlier.get("labels") == found.get("labels")
            yield name, model, methods_of(found), methods_of(earlier) if same else {}


def methods_of(pair):
    """Return the figures of each method of a pair; of none if the whole pair failed."""
    return pair.get("methods", {})


def goals(found, before):
    """Return what one pair is judged by, and which targets it misses."""
    ours, nice, dice = (measured(found, name) for name in ("ours", "nice", "dice"))
    today = measured(before, "ours")
    judged = {
        "calls": ours.get("calls"),
        "calls_worst": ours.get("calls_worst"),
        "calls_before": today.get("calls"),
        "of_nice": over(ours.get("cpu_ms"), nice.get("cpu_ms")),
        "of_dice": over(ours.get("cpu_ms"), dice.get("cpu_ms")),
        "distance_of_before": farther(ours, today),
        "distance_of_nice": farther(ours, nice),
    }
    return judged | {"missed": missed(judged)}


def missed(judged):
    """Return the targets that a pair misses, and those that it was not measured by."""
    late = [word for name, (most, word) in LIMITS.items() if judged[name] is not None and judged[name] > most]
    return late + [f"{word}: not measured" for name, (_, word) in LIMITS.items() if judged[name] is None]


def farther(ours, theirs):
    """Return the ratio of mean distances over the rows that both answered, or None where there are none."""
    each = zip(ours.get("distances", ()), theirs.get("distances", ()), strict=False)
    both = [pair for pair in each if None not in pair]
    return over(sum(own for own, _ in both), sum(other for _, other in both)) if both else None


def measured(found, name):
    """Return a method's figures; none where it was not measured."""
    figures = found.get(name, {})
    return {} if "failed" in figures else figures


def over(above, below):
    """Return a ratio, or None where either was not measured."""
    return None if above is None or not below else above / below


def mean(values):
    """Return the mean of what was measured, or None if nothing was."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
