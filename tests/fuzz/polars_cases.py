"""Frames of polars made of a case's frames, and a model that takes them, as a caller of polars would have both."""

import pandas as pd
import polars as pl

NUMBERS = {"float32": pl.Float32, "int8": pl.Int8, "uint8": pl.UInt8, "float64": pl.Float64, "int64": pl.Int64}


def as_polars(rows, table):
    """Return rows as a frame of polars, in the dtypes nearest to those of a table."""
    return pl.DataFrame([_column(name, rows[name], table[name].dtype) for name in table])


def _column(name, values, dtype):
    values = [None if value is pd.NA or value is None or value != value else value for value in values.tolist()]
    if isinstance(dtype, pd.CategoricalDtype):
        return pl.Series(name, values, pl.Enum(list(dtype.categories)) if dtype.ordered else pl.Categorical)
    known = NUMBERS.get(str(dtype).lower())
    return pl.Series(name, values, pl.Boolean if str(dtype).lower().startswith("bool") else known or pl.String)


class AsPolars:
    """A model for frames of polars: it wants exactly the fitted dtypes and asks a model for frames of pandas."""

    def __init__(self, model, table, fitted):
        self._dtypes, self._fitted = table.dtypes, fitted.schema
        self._predict = getattr(model, "predict", model)
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        if hasattr(model, "predict_proba"):
            self.predict_proba = lambda rows: model.predict_proba(self._pandas(rows))

    def predict(self, rows):
        return self._predict(self._pandas(rows))

    def _pandas(self, rows):
        assert isinstance(rows, pl.DataFrame), f"the model is given a {type(rows)}"
        assert dict(rows.schema) == dict(self._fitted), f"the model is given {rows.schema} for {self._fitted}"
        columns = {name: pd.array(rows[name].to_list(), dtype=dtype) for name, dtype in self._dtypes.items()}
        return pd.DataFrame(columns)
