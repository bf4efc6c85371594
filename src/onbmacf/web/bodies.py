"""Bodies of requests: strict JSON, read into typed values; what is wrong is named in one sentence.

bytes  ->  Explain, Predict  ->  records, Ask
"""

import json
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onbmacf._views.plans import Ask, Source, label_of
from onbmacf.errors import ParameterError
from onbmacf.rules import Rules
from onbmacf.web.problems import TYPE, Problem
from onbmacf.web.settings import Limits

Record = dict[str, Any]
EXAMPLE_NOTE = "One row as an object, or a list of rows; keys are the columns' names."


class Strict(BaseModel):
    """A body that holds what is described and nothing else."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Return a body; a problem that names the first fault where it is not one."""
        try:
            return cls.model_validate(strict_json(body))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the body"
            raise Problem(422, "Unexpected body", f"{place}: {first['msg']}.") from None


class Body(Strict):
    """A body with rows."""

    rows: Record | list[Record] = Field(description=EXAMPLE_NOTE)

    def records(self) -> list[Record]:
        """Return the rows as a list."""
        return [self.rows] if isinstance(self.rows, dict) else self.rows


class Predict(Body):
    """Rows to ask the model about."""


class Explain(Body):
    """Rows to explain, and how."""

    target: Any = Field(
        None, description="Label or list of labels to reach; by default the service's own, or any other."
    )
    n: int | None = Field(None, ge=1, description="Counterfactuals per row.")
    plausibility: float | None = Field(None, ge=0, le=1, description="From 0 (nearest) to 1 (well inside).")
    immutable: list[str] | None = Field(None, description="Features that must keep their value; replaces the schema's.")
    rules: Record | None = Field(None, description="Rules as in a TOML file: features, at_most, max_changes.")
    min_probability: float = Field(0.0, ge=0, le=1, description="The least probability of the label.")
    ranges: bool = Field(False, description="Also say how far the changed values may move.")
    front: bool = Field(False, description="Every counterfactual that no other beats, instead of the n best.")

    def ask(self, source: Source, limits: Limits) -> Ask:
        """Return the question with the model's own labels and the table's own names."""
        if self.n is not None and self.n > limits.max_plans:
            raise ParameterError(f"n must be at most {limits.max_plans}, got {self.n}.")
        return Ask(
            target=self._target(source),
            n=self.n,
            plausibility=self.plausibility,
            immutable=None if self.immutable is None else tuple(source.column_of.get(n, n) for n in self.immutable),
            rules=None if self.rules is None else Rules.from_dict(self.rules),
            min_probability=self.min_probability,
            ranges=self.ranges,
            front=self.front,
        )

    def _target(self, source: Source) -> Any:
        if self.target is None:
            return source.target
        if isinstance(self.target, list):
            return [label_of(label, source.classes) for label in self.target]
        return label_of(self.target, source.classes)


def strict_json(body: bytes) -> Any:
    """Return what JSON says; a problem for what is not JSON, too deep, or a number that JSON does not have."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except RecursionError:
        raise Problem(400, "Not JSON", "The body is nested too deeply.") from None
    except (UnicodeDecodeError, ValueError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise Problem(400, "Not JSON", f"The body cannot be read as JSON in UTF-8{where}.") from None


def _refuse(word: str) -> Any:
    raise ValueError(word)


def described(kind: type[Strict]) -> dict[str, Any]:
    """Return how OpenAPI describes a body."""
    content = {"application/json": {"schema": kind.model_json_schema(ref_template="#/components/schemas/{model}")}}
    return {"requestBody": {"required": True, "content": content}}


_PROBLEM = {"type": "object", "properties": {name: {"type": "string"} for name in ("type", "title", "detail")}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answers."},
    422: {"description": "What is wrong, in one sentence.", "content": {TYPE: {"schema": _PROBLEM}}},
    503: {"description": "Busy or too slow; see Retry-After.", "content": {TYPE: {"schema": _PROBLEM}}},
}
PREDICT, EXPLAIN = described(Predict), described(Explain)
