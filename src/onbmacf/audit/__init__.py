"""Summaries of many explanations: which features change decisions, and how the burden differs between groups.

    Explanations  ->  one plain frame per table  ->  sentences

Counts are over counterfactuals. Burden and releases are over rows and use each row's first counterfactual.

The examples of `audit`, `plots` and `report` start from here:

>>> from onbmacf import ONBMACF, Schema, audit
>>> from onbmacf.datasets import load_heart
>>> table, chd = load_heart()
>>> model = lambda rows: (rows["tobacco"] + rows["ldl"] > 10).map({True: "risk", False: "fine"})
>>> schema = Schema.infer(table, immutable=["age"])
>>> explainer = ONBMACF().fit(table, model, schema=schema)
>>> answers = explainer.explain(table.head(50), target="fine")
"""

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd

from onbmacf.audit.changes import (
    changes_by_feature,
    pair_matrix,
    pairs,
    semifactual_distances,
    semifactual_summary,
    single_changes,
)
from onbmacf.audit.figures import compare, compare_changes, overview, released, status_counts
from onbmacf.audit.groups import as_groups, bands, burden, burden_gaps
from onbmacf.audit.importance import importance, local_importance
from onbmacf.audit.sentences import findings
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema

__all__ = [
    "TABLES",
    "AuditTable",
    "as_groups",
    "bands",
    "burden",
    "burden_gaps",
    "changes_by_feature",
    "compare",
    "compare_changes",
    "findings",
    "importance",
    "local_importance",
    "overview",
    "pair_matrix",
    "pairs",
    "released",
    "semifactual_distances",
    "semifactual_summary",
    "single_changes",
    "status_counts",
]

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
