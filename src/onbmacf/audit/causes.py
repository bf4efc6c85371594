"""Answers that given causes would break: somebody does what they say, and what follows is not what they say.

Explanations, the explainer that gave them, Causes  ->  broken_by_causes  ->  one line per effect, and one for all
"""

from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.missing import differs
from onbmacf._table.effects import EQUAL, Effects
from onbmacf.audit.arguments import typed
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations


@typed
def broken_by_causes(answers: Explanations, explainer: ONBMACF, causes: Any = None) -> pd.DataFrame:
    """Return how many counterfactuals are otherwise once the effects of their changes have followed.

    Parameters
    ----------
    answers : Explanations
        What `explain` returned, with or without causes.
    explainer : ONBMACF
        Fitted on the same columns: mechanisms are learned from its rows, and its model is asked.
    causes : Causes, optional
        What follows from what; by default those of the explainer.

    Returns
    -------
    DataFrame
        Per ``effect``, and for all of them in the last line: ``n_answers``; ``n_broken``, those in which it has another
        value than would follow; ``share`` of the answers; ``n_lost``, those of the broken that the model no longer
        gives their label once everything has followed.

    Examples
    --------
    >>> from onbmacf import Causes
    >>> audit.broken_by_causes(answers, explainer, Causes({"ldl": ["tobacco"]}))[["effect", "n_answers", "n_broken"]]
      effect  n_answers  n_broken
    0    ldl         21        16
    1    all         21        16

    """
    fitted, batch = explainer.fitted_, answers.batch
    form, effects = fitted.space.form, fitted.space.effects
    if causes is not None:
        effects = Effects.of(form, fitted.space.decode_numbers(fitted.Z), fitted.space.readable, causes)
    if effects is None:
        raise ParameterError("causes are needed: this explainer was fitted without any.")
    N = form.numbers(form.arrange(batch.values)[0])
    factual = form.numbers(form.arrange(answers.rows.iloc[batch.factual])[0])
    whole, is_possible = effects.complete(np.where(batch.changed, N, factual), factual)
    with np.errstate(invalid="ignore"):
        is_same = ~differs(whole, N) | (np.abs(whole - N) <= EQUAL * np.abs(N))
    is_broken = ~is_same | ~is_possible[:, np.newaxis]
    box = fitted.black_box.counting()
    said = box.named(np.maximum(box.ask(whole), 0)) if len(N) else batch.label
    is_lost = np.array([now != then for now, then in zip(said, batch.label, strict=True)], dtype=bool)
    is_lost |= ~is_possible
    which = [(effect.mechanism.effect, is_broken[:, effect.at]) for effect in effects.each]
    which.append(("all", np.asarray(is_broken[:, [effect.at for effect in effects.each]].any(axis=1))))
    lines = [(name, len(N), int(broken.sum()), int((broken & is_lost).sum())) for name, broken in which]
    frame = pd.DataFrame(lines, columns=["effect", "n_answers", "n_broken", "n_lost"])
    frame.insert(3, "share", frame["n_broken"] / frame["n_answers"].where(frame["n_answers"] > 0))
    return frame
