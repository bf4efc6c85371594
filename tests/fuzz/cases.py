"""Fuzzed cases: a table with columns of any kind, a model, rules, options, and rows, some of them bad.

What is drawn is small; the values come from a random generator with a drawn seed, so a case is quick to make and its
seed says it all.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fuzz.models import FRAGILE, HONEST, ODD, REFUSED
from onbmacf import Rule
from onbmacf._search.strategies import STRATEGIES

WORDS = ("a", "b", "red", "", "nan", "<b>", "1", "ä", "x y")


def _numbers(scale, decimals):
    return lambda rng, n: np.round(rng.normal(size=n) * scale, decimals)


def _whole(dtype, low, high):
    return lambda rng, n: rng.integers(low, high, n).astype(dtype)


def _levels(dtype, ordered=False):
    def make(rng, n):
        names = list(rng.permutation(WORDS[: int(rng.integers(2, 6))]))
        values = rng.choice(names, n)
        return (
            pd.Categorical(values, categories=names, ordered=ordered)
            if dtype == "category"
            else pd.array(values, dtype)
        )

    return make


def _lacking(make, share=0.2):
    """Return a maker of columns some of whose values are missing, though never all."""

    def lacking(rng, n):
        column = pd.Series(make(rng, n))
        return column.where((rng.random(n) >= share) | (np.arange(n) == 0))

    return lacking


COLUMNS = {
    "float64": _numbers(10, 2),
    "fine": _numbers(1, 12),
    "tiny": _numbers(1e-9, 12),
    "huge": _numbers(1e12, 0),
    "float32": lambda rng, n: _numbers(3, 2)(rng, n).astype(np.float32),
    "constant": lambda rng, n: np.full(n, 2.5),
    "few": lambda rng, n: rng.choice([0.5, 1.5, 4.0], n),
    "int64": _whole(np.int64, -50, 50),
    "int8": _whole(np.int8, -128, 127),
    "uint8": _whole(np.uint8, 0, 255),
    "Int64": lambda rng, n: pd.array(rng.integers(0, 9, n), "Int64"),
    "Float64": lambda rng, n: pd.array(rng.random(n).round(3), "Float64"),
    "bool": lambda rng, n: rng.random(n) > 0.5,
    "boolean": lambda rng, n: pd.array(rng.random(n) > 0.5, "boolean"),
    "objects": lambda rng, n: pd.Series(rng.integers(0, 9, n).tolist(), dtype=object),
    "text": _levels("str"),
    "object text": _levels(object),
    "string": _levels("string"),
    "category": _levels("category"),
    "ordered": _levels("category", ordered=True),
    "lacking": _lacking(_numbers(10, 2)),
    "lacking Int64": _lacking(lambda rng, n: pd.array(rng.integers(0, 9, n), "Int64")),
    "lacking text": _lacking(_levels(object)),
}
POLARS = [kind for kind in COLUMNS if kind not in ("objects", "constant")]  # polars has no column of any objects
BAD = (
    np.nan,
    None,
    np.inf,
    1e308,
    -1e200,
    10**400,
    "?",
    "12,5",
    [1],
    {},
    pd.Timestamp("2020"),
    1 + 2j,
    300,
    5.5,
    b"a",
    True,
)
INDEXES = ("range", "repeated", "text")


@dataclass
class Case:
    """One fuzzed question, and what is needed to ask it."""

    seed: int
    kinds: list
    n_rows: int
    model: str
    options: dict
    asked: dict
    has_rules: bool
    n_bad: int
    index: str
    container: str = "pandas"
    table: pd.DataFrame = field(init=False)
    rows: pd.DataFrame = field(init=False)
    bad: list = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        names = [f"c{at}" for at in range(len(self.kinds))]
        self.table = pd.DataFrame(
            {name: COLUMNS[kind](rng, self.n_rows) for name, kind in zip(names, self.kinds, strict=True)}
        )
        self.immutable = [name for name in names[1:] if rng.random() < 0.25]
        self.rules = {name: _rule(rng, self.table[name]) for name in names if self.has_rules and rng.random() < 0.5}
        self.at_most = _pairs(rng, self.table) if self.has_rules else []
        self.max_changes = int(rng.integers(1, 4)) if self.has_rules and rng.random() < 0.3 else None
        self.rows = _rows(rng, self.table)
        self.bad = _spoil(rng, self)
        self.rows.index = {
            "range": range(len(self.rows)),
            "repeated": [7] * len(self.rows),
            "text": list("abcdef")[: len(self.rows)],
        }[self.index]


def _rule(rng, column):
    """Return a rule that fits the column, most of the time."""
    is_number = column.dtype.kind in "biuf" and not pd.api.types.is_bool_dtype(column.dtype)
    if is_number or (isinstance(column.iloc[0], int) and not isinstance(column.iloc[0], bool)):
        values = np.sort(column.dropna().to_numpy(dtype=float))
        low, high = values[int(rng.integers(0, len(values)))], values[-1]
        return [
            Rule(direction="up"),
            Rule(direction="down"),
            Rule(low=float(low)),
            Rule(high=float(low)),
            Rule(low=float(low), high=float(high)),
            Rule(step=float(rng.choice([0.1, 0.5, 1, 3]))),
            Rule(low=float(low), step=0.25),
            Rule(weight=3.0),
            Rule(high=0.1),
        ][int(rng.integers(0, 9))]
    levels = list(pd.unique(column.dropna()))
    some = tuple(levels[: int(rng.integers(1, len(levels) + 1))])
    return [Rule(allowed=some), Rule(forbidden=((levels[0], levels[-1]),)), Rule(weight=0.5)][int(rng.integers(0, 3))]


def _pairs(rng, table):
    numeric = [name for name in table if table[name].dtype.kind in "iuf"]
    return [(numeric[0], numeric[-1])] if len(numeric) > 1 and rng.random() < 0.3 else []


def _rows(rng, table):
    """Return rows near the table's: fitted ones, with some numbers moved in and out of the fitted range."""
    rows = table.iloc[rng.integers(0, len(table), int(rng.integers(1, 4)))].reset_index(drop=True)
    for name in rows:
        if rows[name].dtype == np.float64 and rng.random() < 0.5:
            rows[name] = np.round(rows[name] * rng.choice([1, 1.01, -3]) + rng.normal(size=len(rows)), 3)
    return rows


def _spoil(rng, case):
    """Put bad values into some rows; return which rows hold one that must be told."""
    spoilt = []
    for row in range(min(case.n_bad, len(case.rows))):
        name, value = case.table.columns[int(rng.integers(0, len(case.kinds)))], BAD[int(rng.integers(0, len(BAD)))]
        cells = case.rows[name].tolist()
        cells[row] = value
        case.rows[name] = pd.Series([*cells, None], dtype=object)[:-1]
        spoilt.append(row)
    return spoilt


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "n_counterfactuals": st.integers(1, 4),
        "metric": st.sampled_from(["manhattan", "euclidean", "chebyshev"]),
        "strategy": st.sampled_from(["refined", "refined", "paper"]),
        "plausibility": st.sampled_from([0, 0.5, 1]),
        "release": st.sampled_from(["nothing", "immutable", "rules"]),
        "search": st.sampled_from(["best_first", "exhaustive"]),
        "max_model_rows": st.integers(1, 200),
        "max_model_calls": st.integers(1, 20),
        "predict_chunk": st.sampled_from([32, 64]),
        "association": st.sampled_from(["surface", "center"]),
        "boundary": st.sampled_from(["surface", "ratio"]),
    },
)
ASKED = st.sampled_from(  # fronts and ranges take longest
    [
        *[{}] * 6,
        *[{"min_probability": least} for least in (0.55, 0.9)] * 2,
        {"min_neighbours": 2},
        {"front": True},
        {"ranges": True},
        {"front": True, "ranges": True, "min_probability": 0.55},
    ]
)
WITHOUT = ("ints", "words", "three", "bools", "raising proba")  # models without probabilities, or with none to be had


@st.composite
def cases(draw):
    """Draw a case that is mostly answerable: one in eight may ask for what does not go together."""
    model = draw(st.sampled_from([*sorted(HONEST) * 6, *sorted(FRAGILE) * 3, *sorted(ODD), *sorted(REFUSED)]))
    options, asked = dict(draw(OPTIONS)), dict(draw(ASKED))
    container = draw(st.sampled_from(["pandas", "pandas", "pandas", "polars"]))
    if draw(st.integers(0, 7)) < 7:
        strategy = options.get("strategy", "refined")
        options = {name: value for name, value in options.items() if name not in STRATEGIES[strategy].ignores}
        if strategy == "paper":
            asked.pop("front", None)
        if model in WITHOUT:
            asked.pop("min_probability", None)
    kinds = sorted(COLUMNS) if container == "pandas" else sorted(POLARS)
    return Case(
        seed=draw(st.integers(0, 2**32 - 1)),
        kinds=draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=5)),
        n_rows=draw(st.integers(4, 25)),
        model=model,
        options=options,
        asked=asked,
        has_rules=draw(st.booleans()),
        n_bad=draw(st.integers(0, 2)) if container == "pandas" else 0,
        index=draw(st.sampled_from(INDEXES)) if container == "pandas" else "range",
        container=container,
    )


CASES = cases()
