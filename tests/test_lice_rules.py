"""The rules published with LiCE (ICLR 2025), on its tables and networks: stated in words, kept by every answer."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF, Rule, Rules, Schema

ort = pytest.importorskip("onnxruntime", reason="the published networks are onnx files")

SCHOOL = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"]
SCHOOL += ["Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"]
EMPLOYED = ["A71", "A72", "A73", "A74", "A75"]
RATE = "Installment rate in percentage of disposable income"
LIABLE = "Number of people being liable to provide maintenance for"

RULES = {
    "adult": Rules(
        {"age": Rule(direction="up"), "education": Rule(direction="up"), "hours-per-week": Rule(low=0, high=99)},
        immutable=("race", "sex"),
        relations=("if education rises, age must rise",),
    ),
    "credit": Rules(
        {"Age": Rule(direction="up", low=0, high=100), RATE: Rule(low=0, high=100)},
        immutable=(LIABLE, "Personal status and sex", "foreign worker"),
        relations=(
            "if Present residence since rises, Age must rise",
            "if Present employment since rises, Age must rise",
        ),
    ),
}
ORDERED = {"adult": {"education": SCHOOL}, "credit": {"Present employment since": EMPLOYED}}


def rises(name, levels=None):
    def place(row):
        return row[name] if levels is None else levels.index(row[name])

    return lambda before, after: place(after) > place(before)


def broken(table, before, after):
    """Return what an answer breaks, each rule written by hand."""
    ups = {
        "adult": [("education", rises("education", SCHOOL), "age")],
        "credit": [
            ("residence", rises("Present residence since"), "Age"),
            ("employment", rises("Present employment since", EMPLOYED), "Age"),
        ],
    }[table]
    found = [what for what, is_up, age in ups if is_up(before, after) and not after[age] > before[age]]
    found += [name for name in RULES[table].immutable if after[name] != before[name]]
    if table == "adult":
        found += ["education falls"] * bool(SCHOOL.index(after["education"]) < SCHOOL.index(before["education"]))
        found += ["age falls"] * bool(after["age"] < before["age"])
        found += ["hours"] * bool(not 0 <= after["hours-per-week"] <= 99)
    else:
        found += ["age"] * bool(not before["Age"] <= after["Age"] <= 100)
        found += ["rate"] * bool(not 0 <= after[RATE] <= 100)
    return found


def published(folder):
    """Return the fitted rows, those to be explained, and the published network as a function of rows.

    Its columns: numbers by the range of the training rows, levels in sorted order, those of education by rank.
    """
    train, some = (pd.read_csv(folder / f"X_{part}.csv.gz", index_col=0) for part in ("train", "subtest"))
    session = ort.InferenceSession(folder / "nn.onnx")
    columns = []
    for name in train:
        if pd.api.types.is_numeric_dtype(train[name]):
            low, high = train[name].min(), train[name].max()
            columns.append(lambda rows, name=name, low=low, high=high: [(rows[name] - low) / (high - low)])
        else:
            levels = SCHOOL if name == "education" else sorted(train[name].unique())
            levels = levels[1:] if len(levels) == 2 else levels
            columns.append(lambda rows, name=name, levels=levels: [rows[name] == level for level in levels])
    given = session.get_inputs()[0].name

    def model(rows):
        encoded = np.column_stack([np.asarray(part, dtype=np.float32) for column in columns for part in column(rows)])
        return (session.run(None, {given: encoded})[0].ravel() > 0).astype(int)

    return train, some, model


@pytest.mark.parametrize("split", [0, *(pytest.param(at, marks=pytest.mark.long) for at in range(1, 5))])
@pytest.mark.parametrize("table", RULES)
def test_the_rules_of_lice_can_be_stated_and_no_answer_breaks_one(data_dir, table, split):
    folder = data_dir / "lice" / table / str(split)
    if not folder.is_dir():
        pytest.skip(f"what was published with LiCE is not in {folder}")
    train, some, model = published(folder)
    train = train.iloc[:2000]
    schema = Schema.infer(train, ordinal=ORDERED[table], rules=RULES[table])
    explainer = ONBMACF(n_counterfactuals=2).fit(train, model, schema=schema)
    rows = some.iloc[: 40 if split == 0 else None]
    answers = explainer.explain(rows)
    assert (answers.statuses == "found").mean() > 0.9
    n_up = 0
    for one in answers:
        for found in one.counterfactuals:
            assert broken(table, one.factual, found.values) == []
            n_up += ("age" if table == "adult" else "Age") in found.changed
            if found.semifactual is not None:
                assert broken(table, one.factual, found.semifactual.values) == []
    assert n_up > 0
    without = Rules(RULES[table].features)
    free = explainer.explain(rows, rules=without)
    assert any(broken(table, one.factual, found.values) for one in free for found in one.counterfactuals)
