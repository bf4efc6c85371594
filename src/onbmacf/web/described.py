"""What the JSON API answers, as OpenAPI describes it. The answers are written elsewhere (`_text/records.py`).

Answers, Predictions, ...  ->  responses_of  ->  `responses=` of a route; TOKEN  ->  the security scheme of all of them
"""

from typing import Any, Literal

from fastapi import Depends
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field

from onbmacf._base.enums import CertificateKind, Relaxation, Status
from onbmacf.web.responses import PROBLEM_TYPE

# Only described here: `SecurityMiddleware` checks it before a route is chosen.
TOKEN = Depends(HTTPBearer(auto_error=False, description="The token that the service was started with."))
Cell = str | float | bool | None
Row = dict[str, Cell]
Levels = list[Cell]


class Change(BaseModel):
    """A feature that changes."""

    feature: Cell
    before: Cell
    after: Cell


class Range(BaseModel):
    """How far a changed value may move."""

    feature: Cell
    text: str
    low: Cell
    high: Cell
    levels: Levels | None
    reaches_low: bool
    reaches_high: bool
    n_asked: int


class Crossed(BaseModel):
    """A condition of the model that a counterfactual crosses."""

    rule: int | None = Field(description="The tree or rule, by its number in the model; none of several trees.")
    says: str = Field(description="The whole rule; nothing for trees.")
    feature: Cell
    condition: str
    before: Cell
    after: Cell
    holds: Literal["now", "no longer", "still"]
    fires: Literal["now", "no longer", ""] = Field(description="Whether the rule fires; nothing for trees.")
    used_by: int = Field(description="How many trees ask it of this counterfactual.")
    effect: float = Field(description="What it adds to the new label's probability, or to its lead over the old one's.")


class Semifactual(BaseModel):
    """Changes that are not enough."""

    distance: float
    changes: list[Change]
    effects: list[Change] = Field([], description="Only with causes: what follows from the changes.")
    values: Row


class Counterfactual(BaseModel):
    """A row that the model labels otherwise."""

    label: Cell
    distance: float
    n_changes: int
    released: Levels
    relaxation: Relaxation
    ball: int | None
    plausibility: float
    margin: float | None
    probability: float | None
    stability: float | None = Field(None, description="Only with a committee.")
    changes: list[Change]
    effects: list[Change] = Field([], description="Only with causes: what follows from the changes.")
    values: Row
    semifactual: Semifactual | None
    rules: list[Crossed] = Field([], description="Only of /v1/rules: conditions of the model that it crosses.")
    ranges: list[Range] = Field([], description="Only where asked for: of each feature alone.")
    box: list[Range] | None = Field(None, description="Only where asked for: of all changes together.")


class Certificate(BaseModel):
    """What is proven."""

    kind: CertificateKind
    bound: float | None
    gap: float | None
    sentence: str


class Answer(BaseModel):
    """The answer for one row."""

    row: Cell | Levels
    label: Cell
    status: Status
    reason: str
    would_need: list[str]
    factual: Row
    counterfactuals: list[Counterfactual]
    certificate: Certificate | None = Field(None, description="Only where a proof was asked for.")


class Answers(BaseModel):
    """What `Explanations.to_json` writes."""

    format: Literal["onbmacf-explanations"]
    version: int
    warnings: list[str]
    answers: list[Answer]


class Prediction(BaseModel):
    """What the model says of one row."""

    label: Cell
    status: str
    reason: str
    probability: float | None


class Predictions(BaseModel):
    """What the model says of rows."""

    answers: list[Prediction]


class FeatureSaid(BaseModel):
    """One feature of a row."""

    name: str
    kind: str
    holds: str
    immutable: bool
    levels: Levels | None
    low: Cell
    high: Cell
    rule: str


class SchemaSaid(BaseModel):
    """What a row must have, and what may be asked."""

    version: str
    n_rows: int
    labels: Levels
    target: Levels | None
    features: list[FeatureSaid]
    limits: dict[str, float]


class AuditState(BaseModel):
    """How far an audit is."""

    id: str
    status: Literal["running", "done", "cancelled", "failed"]
    n_done: int
    n_rows: int
    error: str
    created: float
    findings: list[str] | None = Field(None, description="Only when it is done.")


class Problem(BaseModel):
    """What is wrong, in one sentence (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


_PROBLEMS = {
    401: "No token, or a wrong one.",
    413: "The body is too large, or has too many rows.",
    422: "What is wrong, in one sentence.",
    502: "The model does not answer as it should.",
    503: "Busy or too slow; see Retry-After.",
}


def responses_of(model: Any, status: int = 200, more: dict[int, str] | None = None) -> dict[int | str, dict[str, Any]]:
    """Return the responses of a route that answers with this model; `more` are problems of its own, by status."""
    content = {PROBLEM_TYPE: {"schema": Problem.model_json_schema()}}
    described: dict[int | str, dict[str, Any]] = {status: {"model": model, "description": str(model.__doc__)}}
    for code, words in (_PROBLEMS | (more or {})).items():
        described[code] = {"description": words, "content": content}
    return described
