"""The options of a command, from the fields of Request and from the command's own parameters.

    @offers("table", "model", "out")
    def build(request: Request, out: Annotated[Path, typer.Option(help="Map to write.")] = Path("map.onb")): ...

typer sees a function with the parameters table, model and out, in this order; build gets a Request and out.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from onbmacf.cli.request import Request

# Groups that several commands offer, in the order of the help.
SOURCE = ("table", "model", "target_column")
READING = ("id_column", "drop", "drop_missing", "header", "encoding", "sheet", "dates", "kinds")
SEARCH = ("strategy", "plausibility", "release", "private")
LIMITS = ("max_model_rows", "max_model_calls", "max_seconds")
SHOWN = ("ranges", "prove", "prove_seconds")
ASKING = ("output", "threshold", "classes", "between", "trust_pickle")

# Options whose value is handed to an argument of the library that has the same name.
ARGUMENTS = (
    "classes",
    "encoding",
    "header",
    "fillable",
    "front",
    "immutable",
    "max_model_calls",
    "max_model_rows",
    "max_seconds",
    "min_probability",
    "output",
    "plausibility",
    "private",
    "prove",
    "prove_seconds",
    "ranges",
    "release",
    "sheet",
    "strategy",
    "target",
    "threshold",
    "trust_pickle",
    "vary",
)
_PASSED = re.compile(rf"\b({'|'.join(ARGUMENTS)})=(True|False|'[^']*'|\"[^\"]*\")")
_LEADING = re.compile(rf"^({'|'.join(ARGUMENTS)})(?= (?:must be|needs|names|is empty|asks|does|looks) )")
_NAMED = re.compile(rf"(?<![\w'\"-])({'|'.join(name for name in ARGUMENTS if '_' in name)})(?![\w'\"=])")


def offers(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of these names, in this order: fields of Request, and parameters of its own."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = _own_parameters(command)
        if not set(own) <= set(names):
            raise TypeError(f"{command.__name__} does not offer its own {set(own) - set(names)}.")
        parameters = [_for_typer(own[name] if name in own else SHARED[name]) for name in names]

        @wraps(command)
        def run(**words: Any) -> None:
            words = {name: tuple(word) if isinstance(word, list) else word for name, word in words.items()}
            request = Request(**{name: word for name, word in words.items() if name not in own})
            command(request, **{name: word for name, word in words.items() if name in own})

        run.__signature__ = Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
        return run

    return decorate


def flag(name: str, on: bool = True) -> str:
    """Return how an option is typed.

    >>> flag("target_column"), flag("header", on=False)
    ('--target-column', '--no-header')
    """
    return f"--{'' if on else 'no-'}{name.replace('_', '-')}"


def in_options(message: str) -> str:
    """Return a message of the library with options instead of arguments.

    >>> in_options('Pass its encoding, e.g. encoding="latin-1".')
    'Pass its encoding, e.g. --encoding latin-1.'
    >>> in_options("plausibility must be in [0, 1], got 3.0.")
    '--plausibility must be in [0, 1], got 3.0.'
    >>> in_options("prove asks the model beyond max_model_rows: leave one of them out.")
    '--prove asks the model beyond --max-model-rows: leave one of them out.'
    """
    message = _PASSED.sub(lambda found: _typed(found[1], found[2]), message)
    return _NAMED.sub(lambda found: flag(found[1]), _LEADING.sub(lambda found: flag(found[1]), message))


def _typed(name: str, value: str) -> str:
    return flag(name, value == "True") if value in ("True", "False") else f"{flag(name)} {value[1:-1]}"


def _own_parameters(command: Callable[..., None]) -> dict[str, Parameter]:
    """Return the parameters of a command after its first, the request."""
    return dict(list(inspect.signature(command, eval_str=True).parameters.items())[1:])


def _shared() -> dict[str, Parameter]:
    hints = get_type_hints(Request, include_extras=True)
    return {
        field.name: Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(Request)
    }


def _for_typer(parameter: Parameter) -> Parameter:
    """Return a parameter as typer wants it: given by name, and a list where we have a tuple."""
    kind, *more = get_args(parameter.annotation)
    if get_origin(kind) is not tuple:
        return parameter.replace(kind=Parameter.KEYWORD_ONLY)
    several = Annotated[list[get_args(kind)[0]], *more]  # type: ignore[misc, valid-type]
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=several, default=list(parameter.default))


SHARED = _shared()
