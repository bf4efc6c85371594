"""The facts of a notice in the words of a language.

facts, words  ->  described  ->  what the templates show
"""

from collections.abc import Mapping, Sequence
from typing import Any

from onbmacf._columns.moments import is_moment_text
from onbmacf._text.wording import quoted, shown, whole_percent

Words = Mapping[str, str]


def described(facts: Mapping[str, Any], words: Words, language: str) -> dict[str, Any]:
    """Return everything that a page shows, as text."""
    answer = facts["answer"]
    return {
        "language": language,
        "words": words,
        "head": [(words["reference"], shown(answer["row"])), (words["date"], facts["date"])],
        "decision": _decision(facts, words),
        "reasons": [_reason(reason, words) for reason in facts["reasons"]] or [_no_reasons(answer, words)],
        "plans": [_plan(n, found, words) for n, found in enumerate(answer["counterfactuals"], start=1)],
        "no_plan": "" if answer["counterfactuals"] else _no_plan(answer, words),
        "would_not": _would_not(facts, words) or [words["not_nothing"]],
        "asked": _asked(facts, words),
        "again": [
            (words["contact"], facts["contact"] or words["contact_blank"]),
            (words["review"], facts["review"] or words["review_blank"]),
        ],
        "limits": [words["limit_model"], words["limit_values"]],
    }


def _decision(facts: Mapping[str, Any], words: Words) -> list[str]:
    wanted = f" {words['or']} ".join(quoted(label) for label in facts["wanted"]) or words["any_other"]
    said = words["decision"].format(label=quoted(facts["answer"]["label"]))
    return [said, words["decision_wanted"].format(wanted=wanted)]


def _reason(reason: Mapping[str, Any], words: Words) -> str:
    own = {"feature": reason["feature"], "value": shown(reason["value"])}
    if not reason["alone"]:
        return words["reason_together"].format(**own)
    key = "reason_only" if reason["n_asked"] == 1 else "reason_alone"
    counts = {name: _whole(reason[name], words) for name in ("n_asked", "n_reached")}
    return words[key].format(**own, **counts, nearest=shown(reason["nearest"]))


def _no_reasons(answer: Mapping[str, Any], words: Words) -> str:
    """Return why no reason is named: none is needed, the model was not asked, or none was found."""
    if answer["status"] == "already":
        return words["reasons_already"]
    return words["reasons_none" if f"no_plan_{answer['status']}" in words else "reasons_unasked"]


def _plan(number: int, found: Mapping[str, Any], words: Words) -> dict[str, Any]:
    together = {own["feature"]: own for own in found.get("box") or ()}  # what is read in one table holds together
    rows = [
        (
            change["feature"],
            shown(change["before"]),
            shown(change["after"]),
            _works(together.get(change["feature"]), words),
        )
        for change in found["changes"]
    ]
    sure, label = found["probability"], quoted(found["label"])
    note = "" if sure is None else words["plan_sure"].format(label=label, percent=whole_percent(sure))
    heads = [words[key] for key in ("feature", "now", "then", "works")]
    return {"title": words["plan"].format(number=number), "heads": heads, "rows": rows, "note": note}


def _works(own: Mapping[str, Any] | None, words: Words) -> str:
    """Return the range around a value in words; empty where it was not asked for."""
    if own is None:
        return ""
    if own["levels"] is not None:
        levels = [shown(level) for level in own["levels"]]
        return words["one_of"].format(levels=", ".join(levels)) if len(levels) > 1 else words["exactly"]
    low, high = shown(own["low"]), shown(own["high"])
    if own["low"] == own["high"]:
        return words["exactly"]
    if own["reaches_low"] != own["reaches_high"]:
        most, least = ("not_after", "not_before") if is_moment_text(own["high"]) else ("at_most", "at_least")
        return words[most].format(high=high) if own["reaches_low"] else words[least].format(low=low)
    return words["between"].format(low=low, high=high)


def _no_plan(answer: Mapping[str, Any], words: Words) -> str:
    key = f"no_plan_{answer['status']}"
    if key not in words:
        return words["no_plan_other"].format(reason=answer["reason"])
    if not answer["would_need"]:
        return words[key]
    return f"{words[key]} {words['no_plan_needs'].format(needs=_list(answer['would_need'], words))}"


def _would_not(facts: Mapping[str, Any], words: Words) -> list[str]:
    kept = next((found["semifactual"] for found in facts["answer"]["counterfactuals"][:1]), None)
    said = []
    if kept is not None:
        parts = [words["even_if_change"].format(**_shown(change)) for change in kept["changes"]]
        said.append(words["even_if"].format(changes=_list(parts, words)))
    if facts["no_help"]:
        said.append(words["no_help"].format(features=", ".join(str(name) for name in facts["no_help"])))
    return said


def _shown(change: Mapping[str, Any]) -> dict[str, str]:
    return {name: shown(value) for name, value in change.items()}


def _asked(facts: Mapping[str, Any], words: Words) -> list[tuple[str, str]]:
    kept = ", ".join(str(name) for name in facts["kept"]) or words["kept_none"]
    count = words["questions_text"].format(count=_whole(facts["n_questions"], words))
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
