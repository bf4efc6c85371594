"""The app: routes, errors as problems, and the middleware around them.

    Source, Settings  ->  create_app  ->  an ASGI app

From the outside in: metrics and log, who may ask, errors, size of bodies, then the routes of pages and JSON API.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from onbmacf import __version__
from onbmacf._explain.request import Question
from onbmacf._views.fields import fields_of
from onbmacf._views.plans import Source, explained
from onbmacf.web import api, audit_page, case_page, saved_page, table_page
from onbmacf.web.cases import Sessions
from onbmacf.web.described import TOKEN
from onbmacf.web.engine import Engine
from onbmacf.web.jobs import AuditJobs, jobs_folder
from onbmacf.web.metrics import TEXT_TYPE, Metrics, MetricsMiddleware, log_failure
from onbmacf.web.responses import HTTPProblem, as_problem, not_found, page, problem_response, static_file
from onbmacf.web.security import BodyLimitMiddleware, Keys, SecurityMiddleware
from onbmacf.web.service import Service, service_of
from onbmacf.web.settings import Settings


def create_app(source: Source, settings: Settings) -> FastAPI:
    """Return the app for a source."""
    service = _make_service(source, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.engine.warm_up(explained, source.table.head(1), Question(target=source.target))
        service.jobs.resume()
        yield
        await service.jobs.pause()
        await asyncio.to_thread(service.engine.close)

    app = FastAPI(
        title="onbmacf", version=__version__, docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json",
        lifespan=lifespan,
    )  # fmt: skip
    app.state.service = service
    for module in (api, audit_page, table_page, case_page, saved_page):
        app.include_router(module.router)
    app.add_api_route("/", _first, include_in_schema=False)
    app.add_api_route("/healthz", _health, summary="Whether the service lives", response_class=PlainTextResponse)
    figures: dict[str, Any] = {"response_class": PlainTextResponse, "dependencies": [TOKEN]}
    app.add_api_route("/metrics", _metrics, summary="Figures for Prometheus", **figures)
    app.add_api_route("/static/{name}", _static, include_in_schema=False)
    for kind in (Exception, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _on_error)
    app.add_middleware(BodyLimitMiddleware, limits=settings.limits)
    app.add_middleware(ErrorMiddleware)
    app.add_middleware(SecurityMiddleware, keys=service.keys, settings=settings)
    app.add_middleware(MetricsMiddleware, metrics=service.metrics, is_logged=settings.log)
    return app


def _make_service(source: Source, settings: Settings) -> Service:
    source.column_of  # noqa: B018 - an error now, not with the first request
    engine = Engine(source.explainer, settings)
    return Service(
        source=source,
        settings=settings,
        keys=Keys(settings.token, f"onbmacf-{settings.port}", settings.behind_proxy),
        engine=engine,
        metrics=Metrics(lambda: engine.n_waiting),
        sessions=Sessions(),
        fields=fields_of(source),
        jobs=AuditJobs(source, engine, jobs_folder(source, settings.folder)),
    )


# --- errors -----------------------------------------------------------------------------------------------------------


class ErrorMiddleware:
    """Makes every error a problem; one that nobody expected is logged without its message."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            await _error_response(error, scope["path"])(scope, receive, send)


async def _on_error(request: Request, error: Exception) -> Response:
    return _error_response(error, request.url.path)


def _error_response(error: Exception, path: str) -> Response:
    problem = _http_problem(error) if isinstance(error, HTTPException) else as_problem(error)
    if problem.status == 500:
        log_failure(error)
    return problem_response(problem, path)


def _http_problem(error: HTTPException) -> HTTPProblem:
    """Return an error of the framework as a problem that says what is allowed."""
    if error.status_code == 404:
        return not_found()
    headers, detail = dict(error.headers or {}), str(error.detail)
    if error.status_code == 405:
        detail = f"This address takes {headers.get('Allow', 'other methods')} only."
    return HTTPProblem(error.status_code, HTTPStatus(error.status_code).phrase.capitalize(), detail, headers)


# --- routes -----------------------------------------------------------------------------------------------------------


async def _first(request: Request, token: str = "") -> Response:
    """Let a browser in that comes with the token of the link; the page after it has no token in its address."""
    keys = service_of(request).keys
    if token:
        if not keys.is_token(token):
            raise HTTPProblem(401, "Wrong token", "The token in this link is not that of the running service.")
        response = page("welcome.html")
        keys.start_session(response)
        return response
    if not request.scope["session_id"]:
        raise HTTPProblem(401, "Not signed in", "Open the whole link that 'onbmacf serve' printed when it was started.")
    return table_page.first_page(request)


async def _health(request: Request) -> Response:
    trouble = await service_of(request).engine.health()
    return PlainTextResponse(f"{trouble}\n", 503, {"Retry-After": "1"}) if trouble else PlainTextResponse("ok\n")


def _metrics(request: Request) -> Response:
    return Response(service_of(request).metrics.text(), media_type=TEXT_TYPE)


def _static(name: str) -> Response:
    found = static_file(name)
    if found is None:
        raise not_found("file")
    return Response(found[0], media_type=found[1])
