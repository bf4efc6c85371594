"""What the paper looks at beside its metrics: borderline answers, features changed, and its four questions.

    lines (one per factual, cells.py)  ->  borderline, beside_paper, questions, agreement

The four questions: which features change most, which change together, whether that makes sense to an expert, and
whether methods differ. The third has no number.
"""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from onbmacf.bench.metrics import NEIGHBOURS
from onbmacf.bench.report import paper_table

PAPER_NAMES = {"gs": "GS", "nice": "NICE", "onb_macf": "ONB-MACF"}


def borderline(lines: pd.DataFrame) -> pd.DataFrame:
    """Count answers by how many of their 5 nearest rows have the factual's label, as the model labels them.

    The paper calls 2 or 3 of them borderline, and 4 or 5 "comparable to adversarial examples".
    """
    found = lines.dropna(subset="ynn")
    others = (NEIGHBOURS * (1.0 - found["ynn"])).round()
    kind = pd.cut(others, [-1, 1, 3, NEIGHBOURS], labels=["inside", "borderline", "adversarial"])
    counts = pd.crosstab([found["dataset"], found["method"]], kind)
    counts = counts.reindex(columns=["inside", "borderline", "adversarial"], fill_value=0)
    return counts.reset_index().rename_axis(columns=None)


def beside_paper(counts: pd.DataFrame) -> pd.DataFrame:
    """Put our counts of changed features (report.feature_changes) beside the paper's, per feature and method.

    The paper spells some features otherwise, in the same order: they are matched by their places.
    """
    theirs = paper_table("feature_changes")
    parts = []
    for dataset, part in theirs.groupby("dataset", sort=False):
        ours = counts[counts["dataset"] == dataset].reset_index(drop=True)
        if len(ours):
            renamed = part.rename(columns={name: f"{ours_name}_paper" for name, ours_name in PAPER_NAMES.items()})
            parts.append(ours.join(renamed.reset_index(drop=True).drop(columns=["dataset", "feature"])))
    return pd.concat(parts, ignore_index=True) if parts else theirs.iloc[:0]


def questions(lines: pd.DataFrame, most: int = 3) -> pd.DataFrame:
    """Return, per dataset and method, the features, the pair and the single change that are most frequent.

    Counts are shares of the answers.
    """
    rows = []
    for (dataset, method), part in lines.dropna(subset="changed").groupby(["dataset", "method"], sort=False):
        changes = list(part["changed"])
        singles = Counter(change[0] for change in changes if len(change) == 1)
        pairs = Counter(pair for change in changes for pair in combinations(change, 2))
        features = Counter(feature for change in changes for feature in change)
        rows.append(
            {
                "dataset": dataset,
                "method": method,
                "answers": len(changes),
                "changed most": _shares(features, len(changes), most),
                "most frequent pair": _shares(Counter({" + ".join(p): n for p, n in pairs.items()}), len(changes), 1),
                "most frequent alone": _shares(singles, len(changes), 1),
                "mean changes": sum(map(len, changes)) / len(changes),
            }
        )
    return pd.DataFrame(rows)


def agreement(counts: pd.DataFrame) -> pd.DataFrame:
    """Return how alike two methods' counts of changed features are, per dataset: Spearman's rank correlation."""
    methods = [name for name in counts.columns if name not in ("dataset", "feature")]
    rows = []
    for dataset, part in counts.groupby("dataset", sort=False):
        for one, other in combinations(methods, 2):
            pair = part[[one, other]].to_numpy(dtype=float)
            is_flat = np.isnan(pair).any() or np.ptp(pair, axis=0).min() == 0
            value = np.nan if is_flat else float(stats.spearmanr(pair[:, 0], pair[:, 1]).statistic)
            rows.append({"dataset": dataset, "methods": f"{one}, {other}", "correlation": value})
    return pd.DataFrame(rows)


def _shares(counts: Counter[str], total: int, most: int) -> str:
    """Return the most frequent in words; ties in the order of names."""
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return ", ".join(f"{name} {count / total:.0%}" for name, count in first)
