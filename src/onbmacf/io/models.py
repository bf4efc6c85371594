"""A file or a name to a model. A file format is one function and one line in LOADERS, both in this module.

    source  ->  load_model  ->  something with predict, asked with DataFrames

This module is also read to print the help of the command line, so nothing heavy is imported until a model is loaded.
"""

import importlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onbmacf._base.checks import did_you_mean, listed
from onbmacf.errors import ModelError, OnbmacfError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

OF_EXTRA = ("onnxruntime", "skops.io")  # `files`
TRUST = "Pass trust_pickle=True if you trust where it came from."


def load_model(
    source: str | os.PathLike[str], table: "pd.DataFrame | None" = None, *, trust_pickle: bool = False
) -> Any:
    """Load a model from a file, or import one by name.

    Models of xgboost, lightgbm and catboost get the columns they were trained on, in their own order. Files that are
    pickles can run any code when they are loaded; they are refused unless `trust_pickle` is True.

    Parameters
    ----------
    source : str or path-like
        A file (ONNX ``.onnx``, skops ``.skops``, xgboost ``.ubj`` or ``.json``, lightgbm ``.txt``, catboost ``.cbm``,
        joblib ``.joblib``, pickle ``.pkl`` or ``.pickle``), ``"module:name"`` for a model or a function that can be
        imported, or the address of a server, ``"http://..."``, which becomes a `RemoteModel`.
    table : DataFrame, optional
        The table that the model will be asked about, features only. With it, a model that was trained on other
        columns is refused at once, and the text columns of xgboost and lightgbm get their categories from it.
    trust_pickle : bool, default False
        Whether to load pickles, and skops files with types that skops does not trust.

    Returns
    -------
    object
        A model for ``ONBMACF.fit``: it has ``predict``, or it is the function that was named.

    Raises
    ------
    ParameterError
        There is no such file, module or name, the file's ending is not known, or the file is a pickle and
        `trust_pickle` is False.
    ModelError
        The file is broken, or the model was trained on columns that the table lacks.
    ImportError
        The library that reads such files is not installed.

    Examples
    --------
    >>> import joblib, tempfile
    >>> from onbmacf.datasets import heart_network, load_heart
    >>> from onbmacf.io import load_model
    >>> table, chd = load_heart()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = joblib.dump(heart_network().fit(table, chd), f"{folder}/heart.joblib")[0]
    ...     model = load_model(path, table, trust_pickle=True)
    >>> model.predict(table.head(3)).tolist()
    [1, 0, 0]

    """
    if str(source).startswith(("http://", "https://")):
        from onbmacf.io.remote import RemoteModel

        return RemoteModel(str(source))
    path = Path(source)
    if not path.exists() and ":" in str(source):
        return _imported(str(source))
    loader = _loader_of(path)
    if loader.is_pickle and not trust_pickle:
        raise ParameterError(f"{path} is a pickle, which can run any code when it is loaded. {TRUST}")
    try:
        return loader.load(path, table, trust_pickle)
    except (ImportError, OnbmacfError):
        raise
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded as a model: {type(error).__name__}: {error}") from error


class Loader(NamedTuple):
    """How the files of one format are loaded."""

    name: str  # of the format, as people know it
    suffixes: tuple[str, ...]
    load: "Callable[[Path, pd.DataFrame | None, bool], Any]"  # path, table, whether the file is trusted
    is_pickle: bool = False


def described(loaders: Iterable[Loader]) -> str:
    """Return the formats as text: 'ONNX (.onnx), xgboost (.ubj, .json)'."""
    return ", ".join(f"{loader.name} ({', '.join(loader.suffixes)})" for loader in loaders)


def _loader_of(path: Path) -> Loader:
    by_suffix = {suffix: loader for loader in LOADERS for suffix in loader.suffixes}
    if path.suffix.lower() not in by_suffix:
        raise ParameterError(f"{path} is not a model: give module:name or a file ending in {listed(by_suffix)}.")
    if not path.is_file():
        raise ParameterError(f"there is no model file {path}.")
    return by_suffix[path.suffix.lower()]


def _imported(source: str) -> Any:
    module, _, name = source.partition(":")
    if not module or not name or module.startswith("."):
        raise ParameterError(f"{source} is not a model: give module:name, such as mymodule:predict.")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ParameterError(f"{source} is not a model: cannot import {module!r}: {error}.") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ModelError(f"{source} is not a model: importing {module!r} raised {what}.") from error
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, dir(found))
            raise ParameterError(f"{source} is not a model: {module!r} has no {part!r}.{hint}")
        found = getattr(found, part)
    return found


def _need(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = "'onbmacf[files]'" if module in OF_EXTRA else module.split(".")[0]
        raise ImportError(f"{what} files need {module}: pip install {name}") from error


def _onnx(path: Path, table: "pd.DataFrame | None", trusted: bool) -> Any:
    return Onnx(_need("onnxruntime", "ONNX").InferenceSession(str(path), providers=["CPUExecutionProvider"]), path)


def _skops(path: Path, table: "pd.DataFrame | None", trusted: bool) -> Any:
    skops = _need("skops.io", "skops")
    unknown = skops.get_untrusted_types(file=path)
    if unknown and not trusted:
        raise ParameterError(f"{path} holds types that skops does not trust: {listed(unknown)}. {TRUST}")
    return skops.load(path, trusted=unknown)


def _xgboost(path: Path, table: "pd.DataFrame | None", trusted: bool) -> Any:
    xgboost = _need("xgboost", "xgboost")
    raw = _raw_of(xgboost.Booster(model_file=str(path)))
    kind = xgboost.XGBRegressor if raw.n_classes is None else xgboost.XGBClassifier
    model = kind(enable_categorical=True)
    model.load_model(path)
    return Arranged(model, _matched(path, model.get_booster().feature_names, table), _levels(table))


def _lightgbm(path: Path, table: "pd.DataFrame | None", trusted: bool) -> Any:
    booster = _need("lightgbm", "lightgbm").Booster(model_file=str(path))
    model = booster if _raw_of(booster).n_classes is None else Scores(booster)
    return Arranged(model, _matched(path, booster.feature_name(), table), _levels(table))


def _raw_of(booster: Any) -> Any:
    """Return what a booster's numbers are; of a regressor's they are no classes."""
    from onbmacf._table.readings import raw_of

    return raw_of(booster)


def _catboost(path: Path, table: "pd.DataFrame | None", trusted: bool) -> Any:
    model = _need("catboost", "catboost").CatBoostClassifier()
    model.load_model(str(path))
    return Arranged(model, _matched(path, model.feature_names_, table))


def _joblib(path: Path, table: "pd.DataFrame | None", trusted: bool) -> Any:
    return _need("joblib", "joblib").load(path)


def _pickle(path: Path, table: "pd.DataFrame | None", trusted: bool) -> Any:
    import pickle

    with path.open("rb") as file:
        return pickle.load(file)


LOADERS = (
    Loader("ONNX", (".onnx",), _onnx),
    Loader("skops", (".skops",), _skops),
    Loader("xgboost", (".ubj", ".json"), _xgboost),
    Loader("lightgbm", (".txt",), _lightgbm),
    Loader("catboost", (".cbm",), _catboost),
    Loader("joblib", (".joblib",), _joblib, is_pickle=True),
    Loader("pickle", (".pkl", ".pickle"), _pickle, is_pickle=True),
)


@dataclass(frozen=True, eq=False)
class Arranged:
    """A model that gets the columns it was trained on, in its own order; text as categories where it wants them."""

    model: Any
    columns: list[Any] | None  # None: as they come
    levels: dict[str, list[Any]] | None = None

    @property
    def classes_(self) -> Any:
        """The model's labels, where it has them."""
        return getattr(self.model, "classes_", None)

    @property
    def predict_proba(self) -> "Callable[[pd.DataFrame], Any]":
        """The function from rows to the probability of each class, where the model has one."""
        ask: Callable[[Any], Any] = self.model.predict_proba
        return lambda rows: ask(self._arranged(rows))

    def predict(self, rows: "pd.DataFrame") -> Any:
        """Return what the model says of the rows."""
        return self.model.predict(self._arranged(rows))

    def _arranged(self, rows: "pd.DataFrame") -> "pd.DataFrame":
        import pandas as pd

        rows = rows if self.columns is None else rows[self.columns]
        if self.levels:
            kinds = {name: pd.CategoricalDtype(levels) for name, levels in self.levels.items() if name in rows.columns}
            rows = rows.astype(kinds)
        return rows


@dataclass(frozen=True, eq=False)
class Scores:
    """A booster whose predict returns probabilities: one column per class, also for two classes."""

    booster: Any

    @property
    def classes_(self) -> list[int]:
        """The numbers of the classes."""
        return list(range(max(2, self.booster.num_model_per_iteration())))

    def predict(self, rows: "pd.DataFrame") -> Any:
        """Return class probabilities."""
        return self.predict_proba(rows)

    def predict_proba(self, rows: "pd.DataFrame") -> Any:
        """Return class probabilities."""
        import numpy as np

        scores = np.asarray(self.booster.predict(rows))
        return np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores


@dataclass(frozen=True, eq=False)
class Onnx:
    """An ONNX session: one input per column, or one matrix; the first output is labels or scores."""

    session: Any
    path: Path | None = None  # the file, of which proofs read the graph

    def predict(self, rows: "pd.DataFrame") -> Any:
        """Return the session's first output for the rows."""
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
    known = {"double": "float64", "int64": "int64", "int32": "int32", "string": "object", "bool": "bool"}
    return known.get(kind.removeprefix("tensor(").rstrip(")"), "float32")


def _matched(path: Path, names: Any, table: "pd.DataFrame | None") -> list[Any] | None:
    """Return the columns to hand to a model, from its own names for them; None: as they come.

    A model without names (trained on an array) gets the table's order. An error where the table lacks a column.
    """
    names = [str(name) for name in names or ()]
    nameless = all(name in (str(place), f"f{place}", f"Column_{place}") for place, name in enumerate(names))
    if table is None:
        return None if nameless else names
    missing = [name for name in names if name not in table.columns]
    if nameless and (not names or (missing and len(names) == table.shape[1])):
        return list(table.columns)
    if missing:
        hint = did_you_mean(missing[0], table.columns)
        raise ModelError(f"{path} was trained on columns that the table lacks: {listed(missing)}.{hint}")
    return names


def _levels(table: "pd.DataFrame | None") -> dict[str, list[Any]]:
    """Return the values of each text column, sorted: the categories a model is given."""
    import pandas as pd

    columns = {} if table is None else {str(name): table[name] for name in table.columns}
    text = {name: column for name, column in columns.items() if not pd.api.types.is_numeric_dtype(column.dtype)}
    return {name: sorted(pd.unique(column)) for name, column in text.items()}
