"""Pictures as SVG files of their own: the walk over the map in two features, and the front.

answers  ->  onbmacf.plots on a figure of our own  ->  SVG
"""

import io
from collections.abc import Hashable
from typing import Any

import pandas as pd

from onbmacf import plots
from onbmacf._views.plans import Source
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations

SIZE = (7.2, 4.2)
N_BALLS = 6  # the most populous ones: more hide each other
# A picture is a document of its own where it is opened alone: it may have its own styles, and nothing else.
HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


def axes_of(source: Source) -> list[Hashable]:
    """Return the features that a picture may have as an axis: numbers."""
    return [feature.name for feature in source.explainer.schema_.features if feature.is_numeric]


def walk_svg(explainer: ONBMACF, answers: Explanations, x: Hashable, y: Hashable, place: int) -> bytes:
    """Draw the way from the row to a plan over the balls."""
    ax = _axes()
    plots.cover(explainer, x, y, largest=N_BALLS, ax=ax)
    plots.walk(answers[0], x, y, place=place, ax=ax)
    return _svg(ax)


def front_svg(frame: pd.DataFrame) -> bytes:
    """Draw the front: plans that no other beats in distance, changes and plausibility at once."""
    return _svg(plots.front(frame, ax=_axes()))


def default_view(answers: Explanations, source: Source) -> tuple[Hashable, Hashable, int] | None:
    """Return the two features to draw first: those that the first plan changes, then others; None where too few."""
    known = axes_of(source)
    if len(known) < 2 or not len(answers.batch.factual):
        return None
    changed = [name for name in answers[0].counterfactuals[0].changed if name in known]
    x, y = [*changed, *(name for name in known if name not in changed)][:2]
    return x, y, 0


def _axes() -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained").add_subplot()


def _svg(ax: Any) -> bytes:
    import warnings

    from matplotlib import rc_context

    sink = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "onbmacf"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has its own fonts
        ax.figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue()
