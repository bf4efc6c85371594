"""Everything that a request may need, in one place: made once, found through the request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from starlette.requests import Request

from onbmacf._views.fields import Field
from onbmacf._views.plans import Source, frame_of
from onbmacf.web.browse import Browser
from onbmacf.web.cases import Session, Sessions, Wishes
from onbmacf.web.engine import Engine
from onbmacf.web.jobs import Jobs
from onbmacf.web.metrics import Metrics
from onbmacf.web.problems import Problem
from onbmacf.web.security import Keys
from onbmacf.web.settings import Settings


@dataclass(frozen=True, eq=False)
class Service:
    """The parts of a running service."""

    source: Source
    settings: Settings
    keys: Keys
    engine: Engine
    metrics: Metrics
    sessions: Sessions
    browser: Browser
    fields: list[Field]
    jobs: Jobs

    @property
    def first_wishes(self) -> Wishes:
        """What is wished before a person says anything: what the schema and the command say."""
        return Wishes(locked=frozenset(self.source.explainer.schema_.immutable), target=self.source.target)

    def frame(self, records: Sequence[Any]) -> pd.DataFrame:
        """Return rows of a request as a frame; a problem where there are too many."""
        most = self.settings.limits.max_rows
        if len(records) > most:
            raise Problem(413, "Too many rows", f"A request may have {most:,} rows, got {len(records):,}.")
        return frame_of(records, self.source.column_of)


def service_of(request: Request) -> Service:
    """Return the service that got a request."""
    service: Service = request.app.state.service
    return service


def session_of(request: Request) -> Session:
    """Return what the browser that asks has open."""
    return service_of(request).sessions.of(request.scope["session"])
