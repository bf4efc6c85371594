"""The comparison's results: scores under three scalings, intervals, ranks and tests, as tidy frames and figures.

    folder of a run of design.py  ->  load  ->  one line per cell
    lines  ->  scores_of  ->  Scores (tables x seeds x methods x metrics, higher is better)
    Scores  ->  intervals, differences, ranks_of  ->  tables  ->  write: CSV files and figures

Conclusions are drawn from the test tables. Scalings: "paper" is the paper's formula, applied to each table, model and
seed (report.py); "ranks" and "z" say whether a conclusion hangs on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.files import write_atomically
from onbmacf._text.frames import as_csv
from onbmacf.bench import statistics
from onbmacf.bench.cases import MODELS
from onbmacf.bench.cells import OF_A_LINE, collect, summary
from onbmacf.bench.design import CORE, FEW, HELD, OWN, SLOW, WITH_NETWORKS, group_of
from onbmacf.bench.figures import critical_difference_diagram, interval_plot
from onbmacf.bench.report import LESS_IS_BETTER, METRICS

Matrix = NDArray[np.float64]

SCALINGS = ("paper", "ranks", "z")
OVERALL = "overall_mean"
ALIKE = {"paper": 0.01, "ranks": 0.02, "z": 0.05}  # a difference of scores up to which methods are practically alike
CASE = ["dataset", "model", "seed"]  # within which methods are compared


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of methods; the last metric is the mean of the others. A model kind is averaged out, or there is one."""

    tables: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    values: Matrix  # tables x seeds x methods x metrics; NaN where there is none

    def of_tables(self) -> Matrix:
        """Return the means over seeds: tables x methods x metrics."""
        return statistics.mean_of_present(self.values, axis=1)


def scores_of(result: pd.DataFrame, methods: Sequence[str], scaling: str, models: Sequence[str]) -> Scores:
    """Return the scores of methods that have the same cells; a case that any of them lacks is left out."""
    chosen = result[result["method"].isin(methods) & result["model"].isin(models) & (result["status"] == "done")]
    complete = chosen.groupby(CASE)["method"].transform("nunique") == len(methods)
    cases = chosen[complete]
    scaled = scaled_by(cases, scaling)
    scaled[OVERALL] = scaled[METRICS].mean(axis=1)
    metrics = (*METRICS, OVERALL)
    per_seed = scaled.groupby(["dataset", "seed", "method"])[list(metrics)].mean()
    tables, seeds = list(dict.fromkeys(cases["dataset"])), sorted(set(cases["seed"]))
    index = pd.MultiIndex.from_product([tables, seeds, methods], names=per_seed.index.names)
    values = per_seed.reindex(index).to_numpy(dtype=np.float64)
    return Scores(
        tuple(tables), tuple(methods), metrics, values.reshape(len(tables), len(seeds), len(methods), len(metrics))
    )


def scaled_by(cases: pd.DataFrame, scaling: str) -> pd.DataFrame:
    """Return the cases with each metric scaled among the methods of its case: higher is better.

    "paper": by the worst, 1 is best; no answer at all is left out, as in the paper. "ranks": 1 for the first, 0 for the
    last. "z": in standard deviations. In these two a method without an answer shares the last place.
    """
    scores = cases.copy()
    for metric, less in LESS_IS_BETTER.items():
        good = -cases[metric] if less else cases[metric]
        group = good.groupby([cases[key] for key in CASE])
        if scaling == "paper":
            largest = cases.groupby(CASE)[metric].transform("max")
            share = cases[metric] / largest.where(largest > 0)
            score = (1.0 - share if less else share).where(largest > 0, 1.0).where(cases[metric].notna())
        else:
            filled = good.fillna(group.transform("min"))
            group = filled.groupby([cases[key] for key in CASE])
            if scaling == "ranks":
                score = (group.rank() - 1) / (group.transform("size") - 1)
            else:
                spread = group.transform("std", ddof=0)
                score = ((filled - group.transform("mean")) / spread.where(spread > 1e-12)).fillna(0.0)
        scores[metric] = score
    return scores


# --- from scores to frames --------------------------------------------------------------------------------------------


def intervals(scores: Scores) -> pd.DataFrame:
    """Return each method's mean score and its 95 % interval, per metric."""
    found = statistics.bootstrap(scores.values)
    return _tidy(scores.methods, scores.metrics, found._asdict())


def differences(scores: Scores, own: str, alike: float) -> pd.DataFrame:
    """Return by how much `own` scores better than each other method: mean, interval, and the Bayesian verdict."""
    place = scores.methods.index(own)
    others = [at for at in range(len(scores.methods)) if at != place]
    margin = scores.values[:, :, [place]] - scores.values[:, :, others]
    columns = statistics.bootstrap(margin)._asdict()
    of_tables = statistics.mean_of_present(margin, axis=1)
    verdicts = np.array(
        [
            [statistics.signed_rank(of_tables[:, at, metric], alike) for metric in range(len(scores.metrics))]
            for at in range(len(others))
        ]
    )
    columns |= {name: verdicts[:, :, at] for at, name in enumerate(statistics.Verdict._fields)}
    return _tidy([scores.methods[at] for at in others], scores.metrics, columns)


def ranks_of(scores: Scores) -> pd.DataFrame:
    """Return each method's average rank per metric, with Friedman's p and the critical difference of Nemenyi's test."""
    of_tables = scores.of_tables()
    ranked = np.stack([statistics.ranks(of_tables[:, :, at]) for at in range(len(scores.metrics))], axis=2)
    p = [statistics.friedman(ranked[:, :, at]) for at in range(len(scores.metrics))]
    critical = statistics.critical_difference(len(scores.methods), len(scores.tables))
    shape = ranked.shape[1:]
    columns = {"rank": ranked.mean(axis=0), "friedman_p": np.broadcast_to(p, shape)}
    return _tidy(scores.methods, scores.metrics, {**columns, "critical_difference": np.full(shape, critical)})


def _tidy(methods: Sequence[str], metrics: Sequence[str], columns: dict[str, Matrix]) -> pd.DataFrame:
    """Return one line per method and metric."""
    index = pd.MultiIndex.from_product([methods, metrics], names=["method", "metric"])
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index).reset_index()


# --- all of a run -----------------------------------------------------------------------------------------------------


def load(folder: Path) -> pd.DataFrame:
    """Return one line per cell of a run; a method that holds immutables has its plain name here."""
    result = summary(*collect(folder))
    result["method"] = result["method"].str.removesuffix(HELD)
    return result.assign(group=result["dataset"].map(group_of))


def views(result: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame, Sequence[str], Sequence[str]]]:
    """Yield what scores are made of: group of tables, name, cells, methods, models.

    The view "every method" has the slow ones too, so only their seed.
    """
    unknown = result[result["protocol"] == "unknown"]
    known = result[result["protocol"] == "known"]
    for group, cells in unknown.groupby("group", sort=False):
        yield str(group), "all models", cells, CORE, MODELS
        for model in MODELS:
            yield str(group), model, cells, WITH_NETWORKS if model == "network" else CORE, [model]
        yield str(group), "every method", cells, (*SLOW, *WITH_NETWORKS), ["network"]
        yield str(group), "unknown rows", cells, FEW, ["network"]
        yield str(group), "known rows", known[known["group"] == group], FEW, ["network"]


def tables(result: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the frames of a run by the names of their files."""
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in ("intervals", "differences", "ranks")}
    for group, view, cells, methods, models in views(result):
        for scaling in SCALINGS:
            scores = scores_of(cells, methods, scaling, models)
            if not scores.tables:
                continue
            about = {"group": group, "view": view, "scaling": scaling, "tables": len(scores.tables)}
            found["intervals"].append(intervals(scores).assign(**about))
            found["differences"].append(differences(scores, OWN, ALIKE[scaling]).assign(**about))
            if scaling == "paper" and len(scores.tables) > 1:
                found["ranks"].append(ranks_of(scores).assign(**about))
    tidy = {f"comparison_{name}": _front(pd.concat(parts)) for name, parts in found.items() if parts}
    return {"comparison_cells": _of_tables(result), "comparison_models": _models(result), **tidy}


def write(folder: Path, out: Path) -> list[Path]:
    """Write the frames of a run as CSV files, and its figures as SVG and PNG; return the files."""
    result = load(folder)
    made = tables(result)
    written = []
    for name, frame in made.items():
        written.append(out / f"{name}.csv")
        write_atomically(written[-1], as_csv(frame, digits=4).encode())
    for name, ax in _figures(made).items():
        for suffix in ("svg", "png"):
            written.append(out / f"{name}.{suffix}")
            ax.figure.savefig(written[-1], dpi=120, metadata={"Date": None} if suffix == "svg" else None)
    return written


def _front(frame: pd.DataFrame) -> pd.DataFrame:
    first = ["group", "view", "tables", "scaling"]
    return frame[[*first, *(name for name in frame.columns if name not in first)]]


def _of_tables(result: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds, in the units of the metrics."""
    keys = ["group", "dataset", "protocol", "model", "method"]
    numbers = [*OF_A_LINE, "success_rate", "fit_seconds", "average_time"]
    means = result.groupby(keys, sort=False)[numbers].mean()
    counted = result.assign(done=result["status"] == "done").groupby(keys, sort=False)
    return means.assign(seeds=counted["seed"].count(), done=counted["done"].sum()).reset_index()


def _models(result: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each kind of model on each table: means over seeds, on rows it was not trained on."""
    cells = result[(result["protocol"] == "unknown") & (result["method"] == OWN)]
    accuracy = cells.pivot_table("accuracy", ["group", "dataset"], "model", sort=False)
    factuals = cells.groupby(["group", "dataset"], sort=False)["n_factuals"].mean().rename("factuals")
    return accuracy.join(factuals).reset_index()


def _figures(made: dict[str, pd.DataFrame]) -> dict[str, Any]:
    from matplotlib.figure import Figure

    ranks, scores = made["comparison_ranks"], made["comparison_intervals"]
    scores = scores[(scores["metric"] == OVERALL) & (scores["scaling"] == "paper")]
    drawn = {}
    for view, name in (("all models", "ranks"), ("every method", "ranks_every_method")):
        part = ranks[(ranks["group"] == "test") & (ranks["view"] == view) & (ranks["metric"] == OVERALL)]
        if len(part):
            of_methods, difference = part.set_index("method")["rank"], float(part["critical_difference"].iloc[0])
            drawn[f"comparison_{name}"] = critical_difference_diagram(
                of_methods, difference, "Average rank by overall score", ax=Figure()
            )
    both = scores[scores["view"] == "all models"]
    groups = {f"{group} tables": part for group, part in both.groupby("group", sort=False)}
    order = list(next(iter(groups.values())).sort_values("mean", ascending=False)["method"])
    drawn["comparison_intervals"] = interval_plot(groups, order, "overall score", ax=Figure())
    ahead = made["comparison_differences"]
    ahead = ahead[
        (ahead["group"] == both["group"].iloc[0]) & (ahead["metric"] == OVERALL) & (ahead["scaling"] == "paper")
    ]
    by_model = {model: ahead[ahead["view"] == model] for model in MODELS}
    order = list(by_model[MODELS[0]].sort_values("mean")["method"])
    drawn["comparison_differences"] = interval_plot(
        by_model, order, f"{OWN} ahead by (overall score)", zero=True, ax=Figure()
    )
    return drawn
