"""What a map holds is said, and `private=k`: an attack on the answers and on the file recovers no row."""

import struct
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from cli.conftest import people, run  # noqa: F401 - fixtures
from onbmacf import ONBMACF, Schema
from onbmacf._disk import store
from onbmacf._table.private import groups_of_k
from onbmacf.errors import ParameterError, TableError
from onbmacf.report import About, audit_report

K = 5


def clients(n=240, seed=4):
    rng = np.random.default_rng(seed)
    towns = np.where(np.arange(n) < 3, [f"hamlet {i}" for i in range(n)], rng.choice(["A", "B", "C"], n))
    frame = {"age": rng.integers(20, 80, n), "pay": rng.normal(50, 15, n).round(1), "sex": rng.choice(["f", "m"], n)}
    return pd.DataFrame({**frame, "town": towns, "years": rng.integers(0, 12, n)})


def model(rows):
    score = rows["pay"] + 2 * rows["years"] - 0.3 * rows["age"] + 4 * (rows["town"] == "B")
    return np.where(score > 50, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    table = clients()
    return table, ONBMACF(2, private=K).fit(table, model, schema=Schema.infer(table, immutable=["sex"]))


def earners(n=200, seed=3):
    rng = np.random.default_rng(seed)
    most = {"age": 80, "years": 30, "income": 1000}
    return pd.DataFrame({name: rng.integers(0, high, n) for name, high in most.items()})


def richer(rows):
    return np.where(rows["income"] + 5 * rows["years"] > 600, "yes", "no")


@pytest.mark.parametrize("values", [range(680, 720), pytest.param(range(1000), marks=pytest.mark.long)])
def test_pinned_questions_do_not_tell_a_fitted_value(values):
    """The attack: of a known person all but the income is held, and the income is pinned to one value after another."""
    table = earners()
    table.loc[0, "income"] = 700
    other = table.assign(income=table["income"].where(table.index > 0, 702))
    person = pd.concat([table.head(1).assign(income=0)] * len(values), ignore_index=True)
    asked = {"target": "yes", "rules": [{"features": {"income": {"low": v, "high": v}}} for v in values]}
    answers, maps = [], []
    for fitted_table in (table, other):
        schema = Schema.infer(table, immutable=["age", "years"])
        explainer = ONBMACF(private=K).fit(fitted_table, richer, schema=schema)
        maps.append(explainer.Z_)
        answers.append(explainer.explain(person, **asked))
    np.testing.assert_array_equal(*maps)
    assert answers[0].to_dicts() == answers[1].to_dicts()
    accepted = richer(person.assign(income=list(values))) == "yes"
    assert (np.array(answers[0].statuses) == "found").tolist() == accepted.tolist()


def test_one_row_shapes_neither_kinds_nor_decimals_nor_levels():
    """What fewer than k rows have is not seen: decimals, a third level, a missing value."""
    plain = earners().assign(pay=lambda rows: rows["income"] / 10, town=["A", "B"] * 100)
    odd = plain.astype({"years": float, "age": float})
    odd.loc[5, ["pay", "town", "years", "age"]] = [50.123456, "hamlet", 7.25, np.nan]
    for table in (plain, odd):
        explainer = ONBMACF(private=K).fit(table, richer)
        assert [*explainer.schema_.kinds.values()][1:] == ["integer", "integer", "continuous", "binary"]
        assert not any(feature.missing for feature in explainer.schema_.features)
        assert explainer.schema_.features[4].levels == ("A", "B")
        assert explainer.fitted_.space.readable[3] == 1


def test_nothing_of_the_rows_is_in_memory():
    """As processes that explain get it; the model is a function without any row."""
    table = clients()
    table.loc[10, "pay"] = 9123.4
    for options, is_there in (({}, True), ({"private": K}, False)):
        explainer = ONBMACF(**options).fit(table, model)
        explainer.fitted_.prepare()
        pickled = cloudpickle.dumps(explainer)
        assert (struct.pack("<d", 9123.4) in pickled) == is_there
        assert (b"hamlet" in pickled) == is_there


def test_the_map_file_gives_no_row_back(fitted, tmp_path):
    """The attack: read the file, decode every row, look for fitted rows and for rare values."""
    table, explainer = fitted
    explainer.save(tmp_path / "private.onb")
    ONBMACF().fit(table, model).save(tmp_path / "open.onb")
    raw = (tmp_path / "private.onb").read_bytes()
    assert b"hamlet" not in raw
    assert b"no row itself" in raw[:400]
    assert b"hamlet" in (tmp_path / "open.onb").read_bytes()
    assert b"holds the fitted table" in (tmp_path / "open.onb").read_bytes()[:400]
    recovered = {}
    for name in ("private", "open"):
        loaded = ONBMACF.load(tmp_path / f"{name}.onb", model)
        rows = loaded.fitted_.space.decode(loaded.Z_)
        recovered[name] = len(rows.merge(table.drop_duplicates(), how="inner"))
        if name == "private":
            assert rows.value_counts().min() >= K
    assert recovered == {"private": 0, "open": len(table)}


def test_a_private_map_answers_after_loading_and_says_what_it_is(fitted, tmp_path, run):  # noqa: F811
    table, explainer = fitted
    explainer.save(tmp_path / "private.onb")
    loaded = ONBMACF.load(tmp_path / "private.onb", model)
    assert loaded.private == K
    assert set(loaded.explain(table.tail(20)).statuses) == {"found"}
    assert "groups of at least 5 rows, and no row itself" in run("map", "info", tmp_path / "private.onb")[1]
    arrays, manifest = store.read(tmp_path / "private.onb")
    manifest["parameters"]["private"] = 100
    store.write(tmp_path / "forged.onb", arrays, manifest)
    with pytest.raises(OSError, match="a row is there fewer times than private says"):
        ONBMACF.load(tmp_path / "forged.onb", model)


def test_a_private_report_shows_no_row(fitted):
    table, explainer = fitted
    answers = explainer.explain(table.tail(30), target="yes")
    about = About("Clients", files={"clients.csv": "0ddba11"})
    report = audit_report(explainer, answers, target="yes", by=["sex"], about=about)
    assert not report.content["cases"]
    text = report.markdown()
    assert "hamlet" not in text
    assert "no single row" in text.replace("\\", "")
    assert "for example: If" not in text
    assert "0ddba11" not in text  # by it, all values of an unknown cell could be tried
    other = audit_report(ONBMACF().fit(table, model), answers, target="yes", about=about)
    assert "0ddba11" in other.markdown()
    assert other.content["cases"]
    assert "every row can be read back exactly" in other.markdown()


def test_readme_says_that_a_map_is_the_table():
    text = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert "the table**: every fitted row can be read back from the file, with the model's label." in text
    assert "`ONBMACF(private=5)` answers from groups of five rows or more" in text


def test_groups_have_k_rows_and_hold_every_row_once():
    points = np.random.default_rng(0).integers(0, 4, (103, 3)).astype(float)
    groups = groups_of_k(points, 7)
    assert sorted(np.concatenate(groups)) == list(range(103))
    assert {7 <= len(group) < 14 for group in groups} == {True}


@pytest.mark.parametrize("seed", range(6))
def test_a_moved_row_is_like_no_row_or_like_k(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 260))
    table = pd.DataFrame({"a": rng.integers(0, 6, n), "b": rng.integers(0, 5, n), "c": rng.choice(["x", "y", "z"], n)})
    table["d"] = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 3, n) / 2)
    explainer = ONBMACF(private=K).fit(table, lambda rows: np.where(rows["a"] + rows["b"] > 5, "yes", "no"))
    moved = explainer.fitted_.space.decode(explainer.Z_)
    assert moved.value_counts(dropna=False).min() >= K
    likes = moved.drop_duplicates().merge(table.value_counts(dropna=False).rename("n").reset_index(), how="left")["n"]
    assert not ((likes > 0) & (likes < K)).any()


def test_a_table_in_which_every_middle_is_a_row_cannot_be_private():
    with pytest.raises(TableError, match=r"the middle of every group of rows is a row .* fewer than 5 rows are like"):
        ONBMACF(private=K).fit(pd.DataFrame({"a": range(101)}), lambda rows: rows["a"].to_numpy() > 40)


def lacking(n=240):
    """Clients of whom many have no known pay, and a few no known town or age."""
    table, rng = clients(n), np.random.default_rng(8)
    table["pay"] = table["pay"].where(rng.random(n) > 0.25)
    table["town"] = table["town"].where(rng.random(n) > 0.02, None)
    return table.assign(age=table["age"].astype("Int64").where(rng.random(n) > 0.03))


def bold(rows):
    score = rows["pay"].fillna(45) + 2 * rows["years"] - 0.3 * rows["age"].astype(float).fillna(30)
    return np.where(score + 4 * (rows["town"] == "B").fillna(False) > 50, "yes", "no")


def test_rows_that_lack_values_are_private_too(tmp_path):
    table = lacking()
    explainer = ONBMACF(2, private=K).fit(table, bold, schema=Schema.infer(table, immutable=["sex"]))
    common = table[~table["town"].fillna("A").str.startswith("hamlet")].head(100)
    answers = explainer.explain(common)
    assert list(answers.statuses).count("found") > 60
    explainer.save(tmp_path / "private.onb")
    assert b"hamlet" not in (tmp_path / "private.onb").read_bytes()
    loaded = ONBMACF.load(tmp_path / "private.onb", bold)
    rows = loaded.fitted_.space.decode(loaded.Z_)
    assert rows.value_counts(dropna=False).min() >= K
    assert rows["pay"].isna().sum() >= K  # what many lack is still unknown of some groups
    assert not rows.merge(table.drop_duplicates(), how="inner").notna().all(axis=1).any()
    statuses = loaded.explain(common).statuses
    assert list(statuses).count("found") > 60


def test_of_every_column_a_group_has_k_values_or_none():
    rng = np.random.default_rng(2)
    lacks = rng.random((150, 4)) < [0.0, 0.1, 0.5, 0.02]
    groups = groups_of_k(rng.random((150, 4)), 6, lacks)
    assert sorted(np.concatenate(groups)) == list(range(150))
    assert len(groups) > 8
    for group in groups:
        n = (~lacks[group]).sum(axis=0)
        assert len(group) >= 6
        assert ((n == 0) | (n >= 6)).all()


def test_a_few_rows_that_lack_a_value_are_no_group_of_their_own():
    lacks = (np.arange(40) < 3)[:, np.newaxis]
    assert min(map(len, groups_of_k(np.random.default_rng(2).random((40, 2)), 6, lacks))) >= 6


def test_a_level_of_fewer_than_k_rows_is_not_the_commonest_of_its_group():
    table = clients().assign(town=lambda rows: rows["town"].where(rows.index > 2, "A"))
    table.loc[:3, ["pay", "town"]] = [900.0, "hamlet"]  # four rows far from all others
    explainer = ONBMACF(private=K).fit(table, model)
    assert explainer.schema_.features[3].levels == ("A", "B", "C")


def test_what_cannot_be_private_is_said():
    table = clients(40)
    with pytest.raises(ParameterError, match="private=11 needs at least 44 rows, got 40"):
        ONBMACF(private=11).fit(table, model)
    with pytest.raises(ParameterError, match="private must be a whole number of at least 2, got 1"):
        ONBMACF(private=1).fit(table, model)
    with pytest.raises(TableError, match="column 'town': fewer than private=5 rows have 'hamlet 0'"):
        ONBMACF(private=5).fit(table.astype({"town": "category"}), model)
    with pytest.raises(TableError, match="private=5: fewer than 5 rows have a value in column 'pay'"):
        ONBMACF(private=5).fit(table.assign(pay=table["pay"].where(table.index < 4)), model)
    with pytest.raises(TableError, match="private=5: no value of column 'name' is that of 5 rows"):
        ONBMACF(private=5).fit(table.assign(name=[f"P{i}" for i in range(40)]), model)


def test_an_answer_from_groups_can_be_proven():
    """Nothing is withheld, so what is proven of the model holds of the answers."""
    table = clients()[["age", "pay", "years"]]
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, table["pay"] > 50)
    answers = ONBMACF(private=K).fit(table, tree).explain(table.tail(5), prove=True)
    assert [answer.certificate.kind for answer in answers] == ["nearest"] * 5
