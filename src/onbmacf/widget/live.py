"""The widget itself: traits that the script and Python share. A trait that is set on either side is answered here.

locked, tried (set by the script or in Python)  ->  person.shown, person.tried  ->  view, answered (read by the script)
"""

from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from onbmacf._views.style import style
from onbmacf.errors import OnbmacfError
from onbmacf.explanation import Explanation
from onbmacf.widget.person import Person, shown, tried

STATIC = files("onbmacf.widget") / "static"


def _style() -> str:
    """Return the shared style, for what lies inside the widget only."""
    palette = style("palette.css").replace(":root", ".onbmacf-person")
    shared = style("text.css", "parts.css")
    return f"{palette}\n.onbmacf-person {{\n{shared}\n}}\n{(STATIC / 'widget.css').read_text('utf-8')}"


class PersonWidget(anywidget.AnyWidget):  # type: ignore[misc]  # the linter need not have it
    """One row with its decision and its plans.

    Attributes
    ----------
    locked : list of str
        The features that plans keep, by name; set it to get other plans.
    tried : dict of str to str
        Values to try, by feature, as they would be typed; empty: none.
    view : dict
        What is shown of the row, as plain values.
    answered : dict
        What the model says of the values tried; empty where none are.
    error : str
        Why the last wish could not be fulfilled; empty if it was.

    """

    _esm = (STATIC / "widget.js").read_text("utf-8")
    _css = _style()
    locked = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tried = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    answered = traitlets.Dict().tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init__(self, person: Person) -> None:
        first = shown(person, person.locked, ranges=True)
        self.person, self._answer = person, first.answer
        super().__init__(locked=person.locked, view=first.view)
        self.observe(self._keep, "locked")
        self.observe(self._try, "tried")

    @property
    def answer(self) -> Explanation:
        """The explanation that is shown."""
        return self._answer

    def _keep(self, change: Any) -> None:
        """Look for plans that keep these features: first the plans, then how far their values may move."""
        try:
            for ranges in (False, True):
                found = shown(self.person, self.locked, ranges)
                self._answer, self.view, self.error = found.answer, found.view, ""
        except OnbmacfError as error:
            self.error = str(error)
        self._try(change)

    def _try(self, change: Any) -> None:
        """Ask about the values that are tried."""
        self.answered = tried(self.person, self.tried, self.locked) if self.tried else {}
