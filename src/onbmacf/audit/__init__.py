"""Summaries of many explanations: which features change decisions, how burden differs; what reports show: `tables.py`.

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

from onbmacf.audit.actions import Actions, action_tree, actions
from onbmacf.audit.causes import broken_by_causes
from onbmacf.audit.changes import (
    changes_by_feature,
    importance,
    local_importance,
    pair_matrix,
    pairs,
    semifactual_distances,
    semifactual_summary,
    single_changes,
)
from onbmacf.audit.comparison import (
    Decisions,
    GroupedBy,
    decision_gaps,
    error_rates,
    group_gaps,
    grouped,
    selection_rates,
)
from onbmacf.audit.cut_points import cut_points
from onbmacf.audit.effectiveness import (
    cheapest,
    choices,
    cost_of_effectiveness,
    effectiveness,
    individual,
    mean_costs,
    mean_recourse,
    recourse_fairness,
    trade_off,
    within_budget,
)
from onbmacf.audit.figures import (
    change_shares,
    never_help,
    overview,
    released,
    responsiveness,
    status_counts,
    thresholds,
)
from onbmacf.audit.groups import as_groups, bands, crossed
from onbmacf.audit.pairwise import corrected, pairwise_gaps
from onbmacf.audit.recourse import (
    accuracy_weighted_burden,
    burden,
    burden_gaps,
    mean_burden,
    recourse_costs,
    social_burden,
    without_recourse,
)
from onbmacf.audit.sentences import Verdict, findings, verdicts
from onbmacf.audit.tables import TABLES, AuditTable
from onbmacf.audit.versions import burden_changes, compare, compare_changes, side_changes, still_holds, version_gaps

__all__ = [
    "TABLES",
    "Actions",
    "AuditTable",
    "Decisions",
    "GroupedBy",
    "Verdict",
    "accuracy_weighted_burden",
    "action_tree",
    "actions",
    "as_groups",
    "bands",
    "broken_by_causes",
    "burden",
    "burden_changes",
    "burden_gaps",
    "change_shares",
    "changes_by_feature",
    "cheapest",
    "choices",
    "compare",
    "compare_changes",
    "corrected",
    "cost_of_effectiveness",
    "crossed",
    "cut_points",
    "decision_gaps",
    "effectiveness",
    "error_rates",
    "findings",
    "group_gaps",
    "grouped",
    "importance",
    "individual",
    "local_importance",
    "mean_burden",
    "mean_costs",
    "mean_recourse",
    "never_help",
    "overview",
    "pair_matrix",
    "pairs",
    "pairwise_gaps",
    "recourse_costs",
    "recourse_fairness",
    "released",
    "responsiveness",
    "selection_rates",
    "semifactual_distances",
    "semifactual_summary",
    "side_changes",
    "single_changes",
    "social_burden",
    "status_counts",
    "still_holds",
    "thresholds",
    "trade_off",
    "verdicts",
    "version_gaps",
    "within_budget",
    "without_recourse",
]
