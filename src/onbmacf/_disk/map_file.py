"""A fitted map in one file, without the model.

Fitted, Options  ->  save_map  ->  store.write        store.read  ->  SavedMap  ->  load_map  ->  Fitted, options
"""

import re
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._balls.cover import BallCover
from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Matrix, Rows, objects
from onbmacf._base.checks import check_within
from onbmacf._columns.converters import Converter
from onbmacf._columns.interop import ARGUMENTS, PolarsTypes
from onbmacf._disk.map_causes import causes_in, causes_out
from onbmacf._disk.map_check import check_arrays, check_cover, check_manifest, check_names, check_sizes, check_space
from onbmacf._disk.store import UNREADABLE, read, write
from onbmacf._explain.fitted import Fitted, Whole, learned, options_of_fit, probe_rows
from onbmacf._search.options import DEFAULTS, SAVED, Options
from onbmacf._search.strategies import STRATEGIES, checked
from onbmacf._table.embedding import Embedding
from onbmacf._table.form import TableForm, with_holds
from onbmacf._table.gate import as_given
from onbmacf._table.model import BlackBox
from onbmacf._table.readings import Between, Reading
from onbmacf._table.scales import of_range
from onbmacf._table.space import FeatureSpace
from onbmacf.blocks import Blocks
from onbmacf.errors import InvalidFileError, ModelError, OnbmacfError, ParameterError, StoreError
from onbmacf.rules import Rule, Rules, sentence
from onbmacf.schema import Feature, Schema

MISSING = {"NaN": np.nan, "None": None, "NA": pd.NA, "NaT": pd.NaT}  # what stands for a missing value, by name
NOTICE = (
    "This file holds the fitted table: every row can be read back exactly, with the model's label. "
    "Keep it as you would keep the table."
)
PRIVATE_NOTICE = (
    "This file holds the means and commonest levels of groups of at least {} fitted rows, with the model's labels of "
    "them, and no row itself (private)."
)
ARROW_DECIMAL = re.compile(r"decimal(32|64|128|256)\((\d+), (-?\d+)\)\[pyarrow\]")
STRING_OF = "string of "
CLOSE = 1e-6  # of the largest number of a point: machines differ in the last digits
GONE = ("recover",)  # an option of older maps that changes no answer
COVER = ("centers", "radii", "labels", "owner", "reach")


@dataclass(frozen=True, eq=False)
class SavedMap:
    """What a file holds: everything a fitted explainer knows but the model."""

    options: dict[str, Any]
    output: str
    reading: Reading
    classes: list[Any]
    warnings: list[str]
    space: FeatureSpace
    Z: Matrix
    labels: Rows
    cover: BallCover
    probes: Matrix
    causes: Any = None  # what is known of the causes, and what they said of the probe rows
    followed: Matrix | None = None
    blocks: Blocks | None = None
    space_name: str | None = None  # of the function in whose points the balls lie
    whole: Whole | None = None  # the table of which the rows are a sample


def save_map(path: Any, fitted: Fitted, options: Options) -> None:
    """Write a map to one file."""
    fitted.check(checked(options))
    space, form = fitted.space, fitted.space.form
    probes = space.decode_numbers(fitted.Z[probe_rows(len(fitted.Z))])
    arrays = {"Z": fitted.Z, "probes": probes, "row_labels": fitted.labels}
    arrays |= {"low": space.low, "span": space.span}
    arrays |= {f"known_{position}": values for position, values in space.known.items()}
    arrays |= {name: getattr(fitted.cover, name) for name in COVER}
    manifest = {
        "parameters": {name: _plain(getattr(options, name), f"parameter {name}") for name in SAVED},
        "output": fitted.black_box.output,
        "reading": _reading_out(fitted.black_box.reading),
        "classes": [_plain(label, "label") for label in fitted.black_box.classes],
        "warnings": list(fitted.warnings),
        "features": [_feature_out(feature) for feature in form.schema.features],
        "rules": _rules_out(form.schema.rules),
        "labels": {name: asdict(label) for name, label in form.schema.labels.items()},
        "dtypes": [_dtype_out(dtype) for dtype in form.dtypes],
        "lacking": [next((n for n, known in MISSING.items() if known is value), "NaN") for value in form.lacking],
        "converters": [[at, converter.kind, str(converter.dtype), converter.unit] for at, converter in form.converters],
        "array_dtype": None if form.array_dtype is None else np.dtype(form.array_dtype).str,
        "polars": _polars_out(form.polars),
        "height": space.height,
        "decimals": space.decimals,
        "readable": space.readable,
    }
    if fitted.whole is not None:
        manifest["whole"] = fitted.whole._asdict()
    if fitted.embedding is not None:
        manifest["space"] = fitted.embedding.name
    if fitted.blocks is not None:
        groups = [[_plain(n, "block"), list(columns)] for n, columns in fitted.blocks.groups.items()]
        manifest["blocks"] = {"groups": groups, "shrink": fitted.blocks.shrink, "shape": fitted.blocks.shape}
    if space.effects is not None:
        manifest["causes"], arrays["followed"] = causes_out(space.effects, probes)
    write(path, arrays, manifest, NOTICE if options.private is None else PRIVATE_NOTICE.format(options.private))


def read_map(path: Any) -> SavedMap:
    """Read a map, and check that `fit` could have made it."""
    arrays, manifest = read(path)
    try:
        return _checked_map(path, arrays, manifest)
    except StoreError as error:
        raise type(error)(_named(path, error)) from error
    except (OnbmacfError, MemoryError, *UNREADABLE) as error:
        raise InvalidFileError(_named(path, error)) from error


def _named(path: Any, error: Exception) -> str:
    words = str(error) if isinstance(error, OnbmacfError) else f"{type(error).__name__}: {error}"
    return words if str(path) in words else f"{path} is no map that fit makes: {words}"


def _checked_map(path: Any, arrays: dict[str, Any], content: dict[str, Any]) -> SavedMap:
    manifest = check_manifest(content)
    if content.get("n_fitted") is not None:
        raise StoreError(f"{path} holds rows that were let into the map after fit, as older versions could. Fit again.")
    given = _options(manifest)
    check_names(path, given)
    check_within("agreement", given.get("agreement", 0), 0, 1)
    options = checked(Options(**{**given, "agreement": 0}))  # the committee that it is about is not in the file
    check_sizes(options, len(manifest["features"]), Path(path).stat().st_size)
    space = _space(arrays, manifest)
    check_arrays(arrays, manifest, space.width)
    Z, labels, cover = arrays["Z"], arrays["row_labels"], BallCover(*(arrays[name] for name in COVER))
    check_space(space, Z, arrays["probes"], options, "readable" in manifest)
    whole = Whole(**manifest["whole"]) if "whole" in manifest else None
    if manifest.get("space") is None:
        check_cover(cover, Z, labels, space, options, is_part=whole is not None)
    return SavedMap(
        options=given,
        output=manifest["output"],
        reading=_reading_in(manifest.get("reading")),
        classes=list(manifest["classes"]),
        warnings=list(manifest["warnings"]),
        space=space,
        Z=Z,
        labels=labels,
        cover=cover,
        probes=arrays["probes"],
        causes=manifest.get("causes"),
        followed=arrays.get("followed"),
        blocks=_blocks_in(manifest.get("blocks"), space.schema),
        space_name=manifest.get("space"),
        whole=whole,
    )


def _blocks_in(entry: Any, schema: Schema) -> Blocks | None:
    """Return the blocks of a map, for its columns."""
    if entry is None:
        return None
    shape = None if entry["shape"] is None else tuple(entry["shape"])
    blocks = Blocks(dict(entry["groups"]), entry["shrink"])
    if shape is not None and prod(shape) != len(schema.names):
        raise InvalidFileError(f"blocks of shape {shape} are not for {len(schema.names)} columns.")
    return replace(Blocks.of(blocks, schema.names), shape=shape)


def _embedding(saved: SavedMap, function: Any, metric: Any) -> Embedding | None:
    """Return the function that makes the points of a map, as far as its balls show that it is the same."""
    if saved.space_name is None and function is not None:
        raise ParameterError("this map was saved without space, which changes the answers. Fit again with it.")
    if saved.space_name is None:
        return None
    if function is None:
        raise ParameterError(
            f"balls and neighbours of this map live in space={saved.space_name}, which is not in the file. Give it "
            "again; in Python, ONBMACF.load(path, model, space=space)."
        )
    form, cover = saved.space.form, saved.cover
    embedding, points = Embedding.of(function, form, as_given(form, saved.space.decode_numbers(saved.Z)))
    owned = np.flatnonzero(cover.owner >= 0)
    owner = cover.owner[owned]
    apart = paired(points[owned], points[cover.centers[owner]], metric)
    if (apart > cover.radii[owner] + CLOSE * embedding.unit).any():
        raise ParameterError(f"space is not the one that the map was saved with, {saved.space_name}. Fit again.")
    return embedding


def load_map(path: Any, model: Any, causes: Any = None, space: Any = None) -> tuple[Fitted, dict[str, Any]]:
    """Return a saved map with its model, which is asked the probe rows first, and the options it was saved with.

    So are causes, as far as they are not in the file.
    """
    saved = read_map(path)
    encoding = saved.space
    if saved.causes and saved.followed is not None:
        effects = causes_in(encoding, saved.Z, saved.probes, saved.causes, saved.followed, causes)
        encoding = replace(encoding, effects=effects)
    elif causes is not None:
        raise ParameterError("this map was saved without causes, which change the answers. Fit again with them.")
    options = Options(**saved.options)
    how = (saved.space.form, options.predict_chunk, saved.output, objects(saved.classes))
    box = BlackBox(model, *how, reading=saved.reading)
    differ = int((box.ask(saved.probes) != saved.labels[probe_rows(len(saved.Z))]).sum())
    if differ:
        raise ModelError(
            f"{Path(path)} was made for another model: {differ} of {len(saved.probes)} probe rows differ. Fit again."
        )
    probes = probe_rows(len(saved.Z))
    box = learned(box, saved.probes, probes, saved.labels[probes])
    parts = (saved.Z, saved.labels, saved.cover, saved.probes, options_of_fit(options), tuple(saved.warnings))
    embedding = _embedding(saved, space, options.metric)
    more: dict[str, Any] = {"embedding": embedding, "blocks": saved.blocks, "whole": saved.whole}
    return Fitted(encoding, box, *parts, **more), saved.options


def _space(arrays: dict[str, Any], manifest: dict[str, Any]) -> FeatureSpace:
    schema = Schema(tuple(_feature_in(entry) for entry in manifest["features"]), _rules_in(manifest["rules"]))
    schema = replace(schema, labels=manifest.get("labels", {}))
    array_dtype = None if manifest["array_dtype"] is None else np.dtype(manifest["array_dtype"])
    dtypes = tuple(_dtype_in(entry) for entry in manifest["dtypes"])
    lacking = tuple(MISSING[name] for name in manifest.get("lacking", ()))
    converters = tuple((at, _converter_in(*entry)) for at, *entry in manifest.get("converters", ()))
    schema = with_holds(schema, dict(converters))
    form = TableForm(schema, dtypes, array_dtype, lacking, converters, _polars_in(manifest.get("polars")))
    known = {int(name[6:]): values for name, values in arrays.items() if name.startswith("known_")}
    scales = (arrays["low"], arrays["span"], tuple(manifest["decimals"]), known)
    return FeatureSpace(form, manifest["height"], *scales, _readable(manifest, schema, arrays["span"]))


def _options(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the options without those that do nothing.

    In old maps release="immutable" was the default and not what the caller asked for: it is left open.
    """
    given: dict[str, Any] = manifest["parameters"]
    strategy = STRATEGIES.get(given.get("strategy", DEFAULTS["strategy"]))
    idle = GONE if strategy is None else (*GONE, *strategy.ignores)
    options = {name: value for name, value in given.items() if name not in idle}
    if "readable" not in manifest and options.get("release") == "immutable":
        options["release"] = None
    return options


def _readable(manifest: dict[str, Any], schema: Schema, span: Matrix) -> tuple[int | None, ...]:
    """Return the decimals of changed values; older maps do not hold them and go by the range alone."""
    if "readable" in manifest:
        return tuple(manifest["readable"])
    weights = [rule.weight if (rule := schema.rules.features.get(name)) else 1.0 for name in schema.names]
    return tuple(
        of_range(float(width) * weight) if feature.kind == "continuous" else None
        for feature, width, weight in zip(schema.features, span, weights, strict=True)
    )


def _plain(value: Any, what: str) -> Any:
    """Return a value that JSON brings back as it was."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    raise StoreError(f"{what} {value!r} cannot be saved: only text, numbers and bools can.")


def _feature_out(feature: Feature) -> dict[str, Any]:
    levels = (
        None if feature.levels is None else [_plain(level, f"level of {feature.name!r}") for level in feature.levels]
    )
    return {
        "name": _plain(feature.name, "column name"),
        "kind": feature.kind,
        "immutable": feature.immutable,
        "levels": levels,
        "decimals": feature.decimals,
        "missing": feature.missing,
        "fillable": feature.fillable,
        "held": feature.held,
        "step": feature.step,
    }


def _feature_in(entry: dict[str, Any]) -> Feature:
    flags = {flag: entry.get(flag, False) for flag in ("missing", "fillable", "held")}
    more = {"levels": entry["levels"], "decimals": entry.get("decimals"), "step": entry.get("step")}
    return Feature(entry["name"], entry["kind"], entry["immutable"], **more, **flags)


def _converter_in(kind: str, dtype: str, unit: str) -> Converter:
    try:
        return Converter(kind, _dtype_in(dtype), unit)
    except (TypeError, NotImplementedError) as error:
        raise StoreError(f"a column of dtype {dtype} cannot be read from a map: {error}. Fit again.") from error


def _polars_out(types: PolarsTypes | None) -> list[list[Any]] | None:
    """Return the dtypes of polars; None, as in older maps, where the fitted table is of another library."""
    if types is None:
        return None
    entries = types.described()
    other = [str(dtype) for dtype, (name, *_) in zip(types.dtypes, entries, strict=True) if name not in ARGUMENTS]
    if other or PolarsTypes.from_description(entries) != types:
        words = other[0] if other else "Categorical with categories of its own"
        raise StoreError(f"a column of polars' dtype {words} cannot be saved. Cast it before fit.")
    return entries


def _polars_in(entries: list[Any] | None) -> PolarsTypes | None:
    try:
        return None if entries is None else PolarsTypes.from_description(entries)
    except ImportError as error:
        raise StoreError("this map is for a model that takes frames of polars: pip install polars.") from error


def _reading_out(reading: Reading) -> dict[str, Any] | None:
    """Return how the model's answers are read; None, as in older maps, where they are taken as they are."""
    if reading.is_plain:
        return None
    names = None if reading.classes is None else [_plain(label, "label") for label in reading.classes]
    ends = None
    if reading.between is not None:
        both = reading.between.low, reading.between.high
        ends = [float(end) if np.isfinite(end) else None for end in both]  # JSON has no infinity
    return {"threshold": reading.threshold, "classes": names, "between": ends}


def _reading_in(entry: dict[str, Any] | None) -> Reading:
    if entry is None:
        return Reading()
    low, high = entry["between"] or (None, None)
    ends = {name: end for name, end in (("low", low), ("high", high)) if end is not None}
    return Reading.of(entry["threshold"], entry["classes"], Between(**ends) if ends else None)


def _rules_out(rules: Rules) -> dict[str, Any]:
    features = [[_plain(name, "column name"), asdict(rule)] for name, rule in rules.features.items()]
    relations = {"relations": [sentence(one) for one in rules.relations]} if rules.relations else {}
    return {"features": features, "at_most": rules.at_most, "max_changes": rules.max_changes, **relations}


def _rules_in(entry: dict[str, Any]) -> Rules:
    features = {name: Rule(**rule) for name, rule in entry["features"]}
    return Rules(features, tuple(entry["at_most"]), entry["max_changes"], relations=entry.get("relations", ()))


def _dtype_out(dtype: Any) -> Any:
    if isinstance(dtype, pd.CategoricalDtype):
        categories = [_plain(level, "category") for level in dtype.categories.tolist()]
        return {"categories": categories, "of": str(dtype.categories.dtype), "ordered": bool(dtype.ordered)}
    if str(dtype) == "string" and dtype != pd.StringDtype():  # pandas writes both of its kinds of text alike
        return f"{STRING_OF}{dtype.storage}"
    return str(dtype)


def _dtype_in(entry: Any) -> Any:
    if isinstance(entry, dict):
        categories = pd.Index(entry["categories"], dtype=_dtype_in(entry["of"]))
        return pd.CategoricalDtype(categories, ordered=entry["ordered"])
    if entry == "str" and int(pd.__version__.split(".")[0]) < 3:
        return np.dtype(object)  # pandas 2 keeps text as objects
    if entry == "string[pyarrow]":  # pandas reads this as a dtype of its own, which it writes as "string"
        return _arrow("string")
    if isinstance(entry, str) and entry.startswith(STRING_OF):
        return pd.StringDtype(entry.removeprefix(STRING_OF))
    if isinstance(entry, str) and (found := ARROW_DECIMAL.fullmatch(entry)):
        return _arrow(f"decimal{found[1]}", int(found[2]), int(found[3]))
    return pd.api.types.pandas_dtype(entry)


def _arrow(kind: str, *arguments: int) -> Any:
    """Return a dtype of pyarrow that pandas writes as text but does not read as the same."""
    return pd.ArrowDtype(getattr(import_module("pyarrow"), kind)(*arguments))
