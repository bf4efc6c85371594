"""A form as wishes: every field has a kind, and a fault names the field and what is allowed.

text by field  ->  read_wishes  ->  Wishes
"""

from collections.abc import Hashable, Mapping

from onbmacf._views.fields import Field, read_end
from onbmacf._views.plans import Source, label_of
from onbmacf.web.cases import COSTS, MOST_PLANS, Wishes
from onbmacf.web.problems import Problem

DIRECTIONS = ("up", "down")


def read_wishes(form: Mapping[str, str], fields: list[Field], source: Source) -> Wishes:
    """Return the wishes that a form describes; what it leaves empty is not wished."""
    numbers = [field for field in fields if field.is_number]
    locked = frozenset(field.name for field in fields if form.get(f"{field.id}-lock"))
    ease = {field.name: form.get(f"{field.id}-ease", "") for field in fields}
    direction = {field.name: form.get(f"{field.id}-direction", "") for field in fields}
    target = form.get("target", "")
    return Wishes(
        locked=locked,
        low=_ends(form, numbers, "low"),
        high=_ends(form, numbers, "high"),
        direction={name: word for name, word in direction.items() if word in DIRECTIONS},
        ease={name: word for name, word in ease.items() if word in COSTS and word != "usual"},
        dial=_share(form.get("dial", "")),
        n=_count(form.get("n", "3")),
        target=label_of(target, source.classes) if target else source.target,
    )


def _ends(form: Mapping[str, str], fields: list[Field], end: str) -> dict[Hashable, float]:
    given = {field: form.get(f"{field.id}-{end}", "").strip() for field in fields}
    return {field.name: read_end(field, text) for field, text in given.items() if text}


def _share(text: str) -> float | None:
    if not text:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise Problem(422, "Parameter error", f"The dial must be from 0 to 1, got {text!r}.")
    return share


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_PLANS:
        raise Problem(422, "Parameter error", f"There may be 1 to {MOST_PLANS} plans, got {text!r}.")
    return int(text)
