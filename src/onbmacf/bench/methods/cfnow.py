"""CFNOW (Mazzine Barbosa de Oliveira, Sörensen, Martens, 2024) from its own package, cfnow: two-step search.

First make the change that raises the target's probability most until the label flips (the greedy strategy), then move
back towards the factual while it stays flipped, with a tabu list. The package's default, random changes of one feature,
then two, ..., took two to seven times as long for answers that were farther on three tables of four, and .001 nearer on
the fourth. All other settings are the package's, with these differences:

- It is given encoded rows, since its changes and its distance would otherwise follow the units; numbers run from 1 to 2
  instead of 0 to 1, because it changes a number by a tenth of itself and so could never change a 0. What leaves the
  range of the data is clipped before the model is asked and in the answer. One-hot groups are named as such.
- The tabu list holds fewer features than there are, since it searches for ever where none is left to change.
- Its clock (120 seconds) is switched off. It stops after CALLS calls of the model or PASSES passes of its loops, and
  the nearest row that it has seen to flip is the answer, as when it ends by itself: the same on any machine.

Immutables: the package has no such thing; ignored. With `hold`, it is given the other features only, and the model
is asked about its rows with the factual's immutables. Nothing is random.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf.bench.methods._packages import Asked, OutOfCalls, distinct, quiet
from onbmacf.bench.metrics import feature_differences
from onbmacf.bench.protocol import Found, Matrix, Model, Task

CALLS = 500  # of the model, per factual: with 1,000, answers are .000 to .001 nearer on heloc, saheart and wine
PASSES = 5000  # of a loop, which need not ask the model; the package's own limit holds for one search of many
TABU = 5  # features that may not change again for a while
SAME = 1e-9  # of a number's range: what the offset costs in the last decimals is no change
NO_CLOCK = 10**9  # seconds


@dataclass
class CFNOW:
    """cfnow, one factual at a time."""

    hold: bool = False
    needs_gradient: ClassVar[bool] = False
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    columns_: "Columns" = field(init=False)
    remarks_: list[str] = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "CFNOW":
        """Name the columns as cfnow reads them."""
        _cfnow()
        self.task_, self.model_ = task, model
        self.columns_ = Columns.of(task, self.hold)
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return up to n counterfactuals per factual, nearest first."""
        self.remarks_ = [""] * len(Z)
        return [self._explain_one(z, n, line) for line, z in enumerate(Z)]

    def _explain_one(self, z: Matrix, n: int, line: int) -> Found:
        columns, seen = self.columns_, Seen(self.task_, self.model_, z, self.columns_)
        factual = pd.Series(z[columns.places] + columns.offsets, index=list(columns.types))
        try:
            with quiet():
                _cfnow().find_tabular(
                    factual=factual,
                    model_predict_proba=seen.probability_of_target,
                    count_cf=n,
                    feat_types=columns.types,
                    has_ohe=True,
                    cf_strategy="greedy",
                    size_tabu=min(TABU, columns.n_features - 1),
                    it_max=Passes(PASSES),
                    limit_seconds=NO_CLOCK,
                )
        except OutOfCalls:
            self.remarks_[line] = "stopped by force"
        except Exception as error:  # whatever goes wrong inside
            self.remarks_[line] = type(error).__name__
        return seen.nearest(n)


@dataclass(frozen=True)
class Columns:
    """The encoded columns that cfnow may change, and their types; groups are found by what precedes an underscore."""

    places: NDArray[np.intp]
    offsets: Matrix  # added to numbers, so that none is 0
    types: dict[str, str]
    n_features: int

    @classmethod
    def of(cls, task: Task, hold: bool) -> "Columns":
        """Name the columns of a task, with `hold` without those of immutable features."""
        places, offsets, types = [], [], {}
        free = [feature for feature in range(len(task.blocks)) if not (hold and task.is_immutable[feature])]
        for feature in free:
            block = task.blocks[feature]
            for place in range(block.start, block.stop):
                is_group = block.stop - block.start > 1
                types[f"f{feature}_{place}" if is_group else f"f{feature}"] = (
                    "cat" if task.has_levels[feature] else "num"
                )
                places.append(place)
                offsets.append(0.0 if task.has_levels[feature] else 1.0)
        return cls(np.array(places, dtype=np.intp), np.array(offsets), types, len(free))


class Seen:
    """The model as cfnow asks it, and the nearest rows with the target label that it has been asked about."""

    def __init__(self, task: Task, model: Model, z: Matrix, columns: Columns) -> None:
        self.task, self.z, self.columns = task, z, columns
        self.asked = Asked(model, CALLS)
        self.rows: list[Matrix] = []

    def probability_of_target(self, points: Any) -> Matrix:
        """Return the probability of the target label of cfnow's points."""
        rows = np.repeat(self.z[np.newaxis], len(points), axis=0)
        rows[:, self.columns.places] = np.asarray(points, dtype=np.float64) - self.columns.offsets
        rows = self.task.to_rows(np.where(np.abs(rows - self.z) < SAME, self.z, rows))
        probability = self.asked.probability_of(rows)
        probability = probability if self.task.target == 1 else 1.0 - probability
        self.rows.append(rows[probability > 0.5])
        return probability

    def nearest(self, n: int) -> Found:
        """Return the n nearest distinct rows that have flipped, by Manhattan distance; the first asked at a tie."""
        flipped = distinct(np.concatenate([np.empty((0, len(self.z))), *self.rows]))
        distances = feature_differences(self.z[np.newaxis], flipped, self.task.blocks).sum(axis=1)
        chosen: Matrix = flipped[np.argsort(distances, kind="stable")[:n]]
        return chosen if len(chosen) else None


class Passes(int):
    """A limit of passes that holds for all loops together: it counts how often it is compared with.

    cfnow compares each loop's own count with its `it_max`, and some of its loops go round without asking the model.
    """

    left: int

    def __new__(cls, most: int) -> "Passes":
        """Return the limit."""
        limit = super().__new__(cls, most)
        limit.left = most
        return limit

    def __le__(self, count: int) -> bool:
        """Answer `count >= limit`, which Python turns round for a subclass of int."""
        self.left -= 1
        if self.left < 0:
            raise OutOfCalls
        return super().__le__(count)


def _cfnow() -> Any:
    """Import cfnow without its download of word lists, which only texts need."""
    try:
        import nltk

        download, nltk.download = nltk.download, lambda *names: False
        try:
            import cfnow
        finally:
            nltk.download = download
    except ImportError as error:
        raise ImportError("CFNOW needs cfnow: pip install 'onbmacf[rivals]'.") from error
    return cfnow
