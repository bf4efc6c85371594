"""What balls of a sample cost the answers: the objective of the exact map and of one whose balls are made of a fifth.

    python benchmarks/covered.py [--rows 300] [--part 5] [--tables adult,heloc] [--models network,forest,boosting]
    python benchmarks/covered.py --parts [...]
    python benchmarks/covered.py --million

Per pair of a table and a model the first rows that the model refuses are explained from both maps, at dials 0 and 0.5.
The objective is what the search makes small (`_search/choose.py`): the distance, a little for each changed feature and,
at 0.5, the price of neighbours, for both maps that of the exact one. With `--parts` the second map is that of a Dask
DataFrame; the neighbours of all answers are counted among all rows. `--million` times both fits of a million rows.
"""

import argparse
import time
import warnings

import numpy as np

from common import Smooth
from dial import MODELS, trained
from onbmacf import ONBMACF
from onbmacf._search.choose import OF_THE_NEAREST, POWER, SPARSITY, price_of
from onbmacf.bench.datasets import Description, as_task, load_task

SYNTHETIC, SYNTHETIC_ROWS = "synthetic", 100_000
TABLES = ("adult", "give_me_some_credit", "heloc", SYNTHETIC)
DIALS = (0.0, 0.5)


def task_of(name):
    """Return a table with its target column as a task, whole."""
    if name != SYNTHETIC:
        return load_task(name)
    import pandas as pd

    smooth = Smooth(SYNTHETIC_ROWS, 10)
    frame = pd.DataFrame(smooth.rows.round(4), columns=[f"x{at}" for at in range(10)]).assign(y=smooth.labels)
    return as_task(name, frame, Description("y", (1,), ("0", "1")))


def to_centers(fitted, N, code):
    """Return per row the distance to the nearest centre of a label, what must stay as it is left out."""
    table, free = fitted.map.table, ~fitted.space.is_immutable
    centers = table.N[table.centers[table.labels[table.centers] == code]]
    apart = [np.where(table.is_level, row != centers, np.abs(row - centers)) * table.scale for row in N]
    return np.array([costs[:, free].sum(axis=1).min() for costs in apart])


def objectives(frame, price, dial):
    """Return what the search makes small, per row; NaN where it found nothing."""
    each = SPARSITY if dial else OF_THE_NEAREST
    missing = (1 - frame["plausibility"].to_numpy(dtype=float)) ** POWER
    return frame["distance"] + each * frame["n_changed"] + price * missing


def fitted_both(task, predict, part, in_parts):
    """Fit the exact map and that of a sample; return them and how long each took."""
    maps, seconds = {}, {}
    for name, most in (("all", None), ("sample", len(task.table) // part)):
        table = task.table
        if in_parts and name == "sample":
            import dask
            import dask.dataframe as dd

            with dask.config.set({"dataframe.convert-string": False}):
                table = dd.from_pandas(table, npartitions=8)
        start = time.perf_counter()
        maps[name] = ONBMACF(cover_rows=most).fit(table, predict, schema=task.schema)
        seconds[f"fit {name}, s"] = time.perf_counter() - start
    return maps, seconds


def compared(task, model, n_rows, part, in_parts=False):
    """Fit both maps, explain the same rows from both, and return the means over those that both explain."""
    rows = np.flatnonzero(model.label_of(task.Z) != task.target)[:n_rows]

    def predict(table):
        return model.label_of(task.space.encode(table))

    maps, seconds = fitted_both(task, predict, part, in_parts)
    figures = {"table rows": len(task.table), "covered": len(task.table) // part, **seconds}
    whole = maps["sample"].fitted_.whole
    figures["share"] = maps["sample"].cover_.share if whole is None else whole.share
    fitted = maps["all"].fitted_
    N = fitted.space.form.numbers(task.table.iloc[rows])
    nearest = to_centers(fitted, N, list(fitted.black_box.classes).index(task.target))
    for dial in DIALS:
        price = price_of(dial, nearest)
        found = {}
        for name, explainer in maps.items():
            answers = explainer.with_options(plausibility=dial).explain(task.table.iloc[rows], target=task.target)
            found[name] = first_of(answers, len(rows), fitted)
            found[name]["objective"] = objectives(found[name], price, dial)
        both = found["all"]["objective"].notna() & found["sample"]["objective"].notna()
        for what in ("objective", "distance", "plausibility", "told"):
            ours = {name: float(frame[what][both].mean()) for name, frame in found.items()}
            figures |= {f"{what} {name} {dial:g}": value for name, value in ours.items()}
        for what in ("objective", "distance"):
            figures[f"{what} ratio {dial:g}"] = figures[f"{what} sample {dial:g}"] / figures[f"{what} all {dial:g}"]
        figures[f"both {dial:g}"] = int(both.sum())
    return figures


def first_of(answers, n_rows, fitted):
    """Return distance, changes and plausibility, among all rows and as told, of the first counterfactual of each."""
    import pandas as pd

    frame = pd.DataFrame(np.nan, index=range(n_rows), columns=["distance", "n_changed", "plausibility", "told"])
    places = fitted.black_box.classes.tolist()
    for at in range(n_rows):
        if answers[at].counterfactuals:
            one = answers[at].counterfactuals[0]
            N = fitted.space.form.numbers(fitted.space.form.arrange(pd.DataFrame([one.values]))[0])
            share = fitted.share(N, np.array([places.index(one.label)]))[0]
            frame.loc[at] = one.distance, len(one.changed), share, one.plausibility
    return frame


def million(n_rows=1_000_000):
    """Time both fits of a table, the quick one first."""
    smooth, figures = Smooth(n_rows, 10), {}
    for name, most in (("sample", "auto"), ("all", None)):
        start, processor = time.perf_counter(), time.process_time()
        cover = ONBMACF(cover_rows=most).fit(smooth.rows, smooth.predict).cover_
        figures[f"{name}, s"], figures[f"{name}, processor s"] = (
            time.perf_counter() - start,
            time.process_time() - processor,
        )
        figures[f"{name}, balls"], figures[f"{name}, share"] = len(cover), cover.share
        print(figures, flush=True)


def main():
    """Compare all pairs, print each as it is done, and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--part", type=int, default=5, help="one row in so many is covered")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--parts", action="store_true", help="the second map is that of a Dask DataFrame")
    parser.add_argument("--million", action="store_true", help="time both fits of 1,000,000 x 10 instead")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.million:
        return million()
    lines = []
    for table in options.tables.split(","):
        task = task_of(table)
        for name in options.models.split(","):
            figures = compared(task, trained(task, name, None), options.rows, options.part, options.parts)
            lines.append({"table": table, "model": name, **figures})
            print({key: round(v, 4) if isinstance(v, float) else v for key, v in lines[-1].items()}, flush=True)
    for dial in DIALS:
        ratios = [line[f"objective ratio {dial:g}"] for line in lines]
        print(f"dial {dial:g}: sample over all, {min(ratios):.4f} to {max(ratios):.4f}, mean {np.mean(ratios):.4f}")
    return None


if __name__ == "__main__":
    main()
