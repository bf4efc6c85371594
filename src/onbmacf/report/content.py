"""An audit as one ordered dict of what others make: frames, findings, plots. Which tables: TABLES in `audit`.

explainer, answers  ->  audit_report  ->  Report
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from onbmacf import __version__, audit
from onbmacf._base.missing import known_ends
from onbmacf._search.options import written
from onbmacf._text.wording import quoted, shown
from onbmacf.audit.arguments import typed
from onbmacf.audit.changes import check_same
from onbmacf.explainer import ONBMACF
from onbmacf.explanations import Explanations
from onbmacf.report.elements import cases, table
from onbmacf.report.extras import Against, more_sections
from onbmacf.report.first_page import first_page
from onbmacf.report.render import Report, model_digest, table_digest, versions
from onbmacf.report.sections import Comparison, Subject, beside, sections
from onbmacf.rules import describe

MOST_LEVELS = 8  # of a category, in the list of columns
KINDS_OF_CASES = (
    "of each kind of answer the most central row; first kinds with a released feature, then without a counterfactual, "
    "then the others by their number of rows."
)
LIMITS = (
    "A counterfactual is about the model, not about causes: it says what the model would answer for other values, not "
    "what would happen to a person whose values changed.",
    "Nothing here says whether a decision was right, or whether a change is possible, fair or advisable for a person.",
    "Immutable features are kept, unless the options release them. That a row needs one changed means that no "
    "counterfactual without it was found; only where the status is 'infeasible' is it proven that there is none.",
    "Distances are measured after scaling each feature to its range in the table; a different scaling would give "
    "different distances.",
    "Intervals apply to rows like these. Those of differences between groups are wide enough to hold all together; "
    "those of single groups are bootstrap intervals, each for itself, and too narrow for groups with few or nearly "
    "identical rows.",
)


@dataclass(frozen=True)
class About:
    """What a report says that the library cannot know: names, files, the command, and remarks for the reader.

    Attributes
    ----------
    title : str
        The report's heading.
    table : str
        What to call the table.
    model : str
        What to call the model; its type if empty.
    files : mapping of str to str
        The SHA-256 digest of each file that was read, by its name.
    command : str
        The command that makes the report again; none is shown if empty.
    notes : sequence of str
        Sentences to put before the findings.
    author : str
        Who answers for the report.
    date : str
        When it was made.
    purpose : str
        What it is for.

    Examples
    --------
    >>> About(title="Heart disease", notes=["The model is a rule, for illustration."]).table
    'a table in memory'

    """

    title: str = "Audit by counterfactuals"
    table: str = "a table in memory"
    model: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    notes: Sequence[str] = ()
    author: str = ""
    date: str = ""
    purpose: str = ""


@typed
def audit_report(
    explainer: ONBMACF,
    answers: Explanations,
    *,
    target: Any = None,
    by: Iterable[Hashable] | Mapping[str, Any] = (),
    bands: Mapping[Hashable, Any] | None = None,
    cost: Mapping[Hashable, float] | None = None,
    others: Mapping[str, Explanations] | None = None,
    truth: Any = None,
    against: tuple[str, ONBMACF, Explanations] | None = None,
    n_cases: int = 6,
    n_actions: int = 0,
    full: bool = False,
    seed: int = 0,
    about: About | None = None,
) -> Report:
    """Audit the answers of a fitted explainer and return the report.

    Parameters
    ----------
    explainer : ONBMACF
        Fitted; it gave the answers.
    answers : Explanations
        What its `explain` returned.
    target : label or list of labels, optional
        What was asked of `explain`.
    by : sequence of hashable, or mapping of str to array-like, optional
        Columns by whose groups decisions and burden are compared, also two at a time; many numbers or dates become
        bands. Or, by name, one value per explained row, which need not be known to the model.
    bands : mapping of hashable to sequence, optional
        By column: where its bands begin, such as ``{"age": [30, 50]}``; by default four of about as many rows each.
    cost : mapping of hashable to float, optional
        What changing a feature costs, by name, in a unit of your own; by default the weights of the schema's rules.
    others : mapping of str to Explanations, optional
        Answers of other models or methods for the same rows, by name, to compare with.
    truth : array-like, optional
        The true label of each row of the fitted table, missing where it is not known: error rates are compared, too.
    against : tuple of str, ONBMACF and Explanations, optional
        Another model: its name, an explainer fitted with it, and its answers for the same rows and target.
    n_cases : int, default 6
        The most single rows to show.
    n_actions : int, default 0
        How many group actions to look for, which asks the model about a million more questions; responsiveness is
        asked then, too.
    full : bool, default False
        Show all details unfolded, also in print.
    seed : int, default 0
        Of the bootstrap intervals.
    about : About, optional
        What to call things.

    Returns
    -------
    Report
        To be saved, or shown in a notebook.

    Examples
    --------
    >>> report = audit_report(explainer, answers, target="fine", by=["famhist"])
    >>> report.content["verdicts"][0]["kind"]
    'clear difference'

    """
    check_same(answers, explainer.schema_)
    about, by = about or About(), by if isinstance(by, Mapping) else list(by)
    n_cases = n_cases if explainer.private is None else 0  # single rows are what must not be shown
    if cost is None:
        rules = explainer.schema_.rules.features
        cost = {name: rule.weight for name, rule in rules.items() if rule.weight != 1} or None
    decisions = None if target is None else audit.Decisions.of(explainer, target, truth)
    subject = _subject(explainer, answers, by, bands or {}, cost or {}, decisions, target, n_actions, seed)
    content = {
        **_head(explainer, answers, about),
        **_body(subject, others or {}, against, truth),
        "findings": [*about.notes, *_findings(subject)],
        "asked": _question(explainer, answers, target, list(by)),
        "data": _data(explainer, about),
        "columns": table("Columns of the table", _columns(explainer)),
        "model": [
            ("Model", about.model or type(explainer.fitted_.black_box.model).__name__),
            ("Digest of its labels on the table", f"sha256 {model_digest(explainer)}"),
        ],
        "classes": table("The model's labels on the table", _classes(explainer)),
        "cases": cases(explainer, answers, n_cases),
        "cases_intro": f"Up to {n_cases} of {len(answers):,} rows that stand for many: {KINDS_OF_CASES}",
        "limits": [*LIMITS, *(f"Warning: {message}" for message in answers.warnings)],
        "again": _again(explainer, about, seed),
        "command": about.command,
        "full": full,
    }
    return Report(content)


def _subject(
    explainer: ONBMACF,
    answers: Explanations,
    by: Sequence[Hashable] | Mapping[str, Any],
    bands: Mapping[Hashable, Any],
    cost: Mapping[Hashable, float],
    decisions: audit.Decisions | None,
    target: Any,
    n_actions: int,
    seed: int,
) -> Subject:
    """Return what the report is about, with columns and levels as people call them."""
    words = explainer.schema_.labels
    fitted = explainer.fitted_.space.decode(explainer.Z_) if words else answers.rows
    codes = words.codes_in(fitted) - {str(name) for name in bands}  # what has bands is no code
    said, schema = words.answers(answers, codes), words.schema(explainer.schema_, codes)
    decisions = None if decisions is None else replace(decisions, rows=words.table(decisions.rows, codes))
    by = by if isinstance(by, Mapping) or not words else [words.name(name) for name in by]
    bands, cost = ({words.name(name) if words else name: each for name, each in d.items()} for d in (bands, cost))
    comparison = Comparison.of(said, by, decisions, cost or None, seed, bands or None)
    return Subject(explainer, answers, said, schema, comparison, target, n_actions)


def _findings(subject: Subject) -> list[str]:
    """Return what the audit states, and on how many rows decisions are compared with true labels."""
    stated = audit.findings(subject.answers, subject.schema, subject.comparison.gaps, subject.target)
    decisions = subject.comparison.decisions
    if decisions is None or not decisions.n_unknown:
        return stated
    n_rows, n_known = len(decisions.rows), len(decisions.rows) - decisions.n_unknown
    others = "the true labels of the others are not known, or the model was trained on them."
    return [*stated, f"How often decisions are right is counted on {n_known:,} of {n_rows:,} rows: {others}"]


def _body(subject: Subject, others: Mapping[str, Explanations], against: Against | None, truth: Any) -> dict[str, Any]:
    """Return the first page and the sections."""
    places = count(1)  # the numbers of the pictures, in the order of the report
    first = first_page(subject, places)
    found = [*sections(subject, places), *more_sections(subject, against, truth, places)]
    said = {name: answers.words.answers(answers) for name, answers in others.items()}
    return {**first, "sections": [*found, beside(subject.answers, said)] if others else found}


def _head(explainer: ONBMACF, answers: Explanations, about: About) -> dict[str, Any]:
    """Return the title, what was explained, who made the report, when and what for."""
    lines = [("Purpose", about.purpose), ("Author", about.author), ("Date", about.date)]
    whole = explainer.fitted_.whole
    balls, rows = len(explainer.cover_), len(explainer.Z_) if whole is None else whole.n_rows
    lead = (
        f"{len(answers):,} rows, explained with a map of {balls:,} balls fitted on {rows:,} rows. "
        f"Made by onbmacf {__version__}."
    )
    return {"title": about.title, "lead": lead, "made": [line for line in lines if line[1]]}


def _question(explainer: ONBMACF, answers: Explanations, target: Any, by: Sequence[Hashable]) -> list[tuple[str, str]]:
    several = target if isinstance(target, list | tuple | set) else [target]
    goal = "any label other than the row's own" if target is None else " or ".join(quoted(label) for label in several)
    called = explainer.schema_.labels.name
    immutable = ", ".join(map(called, explainer.schema_.immutable)) or "none"
    return [
        ("Question", "Which small change to a row would change the model's decision?"),
        ("Rows explained", f"{len(answers):,}"),
        ("Target label", goal),
        ("Immutable features", immutable),
        ("Other rules", "; ".join(rules_in_words(explainer)) or "none"),
        ("Counterfactuals per row", f"up to {explainer.n_counterfactuals}"),
        ("Burden compared by", ", ".join(map(called, by)) or "nothing"),
    ]


def rules_in_words(explainer: ONBMACF) -> list[str]:
    """Return each rule of the schema as text."""
    words, features = explainer.schema_.labels, explainer.schema_.features
    rules = words.rules(explainer.schema_.rules)
    parts = [f"{name}: {describe(rule)}" for name, rule in rules.features.items() if describe(rule)]
    moments = [
        words.name(one.name) if words else one.name for one in features if one.holds in ("date", "time", "period")
    ]
    parts += [f"{low} {'no later than' if low in moments else 'at most'} {high}" for low, high in rules.at_most]
    parts += [one.words() for one in rules.relations]
    return parts if rules.max_changes is None else [*parts, rules.most()]


def _data(explainer: ONBMACF, about: About) -> list[tuple[str, str]]:
    if explainer.private is None:
        held = "The table itself: every row can be read back exactly, with the model's label."
    else:
        held = (
            f"Means and commonest levels of groups of at least {explainer.private} rows, and no row itself. This "
            "report shows no single row."
        )
    return [
        ("Table", about.table),
        ("Rows and columns", f"{_rows_of(explainer)} and {len(explainer.schema_.features)}"),
        ("Digest of the rows", f"sha256 {table_digest(explainer)}"),
        ("What a saved map of it holds", held),
    ]


def _rows_of(explainer: ONBMACF) -> str:
    whole, held = explainer.fitted_.whole, f"{len(explainer.Z_):,}"
    return held if whole is None else f"{whole.n_rows:,}, of which the map holds {held},"


def _columns(explainer: ONBMACF) -> pd.DataFrame:
    ends = explainer.fitted_.space.decode(np.stack(known_ends(explainer.Z_)))
    words, fitted, lines = explainer.schema_.labels, explainer.fitted_.space.decode(explainer.Z_), []
    codes = words.codes_in(fitted)
    for feature in explainer.schema_.features:
        if feature.held and not feature.is_numeric:  # names and notes of people are nobody's business
            values = f"{len(feature.levels or ()):,} different ones, kept as they are"
        elif feature.is_numeric and str(feature.name) not in codes:
            values = " to ".join(shown(end) for end in ends[feature.name].array) + words.unit(feature.name)
        else:
            known = feature.levels or fitted[feature.name].dropna().drop_duplicates().sort_values()
            levels = [words.value(feature.name, level) for level in known]
            more = f" and {len(levels) - MOST_LEVELS:,} more" if len(levels) > MOST_LEVELS else ""
            values = ", ".join(levels[:MOST_LEVELS]) + more
        values += ", or unknown" if feature.missing else ""
        lines.append((words.name(feature.name), feature.name, feature.shown_kind, feature.immutable, values))
    frame = pd.DataFrame(lines, columns=["feature", "name in the table", "kind", "immutable", "values"])
    return frame if words else frame.drop(columns="name in the table")


def _classes(explainer: ONBMACF) -> pd.DataFrame:
    counts = np.bincount(explainer.labels_[explainer.fitted_.drawn], minlength=len(explainer.classes_))
    frame = pd.DataFrame({"label": [quoted(label) for label in explainer.classes_], "n_rows": counts})
    return frame.assign(share=counts / counts.sum())


def _again(explainer: ONBMACF, about: About, seed: int) -> list[tuple[str, str]]:
    of_committee = () if explainer.committee is not None else ("committee", "agreement")
    files = about.files if explainer.private is None else {}  # a digest lets the last unknown value of a table be tried
    options = {name: value for name, value in explainer.get_params().items() if name not in of_committee}
    return [
        ("Versions", ", ".join(f"{name} {number}" for name, number in versions().items())),
        ("Options", ", ".join(written(name, value) for name, value in options.items())),
        ("Seed of the intervals", str(seed)),
        *((f"File {name}", f"sha256 {digest}") for name, digest in files.items()),
        ("Reproducible", "The same rows, model, options, versions and seed give the same report."),
    ]
