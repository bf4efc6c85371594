"""The thresholds of the model that answers cross, and those that none does.

Explanations, the explainer that gave them  ->  cut_points  ->  one line per threshold of the model
"""

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._explain.crossed import Crossed, of_explanations
from onbmacf._prove.conditions import Cut
from onbmacf._table.values import ends_of, values_of
from onbmacf._text.labels import Labels
from onbmacf.audit.arguments import typed
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations

MOST_VALUES = 1 << 18  # of one feature, to see which is the first across a threshold
EDGE = 1e-9  # of a number: rounding error


@typed
def cut_points(answers: Explanations, explainer: ONBMACF) -> pd.DataFrame:
    """Return every threshold of the model, and how many answers cross it.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned.
    explainer : ONBMACF
        The one that gave them: its model's trees or rules are read, as for `Explanation.rules`.

    Returns
    -------
    DataFrame
        Per condition of the model, those most crossed first: ``feature``; ``condition``; ``threshold`` in the units of
        the table, NaN for levels and for what is missing; ``used_by``, how many trees or rules have it; ``n_answers``,
        the counterfactuals that cross it as `Explanations.rules` tells; ``n_rows``, the cases that it decides: rows of
        which at least one counterfactual does; ``n_just_across``, the counterfactuals that end at the first value
        allowed across it, all where there is no threshold; ``never_used``, whether none crosses it.

    Raises
    ------
    ParameterError
        The model has no such conditions, or cannot be read.

    """
    crossed = of_explanations(answers, explainer)
    conditions, crossings, names = crossed.conditions, crossed.crossings, explainer.schema_.names
    texts = [frozenset(crossed.texts(code, Labels())) for code in range(len(conditions.cuts))]
    keys = {text: key for key, text in enumerate(dict.fromkeys(texts))}  # a threshold that rounding made into several
    key_of = np.array([keys[text] for text in texts], dtype=np.intp)
    used = np.bincount(np.unique(np.column_stack([key_of[conditions.uses[:, 0]], conditions.uses[:, 1]]), axis=0)[:, 0])
    is_crossed = crossings.held != crossings.holds  # a rule may also fire since another no longer does
    found = pd.DataFrame({"key": key_of[crossings.code], "line": crossings.line, "code": crossings.code})[is_crossed]
    found = found.drop_duplicates(["key", "line"])
    found["just"], found["row"] = _are_first(crossed, found), crossed.place[found["line"]]
    groups, first = found.groupby("key"), {key: code for code, key in reversed([*enumerate(key_of.tolist())])}
    each = [*first.values()]
    cuts = [conditions.cuts[code] for code in each]
    frame = pd.DataFrame(
        {
            "feature": [names[cut.feature] for cut in cuts],
            "condition": [crossed.texts(code, Labels())[0] for code in each],
            "threshold": [
                crossed.threshold(code) if np.isfinite(conditions.cuts[code].at) else np.nan for code in each
            ],
            "used_by": used[[*first]],
            "n_answers": groups.size().reindex([*first], fill_value=0).to_numpy(),
            "n_rows": groups["row"].nunique().reindex([*first], fill_value=0).to_numpy(),
            "n_just_across": groups["just"].sum().reindex([*first], fill_value=0).to_numpy(dtype=np.intp),
            "at": [cut.feature for cut in cuts],
        }
    )
    frame["never_used"] = frame["n_answers"] == 0
    is_real = [_is_real(cut, bool(crossed.fitted.space.form.may_lack[cut.feature])) for cut in cuts]
    by, down = ["n_answers", "at", "threshold", "condition"], [False, True, True, True]
    return frame[is_real].sort_values(by, ascending=down).drop(columns="at").reset_index(drop=True)


def _is_real(cut: Cut, may_lack: bool) -> bool:
    """Say whether a condition parts the values of its feature: a step before the model may make one of all of them."""
    if len(cut.levels):
        return len({*cut.levels.tolist(), *([cut.lacking] if may_lack else [])}) > 1
    return not np.isinf(cut.at) or (may_lack and (cut.at > 0) != cut.lacking)  # or only what is missing from the rest


def _are_first(crossed: Crossed, found: pd.DataFrame) -> Mask:
    """Say of each line whether it ends at the first allowed value across; of what has no threshold, all do."""
    is_first, features = np.ones(len(found), dtype=bool), crossed.fitted.space.schema.features
    allowed: dict[int, Matrix] = {}
    for code, places in found.groupby("code").indices.items():
        at, end = crossed.conditions.cuts[code].feature, crossed.conditions.cuts[code].at
        if features[at].is_numeric and np.isfinite(end):
            allowed[at] = allowed[at] if at in allowed else _allowed(crossed, at)
            is_first[places] = _is_first(crossed, code, found["line"].to_numpy()[places], allowed[at])
    return is_first


def _allowed(crossed: Crossed, at: int) -> Matrix:
    """Return the values that answers may give a feature, sorted; those that are known where there are too many."""
    space, rules = crossed.fitted.space, crossed.fitted.space.schema.rules
    own = crossed.numbers[:, at]
    known = np.union1d(crossed.fitted.seen_values[at], own[~np.isnan(own)])
    if not space.schema.features[at].is_numeric or not len(known):
        return known
    low, high = (ends[at] for ends in ends_of(space, rules, crossed.fitted.ranges))
    found = values_of(space, rules, at, (low, high), (known[0], known[-1]), MOST_VALUES)
    return known if found is None else found


def _is_first(crossed: Crossed, code: int, lines: Rows, allowed: Matrix) -> Mask:
    """Say which counterfactuals end at the first allowed value across a threshold, or before it by rounding."""
    feature = crossed.conditions.cuts[code].feature
    after = crossed.numbers[len(crossed.before) + lines, feature]
    kept = crossed.conditions.kept_by(code, allowed)
    ends = allowed[kept].max(initial=-np.inf), allowed[~kept].min(initial=np.inf)
    is_kept = crossed.conditions.kept_by(code, after)
    edge = EDGE * np.maximum(np.abs(after), 1.0)
    return np.where(is_kept, after >= ends[0] - edge, after <= ends[1] + edge) & ~np.isnan(after)
