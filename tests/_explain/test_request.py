"""Asking differently without fitting again: the answers are those of an explainer fitted with what is asked."""

import io
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._base import executor
from onbmacf.errors import OnbmacfWarning, ParameterError

RULES = {"features": {"tobacco": {"direction": "down"}, "ldl": {"low": 2.5, "high": 9}}, "max_changes": 2}
HEART = ("sbp", "tobacco", "ldl", "adiposity", "famhist", "typea", "obesity", "alcohol", "age")
WEIGHTED = Rules({"ldl": Rule(weight=3.0)})


@pytest.fixture(scope="module")
def forest(heart):
    from onbmacf.datasets import load_heart

    table = heart.assign(famhist=heart["famhist"] == "Present")
    labels = np.where(load_heart()[1].to_numpy() == 1, "ill", "well")
    return RandomForestClassifier(15, random_state=0).fit(table, labels), table


@pytest.fixture(scope="module")
def explainer(forest):
    model, table = forest
    return ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"], rules=WEIGHTED))


def refitted(forest, schema, **options):
    model, table = forest
    return ONBMACF(**options).fit(table, model, schema=schema)


def same(answers, others):
    pd.testing.assert_frame_equal(answers.to_frame(), others.to_frame())
    pd.testing.assert_frame_equal(answers.status_frame(), others.status_frame())
    assert answers.to_json() == others.to_json()


CALLS = {
    "immutable": ({"immutable": ["age", "tobacco"]}, lambda s: s.with_immutable(["age", "tobacco"]), {}),
    "nothing is immutable": ({"immutable": []}, lambda s: s.with_immutable([]), {}),
    "vary": (
        {"vary": ["ldl", "tobacco", "alcohol"]},
        lambda s: s.with_immutable([name for name in s.names if name not in ("ldl", "tobacco", "alcohol")]),
        {},
    ),
    "rules": (
        {"rules": RULES},
        lambda s: s.with_rules(
            Rules({"tobacco": Rule(direction="down"), "ldl": Rule(low=2.5, high=9, weight=3.0)}, max_changes=2)
        ),
        {},
    ),
    "no rules": ({"rules": {}}, lambda s: s, {}),
    "n": ({"n": 3}, lambda s: s, {"n_counterfactuals": 3}),
    "plausibility": ({"plausibility": 1}, lambda s: s, {"plausibility": 1}),
    "all": (
        {"rules": Rules(max_changes=1), "n": 2, "plausibility": 0, "vary": ["ldl", "sbp"]},
        lambda s: s.with_rules(Rules({"ldl": Rule(weight=3.0)}, max_changes=1)).with_immutable(
            [name for name in s.names if name not in ("ldl", "sbp")]
        ),
        {"n_counterfactuals": 2, "plausibility": 0},
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_the_answers_are_those_of_an_explainer_fitted_with_what_is_asked(forest, explainer, case):
    asked, schema_of, options = CALLS[case]
    rows, before = forest[1].iloc[5:25], explainer.explain(forest[1].iloc[5:9])
    other = refitted(forest, schema_of(explainer.schema_), **options)
    answers = explainer.explain(rows, **asked)
    same(answers, other.explain(rows))
    same(explainer.explain(forest[1].iloc[5:9]), before)  # the explainer itself stays as it is


@pytest.mark.parametrize("more", [{"ranges": True}, {"front": True}, {"prove": True, "prove_seconds": 20}])
def test_what_else_a_call_may_ask_for_keeps_its_rules(forest, explainer, more):
    rows = forest[1].iloc[10:14]
    asked, schema_of, _ = CALLS["vary"]
    answers = explainer.explain(rows, **asked, **more)
    pd.testing.assert_frame_equal(
        answers.to_frame(), refitted(forest, schema_of(explainer.schema_)).explain(rows, **more).to_frame()
    )


def test_rows_may_be_asked_differently(forest, explainer):
    rows = forest[1].iloc[:8]
    targets = pd.Series(["ill", "well"] * 4, index=rows.index)
    locks = [["age"], ["age", "ldl"], [], ["age"], ["tobacco"], None, ["age"], ["age", "ldl"]]
    asked = {"n": [1, 2, 3, 1, 2, 3, 1, 2], "plausibility": [0, 1, 0.5, 0, 0, 1, 0.5, 1]}
    rules = [RULES, {}, None, RULES, Rules(max_changes=1), None, {}, RULES]
    answers = explainer.explain(rows, targets, immutable=locks, rules=rules, **asked)
    assert list(answers.rows.index) == list(rows.index)
    for at in range(len(rows)):
        own = {name: values[at] for name, values in asked.items()}
        alone = explainer.explain(rows.iloc[[at]], targets.iloc[at], immutable=locks[at], rules=rules[at], **own)
        same(answers[at : at + 1], alone)
    assert answers.n_questions > 0
    turned = explainer.explain(
        rows.iloc[::-1],
        targets,  # matched by its index
        immutable=locks[::-1],
        rules=rules[::-1],
        **{name: values[::-1] for name, values in asked.items()},
    )
    same(turned[::-1], answers)


def test_a_column_of_the_rows_may_say_what_is_asked(forest, explainer, recwarn):
    rows = forest[1].iloc[:4]
    said = rows.assign(wanted=["ill", "well", None, "well"], k=[1, None, 2, 1], locked=["ldl", None, "age", "age"])
    answers = explainer.explain(said, "wanted", n="k", immutable="locked", min_probability=pd.Series(0.5, rows.index))
    assert not [w for w in recwarn if "ignored" in str(w.message)]
    alone = [
        explainer.explain(rows.iloc[[at]], target, n=n, immutable=lock, min_probability=0.5)
        for at, (target, n, lock) in enumerate(
            [("ill", 1, "ldl"), ("well", None, None), (None, 2, "age"), ("well", 1, "age")]
        )
    ]
    for at, one in enumerate(alone):
        same(answers[at : at + 1], one)
    assert set(answers.rows.columns) == set(rows.columns)
    one, plain = said.iloc[3].to_dict(), rows.iloc[3].to_dict()
    same(
        explainer.explain(one, "wanted", n="k", immutable="locked"),
        explainer.explain(plain, "well", n=1, immutable="age"),
    )


def test_a_label_is_a_label_and_a_feature_a_feature_before_it_is_a_column(forest, explainer):
    rows = forest[1].iloc[:3]
    with pytest.warns(OnbmacfWarning, match="ignored 1 column not seen in fit: 'well'"):
        said = explainer.explain(rows.assign(well="ill"), "well")
    assert said.to_dicts() == explainer.explain(rows, "well").to_dicts()
    same(explainer.explain(rows, immutable="age"), explainer.explain(rows, immutable=["age"]))
    assert set(explainer.explain(rows, ["ill", "well"]).statuses) == {"already"}


def test_no_rows_are_no_question(forest, explainer):
    rows = forest[1].iloc[:0]
    assert len(explainer.explain(rows, n=[], target=pd.Series([], index=rows.index, dtype=object))) == 0


FAULTS = {
    "both": ({"immutable": ["age"], "vary": ["ldl"]}, "give immutable or vary"),
    "unknown to keep": ({"immutable": ["aeg"]}, "immutable names 'aeg', which is not a column. Did you mean 'age'"),
    "unknown to vary": ({"vary": ["aeg"]}, "vary names 'aeg', which is not a column. Did you mean 'age'"),
    "nothing varies": ({"vary": []}, "vary is empty: nothing could change"),
    "all kept": ({"immutable": list(HEART)}, "every feature is immutable"),
    "cost": ({"rules": {"features": {"ldl": {"weight": 2}}}}, "weight is 2 here and was 3.0 in fit"),
    "cost of another": ({"rules": Rules({"sbp": Rule(weight=2)})}, "weight is 2 here and was 1.0 in fit"),
    "no rules": ({"rules": 3}, "rules must be Rules or a dict, got int"),
    "key": ({"rules": {"features": {"ldl": {"lwo": 2}}}}, "unknown key 'lwo'. Did you mean 'low'"),
    "n": ({"n": 0}, "n_counterfactuals must be a whole number of at least 1, got 0"),
    "dial": ({"plausibility": 2}, r"plausibility must be in \[0, 1\], got 2"),
    "too few": ({"n": [1, 2]}, "n has 2 entries for 3 rows"),
    "lists": ({"immutable": [["age"]]}, "immutable has 1 entries for 3 rows"),
    "column": ({"n": "many"}, "n names a column 'many' that the rows do not have"),
    "label": ({"target": "no"}, "target must be among the model's labels 'ill', 'well', got 'no'"),
    "index": ({"n": pd.Series([1, 2], index=[0, 1])}, r"n has no value for row 2 \(1 rows in all\)"),
    "repeats": ({"n": pd.Series([1, 2, 3, 4], index=[0, 1, 2, 2])}, "n has an index that repeats"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_an_odd_question_is_an_error_that_names_it(forest, explainer, case):
    asked, message = FAULTS[case]
    with pytest.raises(ParameterError, match=message):
        explainer.explain(forest[1].iloc[:3], **asked)


@pytest.mark.xdist_group("processes")  # one pool for all of them
def test_answers_that_differ_from_row_to_row_are_the_same_with_processes(forest, explainer):
    rows, asked = forest[1].iloc[:12], {"n": [1, 2] * 6, "vary": [["ldl"], ["ldl", "sbp", "tobacco"]] * 6}
    same(explainer.explain(rows, **asked), explainer.with_options(n_jobs=2).explain(rows, **asked))


class Terminal(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_long_work_shows_a_bar_on_a_terminal_and_never_in_a_log(monkeypatch, is_terminal):
    monkeypatch.setattr(executor, "PATIENCE", 0)
    monkeypatch.setattr(sys, "stderr", Terminal(is_terminal))
    assert executor.run_all(abs, [-1, 2, -3], describe="explaining") == [1, 2, 3]
    assert ("explaining" in sys.stderr.getvalue()) == is_terminal


def test_long_work_shows_a_bar_in_a_notebook(monkeypatch):
    class Shell:
        config = {"IPKernelApp": {}}  # noqa: RUF012 - as IPython has it

    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(Shell)}))
    monkeypatch.setattr(executor, "PATIENCE", 0)
    monkeypatch.setattr(sys, "stderr", Terminal(False))
    executor.run_all(abs, [-1, 2, -3], describe="explaining")
    assert "explaining" in sys.stderr.getvalue()
