"""The results of one row per call as Markdown: first what was aimed at, then every figure.

results (dict)  ->  goals  ->  rows          results  ->  markdown  ->  text
"""

from speed_pipelines import MODELS, TABLES
from speed_report import METHODS, about, shown, table

MOST_CALLS, MOST_CALLS_WORST, MOST_OF_NICE = 12, 18, 2.0
ROUNDING = 1e-9  # two means of the same answers may differ by this much


def markdown(results):
    """Return everything as one page."""
    parts = ["# One row per call\n", f"{about(results['machine'])}\n"]
    if results["quick"]:
        parts.append("A quick run to try the script: these figures mean little.\n")
    parts += ["## Against the targets\n", goal_table(results), "## Every figure\n", figure_table(results["pairs"])]
    return "\n".join(parts)


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
    """Return what one pair is judged by: figures, the ratios among them, and which targets it misses."""
    ours, nice, dice = (measured(found, name) for name in ("ours", "nice", "dice"))
    today = measured(before, "ours")
    judged = {
        "calls": ours.get("calls"),
        "calls_worst": ours.get("calls_worst"),
        "of_nice": over(ours.get("cpu_ms"), nice.get("cpu_ms")),
        "of_dice": over(ours.get("cpu_ms"), dice.get("cpu_ms")),
        "of_before": over(ours.get("cpu_ms"), today.get("cpu_ms")),
        "distance_of_before": farther(ours, today),
        "distance_of_nice": farther(ours, nice),
    }
    return judged | {"missed": missed(judged)}


def farther(ours, theirs):
    """Return the ratio of mean distances over the rows that both answered, or None where there are none."""
    both = [
        pair for pair in zip(ours.get("distances", ()), theirs.get("distances", ()), strict=False) if None not in pair
    ]
    return over(sum(own for own, _ in both), sum(other for _, other in both)) if both else None


LIMITS = {  # the most that is allowed, and how a miss is called
    "calls": (MOST_CALLS, "calls"),
    "calls_worst": (MOST_CALLS_WORST, "worst calls"),
    "of_nice": (MOST_OF_NICE, "time of NICE"),
    "of_dice": (1.0, "time of DiCE"),
    "distance_of_before": (1.0 + ROUNDING, "distance"),
}


def missed(judged):
    """Return the targets that a pair misses, and those that it was not measured by."""
    late = [word for name, (most, word) in LIMITS.items() if judged[name] is not None and judged[name] > most]
    return late + [f"{word}: not measured" for name, (_, word) in LIMITS.items() if judged[name] is None]


def measured(found, name):
    """Return a method's figures; none where it was not measured."""
    figures = found.get(name, {})
    return {} if "failed" in figures else figures


def over(above, below):
    """Return a ratio, or None where either was not measured."""
    return None if above is None or not below else above / below


def goal_table(results):
    """Return one line per pair: the figures that have a target, and the targets missed."""
    heads = ["table", "model", "calls: median / worst", "CPU over NICE's", "over DiCE's", "over the time before"]
    heads += ["distance over the one before", "over NICE's", "missed"]
    lines = []
    for name, model, found, before in pairs_of(results):
        judged = goals(found, before)
        lines.append(
            [
                TABLES[name],
                MODELS[model],
                f"{shown(judged['calls'], 0)} / {shown(judged['calls_worst'], 0)}",
                *(shown(judged[ratio], 2) for ratio in ("of_nice", "of_dice", "of_before")),
                *(shown(judged[ratio], 3) for ratio in ("distance_of_before", "distance_of_nice")),
                ", ".join(judged["missed"]) or "none",
            ]
        )
    return table(heads, lines) + "\n" + verdict(lines) + "\n"


def verdict(lines):
    """Return a sentence that says how many pairs meet every target."""
    met = sum(line[-1] == "none" for line in lines)
    return (
        f"{met} of {len(lines)} pairs meet every target: at most {MOST_CALLS} calls (median) and {MOST_CALLS_WORST} "
        f"(worst), at most {MOST_OF_NICE:g} times NICE's time, less than DiCE's, and no farther than before."
    )


COLUMNS = {  # figure: heading and digits
    "rows": ("explained", 0),
    "calls": ("calls", 0),
    "calls_worst": ("worst", 0),
    "rows_asked": ("rows asked", 0),
    "rows_given": ("handed over", 0),
    "cpu_ms": ("CPU ms", 1),
    "wall_ms": ("wall ms", 1),
    "success": ("success", 2),
    "distance": ("distance", 3),
    "changes": ("changes", 2),
    "plausibility": ("plausibility", 2),
}


def figure_table(pairs):
    """Return one line per pair and method; costs are medians per answer, qualities are means."""
    lines = []
    for name, models in pairs.items():
        for model, found in models.items():
            for method, figures in (methods_of(found) or {"ours": found}).items():
                lines.append([TABLES[name], MODELS[model], METHODS[method], *figure_cells(figures)])
    return table(["table", "model", "method", *(head for head, _ in COLUMNS.values())], lines)


def figure_cells(figures):
    """Return the cells of one method on one pair."""
    if "failed" in figures:
        return [f"not measured: {figures['failed'][:100]}", *[""] * (len(COLUMNS) - 1)]
    return [shown(figures[name], digits) for name, (_, digits) in COLUMNS.items()]
