"""FACTS itself, in an environment that has aif360: one table, one model in, its rules and figures out.

python facts_child.py FOLDER MIN_SUPPORT MODEL      (FOLDER holds rows.csv and model.json; figures.json is written)

The folder is made by `facts.py`. FACTS wants age as intervals. Its figures are those that its metrics compute for each
subgroup and protected group, in the macro view (each action alone) and in the micro view (the cheapest first).
"""

import json
import resource
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from facts_model import MODELS, in_text

warnings.filterwarnings("ignore")
CATEGORIES = ["age", "workclass", "marital-status", "occupation", "relationship", "race", "sex", "hours-per-week",
              "native-country"]  # fmt: skip
PROTECTED = "sex"
SHARE, BUDGET = 0.5, 1.0


def main(folder: Path, support: float, kind: str) -> None:
    """Fit FACTS, and write what it found and what that took."""
    from aif360.sklearn.detectors.facts import FACTS

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


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
