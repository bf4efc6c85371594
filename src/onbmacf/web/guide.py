"""The page for programs: how to ask the service, with an example of this very table."""

import json
from shlex import quote
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from onbmacf._text.records import cell
from onbmacf.web.service import service_of
from onbmacf.web.shell import show

router = APIRouter(include_in_schema=False)


@router.get("/service")
def guide(request: Request) -> Response:
    """Show the addresses, and a request for the first row of the table."""
    service = service_of(request)
    table = service.source.table
    row = {str(name): cell(table[name].iloc[0], True) for name in table.columns} if len(table) else {}
    body = quote(json.dumps({"rows": row, "n": 2}, ensure_ascii=False))  # for the shell
    base = f"http://{request.headers.get('host', '')}"
    routes = _routes(request.app.openapi())
    return show(request, "service.html", "service", body=body, base=base, routes=routes)


def _routes(described: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return method, path and summary of each address that the description names."""
    found = [(path, method.upper(), own) for path, ways in described["paths"].items() for method, own in ways.items()]
    return [(method, path, own.get("summary", "")) for path, method, own in found]
