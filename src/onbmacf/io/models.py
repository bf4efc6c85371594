"""Files and words to models: one function a kind, one line each in LOADERS.

--model  ->  load_model  ->  something with predict, fed with frames
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.checks import did_you_mean, listed
from onbmacf.errors import ModelError, ParameterError

SHARE_TRAINED = 0.75
BATCH = 100
MOST_STEPS = 20_000


def load_model(words: str, table: pd.DataFrame, trust_pickle: bool) -> Any:
    """Return the model that --model names; the table's columns are those it will be asked."""
    path = Path(words)
    if not path.exists() and ":" in words:
        return _imported(words)
    suffix = path.suffix.lower()
    if suffix not in LOADERS:
        raise ParameterError(f"--model {words}: give module:callable or a file ending in {listed(LOADERS)}.")
    if not path.is_file():
        raise ParameterError(f"--model {words}: there is no such file.")
    if suffix in PICKLES and not trust_pickle:
        raise ParameterError(
            f"{path} is a pickle, which can run any code when it is loaded. Say --trust-pickle if you trust its origin."
        )
    try:
        return LOADERS[suffix](path, table, trust_pickle)
    except (ImportError, ParameterError, ModelError):
        raise
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded as a model: {type(error).__name__}: {error}") from error


def trained(table: pd.DataFrame, y: "pd.Series[Any]") -> tuple[Any, str]:
    """Train a small network on three quarters of the rows; return it and what to say about it."""
    if y.isna().any() or y.nunique() < 2:
        raise ModelError(f"column {y.name!r} must have at least two values and none missing to train a model on.")
    if y.nunique() > max(20, len(y) // 10):
        raise ModelError(
            f"column {y.name!r} has {y.nunique()} different values: it must name classes. Cut it into classes first."
        )
    shuffled = np.random.default_rng(0).permutation(len(table))
    rows, others = np.split(shuffled, [max(1, int(SHARE_TRAINED * len(table)))])
    model = _network(table).fit(table.iloc[rows], y.iloc[rows])
    right = float((model.predict(table.iloc[others]) == y.iloc[others]).mean()) if len(others) else float("nan")
    return model, (
        f"No model was given: a network (32-16) was trained on {y.name!r} with {len(rows):,} of {len(table):,} rows "
        f"(seed 0); it is right on {right:.1%} of the other {len(others):,}. What follows is about that model."
    )


def _network(table: pd.DataFrame) -> Any:
    """Return an untrained pipeline: scaled numbers and one-hot text into hidden layers of 32 and 16."""
    from sklearn.compose import make_column_transformer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    text = [name for name in table.columns if not _is_number(table[name])]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text), remainder=MinMaxScaler()
    )
    epochs = int(np.clip(MOST_STEPS * BATCH / len(table), 20, 1000))
    return make_pipeline(encoder, MLPClassifier((32, 16), alpha=0.1, batch_size=BATCH, max_iter=epochs, random_state=0))


def _imported(words: str) -> Any:
    module_name, _, attribute = words.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules beside the caller
    try:
        found = importlib.import_module(module_name)
    except ImportError as error:
        raise ParameterError(f"--model {words}: cannot import {module_name!r}: {error}.") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ParameterError(f"--model {words}: {module_name!r} has no {part!r}.{did_you_mean(part, dir(found))}")
        found = getattr(found, part)
    return found


def _need(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} need {module}: pip install {module.split('.')[0]}") from error


def _skops(path: Path, table: pd.DataFrame, trust_pickle: bool) -> Any:
    io = _need("skops.io", "skops files")
    unknown = io.get_untrusted_types(file=path)
    if unknown and not trust_pickle:
        raise ParameterError(f"{path} holds types that skops does not trust: {listed(unknown)}. Say --trust-pickle.")
    return io.load(path, trusted=unknown)


def _joblib(path: Path, table: pd.DataFrame, trust_pickle: bool) -> Any:
    return _need("joblib", "joblib files").load(path)


def _pickle(path: Path, table: pd.DataFrame, trust_pickle: bool) -> Any:
    import pickle

    with path.open("rb") as file:
        return pickle.load(file)


def _catboost(path: Path, table: pd.DataFrame, trust_pickle: bool) -> Any:
    model = _need("catboost", "catboost files").CatBoostClassifier()
    model.load_model(str(path))
    return Arranged(model, _matched(path, model.feature_names_, table))


def _xgboost(path: Path, table: pd.DataFrame, trust_pickle: bool) -> Any:
    model = _need("xgboost", "xgboost files").XGBClassifier(enable_categorical=True)
    model.load_model(path)
    names = model.get_booster().feature_names or list(table.columns)
    return Arranged(model, _matched(path, names, table), _levels(table))


def _lightgbm(path: Path, table: pd.DataFrame, trust_pickle: bool) -> Any:
    booster = _need("lightgbm", "lightgbm files").Booster(model_file=str(path))
    return Arranged(Scores(booster), _matched(path, booster.feature_name(), table), _levels(table))


def _onnx(path: Path, table: pd.DataFrame, trust_pickle: bool) -> Any:
    session = _need("onnxruntime", "ONNX files").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return Onnx(session)


PICKLES = (".joblib", ".pkl", ".pickle")
LOADERS: dict[str, Callable[[Path, pd.DataFrame, bool], Any]] = {
    ".onnx": _onnx,
    ".skops": _skops,
    ".ubj": _xgboost,
    ".json": _xgboost,
    ".txt": _lightgbm,
    ".cbm": _catboost,
    ".joblib": _joblib,
    ".pkl": _pickle,
    ".pickle": _pickle,
}


@dataclass(frozen=True, eq=False)
class Arranged:
    """A model that gets the columns it was trained on, in its own order; text as categories where it wants them."""

    model: Any
    columns: list[str]
    levels: dict[str, list[Any]] | None = None

    @property
    def classes_(self) -> Any:
        """The model's labels, where it has them."""
        return getattr(self.model, "classes_", None)

    def predict(self, rows: pd.DataFrame) -> Any:
        """Ask the model."""
        rows = rows[self.columns]
        if self.levels:
            kinds = {name: pd.CategoricalDtype(levels) for name, levels in self.levels.items() if name in self.columns}
            rows = rows.astype(kinds)
        return self.model.predict(rows)


@dataclass(frozen=True, eq=False)
class Scores:
    """A booster whose predict returns probabilities: one column per class, also for two classes."""

    booster: Any

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return class probabilities."""
        scores = np.asarray(self.booster.predict(rows))
        return np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores


@dataclass(frozen=True, eq=False)
class Onnx:
    """An ONNX session: one input per column, or one matrix; the first output is labels or scores."""

    session: Any

    def predict(self, rows: pd.DataFrame) -> Any:
        """Ask the session."""
        inputs = self.session.get_inputs()
        if len(inputs) == 1:
            feeds = {inputs[0].name: rows.to_numpy(dtype=_dtype(inputs[0].type))}
        else:
            missing = [entry.name for entry in inputs if entry.name not in rows.columns]
            if missing:
                raise ModelError(f"the ONNX model asks for {listed(missing)}, which the table lacks.")
            feeds = {entry.name: rows[[entry.name]].to_numpy(dtype=_dtype(entry.type)) for entry in inputs}
        return self.session.run(None, feeds)[0]


def _dtype(kind: str) -> Any:
    known = {"double": np.float64, "int64": np.int64, "int32": np.int32, "string": object, "bool": bool}
    return known.get(kind.removeprefix("tensor(").rstrip(")"), np.float32)


def _matched(path: Path, names: Any, table: pd.DataFrame) -> list[str]:
    """Return the model's columns; an error where the table lacks one. Nameless models get the table's order."""
    names = [str(name) for name in names]
    if len(names) == table.shape[1] and all(_is_default(name, place) for place, name in enumerate(names)):
        return [str(name) for name in table.columns]
    missing = [name for name in names if name not in table.columns]
    if missing:
        hint = did_you_mean(missing[0], table.columns)
        raise ModelError(f"{path} was trained on columns that the table lacks: {listed(missing)}.{hint}")
    return names


def _is_default(name: str, place: int) -> bool:
    return name in (str(place), f"f{place}", f"Column_{place}")


def _levels(table: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(name): sorted(pd.unique(table[name])) for name in table.columns if not _is_number(table[name])}


def _is_number(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)
