"""What every page has around it, and what every form must carry."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from onbmacf.web.rendering import page
from onbmacf.web.service import service_of, session_of

MOST_FIELDS = 20_000


def show(request: Request, template: str, active: str = "", status: int = 200, **content: Any) -> Response:
    """Return a page with its navigation; forms on it carry the word of this session."""
    service = service_of(request)
    shell = {
        "active": active,
        "table_name": service.source.name,
        "model_name": service.source.model_name,
        "n_saved": len(session_of(request).saved),
        "word": service.keys.form_word(request.scope["session"]),
    }
    return page(template, status, shell=shell, **content)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that one of our pages has sent; a problem for any other."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
    service_of(request).keys.check_form(request.scope["session"], fields.get("word", ""))
    return fields


def see(address: str) -> Response:
    """Send the browser on to a page with GET, so that reloading it sends nothing again."""
    return RedirectResponse(address, status_code=303)
