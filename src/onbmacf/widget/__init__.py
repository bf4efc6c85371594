"""One row in a notebook: the decision, plans side by side, features to keep, values to try (extra `widget`).

    explainer, row  ->  Person  ->  shown  ->  PersonWidget  ->  static/widget.js

The script shows values and sends what is pressed; everything is asked in Python. Why an explanation has to be given its
explainer: docs/decisions/0019-layers.md.
"""

from typing import Any

from onbmacf._base.enums import Status
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation

__all__ = ["person_widget", "widget_of"]


def person_widget(explainer: Any, row: Any, target: Any = None, n: int = 3) -> Any:
    """Return the widget of one row; see `ONBMACF.widget`."""
    from onbmacf.widget.person import Person

    person = Person.of(explainer, row, target, n)
    try:
        from onbmacf.widget.live import PersonWidget
    except ModuleNotFoundError as error:
        raise ImportError(f"widgets need the extra 'widget': pip install 'onbmacf[widget]' ({error}).") from error
    return PersonWidget(person)


def widget_of(explanation: Explanation, explainer: Any, target: Any = None, n: int | None = None) -> Any:
    """Return the widget of an explanation's row; see `Explanation.widget`."""
    from onbmacf.widget.person import MOST_PLANS, USUAL_PLANS

    if not isinstance(explainer, ONBMACF):
        got = "" if explainer is None else f", got {type(explainer).__name__}"
        raise ParameterError(
            "a widget asks the model, which an explanation does not hold: pass the explainer that gave it, "
            f"as in explanation.widget(explainer){got}."
        )
    wanted = _labels_asked(explanation) if target is None else target
    plans = min(max(len(explanation.counterfactuals), USUAL_PLANS), MOST_PLANS) if n is None else n
    return person_widget(explainer, explanation.factual, wanted, plans)


def _labels_asked(explanation: Explanation) -> list[Any] | None:
    """Return what was asked for, as far as the answer tells: the labels reached, or the row's own; None for any."""
    if explanation.status == Status.ALREADY:
        return [explanation.label]
    return list(dict.fromkeys(found.label for found in explanation.counterfactuals)) or None
