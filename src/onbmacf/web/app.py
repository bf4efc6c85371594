"""The app: routes, errors as problems, and what lies around them.

    Source, Settings  ->  create_app  ->  an ASGI app

From the outside in: MetricsMiddleware, Guard (who may ask), BodyLimit, then the routes of pages and service.
"""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from onbmacf import __version__
from onbmacf._views.fields import fields_of
from onbmacf._views.plans import Ask, Source, explained
from onbmacf.web import api, audits, guide, people, person, saved
from onbmacf.web.browse import Browser
from onbmacf.web.cases import Sessions
from onbmacf.web.engine import Engine
from onbmacf.web.jobs import Jobs, kept_folder
from onbmacf.web.metrics import TEXT_TYPE, Metrics, MetricsMiddleware, log_failure
from onbmacf.web.problems import Problem, as_problem, not_found
from onbmacf.web.rendering import page, static_file
from onbmacf.web.security import BodyLimit, Guard, Keys, refusal
from onbmacf.web.service import Service, service_of
from onbmacf.web.settings import Settings


def create_app(source: Source, settings: Settings) -> FastAPI:
    """Return the app for a source."""
    service = _service(source, settings)
    app = FastAPI(
        title="onbmacf", version=__version__, docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json",
        lifespan=_lifespan(service),
    )  # fmt: skip
    app.state.service = service
    for routes in (api, audits, people, person, saved, guide):
        app.include_router(routes.router)
    app.add_api_route("/", _first, include_in_schema=False)
    app.add_api_route("/healthz", _health, summary="Whether the service lives")
    app.add_api_route("/metrics", _metrics, summary="Figures for Prometheus")
    app.add_api_route("/static/{name}", _static, include_in_schema=False)
    for kind in (Exception, HTTPException):
        app.add_exception_handler(kind, _failed)
    app.add_middleware(BodyLimit, max_body=settings.limits.max_body)
    app.add_middleware(Caught)
    app.add_middleware(Guard, keys=service.keys, settings=settings)
    app.add_middleware(MetricsMiddleware, metrics=service.metrics, is_logged=settings.log)
    return app


class Caught:
    """Around the routes: every error becomes a problem; one that nobody expected is logged without its words."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            await _told(error, scope["path"])(scope, receive, send)


def _service(source: Source, settings: Settings) -> Service:
    source.column_of  # noqa: B018 - an error now, not with the first request
    keys = Keys(settings.token, f"onbmacf-{settings.port}", settings.behind_proxy)
    engine = Engine(source.explainer, settings)
    figures = Metrics(lambda: engine.n_waiting)
    jobs = Jobs(source, engine, kept_folder(source, settings.folder))
    return Service(source, settings, keys, engine, figures, Sessions(), Browser(source), fields_of(source), jobs)


def _lifespan(service: Service) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        service.engine.warm_up(explained, service.source.table.head(1), Ask(target=service.source.target))
        service.jobs.go_on()
        yield
        await service.jobs.pause()
        await asyncio.to_thread(service.engine.close)

    return lifespan


async def _failed(request: Request, error: Exception) -> Response:
    return _told(error, request.url.path)


def _told(error: Exception, path: str) -> Response:
    if isinstance(error, HTTPException):
        problem = not_found() if error.status_code == 404 else Problem(error.status_code, str(error.detail))
    else:
        problem = as_problem(error)
    if problem.status == 500:
        log_failure(error)
    return refusal(problem, path)


def _health(request: Request) -> Response:
    if service_of(request).engine.is_stuck:
        return PlainTextResponse("stuck: the model does not come back from its calls\n", 503)
    return PlainTextResponse("ok\n")


def _metrics(request: Request) -> Response:
    return Response(service_of(request).metrics.text(), media_type=TEXT_TYPE)


def _static(name: str) -> Response:
    found = static_file(name)
    if found is None:
        raise not_found("file")
    return Response(found[0], media_type=found[1])


async def _first(request: Request, token: str = "") -> Response:
    """Let a browser in that comes with the token of the link; the page after it has no token in its address."""
    service = service_of(request)
    if token:
        if not service.keys.is_token(token):
            raise Problem(401, "Wrong token", "The token in this link is not that of the running service.")
        response = page("welcome.html")
        service.keys.set_cookie(response)
        return response
    if not request.scope["session"]:
        raise Problem(401, "Not signed in", "Open the whole link that 'onbmacf serve' printed when it was started.")
    return people.first_page(request)
