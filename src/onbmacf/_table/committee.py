"""A committee: models that were trained like the one explained, asked whether they say the same.

model, rows  ->  retrained  ->  models like it, each trained on other rows  ->  Committee.agree
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import check_count, check_within, listed
from onbmacf._table.calls import Counts
from onbmacf._table.model import FAILED, LARGER, BlackBox
from onbmacf.errors import ModelError, ParameterError

MOST_DECIDED = 1 << 17  # rows that are remembered: some hundred bytes each


# --- the committee ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Committee:
    """The members as black boxes, and the share of them that must agree on a point."""

    boxes: tuple[BlackBox, ...]
    agreement: float
    decided: dict[bytes, bool] = field(default_factory=dict)  # rows with their codes: whether enough members agree

    @property
    def n_needed(self) -> int:
        """How many members must agree: the fewest whose share is at least the agreement."""
        shares = np.arange(len(self.boxes) + 1) / len(self.boxes)
        return int(np.argmax(shares >= self.agreement))

    def agree(self, N: Matrix, codes: Rows, counts: Counts) -> Mask:
        """Say for which rows enough members say these labels; nothing is asked twice while a search lasts."""
        keys = _keys(N, codes)
        new = {key: line for line, key in enumerate(keys) if key not in self.decided}
        if len(self.decided) + len(new) > MOST_DECIDED:
            self.decided.clear()
            new = {key: line for line, key in enumerate(keys)}
        lines = np.fromiter(new.values(), dtype=np.intp, count=len(new))
        self.decided.update(zip(new, self._agree(N[lines], codes[lines], counts).tolist(), strict=True))
        return np.array([*map(self.decided.__getitem__, keys)], dtype=bool)

    def _agree(self, N: Matrix, codes: Rows, counts: Counts) -> Mask:
        """Ask the members in turn, each only about what is still undecided."""
        n_agree, n_left, needed = np.zeros(len(N), dtype=np.intp), len(self.boxes), self.n_needed
        for box in self.boxes:
            is_open = np.flatnonzero((n_agree < needed) & (n_agree + n_left >= needed))
            if not len(is_open):
                break
            n_agree[is_open] += _says(box, N[is_open], codes[is_open], counts)
            n_left -= 1
        return n_agree >= needed

    def share(self, N: Matrix, codes: Rows, counts: Counts) -> Matrix:
        """Return the share of all members that say these labels."""
        said = [_says(box, N, codes, counts) for box in self.boxes]
        return np.sum(said, axis=0) / len(self.boxes)

    def __str__(self) -> str:
        return f"{self.n_needed} of {len(self.boxes)} retrained models"


def member_boxes(models: Any, box: BlackBox, probes: Matrix) -> tuple[BlackBox, ...]:
    """Return models as black boxes that are called as the model is; each is asked about some fitted rows first."""
    members = [replace(box, model=model, counts=Counts(), unseen=[], sizes=()) for model in models]
    for place, member in enumerate(members, start=1):
        _check_labels(member, f"member {place} of the committee", probes)
    return tuple(_in_large_calls(member, probes) if box.sizes else member for member in members)


def _in_large_calls(member: BlackBox, probes: Matrix) -> BlackBox:
    """Return a member that is called with many rows at once, if it says the same in calls of any size."""
    larger = replace(member, chunk=LARGER * member.chunk).learn_sizes(probes)
    return larger if larger.sizes else member


def _check_labels(member: BlackBox, name: str, probes: Matrix) -> None:
    """Raise an error if a member says none of the model's labels, or fails on every row."""
    labels = member.ask_labels(probes)
    codes = member.codes(labels)
    if (codes == FAILED).all():
        raise ModelError(f"{name} raised on every fitted row it was asked about: {labels[0]}") from labels[0]
    if not ((codes >= 0) & (codes < len(member.classes))).any():
        said = f"{listed(member.unseen)}, the model {listed(member.classes)}"
        raise ModelError(f"{name} says {said}: no label in common.")


def _keys(N: Matrix, codes: Rows) -> list[bytes]:
    """Return what tells rows and labels from others: their bits, side by side."""
    bits = np.column_stack([codes, N + 0.0])  # no -0.0: bytes are compared
    keys: list[bytes] = bits.view(f"V{bits.shape[1] * bits.itemsize}").ravel().tolist()
    return keys


def _says(box: BlackBox, N: Matrix, codes: Rows, counts: Counts) -> Mask:
    counts.n_member_questions += len(N)
    return np.asarray(box.ask(N) == codes)


# --- its members ------------------------------------------------------------------------------------------------------


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
    seeds = sorted(name for name in estimator.get_params() if name.split("__")[-1] in ("random_state", "random_seed"))
    members = []
    for member in range(check_count("k", k)):
        random = np.random.default_rng([check_count("seed", seed, 0), member])
        rows = sample(labels, random, share, replace)
        model = clone(estimator).set_params(**{name: int(random.integers(2**31)) for name in seeds})
        members.append(model.fit(_at(X, rows), _at(y, rows)))
    return tuple(members)


def sample(labels: Rows, random: np.random.Generator, share: float, replace: bool) -> Rows:
    """Draw a share of the rows of each label, one at least; in the order of the table."""
    every = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    drawn = [random.choice(rows, size=max(1, round(share * len(rows))), replace=replace) for rows in every]
    return np.sort(np.concatenate(drawn))


def _labels(X: Any, y: Any) -> Rows:
    """Return the labels as numbers from 0 on."""
    labels = np.unique(np.asarray(y), return_inverse=True)[1]
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if labels.ndim != 1 or len(labels) != n_rows or not n_rows:
        raise ParameterError(f"X and y must have as many rows as each other, got {n_rows} and {len(labels)}.")
    return labels


def _at(values: Any, rows: Rows) -> Any:
    """Return some rows of a frame, a series, an array or a list, in the order given."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows]
