"""The demo on the embedded table, and the network it trains."""

import re

import pytest

from onbmacf.datasets import heart_network, load_heart


@pytest.fixture(scope="module")
def demo():
    pytest.importorskip("typer")
    from onbmacf.cli.explain import run_demo

    return run_demo(3, 2)


def test_the_network_of_the_heart_table():
    table, chd = load_heart()
    model = heart_network()
    assert [step[0] for step in model.steps] == ["columntransformer", "mlpclassifier"]
    assert (model.fit(table, chd).predict(table) == chd).mean() > 0.7  # the larger class has 0.65


def test_the_demo_explains_people_at_risk_and_keeps_their_age(demo):
    assert list(demo.answers.labels) == ["at risk"] * 3
    assert demo.explainer.schema_.immutable == ("age",)
    found = demo.answers.to_frame()
    assert set(found["to"]) == {"healthy"}
    assert (found["age"] == load_heart()[0]["age"].loc[found.index]).all()


def test_the_text_shows_every_change_that_was_found(demo):
    from onbmacf._text.wording import shown
    from onbmacf.cli.explain import demo_text

    text = demo_text(demo)
    head, *people = text.split("\n\n")
    assert head == (
        f"South African heart disease: 462 men, covered by {len(demo.explainer.cover_)} balls of one label each.\n"
        "A network (32-16) predicts who is at risk. Age must stay as it is. What would change its mind?"
    )
    for answer, said in zip(demo.answers, people, strict=True):
        assert said.startswith(f"Person {answer.factual.name}, {answer.factual['age']} years: at risk\n")
        assert said.count("-> healthy") == len(answer.counterfactuals) == 2
        for sentence in answer.sentences():
            assert sentence in said
        for found in answer.counterfactuals:
            for name in found.changed:
                before, after = shown(found.factual[name]), shown(found.values[name])
                even_if = "-" if found.semifactual is None else shown(found.semifactual.values[name])
                assert re.search(rf"^  {name} +{before} +{after} +{even_if}$", said, flags=re.M)
