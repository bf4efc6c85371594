"""Files of every older layout are read: maps, and the keys of the JSON of answers.

The files in `formats/` were written by the package as it was when each layout was new: `map-1-first` before anything
was added to format 1, the others where a key came or went. A new key of a map needs a new file.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from onbmacf import ONBMACF
from onbmacf._disk import map_check, store

FORMATS = Path(__file__).parent / "formats"
MAPS = sorted(FORMATS.glob("map-*.onb"))
VALUES = ("values", "factual")  # their keys are columns


def model(rows):
    sums = rows["pay"].fillna(0) + 10 * (rows["town"] == "a") + rows["years"]
    return np.where(sums > 60, "yes", "no")


def first_model(rows):
    return np.where(rows["pay"] + 10 * (rows["town"] == "a") > 50, "yes", "no")


def space(rows):
    return np.c_[rows["pay"].fillna(0) / 100, rows["years"] / 40]


def answered(path):
    """Return the model of a saved map, some of its rows, and the answers that it gives today."""
    asked = first_model if path.stem == "map-1-first" else model
    explainer = ONBMACF.load(path, asked, **({"space": space} if path.stem == "map-1-space" else {}))
    rows = explainer.fitted_.space.decode(explainer.Z_).head(6)
    return asked, rows, explainer.explain(rows, target="yes")


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_a_map_of_each_layout_loads_and_gives_answers_that_hold(path):
    asked, rows, answers = answered(path)
    found = answers.to_frame()
    assert set(answers.rows["pay"][answers.labels == "no"].dropna().index) <= set(found.index)
    assert (asked(found[rows.columns]) == "yes").all()
    if "years" in rows:
        assert (found["years"] >= rows["years"].loc[found.index]).all()
    if path.stem not in ("map-1-first", "map-1-blocks"):
        assert (found["town"] == rows["town"].loc[found.index]).all()


def test_every_key_of_a_map_is_in_a_file():
    manifests = [store.read(path)[1] for path in MAPS]
    assert {key for manifest in manifests for key in manifest} >= set(map_check.MANIFEST_KEYS)
    assert {key for manifest in manifests for key in manifest["rules"]} >= set(map_check.RULES_KEYS)
    features = [feature for manifest in manifests for feature in manifest["features"]]
    assert {key for feature in features for key in feature} >= set(map_check.FEATURE_KEYS)


@pytest.mark.parametrize("name", ["missing", "causes"])
def test_the_json_of_answers_keeps_the_keys_and_types_it_had(name):
    before = json.loads((FORMATS / f"explanations-1-{name}.json").read_text("utf-8"))
    now = json.loads(answered(FORMATS / f"map-1-{name}.onb")[2].to_json())
    assert (now["format"], now["version"]) == (before["format"], before["version"])
    assert not keys(before) - keys(now)


def keys(content, place=""):
    """Return each key of a document with where it is and the type of its value; columns are not keys."""
    if isinstance(content, list):
        return {key for part in content for key in keys(part, f"{place}[]")}
    if not isinstance(content, dict) or place.endswith(VALUES):
        return set()
    own = {(f"{place}/{key}", type(value).__name__) for key, value in content.items()}
    return own.union(*(keys(value, f"{place}/{key}") for key, value in content.items()))
