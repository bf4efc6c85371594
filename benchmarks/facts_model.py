"""A linear model of categories and numbers as plain numbers, so that two environments ask the very same one.

train(table, labels)  ->  weights (a dict that JSON can hold)  ->  LinearModel(weights).predict(rows)
"""

from typing import Any

import numpy as np
import pandas as pd


class LinearModel:
    """1 where the sum of the row's weights is above 0. Intervals are read as their text."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self.weights = weights

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return 0 or 1 per row."""
        total = np.full(len(rows), self.weights["intercept"])
        for name, weight in self.weights["numbers"].items():
            total += weight * rows[name].to_numpy(dtype=float)
        for name, of_level in self.weights["levels"].items():
            codes, levels = pd.factorize(rows[name])
            total += np.array([of_level[in_text(level)] for level in levels])[codes] if len(rows) else 0.0
        return (total > 0).astype(int)


class Pipeline:
    """The same weights in scikit-learn's form, as in FACTS' own example: one column per level, logistic regression."""

    def __init__(self, weights: dict[str, Any]) -> None:
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import OneHotEncoder

        levels, self.numbers = weights["levels"], list(weights["numbers"])
        encoder = OneHotEncoder(categories=[list(of_level) for of_level in levels.values()])
        self.columns = make_column_transformer((encoder, list(levels)), remainder="passthrough")
        first = pd.DataFrame({name: list(of_level)[:1] for name, of_level in levels.items()})
        self.columns.fit(first.assign(**dict.fromkeys(self.numbers, 0.0)))
        own = [weight for of_level in levels.values() for weight in of_level.values()]
        self.model = LogisticRegression()
        self.model.coef_ = np.array([[*own, *weights["numbers"].values()]])
        self.model.intercept_, self.model.classes_ = np.array([weights["intercept"]]), np.array([0, 1])

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return 0 or 1 per row."""
        names = list(self.columns.feature_names_in_)
        return self.model.predict(self.columns.transform(rows.assign(age=rows["age"].map(in_text))[names]))


MODELS = {"plain": LinearModel, "pipeline": Pipeline}


def in_text(level: Any) -> str:
    """Return a level as text; an interval as its two ends.

    >>> in_text(pd.Interval(16, 26)), in_text("Male")
    ('16 to 26', 'Male')
    """
    return f"{level.left:g} to {level.right:g}" if isinstance(level, pd.Interval) else str(level)
