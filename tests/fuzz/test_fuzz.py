"""A small run of the fuzzer, and proof that it would notice: a broken promise fails it."""

from collections import Counter

import pytest

from fuzz import promises, run
from fuzz.cases import Case
from fuzz.rounds import rounds_of

SEED = 20_000


def test_fuzzed_cases_keep_every_promise():
    counts = Counter()
    rounds_of(SEED, counts, n=120)
    print(f"seed {SEED}: {dict(counts)}")
    assert counts["case answered"] > 20
    assert counts["case refused"] > 5


def case(**other):
    base = {"seed": 1, "kinds": ["float64", "int64", "text"], "n_rows": 20, "model": "ints", "options": {}}
    return Case(**base | {"asked": {}, "has_rules": True, "n_bad": 0, "index": "range"} | other)


BREAKS = {
    "immutable": lambda own: setattr(own, "immutable", ["c0", "c1", "c2"]),
    "whole": lambda own: own.table.__setitem__("c1", own.table["c1"] + 0.5),
    "labels": lambda own: setattr(own, "model", "words"),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_checks_notice_a_broken_promise(broken):
    own = case()
    model = run.MODELS[own.model](own.table, own.seed)
    answers = run.ONBMACF().fit(own.table, model).explain(own.rows)
    kinds = run.Schema.infer(own.table).kinds
    own.rules, own.immutable, own.at_most, own.max_changes = {}, [], [], None
    promises.check_answers(own, model, answers, kinds)
    broken(own)
    model = run.MODELS[own.model](own.table, own.seed)
    with pytest.raises((AssertionError, TypeError)):
        promises.check_answers(own, model, answers, kinds)
