"""The embedded table: South African heart disease, 462 men of the Western Cape.

Public figures of Rossouw et al. (1983), as used in The Elements of Statistical Learning: nine features and `chd`,
coronary heart disease. Values and order are those of the KEEL copy (SHA-256 82d9144a...).
"""

from importlib.resources import files
from typing import Any

import pandas as pd

__all__ = ["heart_network", "load_heart"]


def load_heart() -> "tuple[pd.DataFrame, pd.Series[Any]]":
    """Return the heart table and its target.

    The columns are ``sbp`` (systolic blood pressure, mmHg), ``tobacco`` (cumulative, kg), ``ldl`` (low density
    lipoprotein cholesterol), ``adiposity``, ``famhist`` (family history: Present or Absent), ``typea`` (score of
    type-A behaviour), ``obesity``, ``alcohol`` (current consumption) and ``age`` (years).

    Returns
    -------
    table : DataFrame
        462 rows, 9 columns.
    chd : Series
        1 for coronary heart disease, else 0.

    Examples
    --------
    >>> table, chd = load_heart()
    >>> table.shape, int(chd.sum())
    ((462, 9), 160)

    """
    with (files("onbmacf.datasets") / "heart.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    chd = table.pop("chd")
    return table, chd


def heart_network() -> Any:
    """Return an untrained classifier for the heart table.

    Returns
    -------
    Pipeline
        Scaled columns (``famhist`` as 0 or 1) into a network with hidden layers of 32 and 16; seed 0.

    Examples
    --------
    >>> table, chd = load_heart()
    >>> model = heart_network().fit(table, chd)
    >>> model.predict(table.head(3)).tolist()
    [1, 0, 0]

    """
    from sklearn.compose import make_column_transformer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    scaled = make_column_transformer((OneHotEncoder(drop="if_binary"), ["famhist"]), remainder=MinMaxScaler())
    return make_pipeline(scaled, MLPClassifier((32, 16), alpha=0.1, max_iter=2000, random_state=0))
