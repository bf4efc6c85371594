"""DiCE (Mothilal, Sharma, Tan, 2020) from its own package, dice-ml: the random method.

It draws new values for one feature, then two, ... until enough rows flip, and then pulls each number back towards
the factual (`posthoc_sparsity_algorithm="binary"`: the linear one may hang). It works on raw rows and treats ordinal
and binary features as categories. Its rounding can exceed the data's range in the last decimal; these are clipped.

Immutables: all features may vary, as in CARLA's benchmark. dice-ml draws from the global generators of Python
and NumPy: they are seeded per factual and restored afterwards.
"""

import contextlib
import io
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from onbmacf.bench.protocol import Found, Matrix, Model, Task

OUTCOME = "__label__"


@dataclass
class DiCE:
    """dice-ml's random method, one factual at a time."""

    needs_gradient: ClassVar[bool] = False
    task_: Task = field(init=False)
    explainer_: Any = field(init=False)
    seed_: int = field(init=False)

    def fit(self, task: Task, model: Model, seed: int) -> "DiCE":
        """Pass the table and the model to dice-ml."""
        dice_ml = _dice_ml()
        self.task_, self.seed_ = task, seed
        names = [str(name) for name in task.table.columns]
        numbers = [name for name, f in zip(names, task.schema.features, strict=True) if f.is_numeric]
        frame = task.table.set_axis(names, axis=1).assign(**{OUTCOME: task.y})
        with _quiet():
            rows = dice_ml.Data(dataframe=frame, continuous_features=numbers, outcome_name=OUTCOME)
            wrapped = dice_ml.Model(model=RawModel(task, model), backend="sklearn")
            self.explainer_ = dice_ml.Dice(rows, wrapped, method="random")
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return up to n counterfactuals per factual."""
        rows = self.task_.space.decode(Z)
        return [self._explain_one(rows.iloc[[row]], n, self.seed_ + row) for row in range(len(Z))]

    def _explain_one(self, row: pd.DataFrame, n: int, seed: int) -> Found:
        from raiutils.exceptions import UserConfigValidationException

        query = row.set_axis([str(name) for name in row.columns], axis=1)
        with _quiet(), _global_seed(seed), contextlib.suppress(UserConfigValidationException):
            answer = self.explainer_.generate_counterfactuals(
                query,
                total_CFs=n,
                desired_class=self.task_.target,
                random_seed=seed,
                posthoc_sparsity_algorithm="binary",
                verbose=False,
            )
            found = answer.cf_examples_list[0].final_cfs_df_sparse
            if found is not None and len(found):
                return self.task_.to_rows(_encode(self.task_, found.drop(columns=OUTCOME)))
        return None  # dice-ml raises this when it finds nothing


class RawModel:
    """The benchmark's model in the form that dice-ml needs: raw frames in, two probabilities out."""

    def __init__(self, task: Task, model: Model) -> None:
        self.task, self.model = task, model

    def predict_proba(self, rows: pd.DataFrame) -> Matrix:
        """Return the probabilities of label 0 and label 1."""
        probability = self.model.probability_of(_encode(self.task, rows))
        return np.column_stack([1.0 - probability, probability])

    def predict(self, rows: pd.DataFrame) -> Any:
        """Return the labels."""
        return self.model.label_of(_encode(self.task, rows))


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


@contextlib.contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the progress bars, messages and pandas warnings of dice-ml."""
    import warnings

    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield
