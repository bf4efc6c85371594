"""The tables that every report shows: a new one is a function from answers to a frame, and a line here."""

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd

from onbmacf.audit.changes import changes_by_feature, pairs, semifactual_summary, single_changes
from onbmacf.audit.figures import released, status_counts
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema

MOST = 10  # lines of a table of the most frequent


class AuditTable(NamedTuple):
    """A table that every report shows. One without lines is left out.

    Attributes
    ----------
    section : {"outcome", "features", "pairs", "semifactuals"}
        The section of the report.
    caption : str
        The words above the table.
    make : callable
        Takes the `Explanations` and the `Schema`, and returns a DataFrame.

    Examples
    --------
    >>> audit.TABLES[0].caption
    'Status of the rows'

    """

    section: str
    caption: str
    make: Callable[[Explanations, Schema], pd.DataFrame]


TABLES: tuple[AuditTable, ...] = (
    AuditTable("outcome", "Status of the rows", lambda answers, schema: status_counts(answers)),
    AuditTable("outcome", "Immutable features that were released", released),
    AuditTable("features", "Changes per feature", changes_by_feature),
    AuditTable("features", "Features that are the only change", lambda answers, schema: single_changes(answers, MOST)),
    AuditTable("pairs", "Most frequent pairs", lambda answers, schema: pairs(answers, MOST)),
    AuditTable("semifactuals", "Distances", lambda answers, schema: semifactual_summary(answers)),
)
