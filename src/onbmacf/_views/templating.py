"""The templates of pages, reports and notices: how they are filled in, and what they share.

package of templates, how a value becomes text  ->  environment  ->  Environment (with `style(...)` and shared.html)
"""

from collections.abc import Callable
from typing import Any

from onbmacf._views.style import style


def environment(package: str, as_text: Callable[[Any], Any]) -> Any:
    """Return the environment for the templates of a package: every value is escaped, and an unknown name is an error.

    A template may use the style sheets of `_views/style` by name, and the macros of `_views/templates/shared.html`.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    found = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("onbmacf._views")]),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else as_text(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["style"] = lambda *names: Markup(style(*names))
    return found
