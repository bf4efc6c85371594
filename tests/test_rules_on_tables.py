"""Five sets of rules on each of the eight tables: no counterfactual breaks one.

The suite explains 8 rows a table and set; ONBMACF_RULE_ROWS=200 explains as many as the benchmark does.
"""

import os

import numpy as np
import pytest

from conftest import by_table
from onbmacf import ONBMACF, Rule, Rules
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from test_rules import all_broken

N_ROWS = int(os.environ.get("ONBMACF_RULE_ROWS", "8"))
PAPER_SIZES = True  # adult and credit at the paper's sizes: the rules are looked at, not the cover


def rule_sets(task, unruled):
    """Read five sets of rules off a table: directions, ranges, steps, levels, and several together.

    Forbidden are, among others, the very changes of levels that the answers without rules make.
    """
    free = [feature for feature in task.schema.features if not feature.immutable]
    numbers = [feature.name for feature in free if feature.is_numeric]
    ranges = {name: tuple(task.table[name].quantile([0.05, 0.9])) for name in numbers}
    steps = {name: Rule(step=max(1, int((task.table[name].max() - task.table[name].min()) / 20))) for name in numbers}
    levelled = [feature for feature in free if feature.kind in ("categorical", "binary")]
    yield Rules({name: Rule(direction=("down", "up")[at % 2]) for at, name in enumerate(numbers)})
    yield Rules({name: Rule(low=low, high=high) for name, (low, high) in ranges.items()})
    yield Rules(steps)
    yield Rules({feature.name: Rule(forbidden=forbidden(feature, unruled)) for feature in levelled})
    pairs = [tuple(numbers[:2])] if len(numbers) > 1 else []
    yield Rules({name: Rule(weight=2.0, low=ranges[name][0]) for name in numbers[:1]}, at_most=pairs, max_changes=2)


def forbidden(feature, unruled):
    changes = [(c.factual[feature.name], c.values[feature.name]) for answer in unruled for c in answer.counterfactuals]
    made = dict.fromkeys(change for change in changes if change[0] != change[1])
    return [feature.levels[:2], feature.levels[1::-1], *made]


@pytest.mark.filterwarnings("ignore::onbmacf.errors.OnbmacfWarning")
@by_table(DESCRIPTIONS)
def test_no_counterfactual_breaks_a_rule(data_dir, network_of, name):
    task = load_task(name, data_dir, paper_sizes=PAPER_SIZES)
    network = network_of(task)
    model = lambda rows: network.label_of(task.space.encode(rows))  # noqa: E731
    rows = task.table[model(task.table) == 0].head(N_ROWS)
    unruled = ONBMACF(predict_chunk=256).fit(task.table, model, schema=task.schema).explain(rows, target=1)
    shares, n_needed = [], 0
    for rules in rule_sets(task, unruled):
        n_needed += bool(all_broken(unruled, rules))
        explainer = ONBMACF(predict_chunk=256).fit(task.table, model, schema=task.schema.with_rules(rules))
        answers = explainer.explain(rows, target=1)
        assert not all_broken(answers, rules)
        assert set(answers.statuses) <= {"found", "none_found", "infeasible"}
        shares.append((answers.statuses == "found").mean())
    assert np.mean(shares) > 0.8
    assert n_needed >= 1  # without them, some answer breaks a rule
