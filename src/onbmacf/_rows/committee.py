"""A committee: models that were trained like the one explained, asked whether they say the same.

    models, the model's black box  ->  seated  ->  Committee
    numbers, label codes           ->  Committee.share  ->  share of the members that say these labels

Labels are compared by name. A member that raises on a row does not agree on it.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._base.checks import listed
from onbmacf._rows.counts import Counts
from onbmacf._rows.model import FAILED, BlackBox
from onbmacf.errors import ModelError

MOST_DECIDED = 1 << 17  # rows that are remembered: some hundred bytes each
LARGER = 8  # calls of a member may be so many times as large as the model's, where their size does not matter to it


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


def seated(models: Any, box: BlackBox, probes: Matrix) -> tuple[BlackBox, ...]:
    """Return models as black boxes that are called as the model is; each is asked about some fitted rows first."""
    own = [replace(box, model=model, counts=Counts(), unseen=[], sizes=()) for model in models]
    for place, member in enumerate(own, start=1):
        _check_labels(member, f"member {place} of the committee", probes)
    return tuple(_in_large_calls(member, probes) if box.sizes else member for member in own)


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
