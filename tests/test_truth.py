"""What every view prints is put back into the model, and the model says what the view says.

A statement is one counterfactual, or one "even if", in one view: start from the row, put in the printed values in the
columns' own dtypes, ask the model, and find the printed label. The suite explains 5 rows of each table with each of
three models; ONBMACF_TRUTH_ROWS=100 explains 100.
"""

import os
from functools import cache

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from conftest import by_table
from onbmacf import ONBMACF, Rule, Rules, Schema
from onbmacf._text import records
from onbmacf._text.wording import rounded
from onbmacf.bench.datasets import DESCRIPTIONS, load_task
from onbmacf.cli.outputs import tidy
from reading import READERS

N_ROWS = int(os.environ.get("ONBMACF_TRUTH_ROWS", "5"))
MODELS = ("logistic", "forest", "boosting")
WITHOUT_KEPT = ("csv", "plot", "picture's description")  # views that say nothing of semifactuals

pytestmark = pytest.mark.filterwarnings("ignore::onbmacf.errors.OnbmacfWarning")


def put_back(factuals, values):
    """Return the factuals with printed values put in, in the columns' own dtypes."""
    columns = {}
    for name in factuals.columns:
        own = factuals[name].tolist()
        new = [said.get(name, old) for said, old in zip(values, own, strict=True)]
        columns[name] = pd.Series(new, dtype=object).astype(factuals[name].dtype)
    return pd.DataFrame(columns)


def false_statements(predict, answers, said):
    """Return how many statements were checked, and those that are false, as text."""
    said = list(said)
    factuals = answers.rows.iloc[[one.place for one in said]].reset_index(drop=True)
    lines = np.searchsorted(answers.batch.factual, [one.place for one in said]) + [one.rank for one in said]
    false = _differences("before", said, factuals, [one.before or {} for one in said], factuals)
    false += _differences("after", said, factuals, [one.after for one in said], answers.batch.values.iloc[lines])
    false += _wrong_labels("would say", said, predict(put_back(factuals, [one.after for one in said])), "label")
    false += _wrong_facts(said, answers)
    even = [at for at, one in enumerate(said) if one.kept is not None]
    kept, of_even = [said[at] for at in even], factuals.iloc[even].reset_index(drop=True)
    if kept:
        values = [one.kept for one in kept]
        shown = answers.batch.semifactual_values.iloc[lines[even]]
        false += _differences("even if", kept, of_even, values, shown)
        false += _differences("even if, before", kept, of_even, [one.kept_before for one in kept], of_even)
        false += _wrong_labels("would still say", kept, predict(put_back(of_even, values)), "old")
    return len(said) + len(kept), false


def _differences(what, said, factuals, values, expected):
    """Return the cells in which the printed rows differ from those expected."""
    mine, theirs = put_back(factuals, values), expected.reset_index(drop=True)
    assert list(mine.dtypes) == list(theirs.dtypes)
    differ = np.column_stack([(mine[name] != theirs[name]).to_numpy() for name in mine.columns])
    return [
        f"{said[at].view}: row {said[at].place}: {what}: {mine.columns[feature]} is printed as "
        f"{mine.iloc[at, feature]!r} and is {theirs.iloc[at, feature]!r}"
        for at, feature in np.argwhere(differ)
    ]


def _wrong_labels(what, said, labels, field):
    return [
        f"{one.view}: row {one.place}: the model {what} {getattr(one, field)!r}, but says {label!r}: {one}"
        for one, label in zip(said, labels, strict=True)
        if label != getattr(one, field)
    ]


def _wrong_facts(said, answers):
    """Return what is said of labels, releases, semifactuals and distances but is not so."""
    wrong = []
    for one in said:
        answer = answers[one.place]
        found = answer.counterfactuals[one.rank]
        facts = [(one.old, answer.label), (one.label, found.label)]
        facts += [] if one.released is None else [(one.released, frozenset(found.released))]
        facts += [] if one.view in WITHOUT_KEPT else [(one.kept is None, found.semifactual is None)]
        exact = repr(found.distance) if one.view in ("csv", "json") else rounded(found.distance)
        facts += [] if one.distance is None else [(one.distance, exact)]
        facts += [(1, len(answer.counterfactuals))] if one.is_last_resort and not all_released(answer) else []
        wrong += [
            f"{one.view}: row {one.place}: {mine!r} is printed, {fact!r} is so" for mine, fact in facts if mine != fact
        ]
    return wrong


def all_released(answer):
    return all(found.released for found in answer.counterfactuals)


def model_of(kind, table, y):
    """Return a linear model, a forest or boosted trees, trained on a table with text in it."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers, model = {
        "logistic": (StandardScaler(), LogisticRegression(max_iter=1000)),
        "forest": ("passthrough", RandomForestClassifier(30, random_state=0)),
        "boosting": ("passthrough", HistGradientBoostingClassifier(max_iter=30, random_state=0)),
    }[kind]
    text = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((one_hot, text), remainder=numbers), model).fit(table, y)


@pytest.fixture(autouse=True)
def _one_thread():
    """Boosted trees on a busy machine: many threads for a few rows are slower than one."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def fitted(data_dir):
    """Return a table's rows to explain, the model and the explainer; each is made once."""

    @cache
    def fit(name, kind):
        task = load_task(name, data_dir, paper_sizes=True)
        model = model_of(kind, task.table, np.array(task.class_names)[task.y])
        rows = task.table.sample(N_ROWS, random_state=1)
        return rows, model, ONBMACF(n_counterfactuals=2).fit(task.table, model, schema=task.schema)

    return fit


@by_table(DESCRIPTIONS)
@pytest.mark.parametrize(
    "strategy, kind",
    [
        *(("refined", kind) for kind in MODELS),
        ("paper", "forest"),
        *(pytest.param("paper", kind, marks=pytest.mark.long) for kind in MODELS if kind != "forest"),
    ],
)
def test_every_view_is_true(fitted, name, kind, strategy):
    rows, model, explainer = fitted(name, kind)
    answers = explainer.with_options(strategy=strategy).explain(rows)
    assert "found" in answers.statuses
    n_checked = 0
    for view, read in READERS.items():
        n, false = false_statements(model.predict, answers, read(explainer, answers))
        assert n >= len(answers.batch.factual), view
        assert false == [], view
        n_checked += n
    assert_between(explainer, answers)
    print(f"{name}, {kind}, {strategy}: {n_checked} statements, {len(answers.batch.factual)} counterfactuals")


def assert_between(explainer, answers):
    """A semifactual changes nothing that its counterfactual keeps, and lies on the way there."""
    for answer in answers:
        for found in answer.counterfactuals:
            if found.semifactual is None:
                continue
            assert set(found.semifactual.changed) <= set(found.changed)
            for feature in explainer.schema_.features:
                values = [of[feature.name] for of in (found.factual, found.semifactual.values, found.values)]
                if feature.kind == "categorical":
                    assert values[1] in (values[0], values[2])
                else:
                    values = values if feature.is_numeric else [feature.levels.index(value) for value in values]
                    assert min(values[0], values[2]) <= values[1] <= max(values[0], values[2]), (feature.name, values)


@by_table(DESCRIPTIONS)
def test_reports_and_plots_are_true(fitted, name):
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    pytest.importorskip("jinja2", reason="reports need the extra 'report'")
    from reading_reports import READERS_OF_REPORTS

    rows, model, explainer = fitted(name, "forest")
    answers = explainer.explain(rows)
    n_checked = 0
    for view, read in READERS_OF_REPORTS.items():
        n, false = false_statements(model.predict, answers, read(explainer, answers))
        assert n, view
        assert false == [], view
        n_checked += n
    print(f"{name}, reports and plots: {n_checked} statements")


@pytest.mark.parametrize("load", ["load_wine", "load_breast_cancer"])
def test_sentences_about_forests_are_true(load):
    """Four digits are too few here: 12.775 has another label than 12.78."""
    from sklearn import datasets
    from sklearn.ensemble import RandomForestClassifier

    table, y = getattr(datasets, load)(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(100, random_state=0).fit(table, y)
    explainer = ONBMACF().fit(table, model)
    answers = explainer.explain(table.sample(100, random_state=0))
    assert false_statements(model.predict, answers, READERS["sentences"](explainer, answers)) == (200, [])


def every_dtype():
    """A table with a column of each dtype, and names and levels that look like the words around them."""
    random = np.random.default_rng(0)
    n = 120
    return pd.DataFrame(
        {
            "a: 1 → 2; b": random.normal(size=n),
            "b": (random.normal(size=n) * 1e-7).astype(np.float32),
            "c were 3 instead of 4": random.integers(-9, 9, n).astype(np.int16),
            "c": pd.array(random.integers(0, 99, n), dtype="Int64"),
            "d | e": random.choice(["yes and no", "yes", "1", "| 1", "=1+1", "a \\| b *c* <b>&amp;"], n),
            "f": pd.Categorical(random.choice(["-1", "0", "10"], n), categories=["10", "-1", "0"], ordered=True),
            "g": random.choice([True, False], n),
            "h": random.choice([0.5, 1.0], n),
            7: random.normal(size=n) * 1e17,
        },
        index=pd.Index([f"row {place}: 'a'" for place in range(n)], name="distance"),
    )


def odd_model(rows):
    score = rows["a: 1 → 2; b"] + rows["b"].astype(float) * 1e7 + rows["c"].astype(float) / 30 + rows[7] / 1e17
    score += 2.0 * (rows["d | e"] == "yes") - rows["g"] + rows["h"] + (rows["f"].astype(str) == "-1")
    return np.select([score > 2, score > 1], ["1", "say 'no' instead of 'yes'"], "would still say 1.")


@pytest.mark.parametrize("strategy", ["refined", "paper"])
def test_odd_names_levels_labels_and_dtypes(strategy):
    table = every_dtype()
    schema = Schema.infer(table, kinds={"h": "binary"})
    explainer = ONBMACF(n_counterfactuals=3, strategy=strategy).fit(table, odd_model, schema=schema)
    answers = explainer.explain(table.head(20))
    assert answers.batch.changed.any(axis=0).sum() > 4
    for view, read in READERS.items():
        n, false = false_statements(odd_model, answers, read(explainer, answers))
        assert n >= 60, view
        assert false == [], view


def test_a_row_without_an_answer_changes_no_other_line():
    """One empty cell had turned the whole numbers of a CSV column into 3.0."""
    table = every_dtype()
    fixed = [name for name in table.columns if name not in ("c", "c were 3 instead of 4", "g")]
    explainer = ONBMACF().fit(table, odd_model, schema=Schema.infer(table, immutable=fixed, kinds={"h": "binary"}))
    answers = explainer.explain(table.head(30))
    assert 5 < (answers.statuses == "found").sum() < 25
    for view, read in READERS.items():
        assert false_statements(odd_model, answers, read(explainer, answers))[1] == [], view


def test_what_a_reason_says_would_help_does_help():
    table = every_dtype()
    fixed = [name for name in table.columns if name not in ("c were 3 instead of 4", "g")]
    schema = Schema.infer(table, immutable=fixed, kinds={"h": "binary"})
    answers = ONBMACF().fit(table, odd_model, schema=schema).explain(table.head(40))
    needed = {}
    for place, answer in enumerate(answers):
        if answer.would_need:
            *names, last = answer.would_need
            listed = f"{', '.join(names)} and {last}" if names else last
            assert answer.reason.endswith(f" One is found if {listed} may change.")
            needed.setdefault(answer.would_need, []).append(place)
    assert len(needed) > 2
    for names, places in needed.items():
        rest = [name for name in fixed if str(name) not in names]
        freed = ONBMACF().fit(table, odd_model, schema=Schema.infer(table, immutable=rest, kinds={"h": "binary"}))
        assert set(freed.explain(table.iloc[places]).statuses) == {"found"}


@pytest.mark.parametrize("release", ["immutable", "rules"])
def test_released_features_are_marked_in_every_view(release):
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    pytest.importorskip("jinja2", reason="reports need the extra 'report'")
    from reading_reports import READERS_OF_REPORTS

    random = np.random.default_rng(0)
    table = pd.DataFrame({"age": random.integers(20, 60, 80), "pay": random.integers(0, 90, 80)})
    model = lambda rows: np.where(rows["age"] + (rows["pay"] > 80) > 30, "old", "young")  # noqa: E731
    schema = Schema.infer(table, immutable=["age"])
    explainer = ONBMACF(release=release).fit(table, model, schema=schema)
    answers = explainer.explain(table.head(10))
    assert answers.batch.released.any(axis=1).sum() > 5
    for view, read in {**READERS, **READERS_OF_REPORTS}.items():
        said = list(read(explainer, answers))
        assert false_statements(model, answers, said)[1] == [], view
        assert any(one.released for one in said), view


def test_a_plot_cuts_neither_a_mark_nor_a_difference_off():
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    from onbmacf import plots

    name = "years at the present address, in words and without months"
    levels = [f"{'up to twelve years and then ' * 2}{end}" for end in ("some", "no")]
    table = pd.DataFrame({name: levels * 20, "x": np.arange(40)})
    schema = Schema.infer(table, immutable=[name])
    explainer = ONBMACF(release="immutable").fit(table, lambda rows: rows[name] == levels[0], schema=schema)
    ax = plots.before_after(explainer.explain(table.head(1))[0].counterfactuals[0])
    (label,) = [label.get_text() for label in ax.get_yticklabels()]
    assert label.startswith("years at the p")
    assert label.endswith("\u2026without months (released)")
    texts = [text.get_text() for text in ax.texts]
    assert [any(text.endswith(end) for text in texts) for end in ("and then some", "and then no")] == [True, True]


@pytest.mark.parametrize("view", READERS)
def test_a_view_that_rounds_is_noticed(monkeypatch, view):
    """The readers and checks above see one digit too few."""
    table = pd.DataFrame({"x": np.linspace(0, 1, 201), "y": np.tile([0.125, 0.25, 0.5], 67)})
    model = lambda rows: np.where(rows["x"] > 0.5025, "high", "low")  # noqa: E731
    explainer = ONBMACF(plausibility=0).fit(table, model)
    answers = explainer.explain(table.iloc[[90, 110]])
    assert false_statements(model, answers, READERS[view](explainer, answers))[1] == []
    plain = records.plain
    few = lambda value: f"{value:.2g}" if isinstance(value, float) else str(value)  # noqa: E731
    monkeypatch.setattr("onbmacf._text.wording.shown", few)
    monkeypatch.setattr(
        "onbmacf._text.records.plain", lambda value: float(few(value)) if isinstance(value, float) else plain(value)
    )
    monkeypatch.setattr("onbmacf.cli.outputs.tidy", lambda answers: tidy(answers).map(few))
    assert false_statements(model, answers, READERS[view](explainer, answers))[1] != []


def test_a_report_gives_the_range_of_a_column_as_the_table_has_it():
    """-1.27 + (0.04 - -1.27) is 0.040000000000000036."""
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    pytest.importorskip("jinja2", reason="reports need the extra 'report'")
    from onbmacf.report import audit_report

    random = np.random.default_rng(0)
    ends = {"few": (-1.27, 0.04), "many": (-np.pi, np.e), "narrow": np.float32([0.1, 0.7])}
    table = pd.DataFrame(
        {
            name: np.r_[low, random.uniform(low, high, 18), high].astype(np.asarray([low, high]).dtype)
            for name, (low, high) in ends.items()
        }
    ).round({"few": 2})
    explainer = ONBMACF().fit(table, lambda rows: rows["few"] > -0.5)
    columns = audit_report(explainer, explainer.explain(table.head(1))).content["columns"]["rows"]
    assert [line[3] for line in columns] == [" to ".join(map(str, pair)) for pair in ends.values()]


@pytest.mark.parametrize("release", ["immutable", "rules"])
def test_a_report_shows_rows_with_something_released_first(release):
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    pytest.importorskip("jinja2", reason="reports need the extra 'report'")
    from onbmacf.report import audit_report

    table = pd.DataFrame({"age": [20, 30, 40, 50] * 5, "pay": np.arange(20) % 7})
    schema = (
        Schema.infer(table, immutable=["age"])
        if release == "immutable"
        else Schema.infer(table).with_rules(Rules({"age": Rule(direction="up")}))
    )
    explainer = ONBMACF(release=release).fit(
        table, lambda rows: np.where(rows["age"] >= 30, "old", "young"), schema=schema
    )
    answers = explainer.explain(table.head(4))
    released = [answer.factual.name for answer in answers if any(found.released for found in answer.counterfactuals)]
    assert released == ([0, 1, 2, 3] if release == "immutable" else [1, 2, 3])
    first = audit_report(explainer, answers, n_cases=4).content["cases"][0]["title"]
    assert first in [f"Row {name}: {'young' if name == 0 else 'old'!r}" for name in released]
