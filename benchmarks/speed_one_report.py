"""The results of speed_one.py as Markdown: one text per place of the page.

results (dict)  ->  places  ->  {"machine", "one-row", "batches", "budgets", "steady"}
"""

from speed_page import QUICK, about, mean, over, shown, spread, table
from speed_pipelines import MODELS, TABLES

METHODS = {"ours": "called", "ours_read": "read", "nice": "NICE", "dice": "DiCE"}
NOT_READ = "cannot be read"


def places(results):
    """Return the text of every part that was measured, by the name of its place."""
    found = {"machine": f"{about(results['machine'])}\n"}
    for part, (name, section) in SECTIONS.items():
        if part in results:
            found[name] = QUICK * results["quick"] + section(results[part])
    return found


def one_row(pairs):
    """Return one line per pair, and sentences about all of them."""
    heads = ["table", "model", "calls, median / worst", "read", "rows, median", "read", "time over NICE's", "read"]
    heads += ["distance over NICE's"]
    lines, judged, failed = [], [], []
    for name, model, found in each_pair(pairs):
        ours, read, nice, dice = (measured(found, method) for method in METHODS)
        ratios = {"ours": over(ours.get("cpu_ms"), nice.get("cpu_ms")), "apart": farther(ours, nice)}
        ratios |= {"read": over(read.get("cpu_ms"), nice.get("cpu_ms")) if read.get("is_read") else None}
        ratios |= {"dice": over(ours.get("cpu_ms"), dice.get("cpu_ms"))}
        judged.append(ratios | {"worst": ours.get("calls_worst")})
        cells = [calls(ours), told(read, calls(read)), shown(ours.get("rows_given"), 0)]
        cells += [told(read, shown(read.get("rows_given"), 0)), shown(ratios["ours"], 2)]
        cells += [told(read, shown(ratios["read"], 2)), shown(ratios["apart"], 2)]
        lines.append([TABLES[name], MODELS[model], *cells])
        failed += failures(f"{TABLES[name]}, {MODELS[model]}", found)
    return f"{table(heads, lines)}\n{summary(judged)}{''.join(failed)}"


def summary(judged):
    """Return what the pairs have in common: medians, and the ends."""
    worst = max((ratios["worst"] for ratios in judged if ratios["worst"] is not None), default=None)
    spreads = {name: spread([ratios[name] for ratios in judged]) for name in ("ours", "read", "dice", "apart")}
    return (
        f"Over these {len(judged)} pairs, median (least to most): time over NICE's {spreads['ours']}, where the model "
        f"is read {spreads['read']}; time over DiCE's {spreads['dice']}; distance over NICE's {spreads['apart']}. "
        f"No answer took more than {shown(worst, 0)} calls.\n"
    )


def each_pair(pairs):
    """Yield table, model and the figures of each method; of none if the whole pair failed."""
    for name, models in pairs.items():
        for model, found in models.items():
            yield name, model, found.get("methods") or {"ours": found}


def measured(found, name):
    """Return a method's figures; none where it was not measured."""
    figures = found.get(name, {})
    return {} if "failed" in figures else figures


def failures(pair, found):
    """Return a sentence for each method that failed."""
    said = {METHODS[name]: own["failed"][:100] for name, own in found.items() if "failed" in own}
    return [f"\nNot measured: {pair}, {name}: {why}\n" for name, why in said.items()]


def told(read, cell):
    """Return a cell of the model that is read, unless it could not be."""
    return NOT_READ if read and not read.get("is_read") else cell


def calls(own):
    """Return the median and the largest number of calls."""
    return f"{shown(own.get('calls'), 0)} / {shown(own.get('calls_worst'), 0)}" if own else "not measured"


def farther(ours, theirs):
    """Return the ratio of mean distances over the rows that both answered, or None where there are none."""
    each = zip(ours.get("distances", ()), theirs.get("distances", ()), strict=False)
    both = [pair for pair in each if None not in pair]
    return over(sum(own for own, _ in both), sum(other for _, other in both)) if both else None


def batches(found):
    """Return the time of many rows in one call, and how many times as fast as NICE that is."""
    heads = ["table, model", "rows", "CPU ms per row", "read", "NICE", "times as fast as NICE", "read", "calls", "read"]
    lines, ratios, failed = [], [], []
    for name, methods in found.items():
        methods = {"ours": methods} if "failed" in methods else methods
        ours, read, nice = (measured(methods, method) for method in ("ours", "ours_read", "nice"))
        fast, fast_read = over(per_row(nice), per_row(ours)), over(per_row(nice), per_row(read))
        cells = [shown(ours.get("rows"), 0), shown(per_row(ours), 2), told(read, shown(per_row(read), 2))]
        cells += [shown(per_row(nice), 2), shown(fast, 1), told(read, shown(fast_read, 1))]
        cells += [shown(ours.get("calls"), 0), told(read, shown(read.get("calls"), 0))]
        lines.append([name, *cells])
        failed += failures(name, methods)
        ratios.append((name.endswith("file"), fast, fast_read if read.get("is_read") else None))
    own, own_read = (spread([ratio[place] for ratio in ratios if not ratio[0]], 1) for place in (1, 2))
    files = spread([fast for is_file, fast, _ in ratios if is_file], 1)
    return (
        f"{table(heads, lines)}\nTimes as fast as NICE, median (least to most): {own} with pipelines, {own_read} where "
        f"they are read, {files} with models as files.\n{''.join(failed)}"
    )


def per_row(found):
    """Return milliseconds per row of a batch."""
    return 1000 * found["cpu_seconds"] / found["rows"] if found else None


BUDGET_COLUMNS = {  # figure: heading and digits
    "success": ("success", 2),
    "of_nice": ("distance over NICE's", 2),
    "changes": ("changes", 2),
    "calls": ("calls", 0),
    "calls_worst": ("most calls", 0),
    "rows_asked": ("rows", 0),
    "rows_asked_worst": ("most rows", 0),
}


def budgets(found):
    """Return the mean of each budget over all tables and models."""
    every = {(name, model): lines for name, models in found.items() for model, lines in models.items()}
    good = {pair: beside_nice(lines) for pair, lines in every.items() if "failed" not in lines}
    names = list(dict.fromkeys(name for lines in good.values() for name in lines))
    means = {name: averaged([lines[name] for lines in good.values() if name in lines]) for name in names}
    heads = [head for head, _ in BUDGET_COLUMNS.values()]
    lines = [
        [name, *(shown(values[key], digits) for key, (_, digits) in BUDGET_COLUMNS.items())]
        for name, values in means.items()
    ]
    text = f"Means over {len(good)} pairs of a table and a model; of the columns that begin with *most*, the largest."
    said = f"{text}\n\n{table(['budget', *heads], lines)}\n{at_their_budget(good)}"
    failed = [failures(f"{TABLES[name]}, {MODELS[model]}", {"ours": lines}) for (name, model), lines in every.items()]
    return said + "".join(sentence for sentences in failed for sentence in sentences)


def at_their_budget(good):
    """Return a sentence that says on how many pairs answers within NICE's own budget are at least as near."""
    ratios = [v["of_nice"] for lines in good.values() for name, v in lines.items() if name.startswith("NICE's")]
    near = sum(ratio is not None and ratio <= 1 for ratio in ratios)
    return f"Within NICE's own budget, answers are at least as near as NICE's on {near} of {len(ratios)} pairs.\n"


def beside_nice(lines):
    """Return the figures of each budget, with the distance over NICE's where both found an answer."""
    return {name: values | {"of_nice": farther(values, lines["NICE"])} for name, values in lines.items()}


def averaged(lines):
    """Return the mean of each figure, and the largest of those that name a maximum."""
    worst = {name for name in BUDGET_COLUMNS if name.endswith("_worst")}
    return {n: (max if n in worst else mean)([values[n] for values in lines]) for n in BUDGET_COLUMNS}


def steady(found):
    """Return memory after some of the calls, and the slowest calls beside the median."""
    lines = []
    for name, own in found.items():
        if "failed" in own:
            lines.append([name, f"not measured: {own['failed'][:100]}", *[""] * 4])
            continue
        memory = " / ".join(shown(value, 1) for value in own["memory_mb"].values())
        times = [shown(own[key], 1) for key in ("median_ms", "p99_ms", "p99_over_median")]
        lines.append([name, " / ".join(f"{int(n):,}" for n in own["memory_mb"]), memory, *times])
    heads = ["table, model", "after calls", "memory in MB", "median CPU ms", "99th percentile", "over the median"]
    return table(heads, lines)


SECTIONS = {
    "pairs": ("one-row", one_row),
    "batches": ("batches", batches),
    "budgets": ("budgets", budgets),
    "steady": ("steady", steady),
}
