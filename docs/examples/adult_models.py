"""Models of income for the example reports: `--model adult_models:trained`, and two rules whose fairness is known.

`trained` is a boosted model of the census table, as one would train it. `fair` is a rule of education and hours; in the
table `lots.csv` the sex of each row was drawn by lot, so that nothing is there to be found. `unfair` is the same rule,
made unfair on purpose: of women it asks three more years of education.
"""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder


@cache
def _boosted():
    table = pd.read_csv("adult.csv").drop(columns="fnlwgt")
    words = make_column_transformer(
        (OrdinalEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    model = make_pipeline(words, HistGradientBoostingClassifier(max_iter=60, random_state=0))
    return model.fit(table.drop(columns="income"), table["income"])


def trained(rows):
    """Return 1 where the boosted model expects a high income."""
    return _boosted().predict(rows)


def fair(rows):
    """Return 1 for enough years of education and hours of work, whoever it is."""
    return (_score(rows) >= 13).astype(int).to_numpy()


def unfair(rows):
    """Return the same, with three more years of education asked of women."""
    return (_score(rows) - 3 * (rows["sex"] == "Female") >= 13).astype(int).to_numpy()


def _score(rows):
    return rows["education-num"] + np.minimum(rows["hours-per-week"], 60) / 20
