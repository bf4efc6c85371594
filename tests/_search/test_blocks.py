"""Answers in blocks: what changes, changes to the values of one fitted row, fewer blocks first."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from helpers.donors import best_by_brute_force
from onbmacf import ONBMACF, Between, Blocks, Causes, Rule, Rules, Schema
from onbmacf.errors import OnbmacfError, ParameterError

ADDRESS = {"address": ["street", "city", "zip"]}
PLAIN = {"plausibility": 0.0, "min_probability": 0}


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    city = rng.choice(list("ABCD"), n)
    number = rng.integers(0, 5, n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "street": [f"{c}{k}" for c, k in zip(city, number, strict=True)],
            "city": city,
            "zip": [100.0 * (ord(c) - 64) + k for c, k in zip(city, number, strict=True)],
            "income": rng.normal(2000, 500, n).round(2),
            "debt": rng.normal(500, 200, n).round(1),
        }
    )


TABLE = people()
SAID = np.where((TABLE["income"] - TABLE["debt"] > 1800) & (TABLE["zip"] < 300), "yes", "no")
FOREST = RandomForestClassifier(40, random_state=0).fit(TABLE[["age", "zip", "income", "debt"]], SAID)


class Model:
    """A forest behind a frame."""

    classes_ = FOREST.classes_

    def predict_proba(self, rows):
        return FOREST.predict_proba(rows[["age", "zip", "income", "debt"]])

    def predict(self, rows):
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


MODEL = Model()


@pytest.fixture(scope="module")
def explainer():
    return ONBMACF().fit(TABLE, MODEL, blocks=ADDRESS)


def refused(n):
    return TABLE[MODEL.predict(TABLE) == "no"].iloc[:n]


def assert_of_one_donor(answers, table, groups):
    """Every block that changes has the donor's values, every other one the row's own; return how many blocks did."""
    n = 0
    for one in answers:
        for found in one.counterfactuals:
            donor = table.iloc[found.donor]
            assert found.donor_values.equals(donor.rename(found.donor_values.name))
            held = [name for columns in groups.values() for name in columns]
            every = {**groups, **{name: [name] for name in table if name not in held}}
            for block, columns in every.items():
                source = donor if block in found.blocks else found.factual
                same = [
                    a == b or (pd.isna(a) and pd.isna(b))
                    for a, b in zip(found.values[columns], source[columns], strict=True)
                ]
                assert all(same)
                n += block in found.blocks
            assert {name for name in table if found.values[name] != found.factual[name]} >= {*found.changed}
    return n


# --- against brute force ----------------------------------------------------------------------------------------------


@st.composite
def small_tables(draw):
    """Few rows of small whole numbers, full of ties, two labels by an uneven rule, and blocks of several sizes."""
    width = draw(st.integers(2, 7))
    rows = draw(st.lists(st.lists(st.integers(0, 3), min_size=width, max_size=width), min_size=8, max_size=24))
    table = np.array(rows, dtype=float)
    weights = np.array(draw(st.lists(st.integers(-3, 3), min_size=width, max_size=width)))
    cuts = sorted(draw(st.sets(st.integers(1, width - 1), max_size=3)))
    groups = [list(part) for part in np.split(np.arange(width), cuts)]
    return table, weights, groups


@given(small_tables())
def test_no_set_of_blocks_of_any_donor_is_smaller_or_nearer(case):
    table, weights, groups = case

    def model(rows):
        return ((np.asarray(rows) @ weights) % 3 > 0).astype(int)

    labels = model(table)
    if len(np.unique(labels)) < 2 or min(np.bincount(labels)) > 16:
        return
    span = np.where(np.ptp(table, axis=0) > 0, np.ptp(table, axis=0), 1)
    frame = pd.DataFrame(table, columns=[f"x{at}" for at in range(table.shape[1])])
    schema = Schema.infer(frame, kinds=dict.fromkeys(frame, "continuous"))
    blocks = {f"block {at}": [f"x{column}" for column in columns] for at, columns in enumerate(groups)}
    answers = ONBMACF().fit(table, model, schema=schema, blocks=blocks).explain(table[:6], **PLAIN)
    for row, one in zip(table[:6], answers, strict=True):
        if np.bincount(labels, minlength=2)[1 - model(row[np.newaxis])[0]] > 16:
            continue  # not every donor is followed
        best = best_by_brute_force(table, labels, model, row, groups, span)
        found = [(len(f.blocks), round(f.distance, 9)) for f in one.counterfactuals]
        assert found[:1] == ([] if best is None else [best])


class Binary:
    """A model of rows of zeros and ones, by the sets of ones that it is told; 0.1 for all others."""

    classes_ = np.array([0, 1])

    def __init__(self, width, shares, above=()):
        self.width, self.shares, self.above = width, shares, above

    def predict_proba(self, rows):
        sets = [frozenset(np.flatnonzero(row).tolist()) for row in np.asarray(rows)]
        said = np.array([max([self.shares.get(some, 0.1), *(s for a, s in self.above if a <= some)]) for some in sets])
        return np.column_stack([1 - said, said])

    def predict(self, rows):
        return (self.predict_proba(rows)[:, 1] > 0.5).astype(int)

    def fitted(self):
        return ONBMACF().fit(np.repeat([[0.0], [1.0]], 3, axis=0) * np.ones(self.width), self, blocks=self.blocks())

    def blocks(self):
        return {f"block {at}": [f"x{at}"] for at in range(self.width)}


def test_a_set_is_found_that_begins_with_no_gain():
    """The third block alone gains most, and leads nowhere; the first two together are an answer."""
    whole = frozenset(range(4))
    model = Binary(4, {frozenset({2}): 0.45, frozenset({0, 1}): 0.8, whole: 0.9})
    found = model.fitted().explain(np.zeros((1, 4)), **PLAIN)[0].counterfactuals[0]
    assert found.blocks == ("block 0", "block 1")


def test_a_block_that_came_first_and_is_not_needed_is_undone():
    """Of ten blocks not all sets are asked about: the third is taken first, and given back."""
    above = [(frozenset({0, 1}), 0.8), (frozenset({2}), 0.45), (frozenset({0, 2}), 0.48)]
    found = Binary(10, {}, above).fitted().explain(np.zeros((1, 10)), **PLAIN)[0].counterfactuals[0]
    assert found.blocks == ("block 0", "block 1")


def test_a_block_more_for_nothing_is_no_other_answer():
    found = Binary(4, {}, [(frozenset({0}), 0.8)]).fitted().explain(np.zeros((1, 4)), n=3)[0].counterfactuals
    assert [one.blocks for one in found] == [("block 0",)]


def test_of_many_blocks_the_model_must_be_nearly_as_sure_as_of_the_donor():
    """Of ten blocks one is just enough, four are as sure as all; the dial says how much that counts."""
    above = [
        (frozenset({0}), 0.7),
        (frozenset({0, 1}), 0.75),
        (frozenset({0, 1, 2}), 0.95),
        (frozenset(range(10)), 0.96),
    ]
    explainer = Binary(10, {}, above).fitted()
    ends = [explainer.explain(np.zeros((1, 10)), plausibility=dial)[0].counterfactuals[0] for dial in (0, 0.1, 0.5)]
    assert [len(found.blocks) for found in ends] == [1, 1, 3]
    few = Binary(4, {}, [(frozenset({0}), 0.7), (frozenset(range(4)), 0.96)]).fitted()
    assert len(few.explain(np.zeros((1, 4)))[0].counterfactuals[0].blocks) == 1


# --- what every answer keeps ------------------------------------------------------------------------------------------


def test_in_500_answers_every_block_is_a_fitted_rows(explainer):
    fresh = people(700, seed=1)
    rows = fresh[MODEL.predict(fresh) == "no"].iloc[:500]
    answers = explainer.explain(rows, target="yes")
    assert (answers.statuses == "found").sum() == len(rows) == 500
    assert assert_of_one_donor(answers, TABLE, ADDRESS) > 500
    moved = [found for one in answers for found in one.counterfactuals if "address" in found.blocks]
    known = set(TABLE[ADDRESS["address"]].itertuples(index=False, name=None))
    assert len(moved) > 100
    assert all(tuple(found.values[ADDRESS["address"]]) in known for found in moved)
    assert (MODEL.predict(answers.batch.values) == "yes").all()


WAYS = {
    "default": ({}, {}),
    "three": ({}, {"n": 3}),
    "nearest": ({}, PLAIN),
    "interior": ({}, {"plausibility": 1.0}),
    "front": ({}, {"front": True}),
    "neighbours": ({}, {"min_neighbours": 4}),
    "sure": ({}, {"min_probability": 0.8}),
    "rows": ({"max_model_rows": 60}, {}),
    "calls": ({"max_model_calls": 4}, {}),
    "quarter": ({"effort": "quarter"}, {}),
    "euclidean": ({"metric": "euclidean"}, {}),
    "chebyshev": ({"metric": "chebyshev"}, {}),
    "own metric": ({"metric": lambda a, b: float(np.abs(a - b).sum())}, {}),
    "committee": ({"committee": [MODEL, MODEL], "agreement": 0.5}, {}),
    "seconds": ({}, {"max_seconds": 60}),
    "immutable": ({}, {"immutable": ["city"]}),
    "vary": ({}, {"vary": ["income", "debt"]}),
    "rules": ({}, {"rules": Rules({"income": Rule(direction="up"), "age": Rule(low=30)})}),
    "few": ({}, {"rules": Rules(max_changes=2)}),
}


@pytest.mark.parametrize("options, asked", WAYS.values(), ids=WAYS)
def test_every_way_to_ask_answers_in_blocks(options, asked):
    explainer, rows = ONBMACF(**options).fit(TABLE, MODEL, blocks=ADDRESS), refused(12)
    answers = explainer.explain(rows, target="yes", **asked)
    assert (answers.statuses == "found").sum() >= 6
    assert assert_of_one_donor(answers, TABLE, ADDRESS)
    for one in answers:
        for found in one.counterfactuals:
            assert found.label == "yes" == MODEL.predict(found.values.to_frame().T.astype(TABLE.dtypes))[0]
            kept = set(asked.get("immutable", [])) | ({*TABLE} - {*asked["vary"]} if "vary" in asked else set())
            assert not kept & {*found.changed}
            if "rules" in asked and asked["rules"].max_changes:
                assert found.n_changes <= 2
            if asked.get("min_neighbours"):
                assert found.plausibility >= 0.8
            if asked.get("min_probability"):
                assert found.probability >= 0.8
            if found.semifactual is not None:
                kept = found.semifactual
                blocks = explainer.blocks_.of_columns(kept.changed)
                assert {*blocks} < {*found.blocks}  # half a block is nobody's address
                assert all(kept.values[name] == found.values[name] for name in kept.changed)
    if "max_model_rows" in options:
        assert answers.n_questions <= 60 * len(rows)
    if "max_model_calls" in options:
        assert answers.n_calls <= 4 * len(rows)
    alone = [explainer.explain(rows.iloc[[at]], target="yes", **asked)[0].to_dict() for at in range(4)]
    assert alone == answers.to_dicts()[:4]


def test_the_first_answers_do_not_depend_on_how_many_are_asked_for(explainer):
    one, three, five = (explainer.explain(refused(12), target="yes", n=n) for n in (1, 3, 5))
    for a, b, c in zip(one, three, five, strict=True):
        several = [found.values.tolist() for found in c.counterfactuals]
        assert [found.values.tolist() for found in b.counterfactuals] == several[:3]
        assert [found.values.tolist() for found in a.counterfactuals] == several[:1]
        assert len({tuple(values) for values in several}) == len(several)


def test_no_block_of_an_answer_can_be_undone(explainer):
    answers, n = explainer.explain(refused(40), target="yes", n=3, **PLAIN), 0
    for one in answers:
        for found in one.counterfactuals:
            for block in found.blocks if len(found.blocks) > 1 else ():
                row = found.values.copy()
                columns = list(explainer.blocks_.groups[block])
                row[columns] = found.factual[columns]
                assert MODEL.predict(row.to_frame().T.astype(TABLE.dtypes))[0] == "no"
                n += 1
    assert n > 10


def test_fewer_blocks_come_before_nearer_rows():
    """Two small changes are nearer than one large one; the large one is one block."""
    table = pd.DataFrame({"a": [0.0, 0.0, 10, 1, 1], "b": [0.0, 0.0, 0, 0, 0], "c": [0.0, 1, 0, 1, 10]})
    table.loc[3, ["a", "c"]] = [1.0, 1.0]
    model = lambda rows: ((rows["a"] > 5) | (rows["a"] * rows["c"] > 0.5)).astype(int)  # noqa: E731
    found = ONBMACF().fit(table, model, blocks={"b": ["b"]}).explain(table.iloc[[0]], **PLAIN)[0].counterfactuals[0]
    assert (found.blocks, found.donor, found.distance) == (("a",), 2, 1.0)


def test_a_block_that_would_change_what_must_stay_is_not_taken(explainer):
    answers = explainer.explain(refused(30), target="yes", immutable=["zip"])
    assert assert_of_one_donor(answers, TABLE, ADDRESS)
    assert not [found for one in answers for found in one.counterfactuals if "address" in found.blocks]
    by_street = lambda rows: (rows["zip"] % 100 >= 3).astype(int)  # noqa: E731
    streets = ONBMACF().fit(TABLE, by_street, blocks=ADDRESS)
    within = streets.explain(TABLE.iloc[:30], immutable=["city"])
    moved = [found for one in within for found in one.counterfactuals]
    assert len(moved) == 30  # to other streets of the same city, which are not the nearest rows
    assert all(found.values["city"] == found.factual["city"] for found in moved)
    assert all(found.blocks == ("address",) for found in moved)
    assert assert_of_one_donor(within, TABLE, ADDRESS) == 30


def test_donors_are_looked_for_among_all_rows_where_a_part_of_a_block_must_stay(monkeypatch):
    """Of 3,000 rows 15 are of a row's city, and hardly any of them among the nearest in what may change."""
    monkeypatch.setattr("onbmacf._search.blocks.FAR", 32)
    rng = np.random.default_rng(0)
    city, number, zips = rng.integers(0, 200, 3000), rng.integers(0, 5, 3000), rng.permutation(1000)
    table = pd.DataFrame({"city": [f"c{one}" for one in city], "zip": zips[5 * city + number] + 0.5})
    table["number"], table["income"] = number.astype(float), rng.normal(2000, 500, 3000).round(2)
    explainer = ONBMACF(max_model_rows=100).fit(  # within a limit nothing is tried by releasing the city
        table,
        lambda rows: (rows["number"] >= 3).astype(int),
        schema=Schema.infer(table, kinds={"number": "continuous", "zip": "continuous"}, immutable=["city"]),
        blocks={"address": ["city", "zip", "number"]},
    )
    answers = explainer.explain(table.iloc[:20])
    assert (answers.statuses == "found").all()
    assert all(one.counterfactuals[0].blocks == ("address",) for one in answers)


def test_no_value_is_lost_or_filled_in_with_a_block():
    table = TABLE.copy()
    table.loc[::7, "zip"] = np.nan
    table.loc[(table["city"] == "A") & (table.index % 10 > 0), "zip"] = np.nan  # most donors lack it
    model = lambda rows: np.where(rows["city"] == "A", "yes", "no")  # noqa: E731
    answers = ONBMACF().fit(table, model, blocks=ADDRESS).explain(table[model(table) == "no"].iloc[:40], target="yes")
    assert (answers.statuses == "found").all()
    assert assert_of_one_donor(answers, table, ADDRESS) >= 40
    for one in answers:
        assert one.counterfactuals[0].blocks == ("address",)
        assert pd.isna(one.counterfactuals[0].values["zip"]) == pd.isna(one.factual["zip"])


def test_numbers_shrink_where_the_block_allows_it():
    blocks = Blocks(ADDRESS, shrink=True)
    plain = ONBMACF().fit(TABLE, MODEL, blocks=ADDRESS).explain(refused(30), target="yes")
    answers = ONBMACF().fit(TABLE, MODEL, blocks=blocks).explain(refused(30), target="yes")
    ends = [[one.counterfactuals[0].distance for one in some] for some in (plain, answers)]
    assert np.mean(ends[1]) < 0.95 * np.mean(ends[0])
    assert [len(one.counterfactuals[0].blocks) for one in answers] <= [
        len(one.counterfactuals[0].blocks) for one in plain
    ]
    for one in answers:
        found = one.counterfactuals[0]
        for name in found.changed:
            before, after, donor = found.factual[name], found.values[name], found.donor_values[name]
            assert after == donor or min(before, donor) <= after <= max(before, donor)
    assert any("part of the way to fitted row" in text for text in answers.sentences())


def test_several_labels_and_ranges_of_numbers_are_reached():
    labels = np.where(TABLE["zip"] < 200, "north", np.where(TABLE["zip"] < 300, "south", "west"))
    model = RandomForestClassifier(20, random_state=0).fit(TABLE[["zip", "income"]], labels)
    ask = lambda rows: model.predict(rows[["zip", "income"]])  # noqa: E731
    answers = (
        ONBMACF().fit(TABLE, ask, blocks=ADDRESS).explain(TABLE[labels == "west"].iloc[:5], target=["north", "south"])
    )
    assert {found.label for one in answers for found in one.counterfactuals} <= {"north", "south"}
    assert all(one.counterfactuals[0].blocks == ("address",) for one in answers)
    number = lambda rows: (rows["income"] - rows["debt"]).to_numpy()  # noqa: E731
    explainer = ONBMACF().fit(TABLE, number, blocks=ADDRESS, target=Between(low=2200))
    found = explainer.explain(TABLE.iloc[:5])[0].counterfactuals[0]
    assert found.predicted[1] >= 2200
    assert set(found.blocks) <= {"income", "debt"}


def test_values_of_a_donor_are_not_rounded():
    X = np.random.default_rng(0).normal(size=(100, 4))  # with all their decimals
    frame = pd.DataFrame(X).add_prefix("x")
    model = LogisticRegression().fit(X, X.sum(axis=1) > 0)
    answers = ONBMACF().fit(X, model, blocks={"both": ["x0", "x1"]}).explain(X[:30])
    assert assert_of_one_donor(answers, frame, {"both": ["x0", "x1"]}) >= 30
    kept = [found for one in answers for found in one.counterfactuals if found.semifactual is not None]
    assert kept
    assert all(one.values[name] == one.semifactual.values[name] for one in kept for name in one.semifactual.changed)


def test_a_small_budget_is_not_spent_on_whole_donors_alone():
    answers = ONBMACF(max_model_rows=20).fit(TABLE, MODEL, blocks=ADDRESS).explain(refused(60), target="yes", **PLAIN)
    assert answers.n_questions <= 20 * 60
    assert np.mean([len(one.counterfactuals[0].blocks) for one in answers]) < 2


def test_a_row_without_an_answer_says_what_it_would_need(explainer):
    answer = explainer.explain(refused(1), target="yes", vary=["age"])[0]
    assert answer.status == "none_found"
    assert answer.would_need


# --- what is shown, kept and refused ----------------------------------------------------------------------------------


def test_every_view_names_the_donor_and_the_blocks(explainer):
    answers = explainer.explain(refused(30), target="yes", n=2)
    moved = [bool(one.counterfactuals) and "address" in one.counterfactuals[0].blocks for one in answers]
    place = moved.index(True)
    found = answers[place].counterfactuals[0]
    told = answers.to_dicts()[place]["counterfactuals"][0]
    assert (told["donor"], told["blocks"]) == (found.donor, [*found.blocks])
    line = answers.to_frame().loc[refused(30).index[place]].iloc[0]
    assert (line["donor"], line["blocks"]) == (found.donor, ", ".join(found.blocks))
    assert f"of fitted row {found.donor}: address" in repr(found)
    sentence = answers[place].sentences()[0]
    assert sentence.startswith("If address (")
    assert f"were as in fitted row {found.donor}" in sentence
    plain = ONBMACF().fit(TABLE, MODEL).explain(refused(30), target="yes")
    assert "donor" not in json.dumps(plain.to_dicts())
    assert "donor" not in plain.to_frame()
    assert {(found.donor, found.blocks) for one in plain for found in one.counterfactuals} == {(None, ())}
    assert [one.to_dict() for one in pickle.loads(pickle.dumps([*answers]))] == answers.to_dicts()
    both = type(answers).concat([answers[:3], answers[3:]])
    assert both.to_json() == answers.to_json()


def test_words_of_people_stand_for_blocks_of_one_column():
    schema = Schema.infer(TABLE, labels={"income": "monthly income", "zip": "postal code"})
    explainer = ONBMACF().fit(TABLE, MODEL, schema=schema, blocks=ADDRESS)
    text = " ".join(explainer.explain(refused(30), target="yes").sentences())
    assert "monthly income were" in text
    assert "postal code" in text
    assert "income were" not in text.replace("monthly income were", "")


def test_a_saved_map_keeps_its_blocks(explainer, tmp_path):
    explainer.save(tmp_path / "map.onb")
    again = ONBMACF.load(tmp_path / "map.onb", MODEL)
    assert again.blocks_ == explainer.blocks_
    assert again.explain(refused(8), target="yes").to_json() == explainer.explain(refused(8), target="yes").to_json()
    X = np.random.default_rng(0).normal(size=(60, 12)).round(2)
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    whole = ONBMACF().fit(X, model, blocks=Blocks.grid((3, 4), 2, shrink=True))
    whole.save(tmp_path / "grid.onb")
    assert ONBMACF.load(tmp_path / "grid.onb", model).blocks_ == whole.blocks_
    assert ONBMACF().fit(X, model, blocks=whole.blocks_).blocks_ == whole.blocks_


def test_answers_in_a_file_come_back(explainer, tmp_path):
    from onbmacf._disk.answer_file import read_answers, write_answers

    form = explainer.fitted_.space.form
    answers = explainer.explain(refused(5), target="yes")
    write_answers(tmp_path / "part", answers, form)
    again = read_answers(tmp_path / "part", refused(5), form)
    assert again.to_json() == answers.to_json()
    assert again.sentences() == answers.sentences()


def test_ranges_are_left_out_and_that_is_said(explainer):
    answers = explainer.explain(refused(2), target="yes", ranges=True)
    assert answers[0].counterfactuals[0].ranges is None
    assert any("there are no ranges with blocks" in text for text in answers.warnings)


FAULTS = {
    "paper": ({"strategy": "paper"}, {"blocks": ADDRESS}, "blocks need strategy='refined'"),
    "private": ({"private": 3}, {"blocks": ADDRESS}, "a donor is a fitted row, and private keeps none"),
    "causes": (
        {},
        {"blocks": ADDRESS, "causes": Causes({"debt": ["income"]})},
        "causes move what follows",
    ),
    "no column": (
        {},
        {"blocks": {"address": ["street", "zipp"]}},
        r"there is no column .zipp..*'zip'",
    ),
    "twice": ({}, {"blocks": {"a": ["age"], "b": ["age", "debt"]}}, "column 'age' is in the blocks 'a' and 'b'"),
    "empty": ({}, {"blocks": {"a": []}}, "block 'a' is empty"),
    "nothing": ({}, {"blocks": {}}, "blocks must map names to columns"),
    "a list": ({}, {"blocks": [["age"]]}, "blocks must map names to columns"),
    "a name": ({}, {"blocks": {"income": ["age", "debt"]}}, "'income' names a block and a column in none"),
    "a shape": ({}, {"blocks": Blocks.grid((2, 4), 2)}, "blocks are of 2 x 4 = 8 columns, the table has 6"),
}


@pytest.mark.parametrize("options, given, words", FAULTS.values(), ids=FAULTS)
def test_what_does_not_go_with_blocks_says_so(options, given, words):
    with pytest.raises(OnbmacfError, match=words):
        ONBMACF(**options).fit(TABLE, MODEL, **given)


def test_proofs_and_the_papers_strategy_are_refused_later_too(explainer):
    with pytest.raises(ParameterError, match="prove is about single features, and blocks change together"):
        explainer.explain(refused(1), prove=True)
    with pytest.raises(ParameterError, match="blocks need strategy='refined'"):
        explainer.with_options(strategy="paper").explain(refused(1))


def test_nothing_is_proven_of_a_model_that_can_be_read():
    """A linear model is read; that no single feature is enough says nothing of blocks, and none is returned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)).round(2)
    model = LogisticRegression().fit(X, X.sum(axis=1) > 0)
    explainer = ONBMACF().fit(X, model, blocks={"all": ["x0", "x1", "x2", "x3"]})
    row = np.array([[-50.0, -50, -50, -50]])
    answers = explainer.explain(row, rules=Rules({"x0": Rule(direction="up"), "x1": Rule(direction="down")}))
    assert {answers[0].status} <= {"none_found"}
    assert answers.n_copy_questions > 0


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_a_grid_and_segments_are_slices():
    grid = Blocks.grid((3, 5), (2, 3))
    assert {name: tuple(columns) for name, columns in grid.groups.items()} == {
        "[0:2, 0:3]": (0, 1, 2, 5, 6, 7),
        "[0:2, 3:5]": (3, 4, 8, 9),
        "[2:3, 0:3]": (10, 11, 12),
        "[2:3, 3:5]": (13, 14),
    }
    assert Blocks.grid((2, 2, 3), 1).groups["[0:1, 1:2]"] == (3, 4, 5)  # channels change together
    assert Blocks.segments(7, 3).groups == {"[0:3]": (0, 1, 2), "[3:6]": (3, 4, 5), "[6:7]": (6,)}
    assert repr(Blocks.segments(7, 3)) == "<Blocks of 7 columns: 3, such as '[0:3]'>"
    for wrong in (lambda: Blocks.grid((3,), 2), lambda: Blocks.grid(8, 2), lambda: Blocks.segments(0, 3)):
        with pytest.raises(ParameterError):
            wrong()


def test_a_grid_of_named_columns_goes_by_position():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)).round(2), columns=["a", "b", "c", "d"])
    explainer = ONBMACF().fit(X, lambda rows: (rows["a"] > 0).astype(int), blocks=Blocks.segments(4, 2))
    assert explainer.blocks_.groups == {"[0:2]": ("a", "b"), "[2:4]": ("c", "d")}
    assert explainer.explain(X.iloc[:3])[0].counterfactuals[0].blocks == ("[0:2]",)


def test_pictures_are_changed_in_parts_of_one_other_picture():
    X, y = load_digits(return_X_y=True)
    net = MLPClassifier((32,), max_iter=300, random_state=0).fit(X[:600], y[:600])
    explainer = ONBMACF().fit(X[:600], net, blocks=Blocks.grid((8, 8), 2))
    answers = explainer.explain(X[1000:1010], min_neighbours=4)
    groups = {name: list(columns) for name, columns in explainer.blocks_.groups.items()}
    assert (answers.statuses == "found").all()
    assert assert_of_one_donor(answers, pd.DataFrame(X[:600]).add_prefix("x"), groups)
    assert all(one.counterfactuals[0].plausibility >= 0.8 for one in answers)
    assert answers[3].to_dict() == explainer.explain(X[[1003]], min_neighbours=4)[0].to_dict() | {"row": 3}
    three = explainer.explain(X[1000:1030], n=3)  # more donors are followed, which may well have better answers
    first = [one.counterfactuals[0].values.tolist() for one in three]
    assert first == [one.counterfactuals[0].values.tolist() for one in explainer.explain(X[1000:1030])]
