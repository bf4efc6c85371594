"""A batch of answers as tidy frames, single rows with the types of their columns, and frames as Markdown, CSV or LaTeX.

Every value is data and is escaped.
"""

import math
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import Rows, arrays_of, objects
from onbmacf._text.wording import visible, works_in

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}
_MARKDOWN = {mark: f"\\{mark}" for mark in "\\`*_{}[]<>|$#~!@"} | {"&": "&amp;"}
_LINKS = {"://": "\\://", "www.": "www\\.", "WWW.": "WWW\\."}  # text that some viewers turn into a link
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
KINDS = ("action", "effect")  # of a change: somebody's, or one that follows
_BLANK = " \u00a0\u200b\ufeff\x00"


# --- tidy frames ------------------------------------------------------------------------------------------------------


class RangesOfOne(NamedTuple):
    """The ranges of one counterfactual, as `works_in` reads them off a counterfactual."""

    ranges: Any
    box: Any


def counterfactual_frame(answers: Any) -> pd.DataFrame:
    """Return one line per counterfactual: how it was found, then its values."""
    batch = answers.batch
    found = {
        "rank": ranks(batch.factual),
        "from": answers.labels[batch.factual],
        "to": batch.label,
        "distance": batch.distance,
        "n_changes": batch.changed.sum(axis=1),
        "relaxation": batch.relaxation,
        "ball": batch.ball,
        "plausibility": batch.plausibility,
        "margin": batch.margin,
    }
    if batch.probability is not None:
        found["probability"] = batch.probability
    if batch.predicted is not None:
        found["predicted_from"], found["predicted_to"] = batch.predicted.T
    if batch.stability is not None:
        found["stability"] = batch.stability
    if answers.certificates is not None:
        is_first = ranks(batch.factual) == 1
        kinds, bounds = proven_columns(answers.certificates[batch.factual])
        found |= {"certificate": np.where(is_first, kinds, ""), "bound": np.where(is_first, bounds, np.nan)}
    features = answers.rows.columns
    found["released"] = objects([", ".join(str(name) for name in features[line]) for line in batch.released])
    if batch.effects is not None:
        found["effects"] = objects([", ".join(str(name) for name in features[line]) for line in batch.effects])
    if batch.donor is not None:
        of_blocks = [answers.blocks.of_columns(features[line]) for line in batch.changed]
        found |= {"donor": batch.donor, "blocks": objects([", ".join(map(str, names)) for names in of_blocks])}
    if batch.ranges is not None:
        found |= {"ranges": _in_words(batch.ranges), "box": _in_words(batch.box)}
    names = {name: _free(name, answers.rows.columns) for name in found}
    meta = pd.DataFrame({names[name]: column for name, column in found.items()})
    frame = pd.concat([meta, batch.values], axis=1)
    frame.index = answers.rows.index[batch.factual]
    return frame


def numbered(answers: Any) -> pd.DataFrame:
    """Return one line per counterfactual, with the position of its row as a column in place of the index."""
    frame = counterfactual_frame(answers).reset_index(drop=True)
    frame.insert(0, _free("row", frame.columns), answers.batch.factual)
    return frame


def line_frame(answers: Any) -> pd.DataFrame:
    """Return one line per counterfactual, and one for each row without any: status, reason, then how it was found.

    Whole numbers and bools get pandas' nullable dtypes, since a line without a counterfactual has no values.
    """
    found, factual = with_room(counterfactual_frame(answers)), answers.batch.factual
    without = np.setdiff1d(np.arange(len(answers.rows)), factual)
    place = np.concatenate([factual, without])
    order = np.argsort(place, kind="stable")
    frame = found.reset_index(drop=True).reindex(range(len(place)))
    say_proven(frame, answers, without)
    frame[_free("from", answers.rows.columns)] = objects(answers.labels[place].tolist())
    for name, values in (("reason", answers.reasons), ("status", answers.statuses)):
        frame.insert(0, _free(name, frame.columns), objects([str(value) for value in values[place]]))
    return frame.iloc[order].set_axis(answers.rows.index[place[order]])


def with_room(frame: pd.DataFrame, names: Iterable[Hashable] | None = None) -> pd.DataFrame:
    """Return a frame in which some columns, or all, can hold a missing value: int64 becomes Int64, bool boolean."""
    dtypes, sizes = frame.dtypes if names is None else frame.dtypes[list(names)], {"i": "Int", "u": "UInt"}
    room = {
        name: "boolean" if dtype.kind == "b" else f"{sizes[dtype.kind]}{8 * dtype.itemsize}"
        for name, dtype in dtypes.items()
        if isinstance(dtype, np.dtype) and dtype.kind in "iub"
    }
    return frame.astype(room) if room else frame


def only_changes(answers: Any) -> pd.DataFrame:
    """Return one line per counterfactual with its changed values, and empty text where a value is kept.

    Not NaN there: it would turn whole numbers into floats, and could be a missing value.
    """
    batch, columns = answers.batch, answers.rows.columns
    meta = counterfactual_frame(answers)
    frame = meta[[_free(name, columns) for name in ("rank", "from", "to", "distance", "n_changes")]].copy()
    changed = batch.changed if batch.effects is None else batch.changed | batch.effects
    for feature in np.flatnonzero(changed.any(axis=0)):
        values = objects(batch.values.iloc[:, feature].tolist())
        frame[columns[feature]] = np.where(changed[:, feature], values, "")
    return frame


def status_frame(answers: Any) -> pd.DataFrame:
    """Return one line per row: its label, status, reason, and number of counterfactuals."""
    n_rows = len(answers.rows)
    counts = np.bincount(answers.batch.factual, minlength=n_rows) if n_rows else np.empty(0, dtype=int)
    columns = {"label": answers.labels, "status": answers.statuses, "reason": answers.reasons, "n_found": counts}
    if answers.certificates is not None:
        columns["certificate"], columns["bound"] = proven_columns(answers.certificates)
    return pd.DataFrame(columns, index=answers.rows.index)


def change_frame(answers: Any) -> pd.DataFrame:
    """Return one line per changed feature of each counterfactual: rank, feature, before, after."""
    effects, every = answers.batch.effects, answers.batch.changed
    lines, features = np.nonzero(every if effects is None else every | effects)
    columns = list(answers.rows.columns)
    place = answers.batch.factual[lines]
    columns_of = {
        "rank": ranks(answers.batch.factual)[lines],
        "feature": [columns[feature] for feature in features],
        "before": _cells(answers.rows, place, features),
        "after": _cells(answers.batch.values, lines, features),
    }
    if answers.batch.ranges is not None:
        both = zip(answers.batch.ranges[lines], answers.batch.box[lines], features, strict=True)
        columns_of["range"] = [works_in(RangesOfOne(ranges, box), columns[at]) for ranges, box, at in both]
    if effects is not None:
        columns_of["kind"] = np.where(every[lines, features], *KINDS)
    return pd.DataFrame(columns_of, index=answers.rows.index[place])


def changes_of(found: Any) -> pd.DataFrame:
    """Return one line per changed feature of a single counterfactual or semifactual: feature, before, after."""
    names: list[Hashable] = [*found.changed, *found.effects]
    columns = {"before": [found.factual[name] for name in names], "after": [found.values[name] for name in names]}
    if getattr(found, "ranges", None) is not None:
        columns["range"] = [works_in(found, name) for name in names]
    if found.effects:
        columns["kind"] = [KINDS[name in found.effects] for name in names]
    return pd.DataFrame({"feature": names, **columns})


def range_frame(answers: Any) -> pd.DataFrame:
    """Return one line per changed feature of each counterfactual with ranges: alone, then in the box of all."""
    lines, names = [], list(answers.rows.columns)
    batch, rank = answers.batch, ranks(answers.batch.factual)
    for line in range(len(batch.factual)):
        ranges = None if batch.ranges is None else batch.ranges[line]
        for name, found in (ranges or {}).items():
            box = (batch.box[line] or {}).get(name)
            after = batch.values.iloc[line, names.index(name)]
            together = (None,) * 4 if box is None else (box.low, box.high, box.levels, box.n_asked)
            lines.append((line, rank[line], name, after, found.low, found.high, found.levels, found.n_asked, *together))
    alone = ["low", "high", "levels", "n_asked"]
    columns = ["line", "rank", "feature", "after", *alone, *(f"box_{name}" for name in alone)]
    frame = pd.DataFrame(lines, columns=columns)
    place = batch.factual[frame.pop("line").to_numpy(dtype=np.intp)]
    return frame.set_axis(answers.rows.index[place])


def row_of(frame: pd.DataFrame, place: int) -> "pd.Series[Any]":
    """Return one row without the casts of iloc: each value keeps the type of its own column."""
    arrays = arrays_of(frame)
    if len({array.dtype for array in arrays}) == 1:
        return frame.iloc[place]
    return pd.Series([array[place] for array in arrays], frame.columns, dtype=object, name=frame.index[place])


def ranks(factual: Rows) -> Rows:
    """Return 1, 2, ... within each run of equal factuals."""
    return np.arange(len(factual)) - np.searchsorted(factual, factual) + 1


def _in_words(ranges: NDArray[Any]) -> NDArray[Any]:
    """Return, per line, its ranges as one text; empty where there are none."""
    return objects(["; ".join(f"{name} {found}" for name, found in (one or {}).items()) for one in ranges])


def proven_columns(certificates: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the kind and the bound of each certificate; empty text and NaN where there is none."""
    kinds = objects(["" if one is None else str(one.kind) for one in certificates])
    return kinds, np.array([np.nan if one is None else one.bound for one in certificates], dtype=np.float64)


def say_proven(frame: pd.DataFrame, answers: Any, without: Rows) -> None:
    """Write what is proven of rows without a counterfactual into the last lines of a frame, which are theirs."""
    if answers.certificates is None or not len(without):
        return
    for name, column in zip(("certificate", "bound"), proven_columns(answers.certificates[without]), strict=True):
        frame.iloc[-len(without) :, frame.columns.get_loc(_free(name, answers.rows.columns))] = column


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _cells(frame: pd.DataFrame, lines: NDArray[Any], features: NDArray[Any]) -> list[Any]:
    columns = [frame.iloc[:, feature] for feature in range(frame.shape[1])]
    return [columns[feature].iloc[line] for line, feature in zip(lines, features, strict=True)]


# --- Markdown, CSV, LaTeX ---------------------------------------------------------------------------------------------


def as_markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """Return a Markdown table with numbers aligned right."""
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    rule = "|".join([" --- " if not number else " ---: " for number in numeric])
    lines = [_row(frame.columns, digits), f"|{rule}|"]
    lines += [_row(values, digits) for values in frame.itertuples(index=False)]
    return "\n".join(lines) + "\n"


def as_latex(frame: pd.DataFrame, caption: str = "", digits: int = 3) -> str:
    """Return a LaTeX table with booktabs rules."""
    columns = "".join("r" if pd.api.types.is_numeric_dtype(dtype) else "l" for dtype in frame.dtypes)
    body = [_latex_row(frame.columns, digits), r"\midrule"]
    body += [_latex_row(values, digits) for values in frame.itertuples(index=False)]
    head = [r"\begin{table}", rf"\caption{{{_escape(caption, _LATEX)}}}", rf"\begin{{tabular}}{{{columns}}}"]
    return "\n".join([*head, r"\toprule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def as_csv(frame: pd.DataFrame, digits: int | None = 3, *, header: bool = True) -> str:
    """Return CSV; text that a spreadsheet would evaluate as a formula gets a leading apostrophe.

    digits=None writes every number in full.
    """
    columns = {place: _without_formulas(frame.iloc[:, place]) for place in range(frame.shape[1])}
    safe = pd.DataFrame(columns, index=frame.index)
    names = [no_formula(name) for name in frame.columns]
    written = None if digits is None else f"%.{digits}f"
    return str(safe.to_csv(index=False, header=names if header else False, float_format=written, lineterminator="\n"))


def markdown_text(text: str) -> str:
    """Return text escaped so that Markdown shows it unchanged, on one line."""
    escaped = _escape(" ".join(visible(text).split()), _MARKDOWN)
    for mark, plain in _LINKS.items():
        escaped = escaped.replace(mark, plain)
    return escaped


def no_formula(value: Any) -> Any:
    """Return a value for a cell; text that a spreadsheet would evaluate gets a leading apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.lstrip(_BLANK).startswith(_FORMULA) else value


def _without_formulas(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return column
    return pd.Series([no_formula(value) for value in column.array], index=column.index, dtype=object)


def _row(values: Any, digits: int) -> str:
    cells = (markdown_text(_text(value, digits)) for value in values)
    return "| " + " | ".join(cells) + " |"


def _latex_row(values: Any, digits: int) -> str:
    return " & ".join(_escape(_text(value, digits), _LATEX) for value in values) + r" \\"


def _text(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "Na" if math.isnan(value) else f"{value:.{digits}f}"
    return " ".join(str(value).split())


def _escape(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(mark, mark) for mark in text)
