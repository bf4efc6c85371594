"""Maps forged with right digests: what an attacker, or a broken writer, could put into a file.

python tests/helpers/forging.py 2000     # forges so many, prints what became of them, fails where one was wrongly taken
"""

import sys
import tempfile
import warnings
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._disk import store
from onbmacf.errors import OnbmacfError, ParameterError

NUMBERS = [0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e300, np.nan, np.inf, -np.inf, 2**31, 2**53, 2**62, -(2**62), 1 + 1e-9]
ODD = [None, True, False, 0, -1, 1, 2, 0.25, 2**31, 10**30, float("nan"), float("inf"), "", "a", "manhattan", "object",
       "float32", "int8", "datetime64[ns]", "binary", "ordinal", "categorical", "paper", "overlay", "persist",
       [], [1], ["a", "b"], [[1]], {}, {"a": 1}, [None] * 3]  # fmt: skip


def table(n=45):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"x": rng.normal(size=n).round(2), "k": rng.integers(0, 9, n), "t": rng.choice(list("abc"), n)}
    )
    frame["u"] = rng.random(n)
    frame["o"] = pd.Categorical(rng.choice(["S", "M", "L"], n), categories=["S", "M", "L"], ordered=True)
    return frame.assign(b=rng.choice(["no", "yes"], n))


def model(rows):
    return np.where(rows["x"] + 0.2 * rows["k"] + (rows["t"] == "a") > 1, "high", "low")


def explainer():
    frame = table()
    rules = Rules({"x": Rule(high=3.0), "t": Rule(forbidden=[("a", "c")])}, at_most=[("u", "k")], max_changes=3)
    return ONBMACF(2).fit(frame, model, schema=Schema.infer(frame, immutable=["b"], rules=rules))


def forged(arrays, manifest, rng):
    """Return arrays and manifest with one to three things changed."""
    arrays = {name: np.array(array) for name, array in arrays.items()}
    manifest = deepcopy(manifest)
    for _ in range(int(rng.integers(1, 4))):
        change = CHANGES[rng.integers(len(CHANGES))]
        change(arrays, manifest, rng)
    return arrays, manifest


def _pick(items, rng):
    items = list(items)
    return items[rng.integers(len(items))]


def _cell(arrays, manifest, rng):
    array = arrays[_pick(arrays, rng)]
    if array.size:
        value = _pick(NUMBERS, rng)
        place = rng.integers(array.size)
        near = array.reshape(-1)[place] + rng.choice([-1, 1]) * rng.choice([1, 0.01]) if rng.random() < 0.5 else value
        with np.errstate(all="ignore"):
            array.reshape(-1)[place] = (
                near if array.dtype.kind == "f" else int(np.clip(np.nan_to_num(near), -9e18, 9e18))
            )


def _swap(arrays, manifest, rng):
    array = arrays[_pick(arrays, rng)]
    if len(array) > 1:
        a, b = rng.choice(len(array), 2, replace=False)
        array[[a, b]] = array[[b, a]]


def _shape(arrays, manifest, rng):
    name = _pick(arrays, rng)
    array = arrays[name]
    make = _pick(
        [lambda: array[:-1], lambda: np.concatenate([array, array[:1]]), lambda: array.reshape(-1), lambda: array[:0],
         lambda: array.T.copy(), lambda: array[np.newaxis], lambda: array.astype(np.int64), lambda: array > 0,
         lambda: array.astype(np.float64)], rng)  # fmt: skip
    with np.errstate(all="ignore"):
        arrays[name] = np.ascontiguousarray(make())


def _drop(arrays, manifest, rng):
    where = arrays if rng.random() < 0.5 else manifest
    if where:
        where.pop(_pick(where, rng))


def _more(arrays, manifest, rng):
    arrays[_pick(["known_0", "known_9", "known_x", "extra", "known_-1"], rng)] = rng.random(int(rng.integers(0, 4)))


def _entry(arrays, manifest, rng):
    """Change an entry of the manifest, at any depth."""
    place = manifest
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = _pick(keys, rng)
        if not isinstance(place[key], dict | list) or rng.random() < 0.2:
            place[key] = _pick([*ODD, place[key], [place[key]] * 2], rng)
            return
        place = place[key]


def _double(arrays, manifest, rng):
    lists = [key for key, value in manifest.items() if isinstance(value, list) and value]
    if lists:
        key = _pick(lists, rng)
        manifest[key] = manifest[key] + manifest[key][-1:] if rng.random() < 0.5 else manifest[key][:-1]


def _table(arrays, manifest, rng):
    """Change the rows themselves, and what is said of them, as if another table had been fitted."""
    name = _pick(["Z", "row_labels", "probes"], rng)
    if name in arrays and len(arrays[name]):
        arrays[name] = arrays[name][rng.permutation(len(arrays[name]))]


CHANGES = (_cell, _cell, _swap, _shape, _drop, _more, _entry, _entry, _entry, _double, _table)


def outcome(path, rows):
    """Return 'refused', or 'the same' where a fresh fit of what the file says answers alike; else what went wrong."""
    try:
        loaded = ONBMACF.load(path, model).set_params(n_jobs=1)
    except OnbmacfError:
        return "refused"
    fitted = loaded.fitted_
    frame = fitted.space.form.rows_for_model(fitted.space.decode_numbers(fitted.Z))
    fresh = ONBMACF(**loaded.get_params()).fit(frame, model, schema=loaded.schema_, output=fitted.black_box.output)
    try:
        expected = fresh.explain(rows)
    except OnbmacfError as error:
        expected = error
    try:
        found = loaded.explain(rows)
    except OnbmacfError as error:
        return "the same" if str(error) == str(expected) else f"raised {error!r}"
    same = not isinstance(expected, Exception) and found.to_frame().equals(expected.to_frame())
    return "the same" if same and found.status_frame().equals(expected.status_frame()) else "other answers"


def forge_all(count, folder, seed=0):
    """Forge so many maps; return how often each outcome came, and the seeds of those that went wrong."""
    path, first = Path(folder) / "forged.onb", explainer()
    first.save(path)
    arrays, manifest = store.read(path)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    rows, counts, wrong = table().head(3), Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(seed, seed + count):
            store.write(path, *forged(arrays, manifest, np.random.default_rng(number)))
            try:
                what = outcome(path, rows)
            except ParameterError as error:  # a file may name an agreement; the committee is given to load
                what = "refused" if "needs a committee" in str(error) else f"a bare ParameterError: {error}"
            except Exception as error:
                what = f"a bare {type(error).__name__}: {error}"
            counts[what] += 1
            if what not in ("refused", "the same"):
                wrong.append((number, what))
    return counts, wrong


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        counts, wrong = forge_all(int(sys.argv[1]), folder)
    print(dict(counts), *wrong[:20], sep="\n")
    sys.exit(bool(wrong))
