"""The audit beside FACTS (aif360) on adult: how long each takes, and whether figures with one definition agree.

    python -m venv facts && facts/bin/pip install "aif360==0.6.1" mlxtend colorama tqdm
    python benchmarks/facts.py --facts facts/bin/python [--agree 500] [--rows 14650] [--limit 420]

The setting is that of FACTS' own adult example: age in five quantiles, hours in five named bands, `fnlwgt` left out, a
logistic regression trained on 70 % of the rows, 30 % of them audited (14,650), sex protected and fixed, a support of
0.1 (more on the few rows). The table is the benchmark's (`adult`), whose categories have two levels each. Both ask
the very same model.

Three parts in one run: `agree`, a few rows that FACTS can finish, where every figure of every subgroup of FACTS is
computed again by `onbmacf.audit` from the same actions; then both on all rows, ours as the whole report with group
actions, true labels and intersections, FACTS until it is done or the limit is reached. CPU seconds are told beside
seconds, because other work may share the machine.

FACTS runs in an environment of its own, which has aif360 and not this package, by this very file: `facts.py --child
FOLDER SUPPORT MODEL` reads rows.csv and model.json and writes figures.json. Its figures are those that its metrics
compute for each subgroup and protected group, in the macro view (each action alone) and in the micro view (the cheapest
first).
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SEED, SHARE, BUDGET = 131313, 0.5, 1.0
HOURS = ([0.9, 25, 39, 40, 55, 100], ["PartTime", "MidTime", "FullTime", "OverTime", "BrainDrain"])
CATEGORIES = ["age", "workclass", "marital-status", "occupation", "relationship", "race", "sex", "hours-per-week",
              "native-country"]  # fmt: skip
PROTECTED = "sex"


def main() -> None:
    """Compare figures on some rows, then times on all of them; with `--child`, run FACTS."""
    if sys.argv[1:2] == ["--child"]:
        folder, support, kind = sys.argv[2:]
        return run_facts(Path(folder), float(support), kind)
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
    return None


def cleaned() -> tuple[pd.DataFrame, "pd.Series[Any]", dict[str, Any]]:
    """Return the audited rows as FACTS' example cleans them, their true labels, and the weights of the model."""
    from onbmacf.bench.datasets import locate

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
        line = [asked.facts, __file__, "--child", folder, support, asked.model]
        try:
            subprocess.run([str(word) for word in line], check=True, timeout=asked.limit)
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


def figures(rows: pd.DataFrame, actions: list[dict[str, Any]], model: Any) -> dict[str, float]:
    """Return our figures for one group: the same actions, applied to its rows and asked of the model."""
    from onbmacf import audit

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
    from onbmacf import ONBMACF, Schema
    from onbmacf.report import audit_report

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


def run_facts(folder: Path, support: float, kind: str) -> None:
    """Fit FACTS, which wants age as intervals, and write what it found and what that took."""
    from aif360.sklearn.detectors.facts import FACTS

    warnings.filterwarnings("ignore")
    rows = pd.read_csv(folder / "rows.csv")
    ends = rows["age"].str.split(" to ", expand=True).astype(float)
    intervals = [pd.Interval(low, high) for low, high in zip(ends[0], ends[1], strict=True)]
    rows["age"] = pd.Series(intervals, dtype=object)
    rows = rows.astype({name: object for name in CATEGORIES if name != "age"})
    model = MODELS[kind](json.loads((folder / "model.json").read_text()))
    start = time.perf_counter()
    found = FACTS(model, PROTECTED, CATEGORIES, support, feats_not_allowed_to_change=[PROTECTED]).fit(
        rows, verbose=False
    )
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    result = {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "versions": {name: version(name) for name in ("aif360", "pandas", "numpy")},
        "subgroups": [_subgroup(found, clause) for clause in found.rules_by_if],
    }
    (folder / "figures.json").write_text(json.dumps(result))


def _subgroup(found: Any, clause: Any) -> dict[str, Any]:
    groups = {}
    for group, (_, macro) in found.rules_by_if[clause].items():
        micro = found.rules_with_cumulative[clause][group][1]
        actions = [{"to": _plain(then), "macro_cost": cost} for then, _, cost in macro]
        costs = {_key(then): cost for then, _, cost in micro}
        for action, (then, _, _) in zip(actions, macro, strict=True):
            action["micro_cost"] = costs[_key(then)]
        groups[str(group)] = {"actions": actions, "figures": _figures(clause, macro, micro)}
    return {"if": _plain(clause), "groups": groups}


def _figures(clause: Any, macro: Any, micro: Any) -> dict[str, float]:
    from aif360.sklearn.detectors.facts import metrics

    figures = {"choices macro": -metrics.if_group_cost_recoursescount_correctness_threshold(clause, macro, SHARE)}
    for view, actions in (("macro", macro), ("micro", micro)):
        figures[f"effectiveness {view}"] = metrics.if_group_maximum_correctness(clause, actions)
        figures[f"within_budget {view}"] = metrics.if_group_cost_max_correctness_cost_budget(clause, actions, BUDGET)
        figures[f"cost_of_effectiveness {view}"] = metrics.if_group_cost_min_change_correctness_threshold(
            clause, actions, SHARE
        )
    figures["mean_recourse micro"] = metrics.if_group_average_recourse_cost_conditional(clause, micro)
    return {name: float(value) for name, value in figures.items()}


def _plain(clause: Any) -> dict[str, Any]:
    return {
        name: in_text(value) if name in CATEGORIES else float(value)
        for name, value in zip(clause.features, clause.values, strict=True)
    }


def _key(clause: Any) -> str:
    return json.dumps(_plain(clause), sort_keys=True)


class LinearModel:
    """1 where the sum of the row's weights is above 0: plain numbers, so that two environments ask the very same model.

    Intervals are read as their text.
    """

    def __init__(self, weights: dict[str, Any]) -> None:
        self.weights = weights

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return 0 or 1 per row."""
        total = np.full(len(rows), self.weights["intercept"])
        for name, weight in self.weights["numbers"].items():
            total += weight * rows[name].to_numpy(dtype=float)
        for name, of_level in self.weights["levels"].items():
            codes, levels = pd.factorize(rows[name])
            total += np.array([of_level[in_text(level)] for level in levels])[codes] if len(rows) else 0.0
        return (total > 0).astype(int)


class Pipeline:
    """The same weights in scikit-learn's form, as in FACTS' own example: one column per level, logistic regression."""

    def __init__(self, weights: dict[str, Any]) -> None:
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import OneHotEncoder

        levels, self.numbers = weights["levels"], list(weights["numbers"])
        encoder = OneHotEncoder(categories=[list(of_level) for of_level in levels.values()])
        self.columns = make_column_transformer((encoder, list(levels)), remainder="passthrough")
        first = pd.DataFrame({name: list(of_level)[:1] for name, of_level in levels.items()})
        self.columns.fit(first.assign(**dict.fromkeys(self.numbers, 0.0)))
        own = [weight for of_level in levels.values() for weight in of_level.values()]
        self.model = LogisticRegression()
        self.model.coef_ = np.array([[*own, *weights["numbers"].values()]])
        self.model.intercept_, self.model.classes_ = np.array([weights["intercept"]]), np.array([0, 1])

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return 0 or 1 per row."""
        names = list(self.columns.feature_names_in_)
        return self.model.predict(self.columns.transform(rows.assign(age=rows["age"].map(in_text))[names]))


MODELS = {"plain": LinearModel, "pipeline": Pipeline}


def in_text(level: Any) -> str:
    """Return a level as text; an interval as its two ends.

    >>> in_text(pd.Interval(16, 26)), in_text("Male")
    ('16 to 26', 'Male')
    """
    return f"{level.left:g} to {level.right:g}" if isinstance(level, pd.Interval) else str(level)


if __name__ == "__main__":
    main()
