"""The compared methods on one case, and what each of their calls costs.

    case, model  ->  ours | ours_read | nice | dice  ->  explain(row number)  ->  one row, or None
    Run (a method and its rows)  ->  take_turns  ->  result: medians of the cost, quality of the answers

All methods call the very same model. `ours_read` may read it and ask its own copy (`read_model=True`, the default): a
wrapper that counts cannot be read, so this one is given the model itself and says what it asked. NICE knows numbers
only: it gets categories as codes, and the frame that a pipeline needs is built in one step.
"""

import contextlib
import gc
import time
from copy import copy

import numpy as np

from common import TARGET, installed
from speed_models import Counted, by_type

QUALITIES = ("distance", "changes", "plausibility")
COSTS = ("calls", "rows_asked", "rows_given", "cpu_ms", "wall_ms")


class OneRow:
    """A fitted explainer of this package that answers for one row, and keeps what it says about its last answer."""

    def __init__(self, case, model, **options):
        from onbmacf import ONBMACF

        self.case, self.answers = case, None
        self.explainer = ONBMACF(**options).fit(case.table, model, schema=case.schema)

    def __call__(self, row):
        """Return the counterfactual as a frame of one row, or None."""
        self.answers = answers = self.explainer.explain(self.case.take([row]), target=TARGET, min_probability=0)
        return answers.batch.values if len(answers.batch.values) else None

    def within(self, **budget):
        """Return the same with a budget, on the same map."""
        other = copy(self)
        other.explainer = self.explainer.with_options(**budget)
        return other


def ours(case, model, **options):
    """Return this package's explain function, with a model that is only ever called."""
    return OneRow(case, model, read_model=False, **options)


def ours_read(case, model, **options):
    """Return the same with the model itself, which is read where that is known to be exact."""
    return OneRow(case, model.model, read_model=True, **options)


def nice(case, model):
    """Return the explain function of NICE, with its sparsity reward."""
    from nice import NICE

    numbers, codes, rows_of = case.coded()
    explainer = NICE(
        X_train=numbers.copy(),
        y_train=case.y,
        predict_fn=lambda rows: model.predict_proba(rows_of(rows)),
        cat_feat=codes,
        optimization="sparsity",
    )
    return lambda row: rows_of(explainer.explain(numbers[[row]], [TARGET]))


def dice(case, model):
    """Return the explain function of DiCE: dice-ml's random method, with numbers pulled back by bisection."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    text, numbers = by_type(case.table)
    table = case.table.astype(dict.fromkeys(text, object))
    rows_of = dice_ml.Data(dataframe=table.assign(label=case.y), continuous_features=numbers, outcome_name="label")
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


class Run:
    """A prepared method and what each of its calls took."""

    def __init__(self, name, case, rows, **options):
        self.name, self.case, self.rows = name, case, rows
        self.model = Counted(case.model)
        self.explain = METHODS[name](case, self.model, **options)
        self.found, self.spent, self.is_read = [], [], False

    def call(self, row):
        """Explain one row; return it, and calls, rows asked, rows handed over, milliseconds of processor and wall.

        Of a model that is not wrapped, calls and rows are those that the answer says.
        """
        self.model.reset()
        wall, cpu = time.perf_counter(), time.process_time()
        found = self.explain(row)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        told = getattr(self.explain, "answers", None)
        counts = (self.model.n_calls, self.model.n_rows, self.model.n_rows)
        if told is not None:
            counts = (told.n_calls, told.n_questions, told.n_model_rows)
            self.is_read = told.n_copy_questions > 0
        return found, (*counts, 1000 * cpu, 1000 * wall)

    def note(self, row):
        """Explain one row, and keep the answer and its cost."""
        found, spent = self.call(row)
        self.found.append(found)
        self.spent.append(spent)

    def result(self):
        """Return medians of the cost, and the quality of the answers."""
        middle = dict(zip(COSTS, np.median(self.spent, axis=0).tolist(), strict=True))
        worst = {"calls_worst": int(np.max(self.spent, axis=0)[0]), "rows": len(self.spent)}
        said = {"version": installed(PACKAGES[self.name]), "is_read": self.is_read}
        return middle | worst | quality(self.case, self.rows, self.found) | said


def take_turns(runs, factuals):
    """Let each method explain each of its rows; what lies in memory already is kept out of the garbage collection."""
    gc.collect()
    gc.freeze()
    for place, row in enumerate(factuals):
        for run in runs:
            if place < len(run.rows):
                run.note(row)
    gc.unfreeze()


def quality(case, rows, found):
    """Return the share of rows with a valid answer, the means over these, and each row's distance (or None).

    Distances are those of the benchmark: the sum of moves as shares of a feature's range, another level counting 1.
    Plausibility is the share of the desired label among the 5 nearest rows of the table.
    """
    from onbmacf.bench.metrics import feature_differences, l0, l1, ynn

    task, dtypes = case.task, case.table.dtypes.to_dict()
    valid = [frame is not None and case.model.predict(frame)[0] == TARGET for frame in found]
    if not any(valid):
        return {"success": 0.0, **dict.fromkeys(QUALITIES), "distances": [None] * len(found)}
    good = [frame.astype(dtypes, errors="ignore") for frame, is_valid in zip(found, valid, strict=True) if is_valid]
    points = np.vstack([task.space.encode(frame) for frame in good])
    moved = feature_differences(task.Z[rows[valid]], points, task.blocks)
    values = dict(zip(QUALITIES, (l1(moved), l0(moved), ynn(points, case.index, case.labels, TARGET)), strict=True))
    each = iter(values["distance"].tolist())
    means = {name: float(numbers.mean()) for name, numbers in values.items()}
    return {"success": float(np.mean(valid)), **means, "distances": [next(each) if ok else None for ok in valid]}
