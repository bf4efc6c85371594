"""The compared methods on one pipeline: each is a function from a case to a function that explains one row.

    case, pipeline  ->  ours | ours_read | nice | dice  ->  explain(row number)  ->  one row as a frame, or None

All of them call the very same pipeline. `ours_read` may read it and ask its own copy (`read_model=True`, the default):
a wrapper that counts cannot be read, so this one is given the pipeline itself and says what it asked. NICE knows
numbers only: it gets categories as codes, and the frame that the pipeline needs is built in one step. NICEx (with
nothing that it depends on) lies in a folder of its own on the path.
"""

import contextlib
from copy import copy

import numpy as np
import pandas as pd

from speed_pipelines import TARGET, by_type


def ours(case, model, **options):
    """Return this package's explain function, with a model that is only ever called."""
    return OneRow(case, model, read_model=False, **options)


def ours_read(case, model, **options):
    """Return the same with the pipeline itself, which is read where that is known to be exact."""
    return OneRow(case, model.pipeline, read_model=True, **options)


class OneRow:
    """A fitted explainer that answers for one row of the table, and keeps what it says about its last answer."""

    def __init__(self, case, model, **options):
        from onbmacf import ONBMACF

        self.table, self.answers = case.task.table, None
        self.explainer = ONBMACF(**options).fit(self.table, model)

    def __call__(self, row):
        """Return the counterfactual as a frame of one row, or None."""
        self.answers = answers = self.explainer.explain(self.table.iloc[[row]], target=TARGET)
        return answers.batch.values if len(answers.batch.values) else None

    def within(self, **budget):
        """Return the same with a budget, on the same map."""
        other = copy(self)
        other.explainer = self.explainer.with_options(**budget)
        return other


def nice(case, model):
    """Return the explain function of NICE, with its sparsity reward."""
    from nice import NICE

    numbers, frame = coded(case.task)
    text = by_type(case.task.table)[0]
    explainer = NICE(
        X_train=numbers.copy(),
        y_train=case.task.y,
        predict_fn=lambda rows: model.predict_proba(frame(rows)),
        cat_feat=[place for place, name in enumerate(case.task.table.columns) if name in text],
        optimization="sparsity",
    )
    return lambda row: frame(explainer.explain(numbers[[row]], [TARGET]))


def coded(task):
    """Return the table as numbers, text as codes, and the cheapest function back to a frame for the pipeline."""
    table = task.table
    text, _ = by_type(table)
    numbers = np.empty(table.shape)
    levels = {}
    for place, name in enumerate(table.columns):
        if name in text:
            numbers[:, place], found = pd.factorize(table[name])
            levels[place] = np.array(found, dtype=object)
        else:
            numbers[:, place] = table[name]

    def frame(rows):
        if not levels:
            return pd.DataFrame(rows, columns=table.columns, copy=False)
        values = rows.astype(object)
        for place, names in levels.items():
            values[:, place] = names[rows[:, place].astype(np.intp)]
        return pd.DataFrame(values, columns=table.columns, dtype=object)

    return numbers, frame


def dice(case, model):
    """Return the explain function of DiCE: dice-ml's random method, with numbers pulled back by bisection."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    text, numbers = by_type(case.task.table)
    table = case.task.table.astype(dict.fromkeys(text, object))
    rows_of = dice_ml.Data(dataframe=table.assign(label=case.task.y), continuous_features=numbers, outcome_name="label")
    explainer = dice_ml.Dice(rows_of, dice_ml.Model(model=model, backend="sklearn"), method="random")
    how = {"total_CFs": 1, "desired_class": TARGET, "random_seed": 0, "posthoc_sparsity_algorithm": "binary"}

    def explain(row):
        with contextlib.suppress(UserConfigValidationException):  # raised when it finds nothing
            found = explainer.generate_counterfactuals(table.iloc[[row]], verbose=False, **how)
            best = found.cf_examples_list[0].final_cfs_df_sparse
            if best is not None and len(best):
                return best[list(table.columns)].iloc[:1]
        return None

    return explain


METHODS = {"ours": ours, "ours_read": ours_read, "nice": nice, "dice": dice}
PACKAGES = {"ours": "onbmacf", "ours_read": "onbmacf", "nice": "NICEx", "dice": "dice-ml"}
