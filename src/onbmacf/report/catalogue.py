"""The words of a notice, by language: one TOML file each in `words`, all with the same keys.

language  ->  catalogue  ->  key -> text with names in braces
"""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from onbmacf._base.checks import listed
from onbmacf.errors import ParameterError


def languages() -> tuple[str, ...]:
    """Return the languages that there are words for.

    >>> languages()
    ('en', 'es')
    """
    found = [entry.name for entry in _folder().iterdir()]
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


@cache
def catalogue(language: str) -> dict[str, str]:
    """Return the texts of one language.

    >>> catalogue("es")["plan"].format(number=1)
    'Vía 1'
    """
    if language not in languages():
        raise ParameterError(f"language must be one of {listed(languages())}, got {language!r}.")
    words: dict[str, str] = tomllib.loads((_folder() / f"{language}.toml").read_text(encoding="utf-8"))
    return words


def _folder() -> Any:
    return files("onbmacf.report") / "words"
