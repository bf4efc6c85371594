"""The compared methods on one pipeline: each is a function from a case to a function that explains one row.

    case, counted pipeline  ->  ours | nice | dice  ->  explain(row number)  ->  one row as a frame, or None

All of them call the very same pipeline. NICE knows numbers only: it gets categories as codes, and the frame that the
pipeline needs is built in one step. NICEx (with nothing that it depends on) lies in a folder of its own on the path.
"""

import contextlib

import numpy as np
import pandas as pd

from speed_pipelines import TARGET, by_type


def ours(case, model, **options):
    """Return this package's explain function, with its defaults: a frame of one row in, its values read."""
    from onbmacf import ONBMACF

    table = case.task.table
    return OneRow(table, ONBMACF(**options).fit(table, model))


class OneRow:
    """A fitted explainer that answers for one row of the table, and keeps how many points it asked about."""

    def __init__(self, table, explainer):
        self.table, self.explainer, self.questions = table, explainer, 0

    def __call__(self, row):
        """Return the counterfactual as a frame of one row, or None."""
        answers = self.explainer.explain(self.table.iloc[[row]], target=TARGET)
        self.questions = answers.n_questions
        return answers.batch.values if len(answers.batch.values) else None

    def within(self, **budget):
        """Return the same with a budget, on the same map."""
        return OneRow(self.table, self.explainer.with_options(**budget))


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


METHODS = {"ours": ours, "nice": nice, "dice": dice}
PACKAGES = {"ours": "onbmacf", "nice": "NICEx", "dice": "dice-ml"}
