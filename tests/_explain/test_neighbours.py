"""A bound on neighbours: every answer keeps it, none is missed that a fitted row would give, and proofs know of it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from amounts import IS_ALL, seeds
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._balls.neighbours import nearest_rows
from onbmacf._explain import searches
from onbmacf._search import joint, refined, rounds
from onbmacf.datasets import load_heart
from onbmacf.errors import ModelError, ParameterError


def shares(explainer, values, labels):
    """Return the share of neighbours of printed values, the plain way: every distance, sorted."""
    space = explainer.fitted_.space
    Z = space.encode_numbers(space.form.numbers(space.form.arrange(values)[0])) * space.to_unit
    near = nearest_rows(explainer.Z_ * space.to_unit, Z, 5)
    codes = [list(explainer.classes_).index(label) for label in labels]
    return (explainer.labels_[near] == np.array(codes)[:, np.newaxis]).mean(axis=1)


def kept(explainer, answers, least):
    """Return how many answers there are; each has as many neighbours as was asked, as it is printed."""
    found = [one for answer in answers for one in answer.counterfactuals]
    if not found:
        return 0
    values = pd.DataFrame([one.values for one in found])
    share = shares(explainer, values.astype(answers.rows.dtypes), [one.label for one in found])
    assert (share >= least / 5 - 1e-9).all()
    assert [one.plausibility for one in found] == pytest.approx(share)
    return len(found)


def with_gaps():
    random = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "income": random.normal(30, 9, 300).round(1),
            "years": random.integers(0, 30, 300).astype(float),
            "city": random.choice(["A", "B", "C"], 300),
        }
    )
    is_well = table["income"] + table["years"] + 8 * (table["city"] == "A") + random.normal(0, 6, 300) > 47
    table.loc[random.random(300) < 0.15, "years"] = np.nan
    return table, is_well.map({True: "well", False: "ill"})


def labelling(rows):
    """A model that gives labels alone, and takes rows that lack values."""
    score = rows["income"] + rows["years"].fillna(10) + 8 * (rows["city"] == "A")
    return np.where(score > 47, "well", "ill")


def trained(estimator, table, labels):
    text = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    rest = [name for name in table.columns if name not in text]
    columns = make_column_transformer((OneHotEncoder(), text), (StandardScaler(), rest))
    return make_pipeline(columns, estimator).fit(table, labels)


WAYS = {
    "default": ({}, {}),
    "nearest": ({"plausibility": 0, "n_counterfactuals": 3}, {"min_probability": 0}),
    "interior": ({"plausibility": 1, "n_counterfactuals": 2}, {}),
    "front": ({}, {"front": True}),
    "exact": ({"decimals": "exact", "read_model": False}, {}),
    "ruled": ({}, {"rules": Rules({}, max_changes=2)}),
    "limited": ({"max_model_rows": 120, "max_model_calls": 4, "read_model": False}, {}),
    "few": ({"max_model_calls": 2, "read_model": False}, {}),
    "paper": ({"strategy": "paper", "n_counterfactuals": 2}, {}),
    "released": ({"release": "immutable"}, {"immutable": None}),
    "private": ({"private": 3}, {}),
}


@pytest.fixture(scope="module")
def cases():
    heart, y = load_heart()
    gaps, labels = with_gaps()
    forest = trained(RandomForestClassifier(20, random_state=0), heart, y)
    network = trained(MLPClassifier((8,), max_iter=200, random_state=0), heart, y)
    return {"forest": (heart, forest), "network": (heart, network), "labels": (gaps, labelling)}, labels


@pytest.mark.parametrize("way", WAYS)
def test_every_answer_has_as_many_neighbours_as_is_asked(cases, way):
    options, asked = WAYS[way]
    n = 0
    for name, (table, model) in cases[0].items():
        if name == "network" and not IS_ALL:
            continue
        how = {key: value for key, value in options.items() if key != "read_model" or name != "labels"}
        immutable = [table.columns[-1]]
        explainer = ONBMACF(**how).fit(table, model, schema=Schema.infer(table, immutable=immutable))
        rows = table.iloc[: 80 : 2 if IS_ALL else 4]
        asked = {key: value for key, value in asked.items() if value is not None}
        n += kept(explainer, explainer.explain(rows, min_neighbours=4, **asked), 4)
    assert n >= 20


def test_members_of_a_committee_and_neighbours_agree(cases):
    heart, _ = cases[0]["forest"]
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    numbers, y = heart.drop(columns="famhist"), load_heart()[1]
    members = [clone(tree).set_params(max_depth=depth).fit(numbers, y) for depth in (3, 5, 6)]
    explainer = ONBMACF(committee=members, agreement=1.0).fit(numbers, tree.fit(numbers, y))
    answers = explainer.explain(numbers.head(20), min_neighbours=5)
    assert kept(explainer, answers, 5) >= 10
    assert {one.stability for answer in answers for one in answer.counterfactuals} == {1.0}


# --- against brute force ----------------------------------------------------------------------------------------------


class Small:
    """A random table of whole numbers, a model of it, and all that a row may become."""

    MODELS = (
        DecisionTreeClassifier(max_depth=5, random_state=0),
        RandomForestClassifier(8, max_depth=4, random_state=0),
        LogisticRegression(),
        MLPClassifier((5,), max_iter=150, random_state=0),
        GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
    )

    def __init__(self, seed, **options):
        random = np.random.default_rng(seed)
        n, width = int(random.integers(30, 150)), int(random.integers(3, 6))
        self.table = pd.DataFrame({f"x{at}": random.integers(0, int(random.integers(4, 8)), n) for at in range(width)})
        noise = random.normal(0, 1.5, n)
        y = self.table["x0"] + random.normal() * self.table["x1"] + noise > self.table["x0"].median()
        self.model = self.MODELS[seed % len(self.MODELS)].fit(self.table, y.astype(int))
        self.held = ["x2"] if seed % 3 else []
        self.least = 3 + seed % 3
        schema = Schema.infer(self.table, immutable=self.held, kinds=dict.fromkeys(self.table, "integer"))
        self.explainer = ONBMACF(**options).fit(self.table, self.model, schema=schema)
        ends = [np.arange(column.min(), column.max() + 1) for _, column in self.table.items()]
        grid = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, width)
        self.grid = pd.DataFrame(grid, columns=self.table.columns)

    @property
    def rows(self):
        return self.table.sample(6, random_state=0)

    def nearest(self, row, points):
        """Return how far the nearest of some points is that is an answer with as many neighbours as asked."""
        label = self.model.predict(points)
        is_good = label != self.model.predict(row)[0]
        is_good &= shares(self.explainer, points, label) >= self.least / 5 - 1e-9
        is_good &= (points[self.held] == row[self.held].iloc[0]).all(axis=1).to_numpy()
        span = self.table.max() - self.table.min()
        apart = ((points - row.iloc[0]).abs() / span).sum(axis=1)[is_good]
        return apart.min() if is_good.any() else np.inf


def problems(n, **options):
    """Yield small problems, every other of a model that is not read."""
    for seed in seeds(n):
        try:
            yield Small(seed, read_model=bool(seed % 2), **options)
        except ModelError:  # the model says the same of every row
            continue


def test_what_a_fitted_row_would_give_is_found_and_nothing_is_much_nearer():
    ours, best = [], []
    for small in problems(60, plausibility=0):
        answers = small.explainer.explain(small.rows, min_neighbours=small.least, min_probability=0)
        kept(small.explainer, answers, small.least)
        for at, answer in enumerate(answers):
            row = small.rows.iloc[[at]]
            donors = small.table[small.model.predict(small.table) != small.model.predict(row)[0]]
            projected = donors.assign(**{name: row[name].iloc[0] for name in small.held})
            is_tie = (small.model.predict_proba(projected) == 0.5).any(axis=1)  # which no score tells from a refusal
            distance = answer.counterfactuals[0].distance if answer.counterfactuals else np.inf
            assert distance <= small.nearest(row, projected[~is_tie]) + 1e-9
            ours.append(distance)
            best.append(small.nearest(row, small.grid))
            assert answer.status != "infeasible" or np.isinf(best[-1])
    ours, best = np.array(ours), np.array(best)
    assert (np.isinf(ours) == np.isinf(best)).all()
    known = np.isfinite(best)
    assert known.sum() > len(best) / 3
    assert ours[known].sum() <= 1.02 * best[known].sum()


def test_no_proof_forgets_the_neighbours():
    kinds = set()
    for small in problems(60):
        for at, answer in enumerate(small.explainer.explain(small.rows, min_neighbours=small.least, prove=True)):
            best, proof = small.nearest(small.rows.iloc[[at]], small.grid), answer.certificate
            assert proof.bound <= best * (1 + 1e-9)
            if proof.kind == "nearest":
                assert answer.counterfactuals[0].distance == pytest.approx(best)
            if proof.kind == "none_exists" or answer.status == "infeasible":
                assert np.isinf(best)
            assert "bound on neighbours" not in proof.reason or len(small.grid) > 10_000  # few: all are asked about
            if "asking about all" in proof.how:
                assert "of 5 neighbours of its own label" in proof.how or "all 5 neighbours" in proof.how
            kinds.add(proof.kind)
    assert {"nearest", "none_exists"} <= kinds


def test_where_the_nearest_label_has_too_few_neighbours_a_certificate_says_so(cases):
    heart, _ = cases[0]["forest"]
    numbers, y = heart.drop(columns="famhist"), load_heart()[1]
    explainer = ONBMACF().fit(numbers, LogisticRegression(max_iter=2000).fit(numbers, y))
    answers = explainer.explain(numbers.head(12), min_neighbours=5, prove=True)
    kept(explainer, answers, 5)
    within = [answer for answer in answers if "neighbours" in answer.certificate.reason]
    assert within
    for answer in within:
        assert "not with a bound on neighbours" in answer.certificate.sentence()
        assert answer.certificate.kind == "within"
        assert answer.counterfactuals[0].distance > answer.certificate.bound > 0


def test_where_no_answer_has_enough_neighbours_nothing_is_proven_of_labels_that_there_are():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.random((120, 4)).round(3), columns=list("abcd")).assign(side=np.repeat([0, 1], 60))
    label = (table["side"] == 1) | (table["a"] > 0.9)
    tree = DecisionTreeClassifier(random_state=0).fit(table, label.astype(int))
    schema = Schema.infer(table, immutable=["side"], kinds={"side": "integer"})
    answer = ONBMACF().fit(table, tree, schema=schema).explain(table.iloc[[0]], 1, min_neighbours=5, prove=True)[0]
    assert (answer.status, answer.certificate.kind) == ("none_found", "none_found")
    assert "not with a bound on neighbours" in answer.certificate.sentence()
    assert answer.certificate.bound > 0


def test_donors_are_the_nearest_rows_that_keep_the_bound(monkeypatch):
    seen = []
    monkeypatch.setattr(searches, "find", lambda search: seen.append(search) or refined.find(search))
    small = Small(5)
    small.explainer.explain(small.rows, min_neighbours=small.least)
    search = seen[0]
    wanted = np.eye(2, dtype=bool)[1 - small.model.predict(search.factuals)]
    points, owner = joint._donors_with_neighbours(search, wanted)
    for at, factual in enumerate(search.factuals):
        rows = search.table.N[wanted[at][search.table.labels]]
        label = np.full(len(rows), int(wanted[at].argmax()))
        rows = np.where(search.free[at], rows, factual)
        good = (search.neighbours(rows, label) >= search.least_share) & (rows != factual).any(axis=1)
        assert sorted(map(tuple, points[owner == at])) == sorted(map(tuple, rows[good]))
    _, owner, _ = rounds.donors_among(search, wanted, 256, 2)
    assert np.bincount(owner).max() == 2


# --- how it is asked --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heart_explainer(cases):
    return ONBMACF().fit(*cases[0]["forest"])


def test_each_row_may_have_a_bound_of_its_own(heart_explainer, cases):
    rows = cases[0]["forest"][0].head(4)
    answers = heart_explainer.explain(rows.assign(k=[0, 5.0, np.nan, 4]), min_neighbours="k")
    for at, least in enumerate([0, 5, None, 4]):
        alone = heart_explainer.explain(rows.iloc[[at]], min_neighbours=least)
        assert answers[at : at + 1].to_frame().equals(alone.to_frame())
    none = heart_explainer.explain(rows)
    assert heart_explainer.explain(rows, min_neighbours=0).to_json() == none.to_json()
    assert heart_explainer.explain(rows, min_neighbours=5).to_json() != none.to_json()


@pytest.mark.parametrize("least", [6, -1, 2.5, True])
def test_a_bound_is_a_count_of_neighbours(heart_explainer, cases, least):
    with pytest.raises(ParameterError, match=r"min_neighbours must be .*, got"):
        heart_explainer.explain(cases[0]["forest"][0].head(1), min_neighbours=least)


def test_no_more_neighbours_can_be_asked_for_than_there_are_rows():
    table = pd.DataFrame({"x": [0.0, 1, 3, 4.5]})
    explainer = ONBMACF().fit(table, lambda rows: (rows["x"] > 2).astype(int))
    with pytest.raises(ParameterError, match="min_neighbours must be at most 4, the neighbours counted, got 5"):
        explainer.explain(table.head(1), min_neighbours=5)
    assert explainer.explain(table.head(1), min_neighbours=2)[0].status == "found"


def test_a_row_without_such_an_answer_says_so_and_what_would_help():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.random(80).round(2), "side": np.repeat([0, 1], 40)})
    table["x"] += 10 * (table["side"] == 1)
    schema = Schema.infer(table, immutable=["side"], kinds={"side": "integer"})
    either = lambda rows: np.where((rows["side"] == 1) | (rows["x"] > 0.97), "yes", "no")  # noqa: E731
    explainer = ONBMACF().fit(table, either, schema=schema)
    answer = explainer.explain(table.iloc[[1]], "yes", min_neighbours=5, rules={"features": {"x": {"high": 1.0}}})[0]
    assert answer.status == "infeasible"
    assert "with all 5 neighbours of its own label" in answer.reason
    assert answer.would_need == ("side",)


def test_ranges_keep_the_bound(heart_explainer, cases):
    rows = cases[0]["forest"][0].head(4)
    answers = heart_explainer.explain(rows, min_neighbours=4, ranges=True)
    for answer in answers:
        for found in answer.counterfactuals:
            for name, each in found.ranges.items():
                ends = each.levels or (each.low, each.high)
                points = pd.DataFrame([{**found.values, name: end} for end in ends]).astype(rows.dtypes)
                assert (shares(heart_explainer, points, [found.label] * len(points)) >= 0.8).all()


def test_a_rule_does_not_hide_an_answer_with_neighbours(cases):
    heart, model = cases[0]["forest"]
    explainer = ONBMACF().fit(heart, model)
    rules = Rules({"ldl": Rule(direction="down")})
    assert kept(explainer, explainer.explain(heart.head(12), min_neighbours=4, rules=rules), 4) >= 8


def test_rows_that_keep_the_bound_are_asked_about_in_the_first_call(cases):
    heart, model = cases[0]["forest"]
    explainer = ONBMACF(max_model_calls=2, read_model=False).fit(heart, model)
    assert kept(explainer, explainer.explain(heart.head(20), min_neighbours=5), 5) >= 18
