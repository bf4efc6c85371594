"""The page for the table: an audit in the background with progress and cancel, then findings, groups, features, cases.

form or JSON  ->  Plan  ->  Jobs  ->  Report.content and the answers themselves  ->  page, report to download
"""

from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from onbmacf._text.wording import arrows, shown
from onbmacf._views.plans import label_of
from onbmacf.errors import OnbmacfError, ParameterError
from onbmacf.web import bodies
from onbmacf.web.jobs import DONE, Job, Plan, chosen_places
from onbmacf.web.person import HEADERS, download
from onbmacf.web.problems import Problem, not_found
from onbmacf.web.service import Service, service_of
from onbmacf.web.shell import form_of, see, show

PER_PAGE = 20
MOST = 100_000
router = APIRouter()


class Audit(bodies.Strict):
    """What to audit."""

    target: Any = Field(None, description="Label or list of labels to reach; by default the service's own.")
    by: list[str] | None = Field(None, description="Columns whose groups are compared; by default the immutable ones.")
    most: int = Field(1000, ge=1, le=MOST, description="Largest number of rows, drawn at random.")
    seed: int = Field(0, ge=0, description="Seed of the draw and of the intervals.")


@router.post("/v1/audit", summary="Start an audit", status_code=202, openapi_extra=bodies.described(Audit))
async def start(request: Request) -> Response:
    """Start an audit in the background, and return how far it is."""
    service = service_of(request)
    asked = Audit.read(await request.body() or b"{}")
    job = service.jobs.start(_plan(service, asked))
    return JSONResponse(job.state(), 202, {"Location": f"/v1/audit/{job.id}"})


@router.get("/v1/audit/{name}", summary="How far an audit is")
async def state(request: Request, name: str) -> Response:
    """Return how far an audit is, and its findings when it is done."""
    job = service_of(request).jobs.of(name)
    findings = (await service_of(request).jobs.report(job)).content["findings"] if job.status == DONE else None
    return JSONResponse(job.state() | {"findings": None if findings is None else [str(one) for one in findings]})


@router.delete("/v1/audit/{name}", summary="Cancel an audit")
async def stop(request: Request, name: str) -> Response:
    """Cancel an audit."""
    jobs = service_of(request).jobs
    jobs.cancel(jobs.of(name))
    return JSONResponse(jobs.of(name).state())


@router.get("/v1/audit/{name}/report", summary="The report as one HTML file")
async def report(request: Request, name: str) -> Response:
    """Return the report of an audit that is done."""
    return await _report(request, name)


@router.get("/audit/{name}/report.html", include_in_schema=False)
async def report_file(request: Request, name: str) -> Response:
    """Return the report as a file to keep."""
    return await _report(request, name)


async def _report(request: Request, name: str) -> Response:
    jobs = service_of(request).jobs
    if jobs.of(name).status != DONE:
        raise Problem(409, "Not done", "This audit is not done, so there is no report yet.")
    return download((await jobs.report(jobs.of(name))).html(), "text/html; charset=utf-8", "report.html")


@router.get("/audit", include_in_schema=False)
def audit_page(request: Request) -> Response:
    """Show the audits, and a form to start one."""
    return _first(request)


def _first(request: Request, error: str = "") -> Response:
    service = service_of(request)
    jobs = sorted(service.jobs.jobs.values(), key=lambda job: -job.created)
    target = service.source.target
    return show(
        request, "audits.html", "audit", 422 if error else 200, jobs=jobs, error=error, most=MOST,
        fields=service.fields, labels=[shown(label) for label in service.source.classes],
        by=[field.id for field in service.fields if field.feature.immutable and not field.feature.held],
        target="" if target is None or isinstance(target, list) else shown(target),
    )  # fmt: skip


@router.post("/audit", include_in_schema=False)
async def start_from_page(request: Request) -> Response:
    """Start an audit that a form describes."""
    service, form = service_of(request), await form_of(request)
    most = form.get("most", "200")
    try:
        if not most.isdecimal() or not 1 <= int(most) <= MOST:
            raise ParameterError(f"there may be 1 to {MOST:,} rows, got {most!r}.")
        by = [str(field.name) for field in service.fields if form.get(f"{field.id}-by")]
        job = service.jobs.start(
            _plan(service, Audit(target=form.get("target") or None, by=by, most=int(most), seed=0))
        )
    except (OnbmacfError, Problem) as error:
        return _first(request, getattr(error, "detail", str(error)))
    return see(f"/audit/{job.id}")


@router.post("/audit/{name}/cancel", include_in_schema=False)
async def cancel(request: Request, name: str) -> Response:
    """Cancel an audit."""
    await form_of(request)
    jobs = service_of(request).jobs
    jobs.cancel(jobs.of(name))
    return see(f"/audit/{name}")


@router.get("/audit/{name}", include_in_schema=False)
async def job_page(request: Request, name: str, page: int = 1, feature: str = "", status: str = "") -> Response:
    """Show how far an audit is; when it is done, what it found."""
    service = service_of(request)
    job = service.jobs.of(name)
    if job.status != DONE:
        return show(request, "audit.html", "audit", job=job, content=None)
    content = (await service.jobs.report(job)).content
    found = _cases(service, job, page, feature, status)
    statuses = sorted({str(one) for one in job.answers.statuses}) if job.answers is not None else []
    looks: dict[str, Any] = {"feature": feature, "wanted": status, "statuses": statuses, "fields": service.fields}
    return show(request, "audit.html", "audit", job=job, content=content, found=found, **looks)


@router.get("/audit/{name}/picture/{key}.svg", include_in_schema=False)
async def picture(request: Request, name: str, key: str) -> Response:
    """Return a picture of the report as a file of its own."""
    job = service_of(request).jobs.of(name)
    content = (await service_of(request).jobs.report(job)).content if job.status == DONE else {"sections": []}
    drawn = {one["id"]: one for section in content["sections"] for one in section["pictures"]}
    if key not in drawn:
        raise not_found("picture")
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    text = f'<svg {spaces} viewBox="{drawn[key]["view_box"]}">{drawn[key]["body"]}</svg>'
    return Response(text, media_type="image/svg+xml", headers=HEADERS)


def _plan(service: Service, asked: Audit) -> Plan:
    source, classes = service.source, service.source.classes
    target = source.target if asked.target is None else asked.target
    if isinstance(target, list):
        target = tuple(label_of(label, classes) for label in target)
    elif target is not None:
        target = label_of(target, classes)
    usual = [str(one.name) for one in source.explainer.schema_.features if one.immutable and not one.held]
    by = usual if asked.by is None else asked.by
    unknown = [name for name in by if name not in source.column_of]
    if unknown:
        raise ParameterError(f"by names {unknown[0]!r}, which is not a column.")
    return Plan(chosen_places(source, target, asked.most, asked.seed), target, tuple(by), asked.seed)


def _cases(service: Service, job: Job, page: int, feature: str, status: str) -> dict[str, Any]:
    """Return one page of the rows of an audit; those that change a feature, or have a status, where asked for."""
    assert job.answers is not None  # the report was made of them
    batch, fits = job.answers.batch, np.ones(job.n_rows, dtype=bool)
    columns = [field.id for field in service.fields]
    if feature in columns:
        fits &= np.isin(np.arange(job.n_rows), batch.factual[batch.changed[:, columns.index(feature)]])
    if status:
        fits &= job.answers.statuses == status
    places = np.flatnonzero(fits)
    n_pages = max(1, -(-len(places) // PER_PAGE))
    number = min(max(page, 1), n_pages)
    chosen = places[(number - 1) * PER_PAGE : number * PER_PAGE]
    lines = [_line(job, int(place)) for place in chosen]
    return {"lines": lines, "number": number, "n_pages": n_pages, "n_found": len(places)}


def _line(job: Job, place: int) -> dict[str, str]:
    assert job.answers is not None
    answer = job.answers[place]
    first = answer.counterfactuals[0] if answer.counterfactuals else None
    told = answer.reason if first is None else arrows(first, first.released)
    name, case = shown(answer.factual.name), f"r{job.plan.places[place]}"
    return {"case": case, "name": name, "label": shown(answer.label), "status": str(answer.status), "told": told}
