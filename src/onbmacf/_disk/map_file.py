"""Everything a fitted explainer knows but the model, and its way to disk and back.

FittedMap  ->  save  ->  store.write        store.read  ->  load  ->  FittedMap
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._balls.cover import BallCover
from onbmacf._disk.store import read, write
from onbmacf._rows.form import TableForm
from onbmacf._rows.space import FeatureSpace
from onbmacf.errors import StoreError
from onbmacf.rules import Rule, Rules
from onbmacf.schema import Feature, Schema

COVER = ("centers", "radii", "labels", "owner", "reach")


@dataclass(frozen=True, eq=False)
class FittedMap:
    """The fitted state: parameters, encoding, labelled rows and cover."""

    parameters: dict[str, Any]
    output: str
    classes: list[Any]
    warnings: list[str]
    space: FeatureSpace
    Z: NDArray[np.float64]
    labels: NDArray[np.intp]
    cover: BallCover
    probes: NDArray[np.float64]  # fitted rows, as numbers, by which the model is recognised

    def save(self, path: Any) -> None:
        """Write the map to one file."""
        space, form = self.space, self.space.form
        arrays = {"Z": self.Z, "probes": self.probes, "row_labels": self.labels, "low": space.low, "span": space.span}
        arrays |= {f"known_{position}": values for position, values in space.known.items()}
        arrays |= {name: getattr(self.cover, name) for name in COVER}
        manifest = {
            "parameters": {name: _plain(value, f"parameter {name}") for name, value in self.parameters.items()},
            "output": self.output,
            "classes": [_plain(label, "label") for label in self.classes],
            "warnings": self.warnings,
            "features": [_feature_out(feature) for feature in form.schema.features],
            "rules": _rules_out(form.schema.rules),
            "dtypes": [_dtype_out(dtype) for dtype in form.dtypes],
            "array_dtype": None if form.array_dtype is None else np.dtype(form.array_dtype).str,
            "height": space.height,
            "decimals": space.decimals,
        }
        write(path, arrays, manifest)

    @classmethod
    def load(cls, path: Any) -> "FittedMap":
        """Read a map; the rows stay on disk until they are needed."""
        arrays, manifest = read(path)
        schema = Schema(tuple(_feature_in(entry) for entry in manifest["features"]), _rules_in(manifest["rules"]))
        array_dtype = None if manifest["array_dtype"] is None else np.dtype(manifest["array_dtype"])
        form = TableForm(schema, tuple(_dtype_in(entry) for entry in manifest["dtypes"]), array_dtype)
        known = {int(name[6:]): values for name, values in arrays.items() if name.startswith("known_")}
        space = FeatureSpace(
            form, manifest["height"], arrays["low"], arrays["span"], tuple(manifest["decimals"]), known
        )
        return cls(
            parameters=manifest["parameters"],
            output=manifest["output"],
            classes=manifest["classes"],
            warnings=manifest["warnings"],
            space=space,
            Z=arrays["Z"],
            labels=arrays["row_labels"],
            cover=BallCover(*(arrays[name] for name in COVER)),
            probes=arrays["probes"],
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
    }


def _feature_in(entry: dict[str, Any]) -> Feature:
    levels = None if entry["levels"] is None else tuple(entry["levels"])
    return Feature(entry["name"], entry["kind"], entry["immutable"], levels)


def _rules_out(rules: Rules) -> dict[str, Any]:
    features = [[_plain(name, "column name"), asdict(rule)] for name, rule in rules.features.items()]
    return {"features": features, "at_most": rules.at_most, "max_changes": rules.max_changes}


def _rules_in(entry: dict[str, Any]) -> Rules:
    features = {name: Rule(**rule) for name, rule in entry["features"]}
    return Rules(features, tuple(entry["at_most"]), entry["max_changes"])


def _dtype_out(dtype: Any) -> Any:
    if isinstance(dtype, pd.CategoricalDtype):
        categories = [_plain(level, "category") for level in dtype.categories.tolist()]
        return {"categories": categories, "of": str(dtype.categories.dtype), "ordered": bool(dtype.ordered)}
    return str(dtype)


def _dtype_in(entry: Any) -> Any:
    if isinstance(entry, dict):
        categories = pd.Index(entry["categories"], dtype=_dtype_in(entry["of"]))
        return pd.CategoricalDtype(categories, ordered=entry["ordered"])
    if entry == "str" and int(pd.__version__.split(".")[0]) < 3:
        return np.dtype(object)  # pandas 2 keeps text as objects
    return pd.api.types.pandas_dtype(entry)
