"""The JSON API under /v1: strict JSON in, the library's own JSON out, to the byte; and the page that explains it.

bytes  ->  Explain, Predict  ->  rows, Question  ->  the engine  ->  Explanations.to_json, or a stream of its lines
"""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from shlex import quote
from typing import Any, ClassVar, Self

import pandas as pd
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.responses import Response, StreamingResponse

from onbmacf import __version__
from onbmacf._base.asked import ASKED, Asked
from onbmacf._base.checks import did_you_mean, listed, shortened
from onbmacf._base.limits import deadline_after, seconds_left
from onbmacf._explain.request import Question, target_labels
from onbmacf._text.records import FORMAT, VERSION, cell, plain
from onbmacf._views.plans import Source, explained, explained_with_rules, label_of, predicted
from onbmacf.errors import ParameterError
from onbmacf.explanations import Explanations
from onbmacf.rules import describe
from onbmacf.schema import Feature
from onbmacf.web.described import TOKEN, Answers, Predictions, SchemaSaid, responses_of
from onbmacf.web.responses import HTTPProblem, as_problem, place_of
from onbmacf.web.service import Service, service_of, show
from onbmacf.web.settings import Limits

LINES_TYPE = "application/x-ndjson"
LEAST_SECONDS = 1e-6  # for rows that are not reached in time: they must say so
PER_PART = 16  # rows of a stream that are explained in one call
Record = dict[str, Any]
router = APIRouter(dependencies=[TOKEN])


# --- bodies -----------------------------------------------------------------------------------------------------------


class StrictBody(BaseModel):
    """A body that holds what is described and nothing else."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Return a body; a problem that names the first fault where it is not one."""
        try:
            return cls.model_validate(strict_json(body))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            said = f"{place_of(first['loc'])}: {first['msg']}."
            if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
                known = list(cls.model_fields)
                said = f"Unknown key {place_of(first['loc'])!r}.{did_you_mean(first['loc'][0], known)}"
                said += f" Allowed: {listed(known, 99)}."
            raise HTTPProblem(422, "Unexpected body", said) from None

    @classmethod
    def openapi(cls) -> dict[str, Any]:
        """Return how OpenAPI describes the body of a request."""
        content = {"application/json": {"schema": cls.model_json_schema(ref_template="#/components/schemas/{model}")}}
        return {"requestBody": {"required": True, "content": content}}


class RowsBody(StrictBody):
    """A body with rows."""

    rows: Record | list[Record] = Field(
        description="One row as an object, or a list of rows; keys are the columns' names."
    )

    def records(self) -> list[Record]:
        """Return the rows as a list."""
        return [self.rows] if isinstance(self.rows, dict) else self.rows


class Predict(RowsBody):
    """Rows to ask the model about."""


def _as_json(asked: Asked) -> Any:
    """Return a field of a question as pydantic takes it; null is as if it were not there."""
    least, most = asked.within
    return asked.kind | None, Field(None, ge=least, le=most, description=asked.says)


Explain: Any = create_model(
    "Explain",
    __base__=RowsBody,
    __doc__="Rows to explain, and what is asked about them.",
    **{name: _as_json(asked) for name, asked in ASKED.items()},
)


def question_of(body: Any, source: Source, limits: Limits) -> Question:
    """Return what a body asks, with the model's own labels and the table's own names."""
    asked = {name: getattr(body, name) for name in ASKED if getattr(body, name) is not None}
    if asked.get("n", 1) > limits.max_plans:
        raise ParameterError(f"n must be at most {limits.max_plans}, got {asked['n']}.")
    for name in {"immutable", "vary"} & set(asked):
        asked[name] = tuple(source.column_of.get(one, one) for one in asked[name])
    return Question(**{**asked, "target": read_target(body.target, source)})


def read_target(target: Any, source: Source) -> Any:
    """Return the model's own labels for a target in JSON; the service's target where there is none."""
    if target is None:
        return source.target
    if isinstance(target, list):
        return target_labels([label_of(label, source.classes) for label in target], source.classes)
    return label_of(target, source.classes)


def strict_json(body: bytes) -> Any:
    """Return what JSON says; a problem for what is not JSON, too deep, a number that JSON lacks, or a key twice."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    def once_each(pairs: list[tuple[str, Any]]) -> Record:
        found = dict(pairs)
        if len(found) < len(pairs):  # readers differ in which one they take
            key = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
            raise HTTPProblem(422, "Duplicate key", f"An object of the body has the key {shortened(key)} twice.")
        return found

    try:
        return json.loads(body.decode("utf-8"), parse_constant=refuse, object_pairs_hook=once_each)
    except RecursionError:
        raise HTTPProblem(400, "Not JSON", "The body is nested too deeply.") from None
    except (UnicodeDecodeError, ValueError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise HTTPProblem(400, "Not JSON", f"The body cannot be read as JSON in UTF-8{where}.") from None


# --- requests ---------------------------------------------------------------------------------------------------------


@router.get("/v1/schema", summary="The features, labels and limits", responses=responses_of(SchemaSaid))
def schema(request: Request) -> Response:
    """Return what a row must have, what the model may say, and how much may be asked."""
    source, limits = service_of(request).source, service_of(request).settings.limits
    targets = source.target if isinstance(source.target, list) else [source.target]
    content = {
        "version": __version__,
        "n_rows": len(source.table),
        "labels": [plain(label) for label in source.classes],
        "target": None if source.target is None else [plain(label) for label in targets],
        "features": [_describe(source, feature) for feature in source.explainer.schema_.features],
        "limits": {"rows": limits.max_rows, "bytes": limits.max_body, "seconds": limits.timeout},
    }
    return Response(_json_line(content), media_type="application/json")


def _describe(source: Source, feature: Feature) -> dict[str, Any]:
    rule = source.explainer.schema_.rules.features.get(feature.name)
    low, high = source.ends.get(feature.name, (None, None))
    levels = None if feature.held else feature.levels  # names and free text are told to nobody, and never change
    return {
        "name": str(feature.name),
        "kind": feature.kind,
        "holds": feature.holds,
        "immutable": feature.immutable,
        "levels": None if levels is None else [plain(level) for level in levels],
        "low": cell(low, feature.holds == "date"),
        "high": cell(high, feature.holds == "date"),
        "rule": "" if rule is None else describe(rule),
    }


@router.post(
    "/v1/predict",
    summary="What the model says of rows",
    responses=responses_of(Predictions),
    openapi_extra=Predict.openapi(),
)
async def predict(request: Request) -> Response:
    """Return the model's label and its probability for each row."""
    service = service_of(request)
    rows = service.frame(Predict.read(await request.body()).records())
    found = await service.engine.call(predicted, rows)
    service.metrics.count_rows(0, len(rows))
    names = ("label", "status", "reason", "probability")
    lines = zip(map(plain, found.labels), found.statuses, found.reasons, map(plain, found.probabilities), strict=True)
    content = {"answers": [dict(zip(names, line, strict=True)) for line in lines]}
    return Response(_json_line(content), media_type="application/json")


@router.post(
    "/v1/explain", summary="Counterfactuals of rows", responses=responses_of(Answers), openapi_extra=Explain.openapi()
)
async def explain(request: Request) -> Response:
    """Return what `Explanations.to_json` returns; lines, one per row, where the request accepts them."""
    service = service_of(request)
    body = Explain.read(await request.body())
    rows, ask = service.frame(body.records()), question_of(body, service.source, service.settings.limits)
    if LINES_TYPE in request.headers.get("accept", ""):
        return await _stream(service, rows, ask)
    answers = await service.engine.call(explained, rows, ask)
    service.metrics.count_rows(len(answers), answers.n_model_rows)
    return Response(answers.to_json(), media_type="application/json")


@router.post(
    "/v1/rules",
    summary="Counterfactuals of rows, and which conditions of the model they cross",
    responses=responses_of(Answers),
    openapi_extra=Explain.openapi(),
)
async def rules(request: Request) -> Response:
    """Return what `Explanations.to_json` returns with `rules`: of trees and rules that can be read."""
    service = service_of(request)
    body = Explain.read(await request.body())
    rows, ask = service.frame(body.records()), question_of(body, service.source, service.settings.limits)
    content, n_rows, n_asked = await service.engine.call(explained_with_rules, rows, ask)
    service.metrics.count_rows(n_rows, n_asked)
    return Response(content, media_type="application/json")


async def _stream(service: Service, rows: pd.DataFrame, ask: Question) -> Response:
    """Return a response that explains part by part; faults of the question are told before it begins."""
    deadline = deadline_after(ask.max_seconds)  # of all parts together

    def in_time() -> Question:
        if ask.max_seconds is None:
            return ask
        return replace(ask, max_seconds=max(LEAST_SECONDS, seconds_left(deadline, ask.max_seconds)))

    parts = [rows.iloc[start : start + PER_PART] for start in range(0, len(rows), PER_PART)] or [rows]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(service.engine.slot())
        first = await service.engine.run(explained, parts[0], ask)
        slot = stack.pop_all()  # the stream holds it until it ends

    def as_lines(answers: Explanations) -> str:
        service.metrics.count_rows(len(answers), answers.n_model_rows)
        return "".join(map(_json_line, answers.to_dicts()))

    async def lines() -> AsyncIterator[str]:
        try:
            yield _json_line({"format": FORMAT, "version": VERSION, "warnings": list(first.warnings)})
            yield as_lines(first)
            for part in parts[1:]:
                yield as_lines(await service.engine.run(explained, part, in_time()))
        except Exception as error:
            yield _json_line({"problem": as_problem(error).content()})
        finally:
            await slot.aclose()

    return StreamingResponse(lines(), media_type=LINES_TYPE)


def _json_line(content: Any) -> str:
    return json.dumps(content, ensure_ascii=True, allow_nan=False) + "\n"


# --- the page for programmers -----------------------------------------------------------------------------------------


@router.get("/service", include_in_schema=False)
def guide(request: Request) -> Response:
    """Show the addresses, and a request for the first row of the table."""
    table = service_of(request).source.table
    row = {str(name): cell(table[name].iloc[0], True) for name in table.columns} if len(table) else {}
    body = quote(json.dumps({"rows": row, "n": 2}, ensure_ascii=False))  # for the command line
    base = f"http://{request.headers.get('host', '')}"
    routes = [
        (method.upper(), path, operation.get("summary", ""))
        for path, operations in request.app.openapi()["paths"].items()
        for method, operation in operations.items()
    ]
    return show(request, "service.html", "service", body=body, base=base, routes=routes)
