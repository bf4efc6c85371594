"""The table given to fit, line by line: what is done, and its outcome."""

import numpy as np
import pandas as pd
from scipy import sparse

from faults.by_line.outcomes import E, Is, W
from faults.by_line.samples import ARRAY, fit, frame, unasked
from onbmacf.errors import ModelError, TableError


def answered(table, **how):
    """Return the statuses of a table explained by its own map, and whether every dtype came back."""
    answers = fit(table, **how).explain(table)
    found = answers.to_frame()
    return set(answers.statuses), all(found[name].dtype == table[name].dtype for name in table)


def conflicting():
    """Four rows of which the first two coincide and get different labels."""
    return fit(pd.DataFrame({"x": [1.0, 1, 2, 4]}), lambda rows: np.resize([0, 1, 0, 1], len(rows)))


def radius_0():
    """Return how many balls hold one point only, and how many rows are answered."""
    explainer = conflicting()
    return int(explainer.cover_.is_degenerate.sum()), len(explainer.explain(pd.DataFrame({"x": [1.0, 1, 2, 4]})))


def exact(dtype, ends):
    """Return the distances of a narrow dtype less those of float64: near its ends, differences overflow in it."""
    table = pd.DataFrame({"x": [0, 1, 3, 4], "r": np.array([*ends, *ends], dtype=dtype)})
    return (fit(table).Z_ - fit(table.astype(float)).Z_).tolist()


def scales():
    table = pd.DataFrame({"x": [0.0, 1, 3, 4], "tiny": ARRAY[:, 1] * 1e-150, "huge": ARRAY[:, 1] * 1e150})
    return bool(np.isfinite(fit(table).explain(table).to_frame()["distance"]).all())


def index_kept():
    table = frame().set_index(pd.Index([9, 2, 9, 1], name="person"))
    answers = fit(table).explain(table)
    return list(answers.status_frame().index), answers.to_frame().index.name, list(answers.to_frame().index)


def changed_after():
    table = frame()
    explainer = fit(table)
    before = explainer.explain(frame()).to_json()
    table.loc[:, "x"] = 9.0
    return explainer.explain(frame()).to_json() == before


def array_of(order):
    table = np.array(ARRAY, order=order)
    table.setflags(write=False)
    return list(fit(table, lambda rows: rows[:, 0] > 2).explain(table).statuses)


def dates():
    table = frame(d=pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"]))
    cut = pd.Timestamp("2021-06-01")
    found = fit(table, lambda rows: rows["d"] > cut).explain(table.head(1)).to_frame()
    return found["d"].dtype == table["d"].dtype, bool((found["d"] > cut).all())


def missing():
    table = frame(m=[1.5, np.nan, 2.5, np.nan])
    return list(fit(table).explain(table).statuses)


DTYPES = {
    "bool": [True, False, True, False],
    "nullable Int64": pd.array([1, 2, 3, 4], dtype="Int64"),
    "nullable boolean": pd.array([True, False, True, False], dtype="boolean"),
    "category": pd.Categorical(["a", "b", "a", "b"]),
    "str": pd.array(["a", "b", "a", "b"], dtype="str"),
    "object text": pd.Series(["a", "b", "a", "b"], dtype=object),
}

FIT = {
    "empty": (lambda: unasked(frame().head(0)), E(TableError, "no rows")),
    "zero columns": (lambda: unasked(pd.DataFrame(index=[0, 1])), E(TableError, "no columns")),
    "one row": (lambda: unasked(frame().head(1)), E(TableError, "1 row")),
    "all predictions one class": (
        lambda: fit(frame(), lambda rows: np.full(len(rows), "no")),
        E(ModelError, "the model predicts only 'no' on these 4 rows"),
    ),
    "infinity": (
        lambda: unasked(frame(x=[0, np.inf, -np.inf, 4], y=[1.0, 2, 3, np.inf])),
        E(TableError, "infinite values .* in column 'x', 'y': 3 rows, the first at positions 1, 2, 3"),
    ),
    "missing values": (missing, Is(["found"] * 4)),
    "constant column": (lambda: answered(frame(c=[7] * 4, k=["a"] * 4)), Is(({"found"}, True))),
    "duplicate rows with conflicting predictions": (conflicting, W("2 rows coincide .* at positions 0, 1")),
    "radius 0": (radius_0, Is((2, 4))),
    "duplicate column names": (
        lambda: unasked(pd.DataFrame(ARRAY, columns=["a", "a"])),
        E(TableError, "repeat.*'a'|'a'.*repeat"),
    ),
    "numbers stored as text": (
        lambda: unasked(frame(t=["1", "2.5", "3", "4"])),
        E(TableError, "'t' holds numbers stored as text, e.g. '1'"),
    ),
    "text and numbers": (lambda: unasked(frame(t=["a", 2, "b", 3])), E(TableError, "'t' mixes text .* 'a' and 2")),
    "identifier-like column": (
        lambda: fit(pd.DataFrame({"x": np.arange(30) / 7, "id": [f"p{i}" for i in range(30)]})),
        W("nearly every row has a text of its own in column 'id'"),
    ),
    "uint8": (lambda: exact(np.uint8, (255, 0)), Is([[0.0, 0.0]] * 4)),
    "int8": (lambda: exact(np.int8, (127, -128)), Is([[0.0, 0.0]] * 4)),
    **{
        kind: (lambda values=values: answered(frame(c=values)), Is(({"found"}, True)))
        for kind, values in DTYPES.items()
    },
    "dates and times": (dates, Is((True, True))),
    "complex": (lambda: unasked(frame(c=[1j, 2, 3, 4])), E(TableError, "'c' has dtype complex")),
    "the rest": (lambda: unasked(frame(c=pd.interval_range(0, 4))), E(TableError, "'c' has dtype interval")),
    "scales from 1e-150 to 1e150": (scales, Is(True)),
    "odd index": (index_kept, Is(([9, 2, 9, 1], "person", [9, 2, 9, 1]))),
    "sparse matrix": (lambda: unasked(sparse.eye(4, format="csr")), E(TableError, "sparse matrix.*dense only")),
    "mutated after fit": (changed_after, Is(True)),
    "read-only array": (lambda: array_of("C"), Is(["found"] * 4)),
    "Fortran-ordered array": (lambda: array_of("F"), Is(["found"] * 4)),
}
