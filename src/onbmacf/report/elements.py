"""Frames, plots and individual rows in the form that the templates take: plain dicts of text."""

import io
import re
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import plots
from onbmacf._balls.distance import distances
from onbmacf._text.wording import joined, marked, quoted, rounded, shown, visible, why_none, works_in
from onbmacf.audit.figures import first_lines
from onbmacf.audit.groups import is_number
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.explanations import Explanations

HEADS = {
    "n_rows": "rows",
    "n_other": "rows in other",
    "n_asked": "rows searched",
    "n_changes": "changes",
    "median_size": "median size",
    "most_frequent": "most frequent",
    "share_found": "share found",
    "share_released": "share released",
    "share_semifactual": "share with semifactual",
    "share_of_its_changes": "share of its changes",
    "model_rows": "rows sent to the model",
    "excludes_zero": "interval excludes 0",
    "most_frequent_reason": "most frequent reason",
    "n_selected": "selected",
    "selection_rate": "selection rate",
    "impact_ratio": "impact ratio",
    "n_unknown": "not counted",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
    "n_features": "features",
    "mean_cost": "mean cost",
    "n_gained": "gain the decision",
    "n_lost": "lose it",
    "share_changed": "share changed",
    "rate_before": "selected before",
    "rate_after": "selected after",
    "share_higher": "share whose distance rises",
    "false_negative_rate": "false negative rate",
    "social_burden": "social burden",
    "nawb": "accuracy-weighted burden",
    "n_refused": "rows refused",
    "share_proven": "proven to have none",
    "share_none_found": "none was found",
    "within_budget": "within the budget",
    "cost_of_effectiveness": "cost at which half are helped",
    "mean_recourse": "mean cost",
    "largest_trade_off": "largest trade-off",
    "25%": "25 %",
    "50%": "50 %",
    "75%": "75 %",
}
SHARES = (
    "share",
    "up",
    "down",
    "share_found",
    "share_released",
    "share_semifactual",
    "stability",
    "share_of_its_changes",
    "expected",
    "selection_rate",
    "accuracy",
    "true_positive_rate",
    "false_positive_rate",
    "effectiveness",
    "added",
    "importance",
    "responsiveness",
    "share_changed",
    "rate_before",
    "rate_after",
    "share_higher",
    "share_proven",
    "share_none_found",
    "within_budget",
    "false_negative_rate",
)
WITH_ENDS = {"share", "responsiveness"}  # shares whose intervals, in ENDS, are shares, too
ENDS = ("low", "high")
NOISE = 1e-12  # what is left of equal numbers that were subtracted
MOST_OF_KIND = 300  # rows among which the most central one is looked for
FIRST_PICTURE = 1000  # first id of the plots of cases, above those of all other plots


# --- frames and plots -------------------------------------------------------------------------------------------------


def table(caption: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as a caption, column headings, rows of text, and which columns are numeric."""
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    shares = {*SHARES, *ENDS} if WITH_ENDS & set(frame.columns) else set(SHARES)
    cells = [[_cell(column.name in shares, value) for value in column] for column in columns]
    return {
        "caption": caption,
        "heads": [HEADS.get(str(name), str(name)) for name in frame.columns],
        "numeric": [is_number(column) for column in columns],
        "rows": [list(row) for row in zip(*cells, strict=True)] if len(frame) else [],
    }


def new_figure() -> Any:
    """Return an empty figure outside pyplot, which would keep it: a service makes many reports."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("reports need the extra 'report': pip install 'onbmacf[report]'.") from error
    return Figure()


def picture(place: int, title: str, description: str, ax: Any) -> dict[str, Any]:
    """Return a plot as inline SVG with its text alternatives; `place` makes its ids unique."""
    return {"id": f"p{place}", "title": title, "description": description, **_svg(ax, f"p{place}-")}


def bars(frame: pd.DataFrame, measure: str, name: str, place: int) -> dict[str, Any]:
    """Return a picture of a measure's mean and interval per group, with its values in words."""
    lines = frame[frame["measure"] == measure]
    values = "; ".join(
        f"{line.group}: {rounded(line.estimate)}"
        + (
            f" ({rounded(line.low)} to {rounded(line.high)})" if line.low == line.low else ""
        )  # of one row there is none
        + f", n = {line.n_rows:,}"
        for line in lines.itertuples()
    )
    title = f"{plots.AXIS_NAMES.get(measure, measure).capitalize()} by {name}"
    return picture(place, title, f"Mean and interval: {values}.", plots.burden(frame, measure, new_figure()))


def _svg(ax: Any, prefix: str) -> dict[str, Any]:
    """Return the body of the SVG and its size; ids get a prefix, so that several plots fit on one page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    sink = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "onbmacf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has its own fonts
        FigureCanvasSVG(ax.figure).print_svg(sink, metadata={"Date": None})  # savefig would draw twice
    text = _short(re.sub(r"<metadata>.*?</metadata>", "", sink.getvalue(), flags=re.S))
    start = text.index("<svg")
    end = text.index(">", start)
    box = re.search(r'viewBox="([-0-9. ]+)"', text[start:end])
    assert box is not None
    _, _, width, height = (float(number) for number in box[1].split())
    body = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}", text[end + 1 : text.rindex("</svg>")])
    return {"view_box": box[1], "width_rem": round(width / 12, 2), "height_rem": round(height / 12, 2), "body": body}


def _short(text: str) -> str:
    """Return an SVG whose coordinates have two decimals, which no eye tells from six; texts stay as they are."""

    def with_two_decimals(found: re.Match[str]) -> str:
        return " " + re.sub(r"(\.\d\d)\d+", r"\1", " ".join(found[0].split()))

    return re.sub(r' (?:d|x|y|transform)="[^"]*"', with_two_decimals, text)


def _cell(is_share: bool, value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "\u2013"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if is_share and isinstance(value, float | np.floating):
        return f"{100 * value:.1f} %"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating) and abs(float(value)) < 1000:
        return f"{value:.3g}" if abs(float(value)) > NOISE else "0"
    return visible(rounded(value))


# --- individual rows --------------------------------------------------------------------------------------------------


def cases(explainer: ONBMACF, answers: Explanations, most: int) -> list[dict[str, Any]]:
    """Return up to `most` rows that stand for many: released ones first, then some without a counterfactual."""
    kinds = _kinds(answers)
    sizes, columns = Counter(kinds), [answers.words.name(name) for name in answers.rows.columns]
    return [
        {
            **_case(answers[place], FIRST_PICTURE + number),
            "kind": _kind_in_words(kinds[place], sizes[kinds[place]], columns),
        }
        for number, place in enumerate(representatives(explainer, answers, most))
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


def _kind_in_words(kind: Any, size: int, columns: list[str]) -> str:
    if kind is None:
        return ""
    names = joined([columns[at] for at in kind[1]]) if kind[0] != "none" else ""
    what = f"whose first counterfactual changes {names}" if names else f"with the status {kind[1]}"
    return f"One of {size:,} rows {what}." if size > 1 else f"The only row {what}."


def _case(answer: Explanation, place: int) -> dict[str, Any]:
    title = f"Row {shown(answer.factual.name)}: {quoted(answer.label)}"
    if not answer.counterfactuals:
        return {"title": title, "sentences": [why_none(answer)], "tables": [], "pictures": []}
    found, said = answer.counterfactuals[0], answer.in_words().counterfactuals
    ax = plots.before_after(found, new_figure())
    drawn = picture(place, f"Row {shown(answer.factual.name)} before and after", _in_words(said[0]), ax)
    tables = [table(f"Counterfactual {rank}", _changes(f)) for rank, f in enumerate(said, start=1)]
    return {"title": title, "sentences": answer.sentences(), "tables": tables, "pictures": [drawn]}


def _changes(found: Counterfactual) -> pd.DataFrame:
    kept, lines = found.semifactual, []
    for name in found.changed:
        even_if = shown(kept.values[name]) if kept else "\u2013"
        values = (shown(found.factual[name]), shown(found.values[name]), even_if)
        holds_for = () if found.ranges is None else (works_in(found, name),)
        lines.append((marked(name, found.released), *values, *holds_for))
    for name in found.effects:
        even_if = shown(kept.values[name]) if kept else "\u2013"
        values = (shown(found.factual[name]), shown(found.values[name]), even_if)
        lines.append((f"{name} (follows)", *values, *([] if found.ranges is None else [""])))
    with_range = [] if found.ranges is None else ["label holds for"]
    return pd.DataFrame(lines, columns=["feature", "before", "after", "even if", *with_range])


def _in_words(found: Counterfactual) -> str:
    names, released = found.changed, found.released
    changes = (f"{marked(n, released)} from {shown(found.factual[n])} to {shown(found.values[n])}" for n in names)
    follows = (f"then {n} from {shown(found.factual[n])} to {shown(found.values[n])}" for n in found.effects)
    return "; ".join([*changes, *follows]) + "."
