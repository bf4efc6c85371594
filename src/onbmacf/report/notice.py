"""A notice for one person: the decision, its main reasons, what would change it and what would not, on one page.

The words are TOML files by language in `words`, all with the same keys.
"""

import datetime
import json
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from onbmacf import __version__
from onbmacf._base.checks import is_absent, listed
from onbmacf._base.files import write_atomically
from onbmacf._columns.moments import is_moment_text
from onbmacf._text.labels import Labels
from onbmacf._text.records import cell, plain
from onbmacf._text.wording import lasting_in, quoted, shown, whole_percent
from onbmacf.audit.arguments import typed
from onbmacf.errors import ParameterError
from onbmacf.explainer import ONBMACF
from onbmacf.explanation import Explanation
from onbmacf.report.content import rules_in_words
from onbmacf.report.render import SUFFIXES, framed, model_digest, rendered, table_digest

Words = Mapping[str, str]
FORMAT, VERSION = "onbmacf-notice", 1  # of the JSON; the version rises when a key changes its meaning or goes
MOST_REASONS = 4
KINDS = {**SUFFIXES, ".json": "json"}


# --- words by language ------------------------------------------------------------------------------------------------


def languages() -> tuple[str, ...]:
    """Return the languages that there are words for.

    >>> languages()
    ('en', 'es')
    """
    found = [entry.name for entry in _folder().iterdir()]
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


@cache
def catalogue(language: str) -> dict[str, str]:
    """Return the texts of one language.

    >>> catalogue("es")["plan"].format(number=1)
    'Vía 1'
    """
    if language not in languages():
        raise ParameterError(f"language must be one of {listed(languages())}, got {language!r}.")
    words: dict[str, str] = tomllib.loads((_folder() / f"{language}.toml").read_text(encoding="utf-8"))
    return words


def _folder() -> Any:
    return files("onbmacf.report") / "words"


# --- facts in words ---------------------------------------------------------------------------------------------------


def described(facts: Mapping[str, Any], words: Words, language: str, labels: Labels) -> dict[str, Any]:
    """Return everything that a page shows, as text."""
    answer = facts["answer"]
    return {
        "language": language,
        "words": words,
        "head": [(words["reference"], shown(answer["row"])), (words["date"], facts["date"])],
        "decision": _decision(facts, words),
        "reasons": [_reason(reason, words, labels) for reason in facts["reasons"]],
        "no_reasons": "" if facts["reasons"] else _no_reasons(answer, words),
        "plans": [_plan(n, answer, words, labels) for n in range(1, 1 + len(answer["counterfactuals"]))],
        "no_plan": "" if answer["counterfactuals"] else _no_plan(answer, words, labels),
        "would_not": _would_not(facts, words, labels),
        "asked": _question(facts, words, labels),
        "again": [
            (words["contact"], facts["contact"] or words["contact_blank"]),
            (words["review"], facts["review"] or words["review_blank"]),
        ],
        "limits": [words["limit_model"], words["limit_values"]],
    }


def _decision(facts: Mapping[str, Any], words: Words) -> list[str]:
    wanted = f" {words['or']} ".join(quoted(label) for label in facts["wanted"]) or words["any_other"]
    said = words["decision"].format(label=quoted(facts["answer"]["label"]))
    is_there = facts["answer"]["label"] in facts["wanted"]
    return [said] if is_there else [said, words["decision_wanted"].format(wanted=wanted)]


def _reason(reason: Mapping[str, Any], words: Words, labels: Labels) -> str:
    feature = reason["feature"]
    values = {"feature": labels.name(feature), "value": labels.value(feature, reason["value"])}
    if not reason["alone"]:
        return words["reason_together"].format(**values)
    key = "reason_only" if reason["n_asked"] == 1 else "reason_alone"
    counts = {name: _whole(reason[name], words) for name in ("n_asked", "n_reached")}
    return words[key].format(**values, **counts, nearest=labels.value(feature, reason["nearest"]))


def _no_reasons(answer: Mapping[str, Any], words: Words) -> str:
    """Return why no reason is named: none is needed, the model was not asked, or none was found."""
    if answer["status"] == "already":
        return words["reasons_already"]
    return words["reasons_none" if f"no_plan_{answer['status']}" in words else "reasons_unasked"]


def _plan(number: int, answer: Mapping[str, Any], words: Words, labels: Labels) -> dict[str, Any]:
    found = answer["counterfactuals"][number - 1]
    box = {side["feature"]: side for side in found.get("box") or ()}  # ranges that hold all at once, as one table reads
    rows = [
        (
            labels.name(change["feature"]),
            *(labels.value(change["feature"], change[when]) for when in ("before", "after")),
            _works(box.get(change["feature"]), words, labels),
        )
        for change in found["changes"]
    ]
    for effect in found.get("effects", ()):
        values = (labels.value(effect["feature"], effect[when]) for when in ("before", "after"))
        rows.append((words["follows"].format(feature=labels.name(effect["feature"])), *values, ""))
    sure, label = found["probability"], quoted(found["label"])
    note = "" if sure is None else words["plan_sure"].format(label=label, percent=whole_percent(sure))
    note = f"{note} {words['plan_weak']}" if lasting_in(answer["reason"]) else note
    heads = [words[key] for key in ("feature", "now", "then", "works")]
    return {"title": words["plan"].format(number=number), "heads": heads, "rows": rows, "note": note}


def _works(side: Mapping[str, Any] | None, words: Words, labels: Labels) -> str:
    """Return the range of a value in words; empty where none is known."""
    if side is None:
        return ""
    if side["levels"] is not None:
        levels = [labels.value(side["feature"], level) for level in side["levels"]]
        return words["one_of"].format(levels=", ".join(levels)) if len(levels) > 1 else words["exactly"]
    low, high = (labels.value(side["feature"], side[end]) for end in ("low", "high"))
    if side["low"] == side["high"]:
        return words["exactly"]
    if side["reaches_low"] != side["reaches_high"]:
        most, least = ("not_after", "not_before") if is_moment_text(side["high"]) else ("at_most", "at_least")
        return words[most].format(high=high) if side["reaches_low"] else words[least].format(low=low)
    return words["between"].format(low=low, high=high)


def _no_plan(answer: Mapping[str, Any], words: Words, labels: Labels) -> str:
    key = f"no_plan_{answer['status']}"
    if key not in words:
        return words["no_plan_other"].format(reason=answer["reason"])
    if not answer["would_need"]:
        return words[key]
    needs = labels.needed(answer["would_need"], answer["factual"])
    return f"{words[key]} {words['no_plan_needs'].format(needs=_list(needs, words))}"


def _would_not(facts: Mapping[str, Any], words: Words, labels: Labels) -> list[str]:
    kept = next((found["semifactual"] for found in facts["answer"]["counterfactuals"][:1]), None)
    said = []
    if kept is not None:
        changes = [
            {"feature": labels.name(one["feature"])}
            | {when: labels.value(one["feature"], one[when]) for when in ("before", "after")}
            for one in kept["changes"]
        ]
        parts = [words["even_if_change"].format(**change) for change in changes]
        said.append(words["even_if"].format(changes=_list(parts, words)))
    if facts["no_help"]:
        said.append(words["no_help"].format(features=", ".join(map(labels.name, facts["no_help"]))))
    return said


def _question(facts: Mapping[str, Any], words: Words, labels: Labels) -> list[tuple[str, str]]:
    kept = ", ".join(map(labels.name, facts["kept"])) or words["kept_none"]
    text = "questions_one" if facts["n_questions"] == 1 else "questions_text"
    count = words[text].format(count=_whole(facts["n_questions"], words))
    return [
        (words["kept"], kept),
        (words["rules"], "; ".join(facts["rules"]) or words["rules_none"]),
        (words["questions"], count),
        (words["table_digest"], facts["table_digest"]),
        (words["model_digest"], facts["model_digest"]),
        (words["made_by"], facts["made_by"]),
    ]


def _list(parts: Sequence[str], words: Words) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {words['and']} {parts[-1]}"


def _whole(count: int, words: Words) -> str:
    """Return a count as the language writes it."""
    return f"{count:,}".replace(",", words["thousands"])


# --- the page ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Notice:
    """A notice as plain facts; a notebook shows it as a page.

    Attributes
    ----------
    facts : dict
        Everything it says, as text and numbers, in no language.
    language : str
        In which it is written.
    labels : dict
        What people call columns and values: the ``labels`` of the schema. The facts have the table's own.

    """

    facts: dict[str, Any]
    language: str = "en"
    labels: Labels = field(default_factory=Labels)

    def html(self) -> str:
        """Return one self-contained HTML page, without scripts and without anything loaded from elsewhere."""
        return rendered("notice.html", "html", self._described())

    def markdown(self) -> str:
        """Return the notice as Markdown."""
        return rendered("notice.md", "markdown", self._described())

    def _described(self) -> dict[str, Any]:
        return described(self.facts, catalogue(self.language), self.language, self.labels)

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
    answers = explainer.with_options(n_counterfactuals=n_plans).explain(row, target, ranges=True)
    if len(answers) != 1:
        raise ParameterError(f"a notice is about one row, got {len(answers)}.")
    answer = answers[0]
    wanted = target if isinstance(target, list | tuple | set) else [] if target is None else [target]
    alone = explainer.responsiveness(row, target)
    return Notice(
        {
            "date": str(date or datetime.date.today()),
            "wanted": [plain(label) for label in wanted],
            "answer": answer.to_dict(),
            "reasons": _reasons(answer, alone),
            "no_help": [plain(name) for name in alone.loc[alone["share"] == 0, "feature"]],
            "kept": [plain(name) for name in _kept(explainer, answer)],
            "rules": rules_in_words(explainer),
            "n_questions": answers.n_questions + int(alone["n_asked"].sum()),
            "table_digest": table_digest(explainer),
            "model_digest": model_digest(explainer),
            "made_by": f"onbmacf {__version__}",
            "contact": contact,
            "review": review,
        },
        language,
        explainer.schema_.labels,
    )


def _kept(explainer: ONBMACF, answer: Explanation) -> list[Hashable]:
    """Return the features that no way changes: immutable ones, and those that the row lacks and may not fill in."""
    features = explainer.schema_.features
    lacks = {f.name for f in features if not f.fillable and is_absent(answer.factual[f.name])}
    return [feature.name for feature in features if feature.immutable or feature.name in lacks]


def _reasons(answer: Explanation, alone: Any) -> list[dict[str, Any]]:
    """Return the features that the decision depends on most: alone, then together with others."""
    alone = alone[alone["share"] > 0].sort_values("share", ascending=False, kind="stable")
    reasons = [
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
    together = [name for found in answer.counterfactuals[:1] for name in found.changed if name not in known]
    reasons += [{"feature": name, "alone": False} for name in together]
    return [
        {**reason, "feature": plain(name), "value": cell(answer.factual[name], name in answer.days)}
        for reason in reasons[:MOST_REASONS]
        for name in [reason["feature"]]
    ]
