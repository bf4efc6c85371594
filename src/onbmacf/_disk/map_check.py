"""Whether what a file holds is a map that `fit` makes: `load` runs the checks of `fit`, without the model.

    manifest  ->  check_manifest  ->  typed, with bounds
    arrays, options, space  ->  check_arrays  ->  shapes and numbers
    rows decoded  ->  check_space, check_cover  ->  form, scales and cover made again, and compared

A map whose digests are right may still be forged, or come from a broken writer. It is refused where it is not what
`fit` would have made of the rows, options and rules in it (docs/decisions/0060-maps-are-checked.md).
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from onbmacf._balls.cover import BallCover
from onbmacf._balls.distance import distances, paired
from onbmacf._balls.metrics import one_hot_height
from onbmacf._base.arrays import Matrix, Rows
from onbmacf._base.checks import Check, checked, count, flag, level, listed, number, optional, sequence, table, word
from onbmacf._columns.converters import CONVERSIONS
from onbmacf._columns.interop import ARGUMENTS
from onbmacf._columns.kinds import KINDS
from onbmacf._disk.map_causes import check_causes
from onbmacf._explain.fitted import cover_table, groups_of, probe_rows
from onbmacf._search.options import NAMES, Options
from onbmacf._table.constraints import Constraints
from onbmacf._table.form import TableForm
from onbmacf._table.gate import as_given
from onbmacf._table.model import OUTPUTS
from onbmacf._table.private import check_groups
from onbmacf._table.scales import weights_of
from onbmacf._table.space import FeatureSpace
from onbmacf._text.labels import Labels
from onbmacf.errors import InvalidFileError, StoreError
from onbmacf.rules import PAIRS, RULE_KEYS

WORK = 2e8  # rows x rows x columns up to which the whole cover is made again: a second
SAMPLE = 32  # rows of a larger one whose nearest enemy is looked for again
MOST_BYTES = 1 << 24  # that one call of the model may hand over, or so many times the file: see LEAST_SHARE
LEAST_SHARE = 8
MOST_JOBS = 256
LATER = (
    "reading",
    "lacking",
    "converters",
    "polars",
    "labels",
    "causes",
    "blocks",
    "space",
    "whole",
)  # that older maps lack
SINCE_READABLE = "agreement"  # an option that came after the key `readable`: only maps without it may lack the key


# --- the manifest -----------------------------------------------------------------------------------------------------


def _converter(name: str, entry: Any) -> list[Any]:
    """Return a column's position, and the kind, dtype and unit of its converter."""
    at, kind, dtype, unit = sequence(level, length=4)(name, entry)
    return [count(0)(name, at), word(*CONVERSIONS)(name, kind), word()(name, dtype), word()(name, unit)]


def _polars_type(name: str, entry: Any) -> list[Any]:
    """Return the name of a dtype of polars, its arguments, and whether missing values are NaN."""
    dtype, arguments, is_nan = sequence(lambda _, value: value, length=3)(name, entry)
    expected = ARGUMENTS[word(*ARGUMENTS)(name, dtype)]
    either = optional(
        lambda where, value: sequence(word())(where, value) if expected == ("categories",) else level(where, value)
    )
    return [dtype, list(sequence(either, length=len(expected))(name, arguments)), flag(name, is_nan)]


def _named_rule(name: str, entry: Any) -> tuple[Any, dict[str, Any]]:
    feature, rule = sequence(lambda _, value: value, length=2)(name, entry)
    return level(name, feature), checked(f"{name}: rule for {feature!r}", rule, RULE_KEYS)


def _group(name: str, entry: Any) -> tuple[Any, list[Any]]:
    block, columns = sequence(lambda _, value: value, length=2)(name, entry)
    return level(name, block), list(sequence(level, least=1)(name, columns))


_DECIMALS = sequence(optional(count(-400, 400)))
FEATURE_KEYS: dict[str, Check] = {
    "name": level,
    "kind": word(*KINDS),
    "immutable": flag,
    "levels": optional(sequence(level)),
    "decimals": optional(count(0, 400)),
    "missing": flag,
    "fillable": flag,
    "held": flag,
    "step": optional(count(1)),
}
READING_KEYS: dict[str, Check] = {
    "threshold": optional(number(finite=True)),
    "classes": optional(sequence(level)),
    "between": optional(sequence(optional(number()), length=2)),
}
DTYPE_KEYS: dict[str, Check] = {"categories": sequence(level), "of": word(), "ordered": flag}
RULES_KEYS: dict[str, Check] = {
    "features": sequence(_named_rule),
    "at_most": PAIRS,
    "max_changes": optional(count(1)),
    "relations": sequence(word()),
}
BLOCK_KEYS: dict[str, Check] = {
    "groups": sequence(_group, least=1),
    "shrink": flag,
    "shape": optional(sequence(count(1), least=1)),
}
WHOLE_KEYS: dict[str, Check] = {"n_rows": count(2), "n_sampled": count(1), "share": number(finite=True)}
MANIFEST_KEYS: dict[str, Check] = {
    "parameters": table,
    "output": word(*OUTPUTS),
    "classes": sequence(level, least=2),
    "warnings": sequence(word()),
    "features": sequence(lambda name, entry: checked(name, entry, FEATURE_KEYS, tuple(FEATURE_KEYS)[:4])),
    "rules": lambda name, entry: checked(name, entry, RULES_KEYS, [*RULES_KEYS][:3]),
    "dtypes": sequence(lambda name, entry: entry if isinstance(entry, str) else checked(name, entry, DTYPE_KEYS)),
    "array_dtype": optional(word()),
    "height": number(above=0, finite=True),
    "decimals": _DECIMALS,
    "readable": _DECIMALS,
    "lacking": sequence(word("NaN", "None", "NA", "NaT")),
    "reading": optional(lambda name, entry: checked(name, entry, READING_KEYS, READING_KEYS)),
    "converters": sequence(_converter),
    "polars": optional(sequence(_polars_type)),
    "labels": lambda _, entry: Labels.of(entry),
    "causes": check_causes,
    "space": optional(word()),
    "whole": lambda name, entry: checked(name, entry, WHOLE_KEYS, WHOLE_KEYS),
    "blocks": lambda name, entry: checked(name, entry, BLOCK_KEYS, BLOCK_KEYS),
}


def check_manifest(manifest: Any) -> dict[str, Any]:
    """Return a manifest whose entries have the types and bounds of a map's; keys of others are left out."""
    known = {key: value for key, value in table("manifest", manifest).items() if key in MANIFEST_KEYS}
    is_old = SINCE_READABLE not in table("parameters", known.get("parameters"))
    required = [key for key in MANIFEST_KEYS if key not in LATER and not (is_old and key == "readable")]
    return checked("manifest", known, MANIFEST_KEYS, required)


# --- the map ----------------------------------------------------------------------------------------------------------


def check_names(path: Any, options: Mapping[str, Any]) -> None:
    """Raise an error if a map was saved with an option that this version does not have."""
    unknown = [name for name in options if name not in NAMES]
    if unknown:
        raise StoreError(f"{path} was saved with the option {unknown[0]!r}, which this version lacks. Build it again.")


def check_sizes(options: Options, n_features: int, n_bytes: int) -> None:
    """Raise an error if an option makes a call or the processes larger than a file of this size gives reason for."""
    most = max(MOST_BYTES, LEAST_SHARE * n_bytes)
    if options.predict_chunk * n_features * 8 > most:
        raise InvalidFileError(f"predict_chunk={options.predict_chunk:,} makes calls of more than {most:,} bytes.")
    if options.n_jobs > MOST_JOBS:
        raise InvalidFileError(f"n_jobs={options.n_jobs:,} is more than {MOST_JOBS} processes.")


def check_arrays(arrays: Mapping[str, Any], manifest: Mapping[str, Any], width: int) -> None:
    """Raise an error if an array is missing, has another shape than the others say, or holds what it cannot hold."""
    n_rows, n_balls, n_features = len(arrays["Z"]), len(arrays["centers"]), len(manifest["features"])
    n_probes, n_classes = len(probe_rows(max(n_rows, 1))), len(manifest["classes"])
    shapes = {"Z": (n_rows, width), "row_labels": (n_rows,), "owner": (n_rows,), "reach": (n_rows,)}
    shapes |= {"centers": (n_balls,), "radii": (n_balls,), "labels": (n_balls,)}
    shapes |= {"low": (n_features,), "span": (n_features,), "probes": (n_probes, n_features)}
    for name, shape in shapes.items():
        _is(arrays[name].shape == shape, f"{name} has shape {arrays[name].shape} instead of {shape}")
    is_sampled = arrays["reach"].dtype.kind == "f" and bool(np.isnan(arrays["reach"]).any())
    for name, end in {"row_labels": n_classes, "labels": n_classes, "owner": n_balls, "centers": n_rows}.items():
        array, least = arrays[name], -1 if name == "owner" and is_sampled else 0
        _is(array.dtype.kind == "i", f"{name} holds no whole numbers")
        _is(bool(((array >= least) & (array < end)).all()), f"{name} holds numbers outside {least} to {end - 1}")
    _is(arrays["probes"].dtype.kind == "f" and not np.isinf(arrays["probes"]).any(), "probes holds infinite numbers")
    for name in ("Z", "low", "span", "radii", "reach", *(n for n in arrays if n.startswith("known_"))):
        known = arrays[name][~np.isnan(arrays[name])] if name == "reach" and is_sampled else arrays[name]
        _is(arrays[name].dtype.kind == "f" and bool(np.isfinite(known).all()), f"{name} holds no finite numbers")
    if manifest.get("causes"):
        is_array = "followed" in arrays and arrays["followed"].dtype.kind == "f"
        _is(is_array and arrays["followed"].shape == shapes["probes"], "followed is missing, or no rows of numbers")
    _is(bool((arrays["span"] > 0).all()), "a span is not above 0")
    _is(bool((arrays["radii"] >= 0).all() and not (arrays["reach"] < 0).any()), "a radius is below 0")
    places = [entry[0] for entry in manifest.get("converters", ())]
    _is(all(at < n_features for at in places), f"a converter is for a column beyond the {n_features} features")
    for name in ("features", "dtypes", "decimals", *(n for n in ("readable", "lacking", "polars") if manifest.get(n))):
        _is(len(manifest[name]) == n_features, f"{name} has {len(manifest[name])} entries for {n_features} features")


def check_space(space: FeatureSpace, Z: Matrix, probes: Matrix, options: Options, has_readable: bool) -> None:
    """Raise an error if the rows, decoded, are no table for `fit`, or do not give this form, encoding and points."""
    N = space.decode_numbers(Z)
    _is(np.array_equal(N[probe_rows(len(N))], probes, equal_nan=True), "the probe rows are not rows of the map")
    _is(options.private is None or check_groups(N, options.private), "a row is there fewer times than private says")
    N = as_given(space.form, N)  # a narrow float is decoded to as many decimals as it has
    rows = space.form.rows_for_model(N)
    form = TableForm.fit(rows, space.schema)
    numbers = form.numbers(form.arrange(rows)[0])
    _is(np.array_equal(numbers, N, equal_nan=True), "the rows do not survive the dtypes of their columns")
    for name in ("schema", "dtypes", "array_dtype", "converters", "polars"):
        _is(getattr(form, name) == getattr(space.form, name), f"the rows have another {name}")
    again = FeatureSpace.of_numbers(form, N, one_hot_height(options.metric))
    # Older maps have a column per level also for a category that is set aside now.
    again = replace(again, span=np.where(space.is_group, 1.0 / weights_of(form.schema), again.span))
    Constraints(again, again.schema.rules)
    names = [field.name for field in fields(FeatureSpace) if field.name not in ("form", "readable", "origin")]
    for name in [*names, "readable"] if has_readable else names:
        _is(_same(getattr(again, name), getattr(space, name)), f"the rows give another {name}")
    _is(np.array_equal(again.encode_numbers(N), Z), "the rows are encoded otherwise")


def check_cover(
    cover: BallCover, Z: Matrix, labels: Rows, space: FeatureSpace, options: Options, is_part: bool = False
) -> None:
    """Raise an error if the balls are no cover of the rows; of a small map also if `fit` makes another.

    Where the rows are a part of the table, enemies that are not among them may be nearer.
    """
    metric, of_all = options.metric, replace(options, cover_rows=None)
    _is(np.array_equal(labels[cover.centers], cover.labels), "a ball has another label than its centre")
    owned = np.flatnonzero(cover.owner >= 0)  # all, but beside a covered sample
    owner = cover.owner[owned]
    _is(np.array_equal(cover.labels[owner], labels[owned]), "a row is owned by a ball of another label")
    _is(len(np.unique(cover.centers)) == len(cover), "two balls have one centre")
    apart, radii = paired(Z[owned], Z[cover.centers[owner]], metric), cover.radii[owner]
    _is(bool(((apart < radii) | (apart == 0)).all()), "a row lies outside the ball that owns it")
    _is(len(np.unique(labels)) == int(labels.max()) + 1, "a label has no row")
    is_reach = np.array_equal(cover.reach[cover.centers], cover.radii)
    _is(is_reach, "a ball's radius is not the reach of its centre")
    if not is_part and len(Z) * len(Z) * Z.shape[1] <= WORK:
        again = cover_table(Z, labels, options if cover.is_sampled else of_all, groups=groups_of(space))
        other = [name for name in fields(BallCover) if not _same(getattr(again, name.name), getattr(cover, name.name))]
        _is(not other, f"the cover of these rows has other {listed(field.name for field in other)}")
    measured = np.flatnonzero(~np.isnan(cover.reach))
    for row in measured[np.linspace(0, len(measured) - 1, SAMPLE).astype(int)]:
        nearest = distances(Z[row : row + 1], Z[labels != labels[row]], metric).min()
        is_reach = cover.reach[row] <= nearest if is_part else cover.reach[row] == nearest
        _is(bool(is_reach), f"row {row} has another nearest row of another label")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f")) if isinstance(a, np.ndarray) else bool(a == b)


def _is(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidFileError(f"{otherwise}.")
