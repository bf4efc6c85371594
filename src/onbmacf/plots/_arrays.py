"""Rows that are pictures or series: before and after, the donor, and what was taken from it.

Counterfactual, Explanation or the answers for one row  ->  chosen  ->  panels of a picture, lines of a series
"""

from math import prod
from typing import Any

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._base.checks import shortened
from onbmacf._text.wording import quoted
from onbmacf.audit.arguments import typed
from onbmacf.errors import ParameterError
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.plots._axes import COLOURS, add_legend, axes_on, bare, set_titles, write
from onbmacf.plots._single import chosen, reason_on

GAP = 0.12  # of the width of a picture, between two
SHADE: dict[str, Any] = {"facecolor": "#F5D08A", "alpha": 0.5, "hatch": "..", "edgecolor": "#C28A00", "linewidth": 0.0}


@typed
def image(counterfactual: Any, shape: Any = None, ax: Any = None, *, place: int = 0) -> Any:
    """Draw one counterfactual of a picture: before, after, its donor, and how much each pixel changes.

    The changed blocks are outlined; without blocks, the changed pixels. There is a donor with blocks only.

    Parameters
    ----------
    counterfactual : Counterfactual, Explanation or Explanations
        For example ``answers[0]``, whose columns are the pixels, row by row.
    shape : tuple of int, optional
        Rows and columns, and 3 channels where there are colours; by default that of `Blocks.grid`.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.
    place : int, default 0
        Which of an explanation's counterfactuals.

    Returns
    -------
    Axes
        The pictures side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from onbmacf import ONBMACF, Blocks
    >>> pictures = np.arange(160).reshape(40, 4) % 7
    >>> def is_dark(rows):
    ...     return (rows[:, 0] > 3).astype(int)
    >>> explainer = ONBMACF().fit(pictures, is_dark, blocks=Blocks.grid((2, 2), 1))
    >>> ax = plots.image(explainer.explain(pictures[:1]))
    >>> [text.get_text() for text in ax.texts]
    ['before', 'after', 'donor', 'change']

    """
    found = chosen(counterfactual, place)
    if isinstance(found, Explanation):
        return reason_on(found, ax)
    from matplotlib.patches import Rectangle

    before, after, donor = _rows(found)
    shape = _shape(shape, found, len(before))
    panels = {"before": before, "after": after, **({} if donor is None else {"donor": donor})}
    height, width = shape[:2]
    step, n = width * (1 + GAP), len(panels) + 1
    ax = axes_on(ax, (1.8 * n, 0.6 + 1.7 * height / width))
    low, high = min(map(np.min, panels.values())), max(map(np.max, panels.values()))
    for at, row in enumerate(panels.values()):
        picture = (row.reshape(shape) - low) / (high - low if high > low else 1.0)
        ax.imshow(picture, extent=(at * step, at * step + width, height, 0), cmap="gray_r", vmin=0, vmax=1)
    change = (after - before).reshape(shape)
    change = change if len(shape) == 2 else change.mean(axis=2)
    most = float(np.abs(change).max()) or 1.0
    last = (len(panels) * step, len(panels) * step + width, height, 0)
    ax.imshow(change, extent=last, cmap="RdBu_r", vmin=-most, vmax=most)
    for at in range(n):
        frame = Rectangle((at * step, 0), width, height, fill=False, edgecolor="#AAAAAA", linewidth=0.8)
        ax.add_patch(frame)
    for at in (1, len(panels)):
        for top, left, tall, wide in _boxes(found, shape):
            looks: dict[str, Any] = {"fill": False, "edgecolor": COLOURS[1], "linewidth": 1.6}
            ax.add_patch(Rectangle((at * step + left, top), wide, tall, **looks))
    for at, called in enumerate([*panels, "change"]):
        write(ax, at * step + width / 2, height * 1.03, called, ha="center", va="top", fontsize="small")
    ax.set_xlim(0, n * step - GAP * width)
    ax.set_ylim(height * 1.12, 0)
    set_titles(ax, f"Changes that lead to {quoted(found.label)}")
    ax.set_axis_off()
    return ax


@typed
def series(counterfactual: Any, ax: Any = None, *, place: int = 0) -> Any:
    """Draw one counterfactual of a series: before and after as lines, with the exchanged segments shaded.

    Parameters
    ----------
    counterfactual : Counterfactual, Explanation or Explanations
        For example ``answers[0]``, whose columns are the values, one after the other.
    ax : matplotlib Axes or Figure, optional
        Where to draw; a Figure is given the size that the plot needs. A new figure of pyplot by default.
    place : int, default 0
        Which of an explanation's counterfactuals.

    Returns
    -------
    Axes
        The position along the series, and its values.

    Examples
    --------
    >>> import numpy as np
    >>> from onbmacf import ONBMACF, Blocks
    >>> waves = np.arange(240).reshape(40, 6) % 7
    >>> def is_high(rows):
    ...     return (rows[:, 0] > 3).astype(int)
    >>> explainer = ONBMACF().fit(waves, is_high, blocks=Blocks.segments(6, 2))
    >>> ax = plots.series(explainer.explain(waves[:1]))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['before', 'after', 'donor', 'exchanged']

    """
    found = chosen(counterfactual, place)
    if isinstance(found, Explanation):
        return reason_on(found, ax)
    before, after, donor = _rows(found)
    ax = axes_on(ax, (7.2, 3.2))
    at = np.arange(len(before))
    handles = [ax.plot(at, before, "--", color="#555555", linewidth=1.2)[0]]
    handles += ax.plot(at, after, "-", color=COLOURS[0], linewidth=1.8)
    names = ["before", "after"]
    if donor is not None:
        handles += ax.plot(at, donor, ":", color=COLOURS[2], linewidth=1.2)
        names.append("donor")
    spans = [ax.axvspan(low - 0.5, high - 0.5, zorder=0, **SHADE) for low, high in _spans(found)]
    names += ["exchanged"] * bool(spans)
    set_titles(ax, f"Changes that lead to {quoted(found.label)}", "position", "value")
    looks: dict[str, Any] = {"fontsize": "small", "loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    add_legend(ax, handles + spans[:1], names, **looks)
    bare(ax)
    return ax


def _rows(found: Counterfactual) -> tuple[Matrix, Matrix, Matrix | None]:
    """Return the row before and after, and the donor, as numbers; a missing one is a gap."""
    rows = [found.factual, found.values, *([] if found.donor_values is None else [found.donor_values])]
    try:
        numbers = [row.to_numpy(np.float64, na_value=np.nan) for row in rows]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"pictures and series are rows of numbers: {error}.") from error
    return numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else None


def _shape(given: Any, found: Counterfactual, n: int) -> tuple[int, ...]:
    shape: Any = given if given is not None or found.of_blocks is None else found.of_blocks.shape
    is_shape = isinstance(shape, list | tuple) and all(
        isinstance(size, int | np.integer) and size > 0 for size in shape
    )
    if not is_shape or len(shape) not in (2, 3) or prod(shape) != n:
        raise ParameterError(f"shape must be rows and columns of a picture of {n} columns, got {shortened(shape)}.")
    return tuple(shape)


def _changed(found: Counterfactual) -> list[list[int]]:
    """Return the positions of the columns of each changed block, or of each changed column."""
    place = {name: at for at, name in enumerate(found.factual.index)}
    if found.of_blocks is None:
        return [[place[name]] for name in found.changed]
    return [[place[name] for name in found.of_blocks.groups[block]] for block in found.blocks]


def _boxes(found: Counterfactual, shape: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Return top, left, height and width of what is outlined."""
    boxes = []
    for columns in _changed(found):
        places = np.unravel_index(columns, shape)
        ends = [(int(each.min()), int(each.max()) + 1) for each in places[:2]]
        boxes.append((ends[0][0], ends[1][0], ends[0][1] - ends[0][0], ends[1][1] - ends[1][0]))
    return boxes


def _spans(found: Counterfactual) -> list[tuple[int, int]]:
    """Return where what is shaded begins and ends; neighbours together."""
    places = np.unique([at for columns in _changed(found) for at in columns]).astype(np.intp)
    parts = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]
