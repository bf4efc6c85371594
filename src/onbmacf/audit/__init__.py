"""What many explanations say together: which features change decisions, and who bears the burden.

    Explanations  ->  one plain frame per question  ->  sentences

Counts are over counterfactuals; burden and releases are over rows, by each row's first counterfactual.

The examples of `audit`, `plots` and `report` start from here:

>>> from onbmacf import ONBMACF, Schema, audit
>>> from onbmacf.datasets import load_heart
>>> table, chd = load_heart()
>>> model = lambda rows: (rows["tobacco"] + rows["ldl"] > 10).map({True: "risk", False: "fine"})
>>> schema = Schema.infer(table, immutable=["age"])
>>> explainer = ONBMACF().fit(table, model, schema=schema)
>>> answers = explainer.explain(table.head(50), target="fine")
"""

from onbmacf.audit.changes import changes_by_feature, pair_matrix, pairs, semifactual_distances, single_changes
from onbmacf.audit.figures import compare, compare_changes, overview, released, status_counts
from onbmacf.audit.groups import as_groups, bands, burden, burden_gaps
from onbmacf.audit.sentences import findings

__all__ = [
    "as_groups",
    "bands",
    "burden",
    "burden_gaps",
    "changes_by_feature",
    "compare",
    "compare_changes",
    "findings",
    "overview",
    "pair_matrix",
    "pairs",
    "released",
    "semifactual_distances",
    "single_changes",
    "status_counts",
]
