"""The results of one row per call as Markdown: first what was aimed at, then every figure.

results (dict)  ->  markdown  ->  text
"""

from speed_goals import (
    MOST_CALLS,
    MOST_CALLS_WORST,
    MOST_OF_NICE,
    MOST_SLOWDOWN,
    farther,
    goals,
    mean,
    measured,
    methods_of,
    over,
    pairs_of,
)
from speed_pipelines import MODELS, TABLES
from speed_report import METHODS, about, shown, table

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


def markdown(results):
    """Return everything that was measured as one page."""
    parts = ["# One row per call: results\n", f"{about(results['machine'])}\n"]
    parts += ["What was measured and how to read it is in [README.md](README.md).\n"]
    if results["quick"]:
        parts.append("A quick run to try the script: these figures mean little.\n")
    for name, (title, section) in SECTIONS.items():
        if name in results:
            parts += [f"## {title}\n", section(results)]
    return "\n".join(parts)


def goal_section(results):
    """Return one line per pair: the figures that have a target, and the targets missed."""
    heads = ["table", "model", "calls: median / worst", "median before", "CPU over NICE's", "over DiCE's"]
    heads += ["distance over the one before", "over NICE's", "missed"]
    lines = []
    for name, model, found, before in pairs_of(results):
        judged = goals(found, before)
        ratios = [("calls_before", 0), ("of_nice", 2), ("of_dice", 2)]
        ratios += [("distance_of_before", 3), ("distance_of_nice", 3)]
        calls = f"{shown(judged['calls'], 0)} / {shown(judged['calls_worst'], 0)}"
        cells = [shown(judged[ratio], digits) for ratio, digits in ratios]
        lines.append([TABLES[name], MODELS[model], calls, *cells, ", ".join(judged["missed"]) or "none"])
    return "\n".join([table(heads, lines), verdict(lines), "## Every figure, one row per call\n", figures(results)])


def verdict(lines):
    """Return a sentence that says how many pairs meet every target."""
    met = sum(line[-1] == "none" for line in lines)
    return (
        f"{met} of {len(lines)} pairs meet every target: at most {MOST_CALLS} calls (median) and {MOST_CALLS_WORST} "
        f"(worst), at most {MOST_OF_NICE:g} times NICE's time, less than DiCE's, and no farther than before.\n"
    )


def figures(results):
    """Return one line per pair and method; costs are medians per answer, qualities are means."""
    lines = []
    for name, models in results["pairs"].items():
        for model, found in models.items():
            for method, values in (methods_of(found) or {"ours": found}).items():
                lines.append([TABLES[name], MODELS[model], METHODS[method], *cells(values, COLUMNS)])
    return table(["table", "model", "method", *(head for head, _ in COLUMNS.values())], lines)


def cells(values, columns):
    """Return the cells of one measurement."""
    if "failed" in values:
        return [f"not measured: {values['failed'][:100]}", *[""] * (len(columns) - 1)]
    return [shown(values[name], digits) for name, (_, digits) in columns.items()]


BUDGET_COLUMNS = {
    "success": ("success", 2),
    "distance": ("distance", 3),
    "of_nice": ("over NICE's", 2),
    "changes": ("changes", 2),
    "plausibility": ("plausibility", 2),
    "calls": ("calls", 0),
    "calls_worst": ("most calls", 0),
    "rows_asked": ("rows asked", 0),
    "rows_asked_worst": ("most rows asked", 0),
}


def budget_section(results):
    """Return the mean of each budget over all tables and models, and then every figure."""
    found = {(TABLES[t], MODELS[m]): lines for t, models in results["budgets"].items() for m, lines in models.items()}
    good = {pair: beside_nice(lines) for pair, lines in found.items() if "failed" not in lines}
    names = list(dict.fromkeys(name for lines in good.values() for name in lines))
    means = {name: averaged([lines[name] for lines in good.values() if name in lines]) for name in names}
    heads = [head for head, _ in BUDGET_COLUMNS.values()]
    every = [[*pair, name, *budget_cells(v)] for pair, lines in good.items() for name, v in lines.items()]
    every += [[*pair, "", *budget_cells(lines)] for pair, lines in found.items() if "failed" in lines]
    short = table(["budget", *heads], [[name, *budget_cells(values)] for name, values in means.items()])
    text = (
        f"Means over {len(good)} pairs of a table and a model (of the columns that begin with *most*: the largest). "
        "*Over NICE's* compares the rows that both answered. Each pair follows below.\n"
    )
    return "\n".join([text, short, at_their_budget(good), table(["table", "model", "budget", *heads], every)])


def at_their_budget(good):
    """Return a sentence that says on how many pairs answers within NICE's own budget are at least as near."""
    ratios = [v["of_nice"] for lines in good.values() for name, v in lines.items() if name.startswith("NICE's")]
    near = sum(ratio is not None and ratio <= 1 for ratio in ratios)
    return (
        f"Within NICE's own budget, the mean answer is at least as near as NICE's on {near} of {len(ratios)} pairs.\n"
    )


def budget_cells(values):
    """Return the cells of one budget; a quality is missing only where no row has an answer."""
    return ["none" if cell == "not measured" else cell for cell in cells(values, BUDGET_COLUMNS)]


def beside_nice(lines):
    """Return the figures of each budget, with the distance over NICE's where both found an answer."""
    return {name: values | {"of_nice": farther(values, lines["NICE"])} for name, values in lines.items()}


def averaged(lines):
    """Return the mean of each figure, and the largest of those that name a maximum."""
    worst = {name for name in BUDGET_COLUMNS if name.endswith("_worst")}
    return {n: (max if n in worst else mean)([values[n] for values in lines]) for n in BUDGET_COLUMNS}


def steady_section(results):
    """Return memory after some of the calls, and the slowest calls beside the median."""
    lines = []
    for name, found in results["steady"].items():
        if "failed" in found:
            lines.append([name, f"not measured: {found['failed'][:100]}", *[""] * 4])
            continue
        memory = " / ".join(shown(value, 1) for value in found["memory_mb"].values())
        times = [shown(found[key], 1) for key in ("median_ms", "p99_ms", "p99_over_median")]
        lines.append([name, " / ".join(f"{int(n):,}" for n in found["memory_mb"]), memory, *times])
    heads = ["table, model", "after calls", "memory in MB", "median CPU ms", "99th percentile", "over the median"]
    return (
        table(heads, lines) + f"\nThe target is at most {MOST_SLOWDOWN:g} times the median, and no growth of memory.\n"
    )


def batch_section(results):
    """Return the time of all rows in one call, now and before."""
    lines, ratios = [], []
    for name, found in results["batches"].items():
        now, before = measured(found, "now"), measured(found, "before")
        ratio = over(before.get("cpu_seconds"), now.get("cpu_seconds"))
        same = "not measured" if ratio is None else "yes" if now["digest"] == before["digest"] else "no"
        counts = [shown(now.get("rows"), 0), shown(each(now), 2), shown(each(before), 2), shown(ratio, 2)]
        calls = [shown(version.get("calls"), 0) for version in (now, before)]
        lines.append([name, *counts, *calls, same])
        ratios.append(ratio)
    heads = ["table, model", "rows", "CPU ms per row", "before", "times as fast", "calls", "before", "same answers"]
    fast = sum(ratio is not None and ratio >= 1 for ratio in ratios)
    return f"{table(heads, lines)}\nThe target is at least 1 on every line; {fast} of {len(lines)} reach it.\n"


def each(found):
    """Return milliseconds per row of a batch."""
    return 1000 * found["cpu_seconds"] / found["rows"] if found else None


SECTIONS = {
    "pairs": ("Against the targets", goal_section),
    "budgets": ("Budgets", budget_section),
    "steady": ("Many calls in a row", steady_section),
    "batches": ("All rows in one call", batch_section),
}
