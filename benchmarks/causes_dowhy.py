"""What follows from a change, beside `dowhy.gcm`: the same counterfactual samples for linear additive models.

    python -m venv dowhy && dowhy/bin/pip install dowhy
    python benchmarks/causes_dowhy.py --dowhy dowhy/bin/python [--graphs 20]

dowhy's pins differ from ours, so it runs in an environment of its own: this script draws tables from random graphs,
hands them over as JSON together with interventions, and compares what comes back with `_table/effects.py`. Both learn
their mechanisms by least squares from the same rows. Ends with 1 where a value differs by more than 1e-9.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

CLOSE = 1e-9
N_ROWS, N_EXPLAINED = 200, 10


def drawn(seed):
    """Return one problem: rows of a random linear graph, its edges, and values to set of some columns."""
    rng = np.random.default_rng(seed)
    names = [f"c{at}" for at in range(int(rng.integers(3, 9)))]
    rows, causes = pd.DataFrame(index=range(N_ROWS)), {}
    for at, name in enumerate(names):
        some = (
            [str(one) for one in rng.choice(names[:at], min(at, int(rng.integers(0, 4))), replace=False)] if at else []
        )
        rows[name] = rng.normal(0, 1, N_ROWS) + (rows[some] @ rng.normal(0, 1, len(some)) if some else 0)
        if some:
            causes[name] = some
    actions = [
        {str(name): float(rng.normal()) for name in rng.choice(names, int(rng.integers(1, 3)), replace=False)}
        for _ in range(3)
    ]
    return {"columns": names, "rows": rows.to_numpy().tolist(), "causes": causes, "actions": actions}


def by_dowhy(problem):
    """Return the counterfactual rows of each set of actions, by dowhy; run in its own environment."""
    import networkx as nx
    from dowhy import gcm

    gcm.config.disable_progress_bars()
    rows = pd.DataFrame(problem["rows"], columns=problem["columns"])
    graph = nx.DiGraph()
    graph.add_nodes_from(problem["columns"])
    graph.add_edges_from((cause, name) for name, causes in problem["causes"].items() for cause in causes)
    model = gcm.InvertibleStructuralCausalModel(graph)
    for name in problem["columns"]:
        linear = name in problem["causes"]
        how = gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor()) if linear else gcm.EmpiricalDistribution()
        model.set_causal_mechanism(name, how)
    gcm.fit(model, rows)
    found = []
    for action in problem["actions"]:
        set_to = {name: lambda x, value=value: value for name, value in action.items()}
        made = gcm.counterfactual_samples(model, set_to, observed_data=rows.iloc[:N_EXPLAINED])
        found.append(made[problem["columns"]].to_numpy().tolist())
    return found


def by_us(problem):
    """Return the same by this package."""
    from onbmacf import Causes, Schema
    from onbmacf._table.effects import Effects
    from onbmacf._table.space import FeatureSpace

    rows = pd.DataFrame(problem["rows"], columns=problem["columns"])
    space = FeatureSpace.fit(rows, Schema.infer(rows))
    N = space.form.numbers(rows)
    if not problem["causes"]:
        return [acted(rows, action).to_numpy().tolist() for action in problem["actions"]]
    effects = Effects.of(space.form, N, space.readable, Causes(problem["causes"])).unrounded()
    before = N[:N_EXPLAINED]
    return [effects.whole(acted(rows, action).to_numpy(), before).tolist() for action in problem["actions"]]


def acted(rows, action):
    """Return the rows to be explained with the values of an action."""
    return rows.iloc[:N_EXPLAINED].assign(**action)


def farthest(problem, theirs):
    """Return the largest difference between two sets of counterfactual rows."""
    return float(np.abs(np.array(by_us(problem)) - np.array(theirs)).max())


def main():
    """Compare, and say how far apart the samples are."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dowhy", help="the Python of an environment with dowhy")
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps([by_dowhy(problem) for problem in json.loads(options.child.read_text(encoding="utf-8"))]))
        return
    if not options.dowhy:
        parser.error("--dowhy names the Python of an environment with dowhy")
    problems = [drawn(seed) for seed in range(options.graphs)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problems.json"
        path.write_text(json.dumps(problems), encoding="utf-8")
        done = subprocess.run([options.dowhy, __file__, "--child", path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip().splitlines()[-1])
    theirs = json.loads(done.stdout.strip().splitlines()[-1])
    worst = max(farthest(problem, found) for problem, found in zip(problems, theirs, strict=True))
    n = sum(len(problem["actions"]) for problem in problems) * N_EXPLAINED
    print(f"{n:,} counterfactual samples of {len(problems)} graphs: at most {worst:.1e} apart.")
    if worst > CLOSE:
        sys.exit(1)


if __name__ == "__main__":
    main()
