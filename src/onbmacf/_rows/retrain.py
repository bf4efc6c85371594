"""Models like a given one, each trained on other rows: what the model could have been.

estimator, X, y  ->  committee  ->  k fitted models
"""

from typing import Any

import numpy as np

from onbmacf._base.arrays import Rows
from onbmacf._base.checks import check_count, check_within
from onbmacf.errors import ParameterError

SEEDS = ("random_state", "random_seed")  # parameters that decide the random numbers of a training


def committee(
    estimator: Any, X: Any, y: Any, k: int = 10, seed: int = 0, *, share: float = 0.9, replace: bool = False
) -> tuple[Any, ...]:
    """Train an estimator again, k times, each time on other rows and from another random state.

    Each member is a clone of the estimator, fitted on 90 % of the rows of each label, drawn at random (decision 0052).
    Every parameter called ``random_state`` or ``random_seed``, also inside a pipeline, gets a number of its own.
    Member 3 of 10 is member 3 of 20; another `seed` gives other members.

    Parameters
    ----------
    estimator : scikit-learn estimator or Pipeline
        Anything that ``sklearn.base.clone`` copies, xgboost's and lightgbm's estimators included; it is not changed.
    X : DataFrame or 2-D array
        The rows that the estimator is trained on.
    y : array or Series
        Their true labels.
    k : int, default 10
        How many members.
    seed : int, default 0
        Of the samples and of the random states.
    share : float above 0 and at most 1, default 0.9
        Rows of a sample, as a share of all rows.
    replace : bool, default False
        Draw with replacement: a bootstrap, whose models differ more.

    Returns
    -------
    tuple
        k fitted models, for the option ``committee`` of `ONBMACF`.

    Examples
    --------
    >>> from onbmacf.datasets import heart_network, load_heart
    >>> table, y = load_heart()
    >>> len(committee(heart_network(), table, y, k=2))
    2

    """
    from sklearn.base import clone

    if not callable(getattr(estimator, "get_params", None)):
        raise ParameterError(
            f"the estimator must be one that scikit-learn can clone, got {type(estimator).__name__}. Train the members "
            "yourself and give them to ONBMACF as a list."
        )
    check_within("share", share, np.finfo(float).tiny, 1)
    labels = _labels(X, y)
    members = []
    for member in range(check_count("k", k)):
        random = np.random.default_rng([check_count("seed", seed, 0), member])
        rows = sample(labels, random, share, replace)
        model = clone(estimator).set_params(**_random_states(estimator, random))
        members.append(model.fit(_at(X, rows), _at(y, rows)))
    return tuple(members)


def sample(labels: Rows, random: np.random.Generator, share: float, replace: bool) -> Rows:
    """Draw a share of the rows of each label, one at least; in the order of the table."""
    every = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    drawn = [random.choice(own, size=max(1, round(share * len(own))), replace=replace) for own in every]
    return np.sort(np.concatenate(drawn))


def _labels(X: Any, y: Any) -> Rows:
    """Return the labels as numbers from 0 on."""
    labels = np.unique(np.asarray(y), return_inverse=True)[1]
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if labels.ndim != 1 or len(labels) != n_rows or not n_rows:
        raise ParameterError(f"X and y must have as many rows as each other, got {n_rows} and {len(labels)}.")
    return labels


def _random_states(estimator: Any, random: np.random.Generator) -> dict[str, int]:
    """Return a number for each parameter that decides random numbers, also of the steps of a pipeline."""
    names = sorted(name for name in estimator.get_params() if name.split("__")[-1] in SEEDS)
    return {name: int(random.integers(2**31)) for name in names}


def _at(values: Any, rows: Rows) -> Any:
    """Return some rows of a frame, a series, an array or a list, in the order given."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows]
