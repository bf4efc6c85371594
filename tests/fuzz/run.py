"""One fuzzed case from start to end, and a damaged file; failures name the seed by which they come back."""

import copy
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from fuzz.cases import POLARS
from fuzz.guard import TYPED, bounded
from fuzz.models import FRAGILE, HONEST, MODELS, REFUSED
from fuzz.polars_cases import AsPolars, as_polars
from fuzz.promises import check_answers, check_same, check_told, check_untouched
from onbmacf import ONBMACF, Rules, Schema
from onbmacf.io import read_table


def run_case(case):
    """Fit, explain, and check all promises; errors of our own types are answers, too."""
    model = MODELS[case.model](case.table, case.seed)
    table, rows = case.table.copy(deep=True), copy.deepcopy(case.rows)
    with bounded():
        try:
            schema, explainer = _fitted(case, model)
            answers = explainer.explain(_given(case, case.rows), **case.asked)
        except TYPED:
            return "refused"
        finally:
            check_untouched(table, case.table)
            check_untouched(rows, case.rows)
        assert case.model not in REFUSED, "this model cannot be explained"
        if case.model in HONEST | FRAGILE:
            check_answers(case, model, answers, schema.kinds)
            check_told(case, model, answers)
    if case.model in HONEST:
        _check_company(explainer, case, answers)
    return "answered"


def _fitted(case, model):
    rules = Rules(case.rules, at_most=case.at_most, max_changes=case.max_changes)
    table = _given(case, case.table)
    if case.container == "polars" and hasattr(model, "__call__" if callable(model) else "predict"):
        model = AsPolars(model, case.table, table)
    schema = Schema.infer(table, immutable=case.immutable, rules=rules)
    return schema, ONBMACF(**case.options).fit(table, model, schema=schema)


def _given(case, rows):
    return as_polars(rows, case.table) if case.container == "polars" else rows


def _check_company(explainer, case, answers):
    """The same rows in another order, and one alone, as a record or as a frame of polars; each call has its limits."""
    n = len(case.rows)
    row = case.seed % n
    record = {name: case.rows[name].iloc[row] for name in reversed(case.rows.columns)}
    others = [(case.rows.iloc[::-1], [(at, n - 1 - at) for at in range(n)]), ([record], [(row, 0)])]
    if case.n_bad == 0 and set(case.kinds) <= set(POLARS):
        others.append((as_polars(case.rows.iloc[[row]], case.table), [(row, 0)]))
    for rows, pairs in others:
        with bounded():
            check_same(answers, explainer.explain(rows, **case.asked), pairs)


def run_damaged_map(seed):
    """Save a map, change some of its bytes, and load it: a typed error, or the same answers."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.random(12).round(3), "k": rng.choice(list("abc"), 12)})
    model = lambda rows: (rows["x"] > 0.5).astype(int)  # noqa: E731
    with tempfile.TemporaryDirectory() as folder, bounded():
        path = Path(folder, "map.onb")
        try:
            explainer = ONBMACF().fit(table, model)
        except TYPED:
            return "refused"
        explainer.save(path)
        path.write_bytes(_damaged(rng, path.read_bytes()))
        try:
            other = ONBMACF.load(path, model)
        except TYPED:
            return "refused"
        check_same(explainer.explain(table[:3]), other.explain(table[:3]), [(0, 0), (1, 1), (2, 2)])
    return "answered"


def run_odd_files(seed):
    """Read bytes as a table and as rules: a typed error, or an object."""
    rng = np.random.default_rng(seed)
    pieces = [
        b"a,b\n",
        b"1,2\n",
        b"\r",
        b'"',
        b"\xff",
        b"x = 1\n",
        b"[features.a]\n",
        b"low = ",
        b"inf",
        b"\x00",
        b";",
        b"'",
    ]
    content = b"".join(pieces[int(at)] for at in rng.integers(0, len(pieces), int(rng.integers(0, 12))))
    outcome = "refused"
    with tempfile.TemporaryDirectory() as folder, bounded():
        for name, read in (("t.csv", read_table), ("r.toml", Rules.from_toml)):
            Path(folder, name).write_bytes(content)
            try:
                read(Path(folder, name))
                outcome = "answered"
            except TYPED:
                pass
    return outcome


def _damaged(rng, content):
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return content[: int(rng.integers(0, len(content)))]
    if kind == 1:
        return content + bytes(int(rng.integers(1, 9)))
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4)) if kind == 2 else 0):
        changed[int(rng.integers(0, len(changed)))] ^= 1 << int(rng.integers(0, 8))
    return bytes(changed)
