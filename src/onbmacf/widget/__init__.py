"""One row in a notebook: the decision, plans side by side, features to keep, values to try (extra `widget`).

    explainer, row  ->  Person  ->  shown  ->  PersonWidget  ->  static/widget.js

The script shows values and sends what is pressed; everything is asked in Python (docs/decisions/0085-widget.md).
"""

from typing import Any

__all__ = ["person_widget"]


def person_widget(explainer: Any, row: Any, target: Any = None, n: int = 3) -> Any:
    """Return the widget of one row; see `ONBMACF.widget`."""
    from onbmacf.widget.person import Person

    person = Person.of(explainer, row, target, n)
    try:
        from onbmacf.widget.live import PersonWidget
    except ModuleNotFoundError as error:
        raise ImportError(f"widgets need the extra 'widget': pip install 'onbmacf[widget]' ({error}).") from error
    return PersonWidget(person)
