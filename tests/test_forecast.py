"""What takes long is told before the work: the warning comes first, names the sizes, and is rare (decision 0078)."""

import warnings

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._batch import forecast
from onbmacf._batch.forecast import LONG, Searched, explain_forecast, fit_forecast, fit_seconds
from onbmacf.bench.datasets import DESCRIPTIONS, load_task

NAMES = [f"c{at}" for at in range(1000)]
WIDE = pd.DataFrame(np.random.default_rng(0).random((60, len(NAMES))), columns=NAMES)


class Model:
    """Says whether one column is high; once told to stop, it ends the work at the first question, as Ctrl-C does."""

    stops = False

    def predict(self, rows):
        if self.stops:
            raise KeyboardInterrupt
        return (rows["c0"] > 0.5).astype(int)


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def wide(model):
    return ONBMACF().fit(WIDE, model)


def told_before(model, work):
    """Return the warnings about time that come before the model is first asked."""
    model.stops = True
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            work()
    assert {one.filename for one in seen} <= {__file__}  # they point at the caller's line
    return [str(one.message) for one in seen if "will take" in str(one.message)]


def test_a_wide_table_is_told_of_before_the_work(model, wide):
    [message] = told_before(model, lambda: wide.explain(WIDE.head(3)))
    sizes = f"3 rows with 1,000 features that may change (1,000 encoded columns, {len(wide.cover_):,} balls)"
    assert message.startswith(f"explaining {sizes} will take some minutes")
    assert "vary=[...]" in message
    assert "max_seconds=" in message


@pytest.mark.parametrize("asked", [{"vary": NAMES[:20]}, {"max_seconds": 60}, {"immutable": NAMES[20:]}], ids=list)
def test_its_remedies_end_the_warning(model, wide, asked):
    assert told_before(model, lambda: wide.explain(WIDE.head(3), **asked)) == []
    assert told_before(model, lambda: wide.with_options(max_model_rows=100).explain(WIDE.head(3))) == []


def test_rows_that_are_asked_differently_count_together(model, wide):
    n = int(0.6 * LONG / Searched(1, len(wide.cover_), 1000, 1000).seconds)
    assert told_before(model, lambda: wide.explain(WIDE.head(n))) == []
    [message] = told_before(model, lambda: wide.explain(WIDE.head(2 * n), n=[1, 2] * n))
    assert message.startswith(f"explaining {2 * n} rows")


def test_the_answers_keep_the_warning(monkeypatch):
    table = WIDE[NAMES[:3]]
    explainer = ONBMACF().fit(table, Model())
    monkeypatch.setattr(forecast, "LONG", 0.0)
    with pytest.warns(match="explaining 1 row with 2 features"):
        answers = explainer.explain(table.head(1), immutable=["c2"])
    assert [message for message in answers.warnings if "will take" in message] == list(answers.warnings)
    assert len(answers.warnings) == 1


def test_a_long_fit_is_told_of_before_the_model_is_asked(model, monkeypatch):
    monkeypatch.setattr(forecast, "LONG", 0.0)
    [message] = told_before(model, lambda: ONBMACF().fit(WIDE, model))
    assert message.startswith("the cover of 60 rows with 1,000 features will take")


@pytest.mark.parametrize("is_called", [False, True])
def test_sizes_decide_what_is_long(is_called):
    assert fit_forecast(1_000, 20, is_called) == ()
    [message] = fit_forecast(5_000_000, 20, is_called)
    assert ("A metric by name" in message) is is_called


def test_more_of_anything_takes_longer():
    sizes = Searched(10, 100, 50, 50)
    larger = [sizes._replace(**{name: 2 * getattr(sizes, name)}) for name in ("n_rows", "n_balls", "width", "n_free")]
    assert all(own.seconds > sizes.seconds for own in larger)
    assert sizes._replace(n_jobs=2).seconds == sizes.seconds / 2
    assert sizes._replace(is_exchanged=False).seconds < sizes.seconds


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_the_benchmark_tables_are_never_long(name, data_dir):
    """Even if every row were a ball."""
    task = load_task(name, data_dir)
    n_features = len(task.schema.features)
    assert fit_seconds(len(task.Z), n_features) < LONG
    assert explain_forecast([Searched(200, len(task.Z), task.space.width, n_features)]) == ()


def test_equal_rows_are_searched_once_and_counted_once(model, wide):
    few = int(0.6 * LONG / Searched(1, len(wide.cover_), 1000, 1000).seconds)
    many = pd.concat([WIDE.head(few)] * 3)
    assert told_before(model, lambda: wide.explain(many)) == []
    [message] = told_before(model, lambda: wide.explain(pd.concat([WIDE, many])))
    assert message.startswith("explaining 60 rows")
    [message] = told_before(model, lambda: wide.with_options(recover="persist").explain(many))
    assert message.startswith(f"explaining {3 * few} ")  # each is let into the map, and searched then


def test_values_that_cannot_be_compared_are_counted_each(model, wide):
    odd = pd.concat([WIDE.head(5)] * 12).astype({"c0": object})
    odd.iloc[0, 0] = [1.0]
    [message] = told_before(model, lambda: wide.explain(odd))
    assert message.startswith("explaining 60 rows")
