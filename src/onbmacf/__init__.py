"""Model-agnostic counterfactuals and semifactuals from a ball cover of the training rows.

    from onbmacf import ONBMACF, Schema

Importing the package does nothing heavy: every name below is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onbmacf._balls.cover import BallCover
    from onbmacf._base.enums import Relaxation, Status
    from onbmacf._table.committee import committee
    from onbmacf._table.readings import Between
    from onbmacf._text.wording import Range
    from onbmacf.blocks import Blocks
    from onbmacf.causes import Causes
    from onbmacf.certificate import Certificate, CertificateKind
    from onbmacf.explainer import ONBMACF
    from onbmacf.explanation import Counterfactual, Explanation, Semifactual
    from onbmacf.explanations import Explanations
    from onbmacf.rules import Rule, Rules
    from onbmacf.schema import Feature, Schema
    from onbmacf.web import serve

__version__ = "0.1.0"

_HOME = {
    "BallCover": "onbmacf._balls.cover",
    "Between": "onbmacf._table.readings",
    "Blocks": "onbmacf.blocks",
    "Causes": "onbmacf.causes",
    "Certificate": "onbmacf.certificate",
    "CertificateKind": "onbmacf._base.enums",
    "Counterfactual": "onbmacf.explanation",
    "Explanation": "onbmacf.explanation",
    "Explanations": "onbmacf.explanations",
    "Feature": "onbmacf.schema",
    "ONBMACF": "onbmacf.explainer",
    "Range": "onbmacf._text.wording",
    "Relaxation": "onbmacf._base.enums",
    "Rule": "onbmacf.rules",
    "Rules": "onbmacf.rules",
    "Schema": "onbmacf.schema",
    "Semifactual": "onbmacf.explanation",
    "Status": "onbmacf._base.enums",
    "committee": "onbmacf._table.committee",
    "serve": "onbmacf.web",
}

__all__ = [
    "ONBMACF",
    "BallCover",
    "Between",
    "Blocks",
    "Causes",
    "Certificate",
    "CertificateKind",
    "Counterfactual",
    "Explanation",
    "Explanations",
    "Feature",
    "Range",
    "Relaxation",
    "Rule",
    "Rules",
    "Schema",
    "Semifactual",
    "Status",
    "committee",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'onbmacf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
