"""What was proven of answers, and the ranges around them, as parts of a file: ends as numbers, the rest as words.

ranges of a batch  ->  split_ranges  ->  ends (matrices of numbers), words  ->  joined_ranges  ->  ranges
certificates       ->  certificate_words  ->  words  ->  certificates_of  ->  certificates
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.arrays import objects
from onbmacf._base.enums import CertificateKind
from onbmacf._rows.form import TableForm
from onbmacf._text.ranges import Range
from onbmacf.certificate import Certificate

ENDS = ("low", "high")
REST = ("n_asked", "reaches_low", "reaches_high")


def split_ranges(ranges: NDArray[Any], values: pd.DataFrame, form: TableForm) -> tuple[dict[str, Any], list[Any]]:
    """Return the ends of ranges as numbers, one line per counterfactual, and what else they say as words.

    `values` are those of the counterfactuals: they stand where a feature has no ends.
    """
    ends = {end: form.numbers(_with_ends(ranges, values, end)) for end in ENDS}
    return ends, [None if own is None else [_words(one, form) for one in own.values()] for own in ranges]


def joined_ranges(ends: Mapping[str, Any], words: list[Any], form: TableForm) -> NDArray[Any]:
    """Return the ranges that `split_ranges` took apart."""
    frames = [form.frame(ends[end]) for end in ENDS]
    found = []
    for line, own in enumerate(words):
        ranges = [_range(told, [frame.iloc[line, told["at"]] for frame in frames], form) for told in own or ()]
        found.append(None if own is None else {one.feature: one for one in ranges})
    return objects(found)


def _with_ends(ranges: NDArray[Any], values: pd.DataFrame, end: str) -> pd.DataFrame:
    columns = {
        name: pd.Series([_end(own, name, end, value) for own, value in zip(ranges, column, strict=True)], dtype=dtype)
        for (name, column), dtype in zip(values.items(), values.dtypes, strict=True)
    }
    return pd.DataFrame(columns)


def _end(ranges: Any, name: Any, end: str, value: Any) -> Any:
    own = (ranges or {}).get(name)
    return value if own is None or own.levels is not None else getattr(own, end)


def _words(own: Range, form: TableForm) -> dict[str, Any]:
    at = form.schema.names.index(own.feature)
    levels = None if own.levels is None else [(form.schema.features[at].levels or ()).index(one) for one in own.levels]
    return {"at": at, "levels": levels, **{name: getattr(own, name) for name in REST}}


def _range(told: Mapping[str, Any], ends: list[Any], form: TableForm) -> Range:
    feature = form.schema.features[told["at"]]
    rest = [told[name] for name in REST]
    if told["levels"] is None:
        low, high = ends
        return Range(feature.name, low, high, None, *rest)
    return Range(feature.name, None, None, tuple((feature.levels or ())[code] for code in told["levels"]), *rest)


def certificate_words(certificates: NDArray[Any] | None) -> list[Any] | None:
    """Return certificates as dicts, None where there is none."""
    return None if certificates is None else [None if one is None else asdict(one) for one in certificates]


def certificates_of(words: list[Any] | None) -> NDArray[Any] | None:
    """Return the certificates that `certificate_words` took apart."""
    return None if words is None else objects([None if one is None else _certificate(one) for one in words])


def _certificate(told: Mapping[str, Any]) -> Certificate:
    return Certificate(**{**told, "kind": CertificateKind(told["kind"])})
