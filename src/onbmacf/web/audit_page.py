"""Audits of the table, for programs and people: start one in the background, follow it, cancel it, see what it found.

form or JSON  ->  AuditScope  ->  AuditJobs  ->  the report's content and the answers  ->  page, report to download
"""

from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import HTMLResponse, JSONResponse, Response

from onbmacf._base.checks import shortened, whole_number
from onbmacf._text.wording import arrows, shown
from onbmacf.errors import OnbmacfError, ParameterError
from onbmacf.web.api import StrictBody, read_target
from onbmacf.web.described import TOKEN, AuditState, responses_of
from onbmacf.web.jobs import DONE, AuditJob, AuditScope, draw_places
from onbmacf.web.responses import HTTPProblem, as_problem, download, not_found, picture, redirect
from onbmacf.web.service import Service, read_form, service_of, show

PER_PAGE = 20
MOST_ROWS = 100_000
ABSENT = {404: "There is no such audit."}
router = APIRouter(dependencies=[TOKEN])


# --- for programs -----------------------------------------------------------------------------------------------------


class Audit(StrictBody):
    """What to audit."""

    target: Any = Field(None, description="Label or list of labels to reach; by default the service's own.")
    by: list[str] | None = Field(None, description="Columns whose groups are compared; by default the immutable ones.")
    most: int = Field(1000, ge=1, le=MOST_ROWS, description="Largest number of rows, drawn at random.")
    seed: int = Field(0, ge=0, description="Seed of the draw and of the intervals.")


@router.post(
    "/v1/audit",
    summary="Start an audit",
    status_code=202,
    openapi_extra=Audit.openapi(),
    responses=responses_of(AuditState, 202, {429: "An audit is running."}),
)
async def start(request: Request) -> Response:
    """Start an audit in the background, and return how far it is."""
    service = service_of(request)
    job = service.jobs.start(_scope(service, Audit.read(await request.body() or b"{}")))
    return JSONResponse(job.state(), 202, {"Location": f"/v1/audit/{job.id}"})


@router.get("/v1/audit/{name}", summary="How far an audit is", responses=responses_of(AuditState, more=ABSENT))
async def state(request: Request, name: str) -> Response:
    """Return how far an audit is, and its findings when it is done."""
    jobs = service_of(request).jobs
    job, findings = jobs.of(name), None
    if job.status == DONE:
        findings = [str(finding) for finding in (await jobs.report(job)).content["findings"]]
    return JSONResponse(job.state() | {"findings": findings})


@router.delete("/v1/audit/{name}", summary="Cancel an audit", responses=responses_of(AuditState, more=ABSENT))
async def stop(request: Request, name: str) -> Response:
    """Cancel an audit."""
    jobs = service_of(request).jobs
    jobs.cancel(jobs.of(name))
    return JSONResponse(jobs.of(name).state())


@router.get(
    "/v1/audit/{name}/report",
    summary="The report as one HTML file",
    response_class=HTMLResponse,
    responses={404: {"description": ABSENT[404]}, 409: {"description": "It is not done."}},
)
async def report(request: Request, name: str) -> Response:
    """Return the report of an audit that is done."""
    jobs = service_of(request).jobs
    if jobs.of(name).status != DONE:
        raise HTTPProblem(409, "Not done", "This audit is not done, so there is no report yet.")
    return download((await jobs.report(jobs.of(name))).html(), "text/html; charset=utf-8", "report.html")


def _scope(service: Service, audit: Audit) -> AuditScope:
    source = service.source
    target = read_target(source.target if audit.target is None else audit.target, source)
    target = tuple(target) if isinstance(target, list) else target
    immutable = [str(one.name) for one in source.explainer.schema_.features if one.immutable and not one.held]
    by = immutable if audit.by is None else audit.by
    unknown = [name for name in by if name not in source.column_of]
    if unknown:
        raise ParameterError(f"by names {shortened(unknown[0])}, which is not a column.")
    return AuditScope(draw_places(source, target, audit.most, audit.seed), target, tuple(by), audit.seed)


# --- for people -------------------------------------------------------------------------------------------------------


@router.get("/audit", include_in_schema=False)
async def audit_page(request: Request) -> Response:
    """Show the audits, and a form to start one."""
    return _audit_page(request)


def _audit_page(request: Request, error: str = "") -> Response:
    service = service_of(request)
    service.jobs.refresh()
    jobs = sorted(service.jobs.jobs.values(), key=lambda job: -job.created)
    target = service.source.target
    return show(
        request, "audits.html", "audit", 422 if error else 200, jobs=jobs, error=error, most=MOST_ROWS,
        fields=service.fields, labels=[shown(label) for label in service.source.classes],
        by=[field.id for field in service.fields if field.feature.immutable and not field.feature.held],
        target="" if target is None or isinstance(target, list) else shown(target),
    )  # fmt: skip


@router.post("/audit", include_in_schema=False)
async def start_from_page(request: Request) -> Response:
    """Start an audit that a form describes."""
    service, form = service_of(request), await read_form(request)
    most = form.get("most", "200")
    try:
        if not 1 <= whole_number(most) <= MOST_ROWS:
            raise ParameterError(f"there may be 1 to {MOST_ROWS:,} rows, got {shortened(most)}.")
        by = [str(field.name) for field in service.fields if form.get(f"{field.id}-by")]
        audit = Audit(target=form.get("target") or None, by=by, most=int(most), seed=0)
        job = service.jobs.start(_scope(service, audit))
    except (OnbmacfError, HTTPProblem) as error:
        return _audit_page(request, as_problem(error).detail)
    return redirect(f"/audit/{job.id}")


@router.post("/audit/{name}/cancel", include_in_schema=False)
async def cancel(request: Request, name: str) -> Response:
    """Cancel an audit."""
    await read_form(request)
    jobs = service_of(request).jobs
    jobs.cancel(jobs.of(name))
    return redirect(f"/audit/{name}")


@router.get("/audit/{name}", include_in_schema=False)
async def job_page(request: Request, name: str, page: int = 1, feature: str = "", status: str = "") -> Response:
    """Show how far an audit is; when it is done, what it found."""
    service = service_of(request)
    job = service.jobs.of(name)
    if job.status != DONE:
        return show(request, "audit.html", "audit", job=job, content=None)
    content = (await service.jobs.report(job)).content
    assert job.answers is not None  # the report was made of them
    return show(
        request, "audit.html", "audit", job=job, content=content, fields=service.fields, feature=feature, wanted=status,
        found=_rows(service, job, page, feature, status), statuses=sorted({str(one) for one in job.answers.statuses}),
    )  # fmt: skip


def _rows(service: Service, job: AuditJob, page: int, feature: str, status: str) -> dict[str, Any]:
    """Return one page of the rows of an audit; those that change a feature, or have a status, where asked for."""
    assert job.answers is not None
    batch, matches = job.answers.batch, np.ones(job.n_rows, dtype=bool)
    columns = [field.id for field in service.fields]
    if feature in columns:
        matches &= np.isin(np.arange(job.n_rows), batch.factual[batch.changed[:, columns.index(feature)]])
    if status:
        matches &= job.answers.statuses == status
    places = np.flatnonzero(matches)
    n_pages = max(1, -(-len(places) // PER_PAGE))
    number = min(max(page, 1), n_pages)
    lines = []
    for place in places[(number - 1) * PER_PAGE : number * PER_PAGE]:
        answer = job.answers[int(place)].in_words()
        first = answer.counterfactuals[0] if answer.counterfactuals else None
        lines.append(
            {
                "case": f"r{job.scope.places[place]}",
                "name": shown(answer.factual.name),
                "label": shown(answer.label),
                "status": str(answer.status),
                "plan": answer.reason if first is None else arrows(first, first.released),
            }
        )
    return {"lines": lines, "number": number, "n_pages": n_pages, "n_found": len(places)}


@router.get("/audit/{name}/report.html", include_in_schema=False)
async def report_file(request: Request, name: str) -> Response:
    """Return the report as a file to keep."""
    return await report(request, name)


@router.get("/audit/{name}/picture/{key}.svg", include_in_schema=False)
async def report_picture(request: Request, name: str, key: str) -> Response:
    """Return a picture of the report as a file of its own."""
    jobs = service_of(request).jobs
    job = jobs.of(name)
    sections = (await jobs.report(job)).content["sections"] if job.status == DONE else []
    pictures = {one["id"]: one for section in sections for one in section["pictures"]}
    if key not in pictures:
        raise not_found("picture")
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return picture(f'<svg {spaces} viewBox="{pictures[key]["view_box"]}">{pictures[key]["body"]}</svg>')
