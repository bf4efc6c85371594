"""Figures as Markdown, and the places of a page that a script fills.

    figures  ->  table  ->  fill (what lies between `<!-- name -->` and `<!-- /name -->`; the words around it stay)

What was not measured is None: it is shown as such, and no ratio is made of it.
"""

QUICK = "A quick run to try the script: these figures mean little.\n\n"


def fill(page, places):
    """Replace what lies between the marks of a page by the text of each place."""
    text = page.read_text(encoding="utf-8")
    for name, part in places.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if start not in text or end not in text:
            raise SystemExit(f"{page.name} has no place between {start.strip()!r} and {end!r}.")
        before, rest = text.split(start, 1)
        text = f"{before}{start}{part.rstrip()}\n{rest[rest.index(end) :]}"
    page.write_text(text, encoding="utf-8")


def table(heads, lines):
    """Return a Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def shown(value, digits):
    """Return a number as text."""
    return "not measured" if value is None else f"{value:,.{digits}f}"


def about(machine):
    """Return a sentence about the machine and the versions."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['date']}, {machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB of memory, "
        f"{machine['system']}, Python {machine['python']}; {versions}."
    )


def over(above, below):
    """Return a ratio, or None where either was not measured."""
    return None if above is None or not below else above / below


def mean(values):
    """Return the mean of what was measured, or None if nothing was."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def spread(values, digits=2):
    """Return the median of what was measured, and its ends, as text."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return "not measured"
    middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
    return f"{middle:.{digits}f} ({known[0]:.{digits}f} to {known[-1]:.{digits}f})"
