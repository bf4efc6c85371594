"""What one call of explain may ask, beside the rows: the fields of a question, as words and as JSON.

The library's `Question`, the options of the command line and the JSON API have these fields, and what they say of them
is said here, once. A new one: here, in `Question` and `OF_ALL` (`_explain/request.py`), `ONBMACF.explain`, and a field
of `Arguments` (`cli/explain.py`). The page has its own choice of them: `Preferences` in `web/cases.py`.
"""

from typing import Any, Literal, NamedTuple


class Asked(NamedTuple):
    """One field of a question."""

    says: str
    kind: Any = Any  # as JSON holds it
    within: tuple[float | None, float | None] = (None, None)  # the least and the largest


ASKED: dict[str, Asked] = {
    "target": Asked("Label or labels to reach; any other label by default."),
    "immutable": Asked("Columns that must keep their value, instead of those of the schema.", list[str]),
    "vary": Asked("The only columns that may change, instead of immutable ones.", list[str]),
    "rules": Asked("Rules as in a TOML file: features, at_most, relations, max_changes.", dict[str, Any]),
    "n": Asked("Counterfactuals per row.", int, (1, None)),
    "plausibility": Asked("From 0 (nearest) to 1 (well inside the wanted class).", float, (0, 1)),
    "min_probability": Asked(
        "The least probability that the model must give the label, from 0 to 1; or 'lasting', which is 0.6: such "
        "answers hold after retraining more often. By default 'lasting' where the model has probabilities, and a row "
        "without such an answer gets another one that says so.",
        float | Literal["lasting"],
    ),
    "min_neighbours": Asked(
        "The least number of an answer's 5 nearest fitted rows that must have its label, from 0 (no bound) to 5. A row "
        "without such an answer says so.",
        int,
        (0, 5),
    ),
    "front": Asked(
        "Instead of the n best, every counterfactual found that no other beats in distance, number of changes and "
        "plausibility at once.",
        bool,
    ),
    "ranges": Asked("Also ask how far the changed values may move before the label is lost.", bool),
    "prove": Asked(
        "Prove that the first counterfactual is the nearest, or that none exists: for linear models, trees, forests, "
        "boosted trees and small networks.",
        bool,
    ),
    "prove_seconds": Asked("The most seconds for the proof of one row; 1 by default.", float, (0, None)),
    "max_seconds": Asked(
        "The most seconds to explain all rows, without reading, training and fitting: then the best found so far is "
        "given, and rows that were not reached say so.",
        float,
    ),
}
