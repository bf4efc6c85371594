"""The network that is trained where no model is given, and how it compares with guessing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier

from onbmacf.errors import OnbmacfError, OnbmacfWarning, TableError
from onbmacf.io import train_network, train_trees


def test_the_network_is_trained_on_three_quarters_and_is_the_same_each_time(trained_once, monkeypatch):
    monkeypatch.setattr(MLPClassifier, "fit", trained_once)  # each time anew
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.normal(size=200), "town": random.choice(["A", "B"], 200)})
    y = pd.Series(np.where((table["x"] > 0) ^ (table["town"] == "B"), "yes", "no"), name="answer")
    trained = train_network(table, y)
    assert (trained.n_trained, trained.n_tested) == (150, 50)
    assert trained.accuracy > 0.9
    again = train_network(table, y)
    assert (again.model.predict_proba(table) == trained.model.predict_proba(table)).all()
    tested = np.random.default_rng(0).permutation(200)[150:]
    assert trained.accuracy == (trained.model.predict(table.iloc[tested]) == y.iloc[tested]).mean()


def test_the_network_is_compared_with_always_guessing_the_most_frequent_label():
    """The guess is made of the rows trained on, and judged on the others, as the network is."""
    table = pd.DataFrame({"x": np.arange(40)})
    trained_on, tested = np.split(np.random.default_rng(0).permutation(40), [30])
    y = pd.Series("rare", index=table.index, name="answer")
    y.iloc[trained_on[:16]] = "frequent"
    y.iloc[tested[:3]] = "frequent"  # of 10: "rare" is the more frequent one here
    with warnings.catch_warnings(record=True):
        trained = train_network(table, y)
    assert (trained.most_frequent, trained.baseline) == ("frequent", 0.3)
    said = "the model is right on {:.1f} % of the other 10; always guessing 'frequent' is right on 30.0 %"
    assert trained.comparison == said.format(100 * trained.accuracy)


def test_a_network_that_is_not_better_than_guessing_is_a_warning(recwarn):
    table = pd.DataFrame({"x": np.random.default_rng(1).normal(size=80)})
    y = pd.Series(np.where(table["x"] > 0, "a", "b"))
    better = train_network(table, y)
    assert better.accuracy > better.baseline
    assert better.warning == ""
    assert OnbmacfWarning not in [one.category for one in recwarn]
    tested = np.random.default_rng(0).permutation(80)[60:]
    y.iloc[tested] = np.where(table["x"].iloc[tested] > 0, "b", "a")  # the opposite of what it is trained on
    worse = train_network(table, y)
    assert worse.accuracy < worse.baseline
    [seen] = [one for one in recwarn if one.category is OnbmacfWarning]
    assert str(seen.message) == worse.warning
    assert worse.warning == (
        "the trained model, a network (32-16), is not better than always guessing the most frequent label: trained on "
        f"60 rows, {worse.comparison}. Explanations of it say little about the labels."
    )
    assert seen.filename == __file__
    assert worse._replace(accuracy=worse.baseline).warning  # as good as guessing is not better


@pytest.mark.parametrize(
    "values, message",
    [
        (["a"] * 30, "column 'y' must have at least two values and none missing to train a model on."),
        (["a", "b", None] * 10, "column 'y' must have at least two values and none missing to train a model on."),
        ([0.5, 1.0] * 15, "column 'y' holds decimals, e.g. 0.5: it must name classes. Group its values first."),
        (list(range(30)), "column 'y' has 30 different values: it must name classes. Group its values first."),
    ],
)
def test_labels_that_are_no_classes_are_refused(values, message):
    with pytest.raises(TableError) as error:
        train_network(pd.DataFrame({"x": range(30)}), pd.Series(values, name="y"))
    assert str(error.value) == message
    assert isinstance(error.value, OnbmacfError)


@pytest.mark.parametrize("train", [train_network, train_trees])
def test_nothing_is_learnt_from_text_of_each_rows_own(train):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": [f"P{place}" for place in range(200)], "x": rng.random(200)})
    trained = train(table, pd.Series(np.where(table["x"] > 0.5, "yes", "no"), name="answer"))
    renamed = table.assign(id=table["id"].iloc[::-1].to_numpy())
    assert (trained.model.predict_proba(renamed) == trained.model.predict_proba(table)).all()
    encoder = getattr(trained.model, "model", trained.model)[0]
    assert encoder.transform(table).shape[1] == 1
    alone = train(table[["id"]], pd.Series(["yes", "no"] * 100, name="answer"))  # nothing else to learn from
    assert len(alone.model.predict(table[["id"]])) == 200
