"""A run's tables and plots, as the paper has them.

    folder of a run  ->  write_report  ->  CSV files, report.md, tables.tex, radar plots (SVG and PNG)

    raw (dataset, method, eight metrics)  ->  scaled  ->  average_results        times  ->  average_time
    lines (one per factual)               ->  feature_changes, feature_pairs

The paper scales each metric within a dataset by the largest value of any method: 1 - value / largest where less is
better, value / largest where more is better, and 1 for every method where the largest is 0. A method's score is its
mean over the datasets where it has a value: "Na" is left out, not counted as 0.
"""

from collections.abc import Callable, Iterable
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import plots as drawing
from onbmacf._base.files import write_atomically
from onbmacf._text.frames import as_csv, as_latex, as_markdown
from onbmacf.bench.cells import collect, digest, read_manifest, summary

LESS_IS_BETTER = {
    "l0": True,
    "l1": True,
    "l2": True,
    "linf": True,
    "violations": True,
    "redundancy": True,
    "ynn": False,
    "success_rate": False,
}
METRICS = list(LESS_IS_BETTER)

Events = Callable[[list[str]], Iterable[str]]  # what one counterfactual adds to the counts
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
    raw = result[KEYS + METRICS]
    average = average_results(raw)
    times = result[[*KEYS, "n_factuals", "fit_seconds", "explain_seconds", "average_time"]]
    problems = result.loc[result["status"] != "done", [*KEYS, "status", "error"]]
    features = {row.dataset: row.features for row in result.itertuples() if isinstance(row.features, list)}
    return {
        "raw_results": ("Results per dataset", raw),
        "average_results": ("Scaled results, averaged over datasets", average),
        "times": ("Seconds: preparation, all explanations, one explanation", times),
        "average_time": ("Scaled time, averaged over datasets", average_time(times)),
        "average_stability": ("Counterfactuals that hold after retraining", average_stability(result)),
        "more_metrics": ("Further metrics, not in the paper", result[KEYS + EXTRA]),
        "feature_changes": ("Counterfactuals that change a feature", feature_changes(lines, features)),
        "feature_pairs": ("Features most often changed together", feature_pairs(lines)),
        "single_changes": ("Features most often changed alone", single_changes(lines)),
        "comparison": (
            "This run compared with the paper",
            compare(raw, paper_table("raw_results"), KEYS),
        ),
        "average_comparison": (
            "Averages compared with the paper",
            compare(average, paper_table("average_results"), ["method"]),
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

    scores = {str(name): part for name, part in scaled(raw).groupby("dataset", sort=False)}
    drawn = []
    for name, part in {**scores, "average": average_results(raw)}.items():
        figure = radar(part, name, ax=Figure()).figure
        for suffix in ("svg", "png"):
            path = out / f"radar_{name}.{suffix}"
            figure.savefig(path, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
            drawn.append(path)
    return drawn


# --- tables -----------------------------------------------------------------------------------------------------------


def paper_table(name: str) -> pd.DataFrame:
    """Return one of the paper's own tables: raw_results, average_results, average_time, feature_changes."""
    with files("onbmacf.bench").joinpath("reference", f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def scaled(raw: pd.DataFrame, less_is_better: dict[str, bool] = LESS_IS_BETTER) -> pd.DataFrame:
    """Scale each metric to 0..1 (1 is best) within each dataset."""
    scores = raw.copy()
    largest = raw.groupby("dataset")[list(less_is_better)].transform("max")
    for metric, less in less_is_better.items():
        share = raw[metric] / largest[metric].where(largest[metric] > 0)
        score = 1.0 - share if less else share
        scores[metric] = score.where(largest[metric] > 0, 1.0).where(raw[metric].notna())
    return scores


def average_results(raw: pd.DataFrame) -> pd.DataFrame:
    """Return each method's mean scores and their mean, in the order of first appearance."""
    scores = scaled(raw).groupby("method", sort=False)[METRICS].mean()
    scores["overall_mean"] = scores.mean(axis=1)
    return scores.reset_index()


def average_time(times: pd.DataFrame) -> pd.DataFrame:
    """Return each method's mean scaled time from (dataset, method, average_time)."""
    scores = scaled(times, {"average_time": True})
    return scores.groupby("method", sort=False)["average_time"].mean().reset_index()


def average_stability(result: pd.DataFrame) -> pd.DataFrame:
    """Return each method's share of counterfactuals that hold after retraining, beside their L1; means over datasets.

    Where the networks were not trained again there are no lines.
    """
    means = result.dropna(subset="stability").groupby("method", sort=False)[["stability", "l1"]].mean()
    return means.reset_index()


def feature_changes(lines: pd.DataFrame, features: dict[str, list[str]]) -> pd.DataFrame:
    """Count, per dataset, feature and method, the counterfactuals that change the feature.

    `lines` has dataset, method and `changed` (a list of feature names, None where nothing was found).
    """
    counted = _count(lines, lambda changed: changed)
    methods, counts = list(lines["method"].drop_duplicates()), []
    for dataset, names in features.items():
        ran = set(lines.loc[lines["dataset"] == dataset, "method"])
        for feature in names:
            by_method = {m: counted.get((dataset, m, feature), 0) if m in ran else np.nan for m in methods}
            counts.append({"dataset": dataset, "feature": feature, **by_method})
    return pd.DataFrame(counts)


def feature_pairs(lines: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """Return each dataset's and method's most frequent pairs of features changed together."""
    return _most_frequent(lines, lambda changed: (" + ".join(pair) for pair in combinations(changed, 2)), most)


def single_changes(lines: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """Return the features that are most often the only change of a counterfactual."""
    return _most_frequent(lines, lambda changed: changed if len(changed) == 1 else (), most)


def compare(ours: pd.DataFrame, theirs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Put two tables side by side: each metric as ours, the paper's, and the difference."""
    both = ours.merge(theirs, on=keys, how="left", suffixes=("", "_paper"))
    columns = list(keys)
    for metric in (name for name in ours.columns if name not in keys and name in theirs.columns):
        both[f"{metric}_difference"] = both[metric] - both[f"{metric}_paper"]
        columns += [metric, f"{metric}_paper", f"{metric}_difference"]
    return both[columns]


def _count(lines: pd.DataFrame, events: Events) -> dict[tuple[str, str, str], int]:
    counts: dict[tuple[str, str, str], int] = {}
    for dataset, method, changed in zip(lines["dataset"], lines["method"], lines["changed"], strict=True):
        for event in events(changed) if changed is not None else ():
            key = (dataset, method, event)
            counts[key] = counts.get(key, 0) + 1
    return counts


def _most_frequent(lines: pd.DataFrame, events: Events, most: int) -> pd.DataFrame:
    counted = _count(lines, events)
    rows = [(*key, count) for key, count in counted.items()]
    table = pd.DataFrame(rows, columns=["dataset", "method", "features", "count"])
    order = table.sort_values(["dataset", "method", "count", "features"], ascending=[True, True, False, True])
    return order.groupby(["dataset", "method"], sort=False).head(most).reset_index(drop=True)
