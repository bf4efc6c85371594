"""Results in files: the optima of a problem, and the answers of other methods, each under a hash of what decides it.

    problem  ->  optima  ->  list of Optimum        problem, method  ->  answers  ->  Answers

This package's own answers are never kept: they are what is measured.
"""

import hashlib
import json
from importlib import import_module
from pathlib import Path

import numpy as np

from optimum_methods import OURS, Answers, explained
from optimum_solve import Optimum, solve


def optima(problem, folder, seconds):
    """Return the optimum of every factual; what is solved is written at once."""
    path = folder / f"optima-{problem.name}.json"
    known = _read(path)
    keys = [problem.key(row) for row in problem.rows]
    for count, (key, row) in enumerate(zip(keys, problem.rows, strict=True)):
        if key not in known:
            known[key] = solve(problem, row, seconds).as_dict()
            if count % 10 == 9 or count == len(keys) - 1:
                _write(path, known)
    return [Optimum(**known[key]) for key in keys]


def answers(problem, method, folder):
    """Return a method's answers, or the reason why it gives none; those of other methods come from the file."""
    if method in OURS or method.startswith("ONB"):
        return explained(problem, method)
    path = folder / f"answers-{problem.name}-{method}.json"
    key, known = _answers_key(problem, method), _read(path)
    if key not in known:
        found = explained(problem, method)
        _write(path, {key: found if isinstance(found, str) else [np.asarray(part).tolist() for part in found]})
        known = _read(path)
    found = known[key]
    return found if isinstance(found, str) else Answers(*(np.asarray(part) for part in found))


def _answers_key(problem, method):
    from onbmacf.bench.cells import versions
    from onbmacf.bench.methods import REGISTRY

    entry = REGISTRY[method]
    code = Path(import_module(entry.module).__file__).read_bytes()
    inputs = [*(problem.key(row) for row in problem.rows), str(entry), versions(), hashlib.sha256(code).hexdigest()]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:20]


def _read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write(path, document):
    path.write_text(json.dumps(document), encoding="utf-8")
