"""Plots of a cover, of single explanations, of an audit and of methods (extra `plot`: matplotlib).

    results already computed  ->  one function per plot  ->  Axes

A plot of one row is a function of `_single.py`, of a picture or a series one of `_arrays.py`, of a cover one of
`_map.py`, of an audit one of `_audit.py`, of scores of methods one of `_radar.py`; its name goes into the list below.

Every function takes `ax=None` and returns the Axes; none shows or saves: `ax.figure.savefig("picture.png")` does. The
colours are those of Okabe and Ito, which most colour-blind readers can tell apart, and each is paired with a hatch, a
marker or a line style, so that a grey print is readable too. Names and labels come from tables: they are drawn as text,
never as formulas.

>>> from onbmacf import plots
"""

from onbmacf.plots._arrays import image, series
from onbmacf.plots._audit import AXIS_NAMES, action_curve, burden, change_frequencies, pair_heatmap
from onbmacf.plots._map import cover, walk
from onbmacf.plots._radar import radar
from onbmacf.plots._single import before_after, front

__all__ = [
    "AXIS_NAMES",
    "action_curve",
    "before_after",
    "burden",
    "change_frequencies",
    "cover",
    "front",
    "image",
    "pair_heatmap",
    "radar",
    "series",
    "walk",
]
