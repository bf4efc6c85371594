"""The rows given to explain, line by line: what is done, and its outcome."""

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

from faults.by_line.outcomes import E, Is, R, W
from faults.by_line.samples import above, fit, frame
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf.errors import ParameterError, RowsError

GOOD = {"x": 0.5, "y": 6, "t": "red", "b": 3}
SWAPPED = {"b": 3, "t": "red", "y": 6, "x": 0.5}
NONE_FOUND = "None was found with N questions to the model."
LOOKED_ON = "Looking for what it would need took N more questions."
NONE_EXISTS = "None exists: every combination of allowed values in the fitted ranges was asked."
RULE = "the rule for 'x' (at most 2)"


@cache
def fitted():
    return fit(frame(t=["red", "blue", "red", "green"], b=np.array([1, 2, 3, 4], dtype=np.int8)))


def explain(rows=GOOD, **asked):
    return fitted().explain(rows, **asked)


def between(explainer=None, good=GOOD, **bad):
    """Explain a bad row between two good ones."""
    columns = {name: [good.get(name), value, good.get(name)] for name, value in (good | bad).items()}
    rows = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    return (explainer or fitted()).explain(rows)


def same_as(rows, expected=GOOD):
    pd.testing.assert_frame_equal(explain(rows).to_frame().reset_index(drop=True), explain(expected).to_frame())
    return True


def one_row(rows):
    return lambda: (len(explain(rows)), same_as(rows))


def polars_row():
    return same_as(pytest.importorskip("polars").DataFrame({name: [value] for name, value in SWAPPED.items()}))


def empty():
    rows = pd.DataFrame([GOOD])
    none, some = explain(rows.head(0)), explain(rows)
    return len(none), list(none.to_frame().columns) == list(some.to_frame().columns)


def held(table, **how):
    """Return the status, the reason and what would help for a row whose x decides and cannot move far enough."""
    answer = fit(table, schema=Schema.infer(table, **how)).explain(table.iloc[:3])[1]
    return str(answer.status), re.sub(r"\b\d+( more)? questions", r"N\1 questions", answer.reason), answer.would_need


def fine():
    """A table with too many values to ask about all of them."""
    values = np.random.default_rng(0).random((40, 5))
    return pd.DataFrame(values, columns=list("xabcd")).assign(x=lambda rows: rows["x"] * 4)


EXPLAIN = {
    "missing column": (
        lambda: explain({"x": 0.5, "t": "red"}),
        E(RowsError, "lack 2 of the 4 expected columns: 'y', 'b'"),
    ),
    "extra column": (lambda: explain({**GOOD, "z": 1}), W("ignored 1 column not seen in fit: 'z'")),
    "other column order": (lambda: same_as(pd.DataFrame([SWAPPED])), Is(True)),
    "wrong width": (lambda: explain(np.zeros((2, 5))), E(RowsError, "width 5; fit saw 4 columns")),
    "infinity": (lambda: between(x=np.inf), R("invalid_row", "'x': inf is not a finite number")),
    "300 in int8": (lambda: between(b=300), R("invalid_row", "'b': 300 is not a whole number that fits .* int8")),
    "5.5 in whole numbers": (lambda: between(y=5.5), R("invalid_row", "'y': 5.5 is not a whole number .* int64")),
    "10**400": (lambda: between(x=10**400), R("invalid_row", "'x': a whole number of 401 digits")),
    "names in polars": (polars_row, Is(True)),
    "names in dicts": (lambda: same_as([SWAPPED]), Is(True)),
    "unseen category": (
        lambda: between(t="gren"),
        R("invalid_row", r"'t': unseen level 'gren'. Did you mean 'green'\? Known: 'blue', 'green', 'red'"),
    ),
    "outside the fitted range": (lambda: list(between(x=-100.0, y=600).statuses), Is(["found"] * 3)),
    "one Series": (one_row(pd.Series(GOOD, dtype=object)), Is((1, True))),
    "one dict": (one_row(SWAPPED), Is((1, True))),
    "one array": (one_row(np.array(list(GOOD.values()), dtype=object)), Is((1, True))),
    "empty batch": (empty, Is((0, True))),
    "already of the target class": (lambda: str(explain(target=0)[0].status), Is("already")),
    "nothing reachable, proven": (
        lambda: held(frame(), immutable=["x"]),
        Is(("infeasible", f"{NONE_EXISTS} One is found if x may change.", ("x",))),
    ),
    "nothing reachable, not proven": (
        lambda: held(fine(), immutable=["x"]),
        Is(("none_found", f"{NONE_FOUND} One is found if x may change. {LOOKED_ON}", ("x",))),
    ),
    "the rule that blocks": (
        lambda: held(frame(), rules=Rules({"x": Rule(high=2)})),
        Is(("infeasible", f"{NONE_EXISTS} One is found without {RULE}.", (RULE,))),
    ),
    "more counterfactuals than exist": (
        lambda: explain(n=50, immutable=["y", "t", "b"])[0].reason,
        Is("2 of 50 counterfactuals were found."),
    ),
    **{
        f"n_counterfactuals={n!r}, {where}": (
            lambda n=n, ask=ask: ask(n),
            E(ParameterError, f"n_counterfactuals must be a whole number of at least 1, got {n!r}"),
        )
        for n in (0, -1, 2.5, True)
        for where, ask in {"fit": lambda n: ONBMACF(n).fit(frame(), above), "explain": lambda n: explain(n=n)}.items()
    },
    "unknown immutable": (
        lambda: explain(immutable=["q"]),
        E(ParameterError, "immutable names 'q', which is not a column. Columns: 'x', 'y', 't', 'b'"),
    ),
    "every column immutable": (lambda: explain(immutable=list(GOOD)), E(ParameterError, "every feature is immutable")),
    "unknown target class": (
        lambda: explain(target=7),
        E(ParameterError, "target must be among the model's labels 0, 1, got 7"),
    ),
}
