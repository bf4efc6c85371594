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


def in_text(level: Any) -> str:
    """Return a level as text; an interval as its two ends.

    >>> in_text(pd.Interval(16, 26)), in_text("Male")
    ('16 to 26', 'Male')
    """
    return f"{level.left:g} to {level.right:g}" if isinstance(level, pd.Interval) else str(level)
