"""DiCE (Mothilal, Sharma, Tan, 2020) from its own package, dice-ml: the random and the genetic method.

random   draws new values for one feature, then two, ... until enough rows flip, and then pulls each number back towards
         the factual (`posthoc_sparsity_algorithm="binary"`: the linear one may hang).
genetic  starts from the nearest rows with the target label, ten per counterfactual asked for, and breeds them for few
         and small changes. The package labels the table and builds a tree of its rows anew for each factual; here both
         are made once.

Both work on raw rows and treat ordinal and binary features as categories. Their rounding can exceed the data's range in
the last decimal; these are clipped. A search that asks the model more than CALLS times is given up, and so is a row for
which the package raises an error; `remarks_` names it.

Immutables: all features may vary, as in CARLA's benchmark; with `hold`, only those that are not immutable
(`features_to_vary`). dice-ml draws from the global generators of Python and NumPy: they are seeded per factual and
restored afterwards.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from onbmacf.bench.methods._packages import Asked, OutOfCalls, distinct, global_seed, quiet
from onbmacf.bench.protocol import Found, Matrix, Model, Task

OUTCOME = "__label__"
CALLS = 3000  # of the model, per factual: its 500 generations take 1,003; only its random start knows no end


@dataclass
class DiCE:
    """dice-ml, one factual at a time."""

    kind: Literal["random", "genetic"] = "random"
    hold: bool = False
    needs_gradient: ClassVar[bool] = False
    task_: Task = field(init=False)
    model_: Model = field(init=False)
    explainer_: Any = field(init=False)
    raw_: "RawModel" = field(init=False)
    seed_: int = field(init=False)
    remarks_: list[str] = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "DiCE":
        """Pass the table and the model to dice-ml."""
        dice_ml = _dice_ml()
        self.task_, self.model_, self.seed_ = task, model, seed
        self.raw_ = RawModel(task, model)
        names = [str(name) for name in task.table.columns]
        numbers = [name for name, f in zip(names, task.schema.features, strict=True) if f.is_numeric]
        frame = task.table.set_axis(names, axis=1).assign(**{OUTCOME: task.y})
        with quiet():
            rows = dice_ml.Data(dataframe=frame, continuous_features=numbers, outcome_name=OUTCOME)
            wrapped = dice_ml.Model(model=self.raw_, backend="sklearn")
            self.explainer_ = dice_ml.Dice(rows, wrapped, method=self.kind)
            if self.kind == "genetic":
                tree = self.explainer_.build_KD_tree(rows.data_df.copy(), None, task.target, f"{OUTCOME}_pred")
                self.explainer_.build_KD_tree = lambda *arguments: tree
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return up to n counterfactuals per factual."""
        rows = self.task_.space.decode(Z)
        self.remarks_ = [""] * len(Z)
        return [self._explain_one(rows.iloc[[line]], Z[line], n, line) for line in range(len(Z))]

    def _explain_one(self, row: pd.DataFrame, z: Matrix, n: int, line: int) -> Found:
        self.raw_.asked = Asked(self.model_, CALLS)
        with quiet(), global_seed(self.seed_ + line):
            try:
                found = self._found(row, n, self.seed_ + line)
            except OutOfCalls:
                self.remarks_[line] = f"given up after {CALLS} calls of the model"
                return None
            except Exception as error:  # dice-ml raises several kinds, one of them where it finds nothing
                self.remarks_[line] = type(error).__name__
                return None
        if self.hold:  # undo dice-ml's rounding of what it was told to leave
            found[:, self.task_.immutable_columns] = z[self.task_.immutable_columns]
        return distinct(found)[:n]

    def _found(self, row: pd.DataFrame, n: int, seed: int) -> Matrix:
        query = row.set_axis([str(name) for name in row.columns], axis=1)
        answer = self.explainer_.generate_counterfactuals(
            query, desired_class=self.task_.target, verbose=False, **self._settings(n, seed)
        )
        found = answer.cf_examples_list[0].final_cfs_df_sparse
        return self.task_.to_rows(_encode(self.task_, found.drop(columns=OUTCOME)))

    def _settings(self, n: int, seed: int) -> dict[str, Any]:
        features = [str(feature.name) for feature in self.task_.schema.features if not feature.immutable]
        settings: dict[str, Any] = {"total_CFs": n, "features_to_vary": features if self.hold else "all"}
        if self.kind == "random":
            settings |= {"random_seed": seed, "posthoc_sparsity_algorithm": "binary"}
        return settings


class RawModel:
    """The benchmark's model in the form that dice-ml needs: raw frames in, two probabilities out."""

    def __init__(self, task: Task, model: Model) -> None:
        self.task, self.asked = task, Asked(model, CALLS)

    def predict_proba(self, rows: pd.DataFrame) -> Matrix:
        """Return the probabilities of label 0 and label 1."""
        probability = self.asked.probability_of(_encode(self.task, rows))
        return np.column_stack([1.0 - probability, probability])

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return the labels."""
        return (self.asked.probability_of(_encode(self.task, rows)) > 0.5).astype(np.intp)


def _encode(task: Task, rows: pd.DataFrame) -> Matrix:
    """Encode rows as dice-ml returns them: numbers and levels are sometimes text or objects."""
    table = pd.DataFrame(index=range(len(rows)))
    for feature in task.schema.features:
        values = rows[str(feature.name)].to_numpy()
        if feature.is_numeric:
            table[feature.name] = values.astype(np.float64)
        else:
            levels = {str(level): level for level in feature.levels or ()}
            table[feature.name] = pd.Series([levels[str(value)] for value in values], dtype=object)
    return task.space.encode(table)


def _dice_ml() -> Any:
    try:
        import dice_ml
    except ImportError as error:
        raise ImportError("DiCE needs dice-ml: pip install 'onbmacf[bench]'.") from error
    return dice_ml
