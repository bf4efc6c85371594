"""The compared methods. REGISTRY is the only list of them; a new method adds one line.

    name  ->  create  ->  Method (fit, explain)

A name that ends in -HELD is the method of that name with immutable features held, for those that ignore them otherwise.

The module of a method is imported when the method is created, so torch, dice-ml and cfnow are needed only by the
methods that use them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    "CFNOW": Entry("onbmacf.bench.methods.cfnow", "CFNOW"),
    "CLUE": Entry("onbmacf.bench.methods.clue", "CLUE"),
    "CRUDS": Entry("onbmacf.bench.methods.cruds", "CRUDS"),
    "DICE": Entry("onbmacf.bench.methods.dice", "DiCE"),
    "DICE-GENETIC": Entry("onbmacf.bench.methods.dice", "DiCE", {"kind": "genetic"}),
    "FACE-EPSILON": Entry("onbmacf.bench.methods.face", "FACE", {"graph": "epsilon"}),
    "FACE-KNN": Entry("onbmacf.bench.methods.face", "FACE", {"graph": "knn"}),
    "GS": Entry("onbmacf.bench.methods.growing_spheres", "GrowingSpheres"),
    "WACHTER": Entry("onbmacf.bench.methods.wachter", "Wachter"),
    "NICE": Entry("onbmacf.bench.methods.nice", "NICE"),
    "NICE-NONE": Entry("onbmacf.bench.methods.nice", "NICE", {"reward": "none"}),
    "NICE-PLAUSIBILITY": Entry("onbmacf.bench.methods.nice", "NICE", {"reward": "plausibility"}),
    "NICE-PROXIMITY": Entry("onbmacf.bench.methods.nice", "NICE", {"reward": "proximity"}),
    "ONB-MACF": Entry(
        "onbmacf.bench.methods.onb", "OnbMacf", {"strategy": "paper", "search": "exhaustive"}, also=OWN_CODE
    ),
    "ONB-MACF+": Entry("onbmacf.bench.methods.onb", "OnbMacf", also=OWN_CODE),
}
HOLDING = (
    *("CEM", "CEM-VAE", "CFNOW", "DICE", "DICE-GENETIC"),
    *("NICE", "NICE-NONE", "NICE-PLAUSIBILITY", "NICE-PROXIMITY", "WACHTER"),
)  # these can hold immutable features, and do not unless told
REGISTRY |= {
    f"{name}-HELD": replace(REGISTRY[name], options={**REGISTRY[name].options, "hold": True}) for name in HOLDING
}
PAPER = (
    *("CEM", "CEM-VAE", "CLUE", "CRUDS", "DICE", "FACE-EPSILON", "FACE-KNN", "GS", "WACHTER", "NICE"),
    *("ONB-MACF", "ONB-MACF+"),
)  # the paper's comparison, and this package's own search: what a run computes by default


def create(name: str) -> Method:
    """Return a method ready to be fitted."""
    if name not in REGISTRY:
        raise ParameterError(f"method must be one of {', '.join(REGISTRY)}, got {name!r}.")
    entry = REGISTRY[name]
    return cast(Method, getattr(import_module(entry.module), entry.class_name)(**entry.options))
