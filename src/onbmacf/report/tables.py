"""Frames and plots in the form that the templates use: plain dicts of text."""

import io
import re
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._text.wording import rounded, visible

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
    "n_unknown": "true label unknown",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
    "p_adjusted": "p, corrected",
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


OWN_SHARES = {"share", "responsiveness"}  # whose interval, in ENDS, is one of shares, too
ENDS = ("low", "high")
NOISE = 1e-12  # what is left of equal numbers that were subtracted


def table(caption: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as a caption, column headings, rows of text, and which columns are numeric."""
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    shares = {*SHARES, *ENDS} if OWN_SHARES & set(frame.columns) else set(SHARES)
    cells = [[_cell(column.name in shares, value) for value in column] for column in columns]
    return {
        "caption": caption,
        "heads": [HEADS.get(str(name), str(name)) for name in frame.columns],
        "numeric": [_is_number(column) for column in columns],
        "rows": [list(row) for row in zip(*cells, strict=True)] if len(frame) else [],
    }


def new_figure() -> Any:
    """Return an empty figure outside pyplot, which would keep it: a service makes many reports (decision 0064)."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("reports need the extra 'report': pip install 'onbmacf[report]'.") from error
    return Figure()


def picture(place: int, title: str, description: str, ax: Any) -> dict[str, Any]:
    """Return a plot as inline SVG with its text alternatives; `place` makes its ids unique."""
    return {"id": f"p{place}", "title": title, "description": description, **_svg(ax, f"p{place}-")}


def _svg(ax: Any, prefix: str) -> dict[str, Any]:
    """Return the body of the SVG and its size; ids get a prefix, so that several plots fit on one page."""
    import warnings

    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    sink = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "onbmacf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has its own fonts
        FigureCanvasSVG(ax.figure).print_svg(sink, metadata={"Date": None})  # savefig would draw twice
    text = _short(re.sub(r"<metadata>.*?</metadata>", "", sink.getvalue(), flags=re.S))
    (head, width, height), body = _opening(text), text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}", body)
    return {"view_box": head, "width_rem": round(width / 12, 2), "height_rem": round(height / 12, 2), "body": body}


def _short(text: str) -> str:
    """Return an SVG whose coordinates have two decimals, which no eye tells from six; texts stay as they are."""
    return re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: _two_decimals(" ".join(found[0].split())), text)


def _two_decimals(text: str) -> str:
    return " " + re.sub(r"(\.\d\d)\d+", r"\1", text)


def _opening(text: str) -> tuple[str, float, float]:
    opening = text[text.index("<svg") : text.index(">", text.index("<svg"))]
    box = re.search(r'viewBox="([-0-9. ]+)"', opening)
    assert box is not None
    _, _, width, height = (float(number) for number in box[1].split())
    return box[1], width, height


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


def _is_number(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
