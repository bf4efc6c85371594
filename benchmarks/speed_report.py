"""Results as Markdown: first the ratios with their targets, then every figure behind them.

results (dict)  ->  ratios  ->  rows          results  ->  markdown  ->  text
"""

NAMES = {"saheart": "heart", "heloc": "heloc", "adult": "adult", "give_me_some_credit": "Give Me Some Credit"}
METHODS = {"ours": "ONBMACF", "paper": "ONBMACF (paper)", "nice": "NICE", "dice": "DiCE"}


def ratios(results):
    """Return the table of ratios and limits: what was measured, the value, and the target."""
    cover = results["cover"]
    first, _, last, *_ = cover["growth"]
    rows = [
        row(
            f"cover of {cover['plain_rows']:,} x 10: the numpy matrix's time over ours",
            over(cover["plain"], cover["fast"], "seconds"),
            "at least 12",
        ),
        row(
            f"cover: time at {last:,} rows over time at {first:,}",
            over(cover["growth"][last], cover["growth"][first], "seconds"),
            "at most 20",
        ),
        row(f"cover of {cover['wide_rows']:,} x 20: peak memory in MB", cover["wide"].get("peak_mb"), "under 600"),
    ]
    if cover["million"] is not None:
        rows.append(row("cover of 1,000,000 x 10: peak memory in MB", cover["million"].get("peak_mb"), "under 4,000"))
    for name, kinds in results["explain"].items():
        for kind, found in kinds.items():
            for rival in ("nice", "dice"):
                what = f"{NAMES[name]}, {kind}: {METHODS[rival]}'s time per explanation over ours"
                ratio = over(per_row(found[rival]), per_row(found["ours"]), "seconds")
                rows.append(row(what, ratio, aim(name, kind, rival)))
    return rows


def aim(name, kind, rival):
    """Return the target for one rival on one dataset and model."""
    if kind == "network":
        return {"nice": "at least 5", "dice": "at least 100"}[rival]
    return "at least 2" if rival == "nice" and name in ("adult", "heloc") else "none set"


def row(what, value, aim):
    """Return one line of the table of ratios."""
    return {"what": what, "value": value, "aim": aim}


def over(above, below, name):
    """Return a ratio, or None where either was not measured."""
    if above is None or below is None or "failed" in above or "failed" in below:
        return None
    return above[name] / below[name]


def per_row(found):
    """Return seconds per explained row."""
    return found if "failed" in found else {"seconds": found["seconds"] / found["rows"]}


def markdown(results):
    """Return everything as one page."""
    parts = [
        "# Speed: results\n",
        f"{about(results['machine'])}\n",
        "Made by `make speed`; what was measured and how to read it is in [README.md](README.md).\n",
        "## Ratios and limits\n",
        table(["what", "measured", "target"], [[r["what"], shown(r["value"], 1), r["aim"]] for r in results["ratios"]]),
        "## The cover\n",
        cover_table(results["cover"]),
        "## Complete datasets, with the network\n",
        whole_table(results["whole"]),
        "## Explanations\n",
        explain_table(results["explain"]),
    ]
    if results["quick"]:
        parts.insert(1, "A quick run to try the script: these figures mean little.\n")
    return "\n".join(parts)


def about(machine):
    """Return a sentence about the machine."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"Machine: {machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB of memory, "
        f"{machine['system']}, Python {machine['python']}; {versions}."
    )


def cover_table(cover):
    """Return every cover measured."""
    measured = [(f"{cover['plain_rows']:,} x 10, numpy matrix", cover["plain"])]
    measured += [(f"{cover['plain_rows']:,} x 10", cover["fast"])]
    measured += [(f"{rows:,} x 10", found) for rows, found in cover["growth"].items()]
    measured += [(f"{cover['wide_rows']:,} x 20", cover["wide"])]
    if cover["million"] is not None:
        measured += [("1,000,000 x 10", cover["million"])]
    lines = [[what, *cells(found, ("seconds", 2), ("peak_mb", 0), ("balls", 0))] for what, found in measured]
    same = cover["plain"].get("digest") == cover["fast"].get("digest")
    verdict = "the same cover, to the bit" if same else "NOT the same cover"
    return table(["table", "seconds", "peak MB", "balls"], lines) + f"\nThe matrix and this package gave {verdict}.\n"


def whole_table(whole):
    """Return the table of datasets that were fitted without subsampling."""
    columns = (
        ("table_rows", 0),
        ("fit_seconds", 2),
        ("explain_seconds", 2),
        ("rows", 0),
        ("answered", 0),
        ("peak_mb", 0),
    )
    heads = ["dataset", "rows", "fit s", "explain s", "explained", "answered", "peak MB"]
    return table(heads, [[NAMES[name], *cells(found, *columns)] for name, found in whole.items()])


def explain_table(explain):
    """Return every method's explanations."""
    heads = ["dataset", "model", "method", "rows", "answered", "ms per row", "per second", "model's share"]
    lines = []
    for name, kinds in explain.items():
        for kind, methods in kinds.items():
            for method, found in methods.items():
                who = f"{METHODS[method]} {found.get('version', '')}".strip()
                lines.append([NAMES[name], kind, who, *speed(found)])
    return table([*heads, "model rows per row", "changes"], lines)


def speed(found):
    """Return the cells of one method on one problem."""
    if "failed" in found:
        return [f"not measured: {found['failed']}", *[""] * 6]
    each = found["seconds"] / found["rows"]
    share = f"{100 * found['model_seconds'] / found['seconds']:.0f} %"
    asked = shown(found["model_rows"] / found["rows"], 0)
    counts = [str(found["rows"]), str(found["reached"])]
    return [*counts, shown(1000 * each, 2), shown(1 / each, 1), share, asked, shown(found["mean_changes"], 2)]


def cells(found, *columns):
    """Return the named figures of a measurement."""
    if "failed" in found:
        return [f"not measured: {found['failed']}", *[""] * (len(columns) - 1)]
    return [shown(found[name], digits) for name, digits in columns]


def shown(value, digits):
    """Return a number as text."""
    return "not measured" if value is None else f"{value:,.{digits}f}"


def table(heads, lines):
    """Return a Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
