"""The audit beside FACTS (aif360) on adult: how long each takes, and whether figures with one definition agree.

    python -m venv /tmp/facts && /tmp/facts/bin/pip install "aif360==0.6.1" mlxtend colorama tqdm
    python benchmarks/facts.py --facts /tmp/facts/bin/python [--agree 500] [--rows 14650] [--limit 420]

The setting is that of FACTS' own adult example: age in five quantiles, hours in five named bands, `fnlwgt` left out, a
logistic regression trained on 70 % of the rows, 30 % of them audited (14,650), sex protected and fixed, a support of
0.1 (more on the few rows). The table is the benchmark's (`adult`), whose categories have two levels each. Both ask
the very same model.

Three parts in one run: `agree`, a few rows that FACTS can finish, where every figure of every subgroup of FACTS is
computed again by `onbmacf.audit` from the same actions; then both on all rows, ours as the whole report with group
actions, true labels and intersections, FACTS until it is done or the limit is reached. CPU seconds are told beside
seconds, because other work may share the machine.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from facts_model import MODELS, LinearModel
from onbmacf import ONBMACF, Schema, audit
from onbmacf.bench.sources import locate
from onbmacf.report import audit_report

HERE = Path(__file__).parent
SEED, SHARE, BUDGET = 131313, 0.5, 1.0
HOURS = ([0.9, 25, 39, 40, 55, 100], ["PartTime", "MidTime", "FullTime", "OverTime", "BrainDrain"])


def main() -> None:
    """Compare figures on some rows, then times on all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=Path, required=True, help="Python of an environment with aif360.")
    parser.add_argument("--agree", type=int, default=500)
    parser.add_argument("--rows", type=int, default=14650)
    parser.add_argument("--explain", type=int, default=None, help="Most refused rows to explain; all by default.")
    parser.add_argument(
        "--agree-support", type=float, default=0.3, help="Least share of rows in a subgroup, where few."
    )
    parser.add_argument("--support", type=float, default=0.1)
    parser.add_argument("--model", choices=sorted(MODELS), default="pipeline", help="The same weights, in which form.")
    parser.add_argument("--chunk", type=int, default=512, help="Most rows in one call of the model (`predict_chunk`).")
    parser.add_argument("--limit", type=float, default=420, help="Seconds that FACTS may take.")
    asked = parser.parse_args()
    rows, truth, weights = cleaned()
    print(f"onbmacf {version('onbmacf')}, numpy {np.__version__}, pandas {pd.__version__}, seed {SEED}")
    if asked.agree:
        report_agreement(asked, rows.head(asked.agree), weights)
    if asked.rows:
        report_times(asked, rows.head(asked.rows), truth.head(asked.rows), weights)


def cleaned() -> tuple[pd.DataFrame, "pd.Series[Any]", dict[str, Any]]:
    """Return the audited rows as FACTS' example cleans them, their true labels, and the weights of the model."""
    table = pd.read_csv(locate("adult").path).drop(columns="fnlwgt")
    table["hours-per-week"] = pd.cut(table["hours-per-week"], HOURS[0], labels=HOURS[1]).astype(str)
    ages = pd.qcut(table["age"], q=5)
    table["age"] = [f"{age.left:g} to {age.right:g}" for age in ages]
    order = np.random.default_rng(SEED).permutation(len(table))
    n_audited = round(0.3 * len(table))
    trained, audited = table.iloc[order[n_audited:]], table.iloc[order[:n_audited]].reset_index(drop=True)
    weights = train(trained.drop(columns="income"), trained["income"])
    return audited.drop(columns="income"), audited["income"], weights


def train(table: pd.DataFrame, labels: "pd.Series[Any]") -> dict[str, Any]:
    """Return a logistic regression of one column per level as plain weights."""
    from sklearn.linear_model import LogisticRegression

    words = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    numbers = [name for name in table.columns if name not in words]
    scale = table[numbers].max()
    hot = pd.get_dummies(table[words].astype(str), prefix_sep="=", dtype=float)
    fitted = LogisticRegression(max_iter=1500).fit(pd.concat([hot, table[numbers] / scale], axis=1), labels)
    own = dict(zip([*hot.columns, *numbers], fitted.coef_[0].tolist(), strict=True))
    levels = {
        name: {column.split("=", 1)[1]: own[column] for column in hot if column.startswith(f"{name}=")}
        for name in words
    }
    by_number = {name: own[name] / float(scale[name]) for name in numbers}
    return {"intercept": float(fitted.intercept_[0]), "numbers": by_number, "levels": levels}


def facts(asked: Any, support: float, rows: pd.DataFrame, weights: dict[str, Any]) -> dict[str, Any] | None:
    """Run FACTS in its own environment; None if it is not done within the limit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows.to_csv(folder / "rows.csv", index=False)
        (folder / "model.json").write_text(json.dumps(weights))
        line = [asked.facts, HERE / "facts_child.py", folder, str(support), asked.model]
        try:
            subprocess.run([str(word) for word in line], check=True, timeout=asked.limit, cwd=HERE)
        except subprocess.TimeoutExpired:
            return None
        return dict(json.loads((folder / "figures.json").read_text()))


def report_agreement(asked: Any, rows: pd.DataFrame, weights: dict[str, Any]) -> None:
    """Print, per figure, how many of FACTS' values ours are equal to."""
    theirs = facts(asked, asked.agree_support, rows, weights)
    if theirs is None:
        print(f"FACTS on {len(rows):,} rows: not finished in {asked.limit:.0f} s")
        return
    print(f"FACTS on {len(rows):,} rows: {theirs['seconds']:.1f} s, {theirs['cpu_seconds']:.1f} s of CPU; "
          f"{len(theirs['subgroups'])} subgroups; {theirs['versions']}")  # fmt: skip
    model, lines = LinearModel(weights), []
    affected = rows[model.predict(rows) == 0]
    for subgroup in theirs["subgroups"]:
        covered = affected[np.all([affected[name] == value for name, value in subgroup["if"].items()], axis=0)]
        for group, told in subgroup["groups"].items():
            ours = figures(covered[covered["sex"] == group], told["actions"], model)
            lines += [(name, value, ours[name]) for name, value in told["figures"].items()]
    frame = pd.DataFrame(lines, columns=["figure", "facts", "ours"])
    frame["equal"] = np.isclose(frame["facts"], frame["ours"], rtol=0, atol=1e-12)
    frame["no action"] = np.isinf(frame["facts"]) & (frame["ours"].isna() | (frame["ours"] == 0))
    counted = frame.groupby("figure", sort=False)[["equal", "no action"]].sum()
    print(counted.assign(compared=frame.groupby("figure", sort=False).size()).to_string())
    other = frame[~frame["equal"] & ~frame["no action"]]
    print(f"{len(other)} of {len(frame)} differ otherwise" + (f":\n{other.head(10).to_string()}" if len(other) else ""))


def figures(rows: pd.DataFrame, actions: list[dict[str, Any]], model: LinearModel) -> dict[str, float]:
    """Return our figures for one group: the same actions, applied to its rows and asked of the model."""
    flips = np.stack([model.predict(rows.assign(**action["to"])) == 1 for action in actions], axis=1)
    costs = {
        view: np.tile([action[f"{view}_cost"] for action in actions], (len(rows), 1)) for view in ("macro", "micro")
    }
    found: dict[str, float] = {"choices macro": audit.choices(flips, SHARE)}
    for view, paid in costs.items():
        found[f"effectiveness {view}"] = audit.effectiveness(flips, view)
        found[f"within_budget {view}"] = audit.within_budget(flips, paid, BUDGET, view)
        found[f"cost_of_effectiveness {view}"] = audit.cost_of_effectiveness(flips, paid, SHARE, view)
    return {**found, "mean_recourse micro": audit.mean_recourse(flips, costs["micro"])}


def report_times(asked: Any, rows: pd.DataFrame, truth: "pd.Series[Any]", weights: dict[str, Any]) -> None:
    """Print what the whole audit takes, what FACTS takes, and the ratio."""
    seconds, cpu = ours(rows, truth, MODELS[asked.model](weights), asked.explain, asked.chunk)
    print(f"the audit of {len(rows):,} rows: {seconds:.0f} s, {cpu:.0f} s of CPU")
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    before = usage.ru_utime + usage.ru_stime
    theirs = facts(asked, asked.support, rows, weights)
    if theirs is None:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = usage.ru_utime + usage.ru_stime - before
        print(f"FACTS on {len(rows):,} rows: not finished in {asked.limit:.0f} s, after {spent:.0f} s of CPU: "
              f"more than {spent / cpu:.1f} times the CPU")  # fmt: skip
        return
    print(f"FACTS on {len(rows):,} rows: {theirs['seconds']:.0f} s, {theirs['cpu_seconds']:.0f} s of CPU; "
          f"{theirs['cpu_seconds'] / cpu:.1f} times the CPU, {len(theirs['subgroups'])} subgroups")  # fmt: skip


def ours(rows: pd.DataFrame, truth: Any, model: Any, most: int | None, chunk: int) -> tuple[float, float]:
    """Fit, explain the refused rows, compare, look for actions, write the report; return seconds and CPU seconds."""
    start, cpu, marks = time.perf_counter(), time.process_time(), []

    def mark(name: str) -> None:
        marks.append(f"{name} {time.process_time() - cpu:.0f}")

    schema = Schema.infer(rows, immutable=["sex", "race", "age"])
    explainer = ONBMACF(predict_chunk=chunk).fit(rows, model.predict, schema=schema)
    mark("fit")
    refused = rows[model.predict(rows) == 0]
    answers = explainer.explain(refused.head(most or len(refused)), target=1)
    mark("explain")
    named = {"target": 1, "by": ["sex", "race", "age"], "truth": truth}
    content = audit_report(explainer, answers, n_actions=3, **named)
    mark("audit")
    with tempfile.TemporaryDirectory() as folder:
        content.save(Path(folder) / "report.html")
    mark("written")
    print(f"{len(answers):,} refused rows explained; CPU seconds until: {', '.join(marks)}")
    return time.perf_counter() - start, time.process_time() - cpu


if __name__ == "__main__":
    main()
