"""Individual rows for the reader to check: the sentences, the changes and a bar chart."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import plots
from onbmacf._text.wording import marked, quoted, shown
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.explanations import Explanations
from onbmacf.report.tables import new_figure, picture, table

FIRST_PICTURE = 1000  # first id of the plots of cases, above those of all other plots


def cases(answers: Explanations, most: int) -> list[dict[str, Any]]:
    """Return up to `most` rows: released ones first, then those without a counterfactual, then the rest in order."""
    return [_case(answers[int(place)], FIRST_PICTURE + number) for number, place in enumerate(_chosen(answers, most))]


def _chosen(answers: Explanations, most: int) -> list[int]:
    released = np.unique(answers.batch.factual[answers.batch.released.any(axis=1)])
    answered = np.unique(answers.batch.factual)
    unanswered = np.setdiff1d(np.flatnonzero(answers.statuses != "already"), answered)
    order = [*released[: max(1, most // 2)], *unanswered[: max(1, most // 3)], *answered]
    return list(dict.fromkeys(int(place) for place in order))[:most]


def _case(answer: Explanation, place: int) -> dict[str, Any]:
    title = f"Row {shown(answer.factual.name)}: {quoted(answer.label)}"
    if not answer.counterfactuals:
        return {"title": title, "sentences": [f"{answer.status}: {answer.reason}"], "tables": [], "pictures": []}
    found = answer.counterfactuals[0]
    bars = plots.before_after(found, new_figure())
    drawn = picture(place, f"Row {shown(answer.factual.name)} before and after", _in_words(found), bars)
    tables = [table(f"Counterfactual {rank}", _changes(f)) for rank, f in enumerate(answer.counterfactuals, start=1)]
    return {"title": title, "sentences": answer.sentences(), "tables": tables, "pictures": [drawn]}


def _changes(found: Counterfactual) -> pd.DataFrame:
    kept, lines = found.semifactual, []
    for name in found.changed:
        even_if = shown(kept.values[name]) if kept else "\u2013"
        values = (shown(found.factual[name]), shown(found.values[name]), even_if)
        lines.append((marked(name, found.released), *values, *_range(found, name)))
    with_range = [] if found.ranges is None else ["label holds for"]
    return pd.DataFrame(lines, columns=["feature", "before", "after", "even if", *with_range])


def _range(found: Counterfactual, name: Hashable) -> tuple[str, ...]:
    return () if found.ranges is None else (str(found.ranges[name]),)


def _in_words(found: Counterfactual) -> str:
    names, released = found.changed, found.released
    changes = (f"{marked(n, released)} from {shown(found.factual[n])} to {shown(found.values[n])}" for n in names)
    return "; ".join(changes) + "."
