"""Write a run's tables and plots.

folder of a run  ->  write_report  ->  CSV files, report.md, tables.tex, radar plots (SVG and PNG)
"""

from pathlib import Path
from typing import Any

import pandas as pd

from onbmacf import plots as drawing
from onbmacf._base.files import write_atomically
from onbmacf._text.frames import as_csv, as_latex, as_markdown
from onbmacf.bench import tables
from onbmacf.bench.cells import collect, digest, read_manifest, summary

KEYS = ["dataset", "method"]
AXIS_NAMES = {
    "l0": "L0",
    "l1": "L1",
    "l2": "L2",
    "linf": "L∞",
    "violations": "violations",
    "redundancy": "redundancy",
    "ynn": "yNN",
    "success_rate": "success",
}
EXTRA = ["stability", "redundancy_columns", "data_distance", "pairwise_distance", "distinct_changes", "n_ways"]


def write_report(folder: Path, out: Path, *, plots: bool = True) -> list[Path]:
    """Write everything about the run in `folder` to `out`; return the files."""
    lines, cells = collect(folder)
    result = summary(lines, cells)
    named = _tables(lines, result)
    texts = {f"{name}.csv": as_csv(table) for name, (_, table) in named.items()}
    printed = _printed(named)
    sections = [f"## {title}\n\n{as_markdown(table)}" for title, table in printed]
    texts["report.md"] = "\n".join(["# Benchmark report\n", _about(folder, lines, cells), *sections])
    texts["tables.tex"] = "\n".join(as_latex(table, title) for title, table in printed)
    for name, text in texts.items():
        write_atomically(out / name, text.encode())
    drawn = _draw(named["raw_results"][1], out) if plots else []
    return [*(out / name for name in texts), *drawn]


def _tables(lines: pd.DataFrame, result: pd.DataFrame) -> dict[str, tuple[str, pd.DataFrame]]:
    """Return title and table by file name."""
    raw = result[KEYS + tables.METRICS]
    average = tables.average_results(raw)
    times = result[[*KEYS, "n_factuals", "fit_seconds", "explain_seconds", "average_time"]]
    problems = result.loc[result["status"] != "done", [*KEYS, "status", "error"]]
    features = {row.dataset: row.features for row in result.itertuples() if isinstance(row.features, list)}
    return {
        "raw_results": ("Results per dataset", raw),
        "average_results": ("Scaled results, averaged over datasets", average),
        "times": ("Seconds: preparation, all explanations, one explanation", times),
        "average_time": ("Scaled time, averaged over datasets", tables.average_time(times)),
        "average_stability": ("Counterfactuals that hold after retraining", tables.average_stability(result)),
        "more_metrics": ("Further metrics, not in the paper", result[KEYS + EXTRA]),
        "feature_changes": ("Counterfactuals that change a feature", tables.feature_changes(lines, features)),
        "feature_pairs": ("Features most often changed together", tables.feature_pairs(lines)),
        "single_changes": ("Features most often changed alone", tables.single_changes(lines)),
        "comparison": (
            "This run compared with the paper",
            tables.compare(raw, tables.paper_table("raw_results"), KEYS),
        ),
        "average_comparison": (
            "Averages compared with the paper",
            tables.compare(average, tables.paper_table("average_results"), ["method"]),
        ),
        "problems": ("Cells without a result", problems),
    }


def _printed(named: dict[str, tuple[str, pd.DataFrame]]) -> list[tuple[str, pd.DataFrame]]:
    """Return the tables as printed: the raw one split by dataset, empty ones left out."""
    parts: list[tuple[str, pd.DataFrame]] = []
    for title, table in named.values():
        if title == named["raw_results"][0]:
            groups = table.groupby("dataset", sort=False)
            parts += [(f"Results for {name}", part.drop(columns="dataset")) for name, part in groups]
        elif len(table):
            parts.append((title, table))
    return parts


def _about(folder: Path, lines: pd.DataFrame, cells: pd.DataFrame) -> str:
    manifest = read_manifest(folder)
    versions = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
    done = int((cells["status"] == "done").sum())
    seeds, factuals = (
        ", ".join(sorted({str(cell[setting]) for cell in manifest["cells"]})) for setting in ("seed", "n_factuals")
    )
    return (
        f"{len(cells)} cells, {done} with a result. Versions: {versions}. Seeds: {seeds}; "
        f"factuals at most {factuals}. Digest of the results: `{digest(lines, cells)}`.\n"
    )


def radar(scores: pd.DataFrame, title: str = "", ax: Any = None) -> Any:
    """Draw one closed line per method over the eight metrics; return the Axes."""
    return drawing.radar(scores, AXIS_NAMES, own="ONB-MACF", title=title, ax=ax)


def _draw(raw: pd.DataFrame, out: Path) -> list[Path]:
    from matplotlib.figure import Figure

    scores = {str(name): part for name, part in tables.scaled(raw).groupby("dataset", sort=False)}
    drawn = []
    for name, part in {**scores, "average": tables.average_results(raw)}.items():
        figure = radar(part, name, ax=Figure()).figure
        for suffix in ("svg", "png"):
            path = out / f"radar_{name}.{suffix}"
            figure.savefig(path, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
            drawn.append(path)
    return drawn
