"""Individual rows for the reader to check: the sentences, the changes and a bar chart."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import plots
from onbmacf._balls.distance import distances
from onbmacf._text.wording import joined, marked, quoted, shown, why_none, works_in
from onbmacf.audit.figures import first_lines
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.explanations import Explanations
from onbmacf.report.tables import new_figure, picture, table

MOST_OF_KIND = 300  # rows among which the most central one is looked for
FIRST_PICTURE = 1000  # first id of the plots of cases, above those of all other plots


def cases(explainer: ONBMACF, answers: Explanations, most: int) -> list[dict[str, Any]]:
    """Return up to `most` rows that stand for many: released ones first, then some without a counterfactual."""
    chosen, sizes = representatives(explainer, answers, most), _sizes(answers)
    return [
        {**_case(answers[place], FIRST_PICTURE + number), "kind": _kind_in_words(answers, place, sizes)}
        for number, place in enumerate(chosen)
    ]


def representatives(explainer: ONBMACF, answers: Explanations, most: int) -> list[int]:
    """Return rows that stand for kinds of answer: of each kind, by features changed or status, the most central row.

    Kinds with released features come first, then those without a counterfactual, then the others, each by size; where
    kinds are fewer than `most`, other rows in order follow.
    """
    members: dict[Any, list[int]] = {}
    for place, kind in enumerate(_kinds(answers)):
        if kind is not None:
            members.setdefault(kind, []).append(place)
    by_size = sorted(members, key=lambda kind: -len(members[kind]))
    released, empty = ([kind for kind in by_size if kind[0] == state] for state in ("released", "none"))
    order = [*released[: max(1, most // 2)], *empty[: max(1, most // 3)], *by_size]
    central = [_medoid(explainer, answers, members[kind]) for kind in list(dict.fromkeys(order))[:most]]
    answered = [place for kind in by_size if kind[0] != "none" for place in members[kind]]
    others = [place for kind in by_size if kind[0] == "none" for place in members[kind]]
    return list(dict.fromkeys([*central, *sorted(answered), *others]))[:most]


def _kinds(answers: Explanations) -> list[Any]:
    """Return, per row, what kind of answer it has; None for one that has the label already."""
    first, batch = first_lines(answers), answers.batch
    kinds: list[Any] = []
    for place, line in enumerate(first):
        if line >= 0:
            state = "released" if batch.released[line].any() else "found"
            kinds.append((state, tuple(np.flatnonzero(batch.changed[line]))))
        else:
            is_open = answers.statuses[place] != "already"
            kinds.append(("none", str(answers.statuses[place])) if is_open else None)
    return kinds


def _medoid(explainer: ONBMACF, answers: Explanations, places: list[int]) -> int:
    """Return the row with the least sum of distances to the others of its kind; the first of a kind that has none."""
    some = places[:MOST_OF_KIND]
    if len(some) < 3 or answers.statuses[some[0]] == "invalid_row":
        return some[0]
    Z = explainer.fitted_.space.encode(answers.rows.iloc[some])
    return some[int(distances(Z, Z, explainer.metric).sum(axis=1).argmin())]


def _sizes(answers: Explanations) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for kind in _kinds(answers):
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _kind_in_words(answers: Explanations, place: int, sizes: dict[Any, int]) -> str:
    kind = _kinds(answers[place : place + 1])[0]
    if kind is None:
        return ""
    names = joined([str(answers.rows.columns[at]) for at in kind[1]]) if kind[0] != "none" else ""
    what = f"whose first counterfactual changes {names}" if names else f"with the status {kind[1]}"
    return f"One of {sizes[kind]:,} rows {what}."


def _case(answer: Explanation, place: int) -> dict[str, Any]:
    title = f"Row {shown(answer.factual.name)}: {quoted(answer.label)}"
    if not answer.counterfactuals:
        return {"title": title, "sentences": [why_none(answer)], "tables": [], "pictures": []}
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
    return () if found.ranges is None else (works_in(found, name),)


def _in_words(found: Counterfactual) -> str:
    names, released = found.changed, found.released
    changes = (f"{marked(n, released)} from {shown(found.factual[n])} to {shown(found.values[n])}" for n in names)
    return "; ".join(changes) + "."
