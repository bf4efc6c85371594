"""Put the tables of a run into the page about it, between its marks; the words around them stay.

lines  ->  parts_of  ->  write_page (every `<!-- name -->` ... `<!-- end -->` of the page)
"""

import platform
from importlib.metadata import version

from optimum_report import goals, markdown, nearer, summary

LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "torch", "dice-ml")
METHOD = ["method"]


def write_page(path, lines, before):
    """Replace what lies between the marks of a page by the tables of these lines."""
    text = path.read_text(encoding="utf-8")
    for name, part in parts_of(lines, before).items():
        start, rest = text.split(f"<!-- {name} -->\n", 1)
        end = rest[rest.index("<!-- end -->") :]
        text = f"{start}<!-- {name} -->\n{part}\n{end}"
    path.write_text(text, encoding="utf-8")


def parts_of(lines, before):
    """Return the tables by the names of their marks."""
    free, fixed = (lines[lines["question"] == question] for question in ("nothing fixed", "two fixed"))
    models = list(dict.fromkeys(free["model"]))
    everywhere = [method for method, own in free.groupby("method", sort=False) if own["model"].nunique() == len(models)]
    return {
        "run": _run(lines),
        "free": markdown(summary(free[free["method"].isin(everywhere)], METHOD), METHOD),
        "models": "\n\n".join(_of_model(free, model) for model in models),
        "fixed": markdown(summary(fixed, METHOD), METHOD) if len(fixed) else "Not part of this run.",
        "goals": "\n".join(f"- {goal}" for goal in goals(lines, before)),
    }


def _of_model(lines, model):
    return f"**{model}**\n\n" + markdown(summary(lines[lines["model"] == model], METHOD), METHOD)


def _run(lines):
    """Return what else is to be said of a run: versions, proofs, and the check of every answer."""
    once = lines.drop_duplicates(["question", "table", "model", "row"])
    proven = once[once["status"] == "proven"]
    counts = ", ".join(f"{count} {status}" for status, count in once["status"].value_counts().items())
    told = lines["distance"].notna().sum()
    gap = (proven["optimum"] - proven["bound"]).max()
    seconds = proven["seconds"]
    found = [
        ("versions", ", ".join([f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in LIBRARIES)])),
        ("problems", f"{len(once)}: {counts}"),
        (
            "processor time of a proof",
            f"{seconds.median():.2f} s (median), {seconds.max():.1f} s (most)",
        ),
        ("from the bound to the point", f"at most {gap:.0e}"),
        ("changes of the optimum itself", f"{proven['optimum_changes'].mean():.2f} (mean)"),
        ("answers checked against the bound", f"{told}; {len(nearer(lines))} are nearer"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in found)])
