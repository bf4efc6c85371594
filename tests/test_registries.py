"""What is added by one entry in one registry works everywhere: see "Adding ..." in CONTRIBUTING.md."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF, Rule, Rules, Schema, rules
from onbmacf._balls.metrics import METRICS, Measure
from onbmacf._base.arrays import take
from onbmacf._base.enums import Relaxation
from onbmacf._search.paper import viable
from onbmacf._search.problem import Found, Strategy
from onbmacf._search.strategies import STRATEGIES
from onbmacf._search.walk import confirm
from onbmacf.errors import ParameterError


def model(rows):
    return np.where(rows["tobacco"] + rows["ldl"] > 10, "risk", "fine")


def test_a_metric_is_one_entry(heart, monkeypatch):
    def add_root(total, difference):
        total += np.sqrt(np.abs(difference))

    square_root = Measure(add_root, lambda total: total, 0.25, METRICS["manhattan"].outline)
    monkeypatch.setitem(METRICS, "square_root", square_root)
    answers = ONBMACF(metric="square_root").fit(heart, model).explain(heart.head(20), target="fine")
    searched = answers.statuses == "found"
    assert searched.any()
    first = answers[int(np.flatnonzero(searched)[0])].counterfactuals[0]
    span = heart.max(numeric_only=True) - heart.min(numeric_only=True)
    moved = [abs(first.values[name] - first.factual[name]) / span[name] for name in first.changed if name in span]
    if len(moved) == first.n_changes:
        assert first.distance == pytest.approx(np.sqrt(moved).sum())
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(heart[["tobacco", "ldl"]], model(heart))
    few = ONBMACF(metric="square_root").fit(heart[["tobacco", "ldl"]], tree)
    proven = few.explain(heart[["tobacco", "ldl"]].head(6), target="fine", prove=True)
    told = [answer.certificate for answer in proven if answer.status == "found"]
    assert {one.kind for one in told} == {"unproven"}  # nothing is known of how its differences add up
    assert all("nothing is proven with the metric 'square_root'" in one.reason for one in told)
    plots = pytest.importorskip("onbmacf.plots")
    pytest.importorskip("matplotlib")
    explainer = ONBMACF(metric="square_root").fit(heart, model)
    assert plots.cover(explainer, "tobacco", "ldl").patches


def test_a_strategy_is_one_entry(heart, monkeypatch):
    def nearest_centre(problem):
        """The nearest projected centre of the right label, as it is."""
        kept, points = viable(problem, problem.pairs, Relaxation.NONE)
        order = np.lexsort((np.abs(points - problem.z[kept.factual]).sum(axis=1), kept.factual))
        kept, points = take(kept, order), points[order]
        first = np.unique(kept.factual, return_index=True)[1]
        kept, points = take(kept, first), points[first]
        none, z = np.zeros(len(points), dtype=np.intp), problem.z[kept.factual]
        labels = problem.balls.labels[kept.ball]
        confirmed = confirm(problem, kept.factual, points, labels)
        return Found(kept.factual, kept.ball, labels, none, points, z, none.astype(bool), *confirmed)

    strategy = Strategy(
        nearest_centre, lambda options: 0, release="nothing", ignores=(), is_readable=False, is_distinct=True
    )
    monkeypatch.setitem(STRATEGIES, "centre", strategy)
    answers = ONBMACF(strategy="centre").fit(heart, model).explain(heart.head(20), target="fine")
    found = answers.to_frame()
    assert len(found) == (answers.statuses == "found").sum() > 0
    fitted = heart.drop_duplicates()
    assert found[heart.columns].merge(fitted, how="inner").shape[0] == len(found)  # each is a row of the table
    with pytest.raises(ParameterError, match="strategy must be one of 'refined', 'paper', 'centre'"):
        ONBMACF(strategy="center").fit(heart, model)


def test_a_kind_of_rule_is_one_entry(heart, monkeypatch):
    class Whole(rules.RuleKind):
        """Changed values are whole numbers, for rules of weight 3."""

        def is_set(self, rule):
            return rule.weight == 3

        def keeps(self, rule, value, before, codes):
            return value == np.round(value)

        def move(self, rule, value):
            return np.round(value)

        def words(self, rule):
            return "whole"

    monkeypatch.setattr(rules, "KINDS", (*rules.KINDS, Whole()))
    schema = Schema.infer(heart, rules=Rules({"ldl": Rule(weight=3.0), "tobacco": Rule(weight=3.0)}))
    answers = ONBMACF(release="nothing").fit(heart, model, schema=schema).explain(heart.head(40), target="fine")
    changes = answers.changes()
    changed = changes[changes["feature"].isin(["ldl", "tobacco"])]["after"].astype(float)
    assert len(changed)
    assert (changed == changed.round()).all()
    assert rules.describe(Rule(weight=3.0)) == "whole"


def test_an_array_of_equally_long_labels_stays_an_array_of_objects():
    from onbmacf._base.arrays import objects

    assert objects([(1, 2), (3, 4)]).shape == (2,)
    assert pd.Series(objects([[1], [2]])).tolist() == [[1], [2]]


def test_an_audit_table_is_one_entry_and_the_report_shows_it(heart, monkeypatch):
    pytest.importorskip("jinja2")
    from onbmacf import audit
    from onbmacf.report import audit_report

    def far(answers, schema):
        return answers.to_frame().nlargest(3, "distance")[["distance", "n_changes"]]

    entry = audit.AuditTable("outcome", "The three farthest", far)
    monkeypatch.setattr(audit, "TABLES", (*audit.TABLES, entry))
    explainer = ONBMACF().fit(heart, model)
    answers = explainer.explain(heart.head(20), target="fine")
    outcome = audit_report(explainer, answers, n_cases=0).content["sections"][0]
    shown = outcome["tables"][-1]
    assert (shown["caption"], len(shown["rows"])) == ("The three farthest", 3)


def test_a_model_file_format_is_one_entry(tmp_path, heart, monkeypatch):
    from onbmacf.io import load_model, models

    def threshold(path, table, trust_pickle):
        limit = float(path.read_text())
        return lambda rows: (rows["ldl"] > limit).astype(int)

    entry = models.Loader("threshold", (".threshold",), threshold)
    monkeypatch.setattr(models, "LOADERS", (*models.LOADERS, entry))
    (tmp_path / "m.threshold").write_text("5")
    loaded = load_model(tmp_path / "m.threshold", heart)
    assert set(loaded(heart)) == {0, 1}
    with pytest.raises(ParameterError, match=r"'\.threshold'"):
        load_model(tmp_path / "m.unknown", heart)
