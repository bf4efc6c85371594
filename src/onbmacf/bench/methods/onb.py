"""ONB-MACF as a user of the package would call it: raw rows, the schema, and the model as a black box.

Immutables: kept unless the method reports that they were released; `remarks_` records this per factual.
Nothing is random.
"""

from typing import Any, ClassVar

import numpy as np

from onbmacf.bench.protocol import Found, Matrix, Model, Task
from onbmacf.explainer import ONBMACF


class OnbMacf:
    """The package's own method; options go to `ONBMACF`."""

    needs_gradient: ClassVar[bool] = False

    def __init__(self, **options: Any) -> None:
        self.options = options

    def fit(self, task: Task, model: Model, seed: int) -> "OnbMacf":
        """Cover the table as the model labels it."""
        self.task_ = task
        self.explainer_ = ONBMACF(**{"cover_rows": None, **self.options})
        self.explainer_.fit(task.table, lambda rows: model.label_of(task.space.encode(rows)), schema=task.schema)
        return self

    def explain(self, Z: Matrix, n: int = 1) -> list[Found]:
        """Return up to n counterfactuals per factual, nearest first."""
        self.explainer_.set_params(n_counterfactuals=n)
        answers = self.explainer_.explain(self.task_.space.decode(Z), target=self.task_.target)
        batch = answers.batch
        encoded = self.task_.space.encode(batch.values)
        lines = [np.flatnonzero(batch.factual == row) for row in range(len(Z))]
        self.remarks_ = [f"relaxation: {batch.relaxation[line[0]]}" if len(line) else "" for line in lines]
        return [encoded[line] if len(line) else None for line in lines]
