"""The compared methods. REGISTRY is the only list of them; a new method adds one line.

    name  ->  create  ->  Method (fit, explain)

The module of a method is imported when the method is created, so torch and dice-ml are needed only by the methods
that use them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from onbmacf.bench.protocol import Method
from onbmacf.errors import ParameterError


@dataclass(frozen=True)
class Entry:
    """The module and class of a method, its options, and which other code of the package its results depend on."""

    module: str
    class_name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()  # patterns of files of the package


OWN_CODE = (
    "*.py",
    "_*/**/*.py",
)  # this package's method: the public modules and all private packages
REGISTRY: dict[str, Entry] = {
    "CEM": Entry("onbmacf.bench.methods.cem", "CEM"),
    "CEM-VAE": Entry("onbmacf.bench.methods.cem", "CEM", {"autoencoder_weight": 1.0}),
    "CLUE": Entry("onbmacf.bench.methods.clue", "CLUE"),
    "CRUDS": Entry("onbmacf.bench.methods.cruds", "CRUDS"),
    "DICE": Entry("onbmacf.bench.methods.dice", "DiCE"),
    "FACE-EPSILON": Entry("onbmacf.bench.methods.face", "FACE", {"graph": "epsilon"}),
    "FACE-KNN": Entry("onbmacf.bench.methods.face", "FACE", {"graph": "knn"}),
    "GS": Entry("onbmacf.bench.methods.growing_spheres", "GrowingSpheres"),
    "WACHTER": Entry("onbmacf.bench.methods.wachter", "Wachter"),
    "NICE": Entry("onbmacf.bench.methods.nice", "NICE"),
    "ONB-MACF": Entry(
        "onbmacf.bench.methods.onb", "OnbMacf", {"strategy": "paper", "search": "exhaustive"}, also=OWN_CODE
    ),
    "ONB-MACF+": Entry("onbmacf.bench.methods.onb", "OnbMacf", also=OWN_CODE),
}


def create(name: str) -> Method:
    """Return a method ready to be fitted."""
    if name not in REGISTRY:
        raise ParameterError(f"method must be one of {', '.join(REGISTRY)}, got {name!r}.")
    entry = REGISTRY[name]
    return cast(Method, getattr(import_module(entry.module), entry.class_name)(**entry.options))
