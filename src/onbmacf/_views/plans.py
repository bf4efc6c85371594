"""One row for people: what is served, what is asked of the library, and counterfactuals as plans side by side."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import did_you_mean, listed, shortened
from onbmacf._base.enums import Status
from onbmacf._base.missing import known_ends
from onbmacf._columns.interop import frame_of_cells
from onbmacf._explain.crossed import of_explanation
from onbmacf._explain.request import Question
from onbmacf._text.labels import Labels
from onbmacf._text.wording import joined, lasting_in, quoted, rounded, shown, whole_percent
from onbmacf.errors import OnbmacfError, OnbmacfWarning, ParameterError, RowsError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Counterfactual, Explanation
from onbmacf.explanations import Explanations

STEPS = ((0.1, "A very small step"), (0.3, "A small step"), (0.75, "A medium step"), (1.5, "A large step"))
N_NEIGHBOURS = 5  # rows that plausibility counts


# --- what is served ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Source:
    """A fitted explainer and a table of rows with its columns."""

    explainer: ONBMACF
    table: pd.DataFrame
    target: Any = None  # label, labels, or None
    name: str = "a table in memory"
    model_name: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256 by name
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, explainer: ONBMACF, table: Any = None, **names: Any) -> "Source":
        """Return a source; without a table, people pick from the fitted rows."""
        space = explainer.fitted_.space if hasattr(explainer, "fitted_") else None
        if space is None:
            raise ParameterError("this explainer is not fitted: call fit(table, model) first.")
        rows = space.decode(explainer.Z_) if table is None else space.form.arrange(table)[0]
        if "model_name" in names and not names["model_name"]:
            names["model_name"] = type(explainer.fitted_.black_box.model).__name__
        return cls(explainer, rows, **names)

    @property
    def classes(self) -> list[Any]:
        """The model's labels."""
        return self.explainer.classes_.tolist()

    @property
    def is_fitted_table(self) -> bool:
        """Whether the rows are those of the fit, so that the model's label of each is known."""
        return len(self.table) == len(self.explainer.labels_)

    @cached_property
    def column_of(self) -> dict[str, Hashable]:
        """The columns' names by their text, as forms and JSON write them."""
        names = {str(name): name for name in self.explainer.schema_.names}
        if len(names) < len(self.explainer.schema_.names):
            raise ParameterError("two column names are the same as text: rename them to serve the table.")
        return names

    @cached_property
    def ends(self) -> dict[Hashable, tuple[Any, Any]]:
        """The smallest and largest fitted value of each numeric feature, in the caller's dtype."""
        Z = self.explainer.Z_
        ends = self.explainer.fitted_.space.decode(np.stack(known_ends(Z)))
        numeric = [feature.name for feature in self.explainer.schema_.features if feature.is_numeric]
        return {name: (ends[name].iloc[0], ends[name].iloc[1]) for name in numeric}

    @cached_property
    def labels(self) -> NDArray[Any] | None:
        """The model's label of each row of the table, where it is known without asking."""
        return self.explainer.classes_[self.explainer.labels_] if self.is_fitted_table else None


# --- what is asked ----------------------------------------------------------------------------------------------------


class Prediction(NamedTuple):
    """What the model says of rows."""

    labels: list[Any]
    statuses: list[str]  # "predicted", or why not
    reasons: list[str]
    probabilities: list[float | None]  # of the label; None where the model has none


def explained(explainer: ONBMACF, rows: Any, question: Question) -> Explanations:
    """Explain rows: the one library call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnbmacfWarning)  # they are in the answers
        return explainer.explain(rows, **question.given())


def explained_with_rules(explainer: ONBMACF, rows: Any, question: Question) -> tuple[str, int, int]:
    """Explain rows, and say what answers cross of the model: as JSON; and how many rows there are, and were asked."""
    answers = explained(explainer, rows, question)
    return answers.to_json(rules=explainer), len(answers), answers.n_model_rows


def rules_said(explainer: ONBMACF, row: Any, answers: Explanations) -> list[str]:
    """Return what each plan of one row crosses of the model, as a sentence; nothing where the model cannot be read."""
    try:
        return of_explanation(answers[0], explainer).sentences(answers.words)
    except OnbmacfError:
        return []


def predicted(explainer: ONBMACF, rows: pd.DataFrame) -> Prediction:
    """Ask the model for labels and their probabilities; a row that cannot be asked gets its reason."""
    found = explainer.predictions(rows)
    shares = [None if np.isnan(share) else share for share in found["probability"].tolist()]
    return Prediction(found["label"].tolist(), found["status"].tolist(), found["reason"].tolist(), shares)


def frame_of(records: Sequence[Mapping[str, Any]], column_of: Mapping[str, Hashable]) -> pd.DataFrame:
    """Return rows given as dicts, by the text of their columns' names; each must have them all, and no others."""
    for place, record in enumerate(records):
        lacking = [name for name in column_of if name not in record]
        if lacking:
            raise RowsError(f"row {place} lacks {listed(lacking)}. Columns: {listed(list(column_of))}.")
        unknown = [name for name in record if name not in column_of]
        if unknown:
            hint = did_you_mean(unknown[0], list(column_of))
            raise RowsError(f"row {place} has {shortened(unknown[0])}, which is not a column.{hint}")
        nested = [name for name, value in record.items() if isinstance(value, list | dict)]
        if nested:
            raise RowsError(f"row {place}: {shortened(nested[0])} must be a number, a text, true, false or null.")
    columns = {name: [record[text] for record in records] for text, name in column_of.items()}
    return frame_of_cells(columns, list(column_of.values()))


def label_of(value: Any, classes: Sequence[Any]) -> Any:
    """Return the model's own label that JSON or a form writes like this."""
    if value in classes:
        return value
    written = {str(label): label for label in classes}
    if str(value) not in written:
        raise ParameterError(f"target must be among the model's labels {listed(classes)}, got {shortened(value)}.")
    return written[str(value)]


# --- plans ------------------------------------------------------------------------------------------------------------


def plan_views(answer: Explanation, ids: dict[Hashable, str], rules: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the plans of one row as plain values; `rules` says of each what it crosses of the model."""
    said = [*rules] or [""] * len(answer.counterfactuals)
    return [_view(answer, place, ids) | {"rules": one} for place, one in enumerate(said)]


def no_plan(answer: Explanation) -> str:
    """Return why there is no plan, for values that are tried."""
    return "That is what is wanted: no plan is needed." if answer.status == Status.ALREADY else answer.reason


def _view(answer: Explanation, place: int, ids: dict[Hashable, str]) -> dict[str, Any]:
    found, said = answer.counterfactuals[place], answer.in_words().counterfactuals[place]
    return {
        "place": place,
        "number": place + 1,
        "label": shown(found.label),
        "probability": percent(found.probability),
        "changes": [_change(found, said, name, ids, answer.words) for name in found.changed],
        "effects": [_effect(said, name) for name in said.effects],
        "even_if": _even_if(answer, said),
        "plausibility": f"{lasting_in(answer.reason)} {plausibility_words(found)}".strip(),
        "distance": distance_words(found),
    }


def _change(
    found: Counterfactual, said: Counterfactual, name: Hashable, ids: dict[Hashable, str], words: Labels
) -> dict[str, Any]:
    before, after, called = found.factual[name], found.values[name], words.name(name)
    return {
        "id": ids[name],
        "feature": str(name),
        "said": called,
        "before": words.value(name, before),
        "after": words.value(name, after),
        "arrow": _way(before, after),
        "range": "" if said.box is None or called not in said.box else str(said.box[called]),  # which hold together
        "is_released": name in found.released,
    }


def _effect(said: Counterfactual, name: Hashable) -> dict[str, str]:
    """Return a feature that follows from the changes, by the names that people use."""
    return {"said": str(name), "before": shown(said.factual[name]), "after": shown(said.values[name])}


def _way(before: Any, after: Any) -> str:
    try:
        return "up" if float(after) > float(before) else "down"
    except (TypeError, ValueError):
        return "other"


def _even_if(answer: Explanation, found: Counterfactual) -> str:
    if found.semifactual is None:
        return ""
    kept = found.semifactual
    changes = joined([f"{name} {shown(kept.values[name])}" for name in (*kept.changed, *kept.effects)])
    return f"Even with {changes}, the model would still say {quoted(answer.label)}."


def plausibility_words(found: Counterfactual) -> str:
    """Return how plausible a plan is, in words and counts."""
    n_alike = round(found.plausibility * N_NEIGHBOURS)
    kind = "Typical" if n_alike >= 4 else "Fairly typical" if n_alike == 3 else "Unusual"
    alike = "all" if n_alike == N_NEIGHBOURS else "none" if n_alike == 0 else str(n_alike)
    return f"{kind}: {alike} of the {N_NEIGHBOURS} most similar known rows get {quoted(found.label)}."


def distance_words(found: Counterfactual) -> str:
    """Return how far a plan is, in words and as a number."""
    words = next((words for most, words in STEPS if found.distance < most), "A very large step")
    return f"{words}: distance {rounded(found.distance)}, where 1 is the whole range of one feature."


def percent(share: float | None) -> str:
    """Return a probability as text; empty where there is none."""
    return "" if share is None or np.isnan(share) else f"{whole_percent(share)} %"
