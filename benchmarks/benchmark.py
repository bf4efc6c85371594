"""The whole of docs/benchmark: runs what is missing, then writes every table, figure and number of the page.

    python benchmarks/benchmark.py [--folder build/benchmark] [--jobs 2] [--page PAGE] [--only design,write]

    design (28 tables, 10 seeds, 3 models)  ->  comparison_*.csv, figures, the page's tables
    paper (its eight tables, as in its own comparison)  ->  report.md, CSV files, radars, its four questions
    several (ten counterfactuals of one row)  ->  ten_counterfactuals.csv

Runs are resumed: what is there is not computed again. `--only write` computes nothing.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd

from common import fill, machine, table
from onbmacf.bench import comparison, qualitative
from onbmacf.bench.cells import MANIFEST, collect, digest, read_manifest, summary
from onbmacf.bench.design import OWN
from onbmacf.bench.report import METRICS, average_results, average_time, feature_changes, paper_table, write_report

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmark" / "README.md"
RUNS = {
    "design": ["--design", "--time-limit", "120"],
    "paper": ["--retrainings", "0", "--noisy", "0"],
    "several": ["--counterfactuals", "10", "--factuals", "20", "--retrainings", "0", "--noisy", "0"],
}
RUNS["several"] += ["--methods", "DICE,ONB-MACF+"]
NAMES = {
    "l0": "L0",
    "l1": "L1",
    "l2": "L2",
    "linf": "Linf",
    "violations": "violations",
    "redundancy": "redundancy",
    "ynn": "yNN",
    "success_rate": "success",
    "overall_mean": "overall",
}
VIEWS = ("network", "forest", "boosting")
QUALITATIVE = ("irish", "saheart", "titanic", "wine")
TELLING = ("GS", "NICE", "ONB-MACF", OWN)  # the paper's three, and this package's own search


def main():
    """Run and write what is asked for."""
    options = parsed()
    for name in options.only:
        if name in RUNS:
            run(name, options)
    if "write" in options.only:
        write(options.folder, options.page)


def parsed():
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=HERE.parent / "build" / "benchmark")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[*RUNS, "write"])
    return parser.parse_args()


def run(name, options):
    """Compute the cells of a run that are not there yet."""
    words = ["bench", "run", "--folder", options.folder / name, "--jobs", options.jobs, *RUNS[name]]
    subprocess.run([sys.executable, "-m", "onbmacf", *map(str, words)], check=True)


def write(folder, page):
    """Write all files beside the page, and the page's places; what belongs to an unfinished run stays as it is."""
    out = page.parent
    places = {}
    if is_complete(folder / "design"):
        comparison.write(folder / "design", out)
        places |= of_design(comparison.tables(comparison.load(folder / "design")), folder / "design")
    if is_complete(folder / "paper"):
        write_report(folder / "paper", out)
        places |= of_paper(folder / "paper")
    if is_complete(folder / "several"):
        places |= of_several(folder / "several", out)
    fill(page, places)


def is_complete(folder):
    """Return whether a run is there and no cell of it is missing."""
    return (folder / MANIFEST).is_file() and "missing" not in set(collect(folder)[1]["status"])


# --- the comparison ---------------------------------------------------------------------------------------------------


def of_design(made, folder):
    """Return the page's tables on the comparison."""
    scores, margins, ranks = (made[f"comparison_{name}"] for name in ("intervals", "differences", "ranks"))
    cells = made["comparison_cells"]
    return {
        "run": run_facts(folder),
        "scores": score_table(scores, ranks, "test", "all models"),
        "margins": margin_table(margins, "test", "all models"),
        "per metric": metric_table(margins, "test", "all models"),
        "scalings": scaling_table(scores, margins),
        "models": model_table(scores),
        "tuning": tuning_table(scores, margins),
        "known": known_table(cells),
        "every method": score_table(scores, ranks, "test", "every method"),
        "beyond": beyond_table(cells),
        "accuracy": accuracy_table(made["comparison_models"]),
        "tests": test_sentence(ranks),
    }


def run_facts(folder):
    """Return what ran, on what, and how long."""
    lines, cells = collect(folder)
    seconds = cells["fit_seconds"].sum() + cells["explain_seconds"].sum()
    counts = cells["status"].value_counts()
    failed = cells.loc[cells["status"] != "done"]
    on = machine()
    rows = [
        ["cells", ", ".join(f"{count:,} {status}" for status, count in counts.items())],
        ["factuals", f"{len(lines):,} asked, at most {cells['n_factuals'].max():.0f} per cell"],
        ["methods' own time", f"{seconds / 60:.0f} minutes of one core"],
        ["versions", ", ".join(f"{name} {number}" for name, number in read_manifest(folder)["versions"].items())],
        [
            "machine, date",
            f"{on['cores']} cores of {on['processor']}, {on['memory_gb']} GB, {on['system']}; {on['date']}",
        ],
        ["digest", f"`{digest(lines, cells)}`"],
    ]
    if len(failed):
        why = failed.groupby(["method", "status"]).size()
        rows.insert(1, ["without a result", ", ".join(f"{m}: {n} {s}" for (m, s), n in why.items())])
    return table(["", ""], rows)


def part(frame, group, view, scaling="paper", metric=None):
    """Return the lines of a view; of one metric, by method."""
    chosen = frame[(frame["group"] == group) & (frame["view"] == view) & (frame["scaling"] == scaling)]
    return chosen if metric is None else chosen[chosen["metric"] == metric].set_index("method")


def score_table(scores, ranks, group, view):
    """Return the paper's table, with an interval and a rank for the mean."""
    overall, rank = (part(frame, group, view, metric="overall_mean") for frame in (scores, ranks))
    wide = part(scores, group, view).pivot_table("mean", "method", "metric", sort=False, dropna=False)
    best = wide.max()
    rows = []
    for method in overall.sort_values("mean", ascending=False).index:
        values = [bold(wide.loc[method, name], best[name]) for name in METRICS]
        line = overall.loc[method]
        mean = f"{bold(line['mean'], best['overall_mean'])} ({number(line['low'])} to {number(line['high'])})"
        rows.append([f"`{method}`", *values, mean, f"{rank.loc[method, 'rank']:.2f}"])
    return table(["method", *(NAMES[name] for name in METRICS), "overall (95 % interval)", "mean rank"], rows)


def margin_table(margins, group, view):
    """Return by how much ONB-MACF+ scores better than each, and how sure that is."""
    rows = []
    for method, line in part(margins, group, view, metric="overall_mean").sort_values("mean").iterrows():
        rows.append([f"`{method}`", spread(line), *(number(line[name]) for name in ("better", "alike", "worse"))])
    return table(["against", "overall score, difference (95 % interval)", "P(better)", "P(alike)", "P(worse)"], rows)


def metric_table(margins, group, view):
    """Return the differences per metric; those whose interval has both signs are in brackets."""
    chosen = part(margins, group, view)
    rows = []
    for method in chosen["method"].drop_duplicates():
        lines = chosen[chosen["method"] == method].set_index("metric")
        rows.append([f"`{method}`", *(signed(lines.loc[name]) for name in METRICS)])
    return table(["against", *(NAMES[name] for name in METRICS)], rows)


def scaling_table(scores, margins):
    """Return the overall score under each scaling, and the verdict against the best of the others."""
    rows = []
    for scaling in comparison.SCALINGS:
        overall = part(scores, "test", "all models", scaling, "overall_mean").sort_values("mean", ascending=False)
        against = part(margins, "test", "all models", scaling, "overall_mean")
        others = [method for method in overall.index if method not in (OWN, "ONB-MACF")]
        rival = against.loc[others[0]]
        order = ", ".join(f"`{method}` {number(line['mean'])}" for method, line in overall.iterrows())
        rows.append([scaling, order, f"`{others[0]}`: {spread(rival)}", number(rival["better"])])
    return table(["scaling", "order of overall scores", "against the best rival", "P(better)"], rows)


def model_table(scores):
    """Return the overall score with each kind of model."""
    parts = [part(scores, "test", view, metric="overall_mean") for view in VIEWS]
    order = parts[0].sort_values("mean", ascending=False).index
    rows = [
        [f"`{method}`", *(interval(frame.loc[method]) if method in frame.index else "" for frame in parts)]
        for method in order
    ]
    return table(["method", *VIEWS], rows)


def tuning_table(scores, margins):
    """Return the overall score on the tables that conclusions are drawn from, and on the others."""
    parts = [part(scores, group, "all models", metric="overall_mean") for group in ("test", "tuning")]
    gaps = [part(margins, group, "all models", metric="overall_mean") for group in ("test", "tuning")]
    order = parts[0].sort_values("mean", ascending=False).index
    rows = []
    for method in order:
        behind = ["" if method == OWN else spread(frame.loc[method]) for frame in gaps]
        rows.append([f"`{method}`", *(interval(frame.loc[method]) for frame in parts), *behind])
    heads = ["method", "20 test tables", "8 tuning tables", f"{OWN} ahead by, test", "tuning"]
    return table(heads, rows)


def known_table(cells):
    """Return what changes where the factuals are rows that everybody knows."""
    network = cells[(cells["model"] == "network") & cells["method"].isin(["NICE", "ONB-MACF", OWN])]
    shown = ["l0", "l1", "ynn", "success_rate", "stability"]
    means = network.groupby(["group", "method", "protocol"])[shown].mean()
    rows = []
    for group in ("test", "tuning"):
        for method in ("NICE", "ONB-MACF", OWN):
            pairs = [means.loc[(group, method, protocol)] for protocol in ("unknown", "known")]
            rows.append([group, f"`{method}`", *(f"{number(pairs[0][m])} / {number(pairs[1][m])}" for m in shown)])
    return table(["tables", "method", "L0", "L1", "yNN", "success", "stability"], rows)


def beyond_table(cells):
    """Return what is no part of the paper's mean: on the test tables, the network, means over tables."""
    shown = ["l1", "stability", "steadiness", "lof", "isolation", "fifth_distance"]
    chosen = cells[(cells["group"] == "test") & (cells["protocol"] == "unknown") & (cells["model"] == "network")]
    by_method = chosen.groupby("method")
    means, seconds, seeds = by_method[shown].mean(), by_method["average_time"].median(), by_method["seeds"].max()
    order = means["l1"].sort_values().index
    rows = [
        [f"`{m}`", f"{seeds[m]}", *(number(means.loc[m, name]) for name in shown), f"{1000 * seconds[m]:,.1f}"]
        for m in order
    ]
    heads = ["method", "seeds", "L1", "stability", "steadiness", "LOF", "isolation", "fifth neighbour"]
    return table([*heads, "ms per row (median)"], rows)


def accuracy_table(models):
    """Return how good the models are."""
    rows = [
        [line.dataset, line.group, *(number(getattr(line, view)) for view in VIEWS), f"{line.factuals:.1f}"]
        for line in models.itertuples()
    ]
    return table(["table", "group", *VIEWS, "factuals per cell"], rows)


def test_sentence(ranks):
    """Return Friedman's p and the critical difference per view, in words."""
    said = []
    for view in ("all models", *VIEWS, "every method"):
        lines = part(ranks, "test", view, metric="overall_mean")
        if len(lines):
            first = lines.iloc[0]
            said.append(
                f"{view}: p = {first['friedman_p']:.1e}, critical difference {first['critical_difference']:.2f}"
            )
    return "; ".join(said) + ".\n"


def number(value):
    """Return a number to three digits without its leading zero."""
    if pd.isna(value):
        return ""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def bold(value, best):
    """Return a number, bold where it is the best."""
    return f"**{number(value)}**" if abs(value - best) < 5e-4 else number(value)


def interval(line):
    """Return a mean and its interval."""
    return f"{number(line['mean'])} ({number(line['low'])} to {number(line['high'])})"


def spread(line):
    """Return a difference and its interval."""
    return f"{line['mean']:+.3f} ({line['low']:+.3f} to {line['high']:+.3f})"


def signed(line):
    """Return a difference, in brackets where its interval has both signs."""
    text = f"{line['mean']:+.3f}"
    return f"({text})" if line["low"] <= 0 <= line["high"] else text


# --- the paper's comparison -------------------------------------------------------------------------------------------


def of_paper(folder):
    """Return the page's tables on the paper's own protocol: its means, borderline counts, features, time."""
    lines, cells = collect(folder)
    result = summary(lines, cells)
    of_four = lines[lines["dataset"].isin(QUALITATIVE) & lines["method"].isin(TELLING)]
    features = {row.dataset: row.features for row in result.itertuples() if row.dataset in QUALITATIVE}
    counts = feature_changes(of_four, features)
    return {
        "paper run": run_facts(folder),
        "paper means": mean_table(result),
        "borderline": borderline_table(of_four),
        "features": feature_table(qualitative.beside_paper(counts)),
        "questions": question_table(of_four),
        "agreement": agreement_table(counts),
        "paper time": time_table(result),
    }


def mean_table(result):
    """Return the paper's summary, ours beside its own overall mean."""
    ours = average_results(result)
    theirs = paper_table("average_results").set_index("method")["overall_mean"]
    rows = []
    for line in ours.sort_values("overall_mean", ascending=False).itertuples():
        values = [bold(getattr(line, name), ours[name].max()) for name in (*METRICS, "overall_mean")]
        rows.append([f"`{line.method}`", *values, number(theirs.get(line.method, float("nan")))])
    return table(["method", *(NAMES[name] for name in (*METRICS, "overall_mean")), "overall, paper"], rows)


def borderline_table(lines):
    """Return how many answers are inside, borderline and adversarial, of how many."""
    counts = qualitative.borderline(lines).set_index(["method", "dataset"])
    rows = []
    for method in TELLING:
        cells = []
        for dataset in QUALITATIVE:
            inside, between, outside = counts.loc[(method, dataset), ["inside", "borderline", "adversarial"]]
            cells.append(f"{inside} / {between} / {outside}")
        rows.append([f"`{method}`", *cells])
    return table(["inside / borderline / adversarial", *QUALITATIVE], rows)


def feature_table(counts):
    """Return counts of changed features, the paper's in brackets."""
    rows = []
    for line in counts.to_dict("records"):
        cells = [f"{line[m]:.0f} ({line[f'{m}_paper']:.0f})" for m in TELLING[:3]]
        rows.append([line["dataset"], line["feature"].replace("_", " "), *cells, f"{line[OWN]:.0f}"])
    return table(["table", "feature", *(f"`{method}`" for method in TELLING)], rows)


def question_table(lines):
    """Return which features change most, which together, and which alone."""
    answers = qualitative.questions(lines)
    rows = [
        [str(value).replace("_", " ") for value in line[:-1]] + [f"{line[-1]:.2f}"]
        for line in answers.itertuples(index=False)
    ]
    return table([str(name) for name in answers.columns], rows)


def agreement_table(counts):
    """Return how alike methods are in what they change."""
    pairs = qualitative.agreement(counts).pivot_table("correlation", "methods", "dataset", sort=False, dropna=False)
    rows = [[f"{pair}", *(number(pairs.loc[pair, dataset]) for dataset in QUALITATIVE)] for pair in pairs.index]
    return table(["rank correlation of counts", *QUALITATIVE], rows)


def time_table(result):
    """Return the paper's scaled time beside ours, and ours in milliseconds."""
    ours, theirs = (
        frame.set_index("method")["average_time"] for frame in (average_time(result), paper_table("average_time"))
    )
    wide = 1000 * result.pivot_table("average_time", "method", "dataset", sort=False)
    fit = result.pivot_table("fit_seconds", "method", "dataset", sort=False)
    rows = []
    for method in ours.sort_values(ascending=False).index:
        scaled = [number(frame.get(method, float("nan"))) for frame in (theirs, ours)]
        rows.append(
            [
                f"`{method}`",
                *scaled,
                *(f"{wide.loc[method, name]:,.1f}" for name in ("saheart", "adult")),
                f"{fit.loc[method, 'adult']:.1f}",
            ]
        )
    return table(["method", "scaled, paper", "scaled, here", "ms per row, saheart", "adult", "s to fit, adult"], rows)


# --- several counterfactuals ------------------------------------------------------------------------------------------


def of_several(folder, out):
    """Return the page's table on ten counterfactuals of one row, and write them as data."""
    result = summary(*collect(folder))
    shown = {
        "n_ways": "ways",
        "distinct_changes": "distinct sets of changes",
        "pairwise_distance": "distance between them",
    }
    columns = ["dataset", "method", "success_rate", *shown]
    result[columns].round(4).to_csv(out / "ten_counterfactuals.csv", index=False)
    datasets = list(dict.fromkeys(result["dataset"]))
    rows = []
    for metric, name in shown.items():
        for method in ("DICE", OWN):
            values = result[result["method"] == method].set_index("dataset")[metric]
            rows.append([f"{name}, `{method}`", *(number(values[dataset]) for dataset in datasets)])
    return {"several": table(["", *datasets], rows)}


if __name__ == "__main__":
    main()
