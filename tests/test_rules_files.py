"""The border where rules, schemas and TOML files come in: a typed error that names the rule and the value."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.conftest import people, run  # noqa: F401 - fixtures
from commands import one_line
from onbmacf import ONBMACF, Feature, Rule, Rules, Schema
from onbmacf.errors import OnbmacfError, ParameterError

TABLE = pd.DataFrame({"x": [0.0, 1, 3, 4.5], "r": [0.1, 0.2, 0.3, 0.4], "k": [1, 2, 3, 4], "t": list("abab")})


def above(rows):
    return rows["x"] > 2


AGE = "[features.age]\n"
TOML = {
    "text as a number": (AGE + 'low = "a"', "features.age: low must be a number, a date, .*, got 'a'"),
    "a list as a number": (AGE + "high = [1]", r"features.age: high must be a number, a date, .*, got \[1\]"),
    "a bool as a number": (AGE + "low = true", "features.age: low must be a number, a date, .*, got True"),
    "not a number": (AGE + "low = nan", "features.age: low must be a number, a date, .*, got nan"),
    "a date as a number": (AGE + "low = 2020-01-01", "rule for 'age': low must be a number, .* got '2020-01-01'"),
    "text as a step": (AGE + 'step = "1"', "features.age: step must be a number, a date, .*, got '1'"),
    "text as a weight": (AGE + 'weight = "1"', "features.age: weight must be a number, got '1'"),
    "a number as a direction": (AGE + "direction = 1", "features.age: direction must be one of 'up', 'down', got 1"),
    "another direction": (AGE + 'direction = "left"', "features.age: direction must be one of 'up', 'down'"),
    "a level for levels": ('[features.town]\nallowed = "A"', "features.town: allowed must be a list, got 'A'"),
    "a list among levels": ('[features.town]\nallowed = [["A"]]', r"allowed\[0\] must be text, a number or a bool"),
    "no level": ("[features.town]\nallowed = []", "rule for 'town': no level is allowed"),
    "an unknown level": ('[features.town]\nallowed = ["Z"]', "rule for 'town': unknown level 'Z'. Known: 'A', 'B'"),
    "no pair": ('[features.town]\nforbidden = ["AB"]', r"features.town: forbidden\[0\] must be a list of 2, got 'AB'"),
    "three in a pair": ('[features.town]\nforbidden = [["A", "B", "C"]]', r"forbidden\[0\] must be a list of 2"),
    "one pair, bare": ('at_most = ["age", "pay"]', r"at_most\[0\] must be a list of 2, got 'age'"),
    "two letters": ('at_most = ["ab"]', r"at_most\[0\] must be a list of 2, got 'ab'"),
    "a number for pairs": ("at_most = 3", "at_most must be a list, got 3"),
    "a table for pairs": ("[at_most]\na = 1", "at_most must be a list, got {'a': 1}"),
    "pairs of lists": ('at_most = [[["age"], "pay"]]', r"at_most\[0\]\[0\] must be text, a number or a bool"),
    "text as changes": ('max_changes = "3"', "max_changes must be a whole number of at least 1, got '3'"),
    "half a change": ("max_changes = 1.5", "max_changes must be a whole number of at least 1, got 1.5"),
    "no change": ("max_changes = 0", "max_changes must be a whole number of at least 1, got 0"),
    "features as a list": ("features = [1]", r"features must be a table, got \[1\]"),
    "a feature as a number": ("[features]\nage = 5", "features.age must be a table, got 5"),
    "an unknown key": (AGE + "lowest = 3", "age: unknown key 'lowest'. Did you mean 'low'.*Allowed: 'direction'"),
    "an unknown part": ("max_change = 3", "unknown key 'max_change'. Did you mean 'max_changes'"),
    "an unknown feature": ("[features.agee]\nlow = 3", "rule for 'agee': there is no such feature. Did you mean 'age'"),
    "a range reversed": (AGE + "low = 3\nhigh = 1", "rule for 'age': the range 3 to 1 is reversed"),
    "a range at infinity": (AGE + "low = inf", "rule for 'age': the range inf to inf holds no number"),
    "beyond all values": (AGE + "low = 1e308", r"rule for 'age': low is 1e\+308, too far from the fitted values"),
    "below all values": (AGE + "high = -1e308", r"rule for 'age': high is -1e\+308, too far from the fitted values"),
    "no whole number": (AGE + "low = 30.2\nhigh = 30.8", "rule for 'age': no whole number lies in 30.2 to 30.8"),
    "no whole step": (AGE + "low = 30.5\nhigh = 60\nstep = 1", "no whole number lies in 30.5 to 60 in steps of 1"),
    "a step beyond the range": (AGE + "low = 30\nhigh = 40\nstep = 50", "a step of 50 does not fit the range 30 to 40"),
    "a step of 0": (AGE + "step = 0", "rule for 'age': step must be above 0, got 0"),
    "a weight of infinity": (AGE + "weight = inf", "rule for 'age': weight must be above 0, .* got inf"),
    "levels of numbers": (AGE + "allowed = [30]", "rule for 'age': levels need a feature with levels, it is integer"),
    "a range of levels": ("[features.town]\nlow = 3", "rule for 'town': a range or step needs numbers"),
    "a circle": ('at_most = [["age", "pay"], ["pay", "age"]]', "go in a circle"),
    "no TOML": ("age = = 3", "rules file odd.toml: .*line 1"),
    "not UTF-8": (b"\xff\xfe", "rules file odd.toml: .*can't decode"),
    "deeply nested": ("a = " + "[" * 5000 + "]" * 5000, "rules file odd.toml"),
}  # fmt: skip


@pytest.mark.parametrize("content, pattern", TOML.values(), ids=TOML)
def test_an_odd_rules_file_is_one_sentence_that_names_the_rule(run, people, content, pattern):  # noqa: F811
    Path("odd.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("rule.py").write_text("def predict(rows):\n    return rows['pay'] > 50\n", encoding="utf-8")
    given = ("--target-column", "income", "--model", "rule:predict", "--rules", "odd.toml", "--rows", "0")
    code, _, err = run("explain", people, *given)
    one_line(code, err, pattern)


TYPED = {
    "immutable, a number": (lambda: Schema.infer(TABLE, immutable=5), "immutable must be names of columns .* got 5"),
    "immutable, a dict": (lambda: Schema.infer(TABLE, immutable={"x": 1}), "immutable must be names of columns"),
    "immutable, changed": (lambda: Schema.infer(TABLE).with_immutable(5), "immutable must be names of columns"),
    "kinds": (lambda: Schema.infer(TABLE, kinds=5), "kinds must map names of columns"),
    "kinds, a list": (lambda: Schema.infer(TABLE, kinds=["x"]), "kinds must map names of columns"),
    "order": (lambda: Schema.infer(TABLE, ordinal={"t": 5}), "levels of 't' must be a list, got 5"),
    "order, a text": (lambda: Schema.infer(TABLE, ordinal={"t": "ab"}), "levels of 't' must be a list, got 'ab'"),
    "decimals": (lambda: Schema.infer(TABLE, decimals={"x": "a"}), "decimals of 'x' must be a whole number"),
    "rules": (lambda: Schema.infer(TABLE, rules=5), "rules must be Rules or a dict, got 5"),
    "other rules": (lambda: Schema.infer(TABLE).with_rules({"x": 1}), "rules: unknown key 'x'"),
    "features": (lambda: Schema((5,)), r"features\[0\] must be a Feature, got 5"),
    "features, one": (lambda: Schema(Feature("x", "integer")), "features must be a list"),
    "name": (lambda: Feature(["x"], "integer"), "the name of a feature must be text"),
    "levels": (lambda: Feature("x", "binary", levels=5), "levels of 'x' must be a list, got 5"),
    "level": (lambda: Feature("x", "binary", levels=([],)), "must be text, a number or a bool"),
    "immutable, a word": (lambda: Feature("x", "integer", immutable="no"), "immutable of 'x' must be true or false"),
    "schema": (lambda: ONBMACF().fit(TABLE, above, schema=5), "schema must be a Schema, got 5"),
    "low": (lambda: Rule(low="a"), "Rule: low must be a number, a date, .*, got 'a'"),
    "allowed": (lambda: Rule(allowed=5), "Rule: allowed must be a list, got 5"),
    "allowed, a text": (lambda: Rule(allowed="ab"), "Rule: allowed must be a list, got 'ab'"),
    "forbidden": (lambda: Rule(forbidden=["ab"]), r"Rule: forbidden\[0\] must be a list of 2, got 'ab'"),
    "a rule": (lambda: Rules({"x": 5}), "rule for 'x' must be a Rule, got 5"),
    "rules by name": (lambda: Rules([Rule()]), "features must map names to rules"),
    "a pair": (lambda: Rules(at_most=["xk"]), r"at_most\[0\] must be a list of 2, got 'xk'"),
    "rules, a list": (lambda: Rules.from_dict([1]), r"rules must be a table, got \[1\]"),
}  # fmt: skip


@pytest.mark.parametrize("make, pattern", TYPED.values(), ids=TYPED)
def test_an_argument_of_another_type_is_a_typed_error(make, pattern):
    with pytest.raises(ParameterError, match=pattern):
        make()


NOTHING_IN_IT = {
    "no whole number": Rule(low=1.2, high=1.8),
    "no whole number above": Rule(low=1.5, high=3.5, step=1),
    "a step beyond the range": Rule(low=1, high=2, step=5),
}


@pytest.mark.parametrize("rule", NOTHING_IN_IT.values(), ids=NOTHING_IN_IT)
def test_a_rule_that_leaves_an_integer_nothing_is_refused(rule):
    asked = []
    with pytest.raises(ParameterError, match="rule for 'k'"):
        ONBMACF().fit(TABLE, lambda rows: asked.append(1), schema=Schema.infer(TABLE, rules=Rules({"k": rule})))
    assert not asked


@pytest.mark.parametrize(
    "rule", [Rule(low=1.2, high=2.5), Rule(low=0.5, step=0.25), Rule(step=7), Rule(low=2, high=2, step=1)], ids=repr
)
def test_a_rule_that_leaves_an_integer_something_is_taken(rule):
    explainer = ONBMACF().fit(TABLE, above, schema=Schema.infer(TABLE, rules=Rules({"k": rule})))
    assert list(explainer.explain(TABLE.head(1)).statuses) == ["found"]


ODD = ["a", "", 5, -1, 0, 0.5, True, None, np.nan, np.inf, [], ["a"], [["a", "b"]], {}, {"a": 1}, b"x", 10**400]
FIELDS = ("direction", "low", "high", "allowed", "step", "weight", "forbidden")


@pytest.mark.parametrize("name", FIELDS)
def test_whatever_a_rule_holds_it_is_fitted_or_refused_by_a_typed_error(name):
    schema, said = Schema.infer(TABLE), []
    for value in ODD:
        for column in ("x", "k", "t"):
            try:
                ONBMACF().fit(TABLE, above, schema=schema.with_rules(Rules({column: Rule(**{name: value})})))
            except OnbmacfError as error:
                said.append(f"{column!r} {error}")
    assert 20 < len(said) < 51
    assert [words for words in said if "Rule: " not in words and f"rule for {words[:3]}" not in words] == []
