"""Optima in files: one JSON document per table, model and question, one entry per factual.

problem  ->  optima  ->  list of Optimum, solved where the file does not have them
"""

import json

from optimum_solve import Optimum, solve


def optima(problem, folder, seconds, say=lambda *_: None):
    """Return the optimum of every factual; what is solved is written at once."""
    path = folder / f"optima-{problem.table}-{problem.kind}-{'fixed' if problem.is_fixed else 'free'}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for count, row in enumerate(problem.rows):
        key = problem.key(row)
        if key not in known:
            known[key] = solve(problem, row, seconds).as_dict()
            say(count, known[key])
            if count % 10 == 9 or row == problem.rows[-1]:
                path.write_text(json.dumps(known), encoding="utf-8")
    return [Optimum(**known[problem.key(row)]) for row in problem.rows]
