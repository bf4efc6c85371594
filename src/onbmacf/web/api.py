"""The service for programs, under /v1: JSON in, the library's own JSON out, to the byte.

body  ->  bodies.read  ->  asking.explained in the engine  ->  Explanations.to_json, or a stream of its lines
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pandas as pd
from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from onbmacf import __version__
from onbmacf._text.records import FORMAT, VERSION, cell, plain
from onbmacf._views.plans import Ask, explained, predicted
from onbmacf.explanations import Explanations
from onbmacf.rules import describe
from onbmacf.web import bodies
from onbmacf.web.problems import as_problem
from onbmacf.web.service import Service, service_of

LINES = "application/x-ndjson"
PART = 16  # rows of one part of a stream
router = APIRouter(prefix="/v1")


@router.get("/schema", summary="The features, labels and limits", responses=bodies.ANSWERS)
def schema(request: Request) -> Response:
    """Return what a row must have, what the model may say, and how much may be asked."""
    return _json(_schema(service_of(request)))


@router.post("/predict", summary="What the model says of rows", responses=bodies.ANSWERS, openapi_extra=bodies.PREDICT)
async def predict(request: Request) -> Response:
    """Return the model's label and its probability for each row."""
    service = service_of(request)
    asked = bodies.Predict.read(await request.body())
    rows = service.frame(asked.records())
    said = await service.engine.ask(predicted, rows)
    service.metrics.count_rows(0, len(rows))
    names = ("label", "status", "reason", "probability")
    lines = zip(map(plain, said.labels), said.statuses, said.reasons, map(plain, said.probabilities), strict=True)
    return _json({"answers": [dict(zip(names, line, strict=True)) for line in lines]})


@router.post("/explain", summary="Counterfactuals of rows", responses=bodies.ANSWERS, openapi_extra=bodies.EXPLAIN)
async def explain(request: Request) -> Response:
    """Return what `Explanations.to_json` returns; lines, one per row, where the request accepts them."""
    service = service_of(request)
    asked = bodies.Explain.read(await request.body())
    rows, ask = service.frame(asked.records()), asked.ask(service.source, service.settings.limits)
    if LINES in request.headers.get("accept", ""):
        return await _stream(service, rows, ask)
    answers = await service.engine.ask(explained, rows, ask)
    service.metrics.count_rows(len(answers), answers.n_model_rows)
    return Response(answers.to_json(), media_type="application/json")


async def _stream(service: Service, rows: pd.DataFrame, ask: Ask) -> Response:
    """Return a response that explains part by part; faults of the question are told before it begins."""
    parts = [rows.iloc[start : start + PART] for start in range(0, len(rows), PART)] or [rows]
    place = service.engine.place()
    await place.__aenter__()
    try:
        first = await service.engine.run(explained, parts[0], ask)
    except BaseException as error:
        await place.__aexit__(type(error), error, error.__traceback__)
        raise

    async def lines() -> AsyncIterator[str]:
        try:
            yield _line({"format": FORMAT, "version": VERSION, "warnings": list(first.warnings)})
            yield _lines(service, first)
            for part in parts[1:]:
                yield _lines(service, await service.engine.run(explained, part, ask))
        except Exception as error:
            yield _line({"problem": as_problem(error).content()})
        finally:
            await place.__aexit__(None, None, None)

    return StreamingResponse(lines(), media_type=LINES)


def _lines(service: Service, answers: Explanations) -> str:
    service.metrics.count_rows(len(answers), answers.n_model_rows)
    return "".join(map(_line, answers.to_dicts()))


def _line(content: Any) -> str:
    return json.dumps(content, ensure_ascii=True, allow_nan=False) + "\n"


def _json(content: Any) -> Response:
    return Response(_line(content), media_type="application/json")


def _schema(service: Service) -> dict[str, Any]:
    source, limits = service.source, service.settings.limits
    classes = [plain(label) for label in source.classes]
    several = source.target if isinstance(source.target, list) else [source.target]
    return {
        "version": __version__,
        "n_rows": len(source.table),
        "labels": classes,
        "target": None if source.target is None else [plain(label) for label in several],
        "features": [_feature(source, feature) for feature in source.explainer.schema_.features],
        "limits": {"rows": limits.max_rows, "bytes": limits.max_body, "seconds": limits.timeout},
    }


def _feature(source: Any, feature: Any) -> dict[str, Any]:
    rule = source.explainer.schema_.rules.features.get(feature.name)
    low, high = source.ends.get(feature.name, (None, None))
    return {
        "name": str(feature.name),
        "kind": feature.kind,
        "holds": feature.holds,
        "immutable": feature.immutable,
        "levels": None if feature.levels is None else [plain(level) for level in feature.levels],
        "low": cell(low, feature.holds == "date"),
        "high": cell(high, feature.holds == "date"),
        "rule": "" if rule is None else describe(rule),
    }
