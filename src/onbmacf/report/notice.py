"""A notice for one person: the decision, its main reasons, what would change it and what would not, on one page.

    explainer, row  ->  notice  ->  Notice (plain facts)  ->  HTML, Markdown, JSON, in several languages

What a notice has to hold for whom: docs/questions/what-to-tell-a-person.md. Every value in it was put to the model.
"""

import datetime
import json
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onbmacf import __version__
from onbmacf._base.checks import listed
from onbmacf._base.files import write_atomically
from onbmacf._text.records import cell, plain
from onbmacf._text.wording import is_absent
from onbmacf.audit.arguments import typed
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation
from onbmacf.report.catalogue import catalogue
from onbmacf.report.content import rules_in_words
from onbmacf.report.fingerprint import model_digest, table_digest
from onbmacf.report.notice_text import described
from onbmacf.report.render import SUFFIXES, framed, rendered

FORMAT, VERSION = "onbmacf-notice", 1  # of the JSON; the version rises when a key changes its meaning or goes
MOST_REASONS = 4
KINDS = {**SUFFIXES, ".json": "json"}


@dataclass(frozen=True, eq=False)
class Notice:
    """A notice as plain facts; a notebook shows it as a page.

    Attributes
    ----------
    facts : dict
        Everything it says, as text and numbers, in no language.
    language : str
        In which it is written.

    """

    facts: dict[str, Any]
    language: str = "en"

    def html(self) -> str:
        """Return one self-contained HTML page, without scripts and without anything loaded from elsewhere."""
        return rendered("notice.html", "html", described(self.facts, catalogue(self.language), self.language))

    def markdown(self) -> str:
        """Return the notice as Markdown."""
        return rendered("notice.md", "markdown", described(self.facts, catalogue(self.language), self.language))

    def to_json(self, indent: int | None = 2) -> str:
        """Return the facts as JSON."""
        content = {"format": FORMAT, "version": VERSION, **self.facts}
        return json.dumps(content, indent=indent, ensure_ascii=True, allow_nan=False) + "\n"

    def save(self, path: Any) -> Path:
        """Write the notice to a file; its suffix decides: .html, .htm, .md, .markdown or .json."""
        path = Path(path)
        kind = KINDS.get(path.suffix.lower())
        if kind is None:
            raise ParameterError(f"a notice is written as {listed(KINDS)}, got {path.name!r}.")
        text = {"html": self.html, "markdown": self.markdown, "json": self.to_json}[kind]()
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
        return path

    def __repr__(self) -> str:
        answer = self.facts["answer"]
        return f"<Notice of row {answer['row']!r}: the model says {answer['label']!r}; language {self.language!r}>"

    def _repr_html_(self) -> str:
        return framed(self.html(), "Notice")


@typed
def notice(
    explainer: ONBMACF,
    row: Any,
    *,
    target: Any = None,
    language: str = "en",
    n_plans: int = 3,
    contact: str = "",
    review: str = "",
    date: datetime.date | str | None = None,
) -> Notice:
    """Write a notice about the decision on one row.

    Parameters
    ----------
    explainer : ONBMACF
        Fitted; its immutable features and rules are kept.
    row : DataFrame of one row, Series or dict
        The person's values.
    target : label or list of labels, optional
        What the decision could be instead; by default any label but the row's own.
    language : str, default "en"
        In which to write it; names, values and labels stay as they are in the table.
    n_plans : int, default 3
        The most ways to another decision.
    contact, review : str, optional
        Whom to turn to, and how a person looks at the decision again; a blank to be filled in where they are empty.
    date : date or str, optional
        Of the notice; today by default.

    Returns
    -------
    Notice
        To be saved, or shown in a notebook.

    Examples
    --------
    >>> paper = notice(explainer, answers.rows.iloc[[0]], target="fine", date="2026-05-04")
    >>> [reason["feature"] for reason in paper.facts["reasons"]]
    ['tobacco']

    """
    catalogue(language)  # an unknown one is an error before the work
    asked = explainer.with_options(n_counterfactuals=n_plans).explain(row, target, ranges=True)
    if len(asked) != 1:
        raise ParameterError(f"a notice is about one row, got {len(asked)}.")
    alone = explainer.responsiveness(row, target)
    return Notice(
        {
            "date": str(date or datetime.date.today()),
            "wanted": _wanted(target),
            "answer": asked[0].to_dict(),
            "reasons": _reasons(asked[0], alone),
            "no_help": [plain(name) for name in alone.loc[alone["share"] == 0, "feature"]],
            "kept": [plain(name) for name in _kept(explainer, asked[0])],
            "rules": rules_in_words(explainer),
            "n_questions": asked.n_questions + int(alone["n_asked"].sum()),
            "table_digest": table_digest(explainer),
            "model_digest": model_digest(explainer),
            "made_by": f"onbmacf {__version__}",
            "contact": contact,
            "review": review,
        },
        language,
    )


def _wanted(target: Any) -> list[Any]:
    several = target if isinstance(target, list | tuple | set) else [] if target is None else [target]
    return [plain(label) for label in several]


def _kept(explainer: ONBMACF, answer: Explanation) -> list[Hashable]:
    """Return the features that no way changes: immutable ones, and those that the row lacks and may not fill in."""
    features = explainer.schema_.features
    lacks = {f.name for f in features if not f.fillable and is_absent(answer.factual[f.name])}
    return [feature.name for feature in features if feature.immutable or feature.name in lacks]


def _reasons(answer: Explanation, alone: Any) -> list[dict[str, Any]]:
    """Return the features that the decision depends on most: alone, then together with others."""
    alone = alone[alone["share"] > 0].sort_values("share", ascending=False, kind="stable")
    found = [
        {
            "feature": name,
            "alone": True,
            "n_asked": int(n_asked),
            "n_reached": int(n_reached),
            "nearest": cell(nearest, name in answer.days),
        }
        for name, n_asked, n_reached, _, nearest in alone.itertuples(index=False)
    ]
    known = set(alone["feature"])
    together = [name for own in answer.counterfactuals[:1] for name in own.changed if name not in known]
    found += [{"feature": name, "alone": False} for name in together]
    return [
        {**reason, "feature": plain(name), "value": cell(answer.factual[name], name in answer.days)}
        for reason in found[:MOST_REASONS]
        for name in [reason["feature"]]
    ]
