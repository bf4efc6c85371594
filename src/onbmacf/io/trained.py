"""A model trained for a caller who has a table and a target column: a small network, or trees where values are missing.

table, y  ->  train_network, train_trees  ->  TrainedModel: the model, and how it compares with a constant guess
"""

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._columns.converters import converter_of, measured
from onbmacf._columns.kinds import is_own_text
from onbmacf._text.wording import quoted
from onbmacf.errors import OnbmacfWarning, TableError

SHARE_TRAINED = 0.75
BATCH = 100
MOST_LEVELS = 254  # of a column that boosted trees take; rarer levels are one
MOST_STEPS = 20_000


class TrainedModel(NamedTuple):
    """A model that `train_network` or `train_trees` has trained, and how well it does on the rows it did not see.

    Attributes
    ----------
    kind : str
        What it is, in words.
    model : object
        The trained classifier; ``predict`` and ``predict_proba`` take rows with the columns of the table.
    n_trained : int
        Number of rows it was trained on.
    tested : array of int
        The positions of the rows it was tested on.
    accuracy : float
        Share of the tested rows, from 0 to 1, to which it gives the right label.
    most_frequent : object
        The most frequent label among the rows it was trained on; of several, the one that sorts first.
    baseline : float
        Share of the tested rows with that label: the accuracy of always guessing it.

    """

    kind: str
    model: Any
    n_trained: int
    tested: NDArray[np.intp]
    accuracy: float
    most_frequent: Any
    baseline: float

    @property
    def n_tested(self) -> int:
        """Number of rows it was tested on."""
        return len(self.tested)

    @property
    def comparison(self) -> str:
        """How it compares with always guessing the most frequent label, in words."""
        return (
            f"the model is right on {100 * self.accuracy:.1f} % of the other {self.n_tested:,}; always guessing "
            f"{quoted(self.most_frequent)} is right on {100 * self.baseline:.1f} %"
        )

    @property
    def warning(self) -> str:
        """What to warn of: that it is not better than guessing; empty if it is."""
        if self.accuracy > self.baseline:
            return ""
        return (
            f"the trained model, {self.kind}, is not better than always guessing the most frequent label: trained on "
            f"{self.n_trained:,} rows, {self.comparison}. Explanations of it say little about the labels."
        )


class OneThread:
    """A classifier that computes in one thread: for some hundred rows, threads that wait for each other cost more."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, table: pd.DataFrame, y: "pd.Series[Any]") -> "OneThread":
        """Train the classifier."""
        with _threads().limit(limits=1):
            self.model.fit(table, y)
        return self

    @property
    def classes_(self) -> Any:
        """The labels, in the order of the probabilities."""
        return self.model.classes_

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return the labels of rows."""
        with _threads().limit(limits=1):
            return self.model.predict(rows)

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        """Return the probabilities of rows."""
        with _threads().limit(limits=1):
            return self.model.predict_proba(rows)


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def train_network(table: pd.DataFrame, y: "pd.Series[Any]") -> TrainedModel:
    """Train a small network on three quarters of the rows, and test it on the others.

    Numbers are scaled to [0, 1] and text is one-hot encoded, but for columns in which nearly every row has a text of
    its own: these are left out. The hidden layers have 32 and 16 units. Everything drawn at random is drawn with seed
    0, so the same table gives the same network. A network that is not better than always guessing the most frequent
    label is an `OnbmacfWarning`.

    Parameters
    ----------
    table : DataFrame
        The features, without missing values.
    y : Series
        The label of each row: at least two classes, no missing values.

    Returns
    -------
    TrainedModel
        The model, the numbers of rows it was trained and tested on, its accuracy on the latter, and that of always
        guessing the most frequent label.

    Raises
    ------
    TableError
        The labels are missing in places, all the same, or so many that they do not look like classes.

    Examples
    --------
    >>> from onbmacf.datasets import load_heart
    >>> from onbmacf.io import train_network
    >>> trained = train_network(*load_heart())
    >>> trained.n_trained, trained.n_tested
    (346, 116)
    >>> trained.accuracy > trained.baseline > 0.5
    True

    """
    return _trained("a network (32-16)", _network(table), table, y)


def train_trees(table: pd.DataFrame, y: "pd.Series[Any]") -> TrainedModel:
    """Train boosted trees, which take missing values, on three quarters of the rows, and test them on the others.

    They are scikit-learn's `HistGradientBoostingClassifier`. Text is a category: its 253 most frequent levels are told
    apart. Everything drawn at random is drawn with seed 0. Trees that are not better than always guessing the most
    frequent label are an `OnbmacfWarning`.

    Parameters
    ----------
    table : DataFrame
        The features; values may be missing.
    y : Series
        The label of each row: at least two classes, no missing values.

    Returns
    -------
    TrainedModel
        As of `train_network`.

    Raises
    ------
    TableError
        The labels are missing in places, all the same, or so many that they do not look like classes.

    Examples
    --------
    >>> from onbmacf.datasets import load_heart
    >>> from onbmacf.io import train_trees
    >>> table, y = load_heart()
    >>> gaps = table.assign(ldl=table["ldl"].where(table["ldl"] < 6))
    >>> train_trees(gaps, y).model.predict(gaps.iloc[:3]).shape
    (3,)

    """
    return _trained("boosted trees", _trees(table), table, y)


def _trained(kind: str, model: Any, table: pd.DataFrame, y: "pd.Series[Any]") -> TrainedModel:
    _check_classes(y)
    shuffled = np.random.default_rng(0).permutation(len(table))
    rows, others = np.split(shuffled, [max(1, int(SHARE_TRAINED * len(table)))])
    model = model.fit(table.iloc[rows], y.iloc[rows])
    most_frequent = y.iloc[rows].mode().iloc[0]
    right = float((model.predict(table.iloc[others]) == y.iloc[others]).mean())
    baseline = float((most_frequent == y.iloc[others]).mean())
    trained = TrainedModel(kind, model, len(rows), np.sort(others), right, most_frequent, baseline)
    if trained.warning:
        warnings.warn(trained.warning, OnbmacfWarning, stacklevel=3)
    return trained


def _check_classes(y: "pd.Series[Any]") -> None:
    if y.isna().any() or y.nunique() < 2:
        raise TableError(f"column {y.name!r} must have at least two values and none missing to train a model on.")
    if y.nunique() > max(20, len(y) // 10):
        raise TableError(
            f"column {y.name!r} has {y.nunique()} different values: it must name classes. Group its values first."
        )
    decimals = y[y % 1 != 0] if pd.api.types.is_float_dtype(y.dtype) else y[:0]
    if len(decimals):
        what = f"column {y.name!r} holds decimals, e.g. {decimals.iloc[0]}"
        raise TableError(f"{what}: it must name classes. Group its values first.")


def _network(table: pd.DataFrame) -> Any:
    """Return an untrained pipeline: scaled numbers and one-hot text into hidden layers of 32 and 16."""
    from sklearn.compose import make_column_transformer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder

    text, dates, own = _text_and_dates(table)
    scaled = [(make_pipeline(FunctionTransformer(_in_days), MinMaxScaler()), dates)] if dates else []
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
        *scaled,
        ("drop", own),
        remainder=MinMaxScaler(),
    )
    epochs = int(np.clip(MOST_STEPS * BATCH / len(table), 20, 1000))
    return make_pipeline(encoder, MLPClassifier((32, 16), alpha=0.1, batch_size=BATCH, max_iter=epochs, random_state=0))


def _trees(table: pd.DataFrame) -> Any:
    """Return untrained boosted trees behind numbers for the levels of text."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

    text, dates, own = _text_and_dates(table)
    levels = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=MOST_LEVELS,
    )
    numbers = [(FunctionTransformer(_in_days), dates)] if dates else []
    encoder = make_column_transformer((levels, text), *numbers, ("drop", own), remainder="passthrough")
    trees = HistGradientBoostingClassifier(categorical_features=list(range(len(text))), random_state=0)
    return OneThread(make_pipeline(encoder, trees))


def _text_and_dates(table: pd.DataFrame) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the columns of text; those of dates, times, periods and decimals, which are numbers; and text left out."""
    own = own_texts(table)
    dates = [name for name in table.columns if converter_of(table[name]) is not None]
    numeric = [name for name in table.columns if pd.api.types.is_numeric_dtype(table[name].dtype)]
    return [name for name in table.columns if name not in {*dates, *numeric, *own}], dates, own


def own_texts(table: pd.DataFrame) -> list[Any]:
    """Return the columns from which nothing can be learnt: nearly every row has a text of its own; not if all are."""
    own = [name for name in table.columns if is_own_text(table[name])]
    return own if len(own) < table.shape[1] else []


def _in_days(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({name: measured(table[name]) for name in table.columns}, index=table.index)
