"""Everything that a request may need, made once and found through the request; how routes read forms and show pages.

request  ->  service_of, session_of, read_form  ->  show
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from starlette.requests import Request
from starlette.responses import Response

from onbmacf._views.fields import Field
from onbmacf._views.plans import Source, frame_of
from onbmacf.web.cases import Preferences, Session, Sessions
from onbmacf.web.engine import Engine
from onbmacf.web.jobs import AuditJobs
from onbmacf.web.metrics import Metrics
from onbmacf.web.responses import HTTPProblem, page
from onbmacf.web.security import Keys
from onbmacf.web.settings import Settings

MOST_FIELDS = 20_000  # of a form


@dataclass(frozen=True, eq=False)
class Service:
    """The parts of a running service."""

    source: Source
    settings: Settings
    keys: Keys
    engine: Engine
    metrics: Metrics
    sessions: Sessions
    fields: list[Field]
    jobs: AuditJobs

    @property
    def initial_preferences(self) -> Preferences:
        """The preferences before a person says anything: what the schema and the command say."""
        return Preferences(locked=frozenset(self.source.explainer.schema_.immutable), target=self.source.target)

    @cached_property
    def row_texts(self) -> "pd.Series[Any]":
        """Each row of the table as one text to search in: its name and its values on a line each, in lower case."""
        table, words = self.source.table, self.source.explainer.schema_.labels
        texts = pd.Series(table.index.astype(str), dtype=object)
        for name in table.columns:
            texts = texts + "\n" + pd.Series([words.value(name, value) for value in table[name].array], dtype=object)
        return texts.str.lower()

    def frame(self, records: Sequence[Any]) -> pd.DataFrame:
        """Return rows of a request as a frame; a problem where there are too many."""
        most = self.settings.limits.max_rows
        if len(records) > most:
            raise HTTPProblem(413, "Too many rows", f"A request may have {most:,} rows, got {len(records):,}.")
        return frame_of(records, self.source.column_of)


def service_of(request: Request) -> Service:
    """Return the service that got a request."""
    service: Service = request.app.state.service
    return service


def session_of(request: Request) -> Session:
    """Return what the browser that asks has open."""
    return service_of(request).sessions.of(request.scope["session_id"])


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; a problem where its CSRF token is not that of the session."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
    service_of(request).keys.check_csrf_token(request.scope["session_id"], fields.get("csrf_token", ""))
    return fields


def show(request: Request, template: str, active: str = "", status: int = 200, **content: Any) -> Response:
    """Return a page with its navigation; its forms carry the CSRF token of the session."""
    service = service_of(request)
    layout = {
        "active": active,
        "table_name": service.source.name,
        "model_name": service.source.model_name,
        "n_saved": len(session_of(request).saved),
        "csrf_token": service.keys.csrf_token(request.scope["session_id"]),
    }
    return page(template, status, layout=layout, **content)
