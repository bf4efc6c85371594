"""The border where maps come in: a file with right digests is refused with a typed error, or answers as a fresh fit."""

import os

import numpy as np
import pandas as pd
import pytest

import forging
from onbmacf import ONBMACF
from onbmacf._disk import store
from onbmacf.errors import (
    CorruptFileError,
    ForeignFileError,
    InvalidFileError,
    ModelError,
    OnbmacfError,
    ParameterError,
    StoreError,
)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("maps") / "map.onb"
    forging.explainer().save(path)
    return path


def set_at(place, value):
    """Return a function that sets an entry of the manifest, or of an array."""

    def change(arrays, manifest):
        first, *rest, last = place if len(place) > 1 else (None, *place)
        at = manifest if first is None else arrays[first] if first in arrays else manifest[first]
        for key in rest:
            at = at[key]
        at[last] = value

    return change


def turned(arrays, _):
    """Put the balls into another order: every ball and every owner is still right."""
    arrays.update({name: arrays[name][::-1].copy() for name in ("centers", "radii", "labels")})
    arrays["owner"] = len(arrays["centers"]) - 1 - arrays["owner"]


def hair_off(row):
    row[0] = np.nextafter(row[0], 2)


FORGED = {
    "a span of 0": (set_at(("span", 0), 0.0), "a span is not above 0"),
    "a span below 0": (set_at(("span", 0), -1.0), "a span is not above 0"),
    "another span": (set_at(("span", 0), 1.0), "probe rows are not rows of the map|the rows give another span"),
    "an infinite height": (set_at(("height",), float("inf")), "height must be a number above 0, got inf"),
    "another height": (set_at(("height",), 1.0), "the rows give another height"),
    "a memory bomb": (set_at(("parameters", "predict_chunk"), 2**31), "predict_chunk must be at most 1,000,000"),
    "a large call": (set_at(("parameters", "predict_chunk"), 10**6), "predict_chunk=1,000,000 makes calls of"),
    "a thousand processes": (set_at(("parameters", "n_jobs"), 1000), "n_jobs=1,000 is more than 256 processes"),
    "many answers": (set_at(("parameters", "n_counterfactuals"), 10**12), "must be at most 100,000"),
    "text as an option": (set_at(("parameters", "plausibility"), "a"), r"plausibility must be in \[0, 1\]"),
    "an agreement above 1": (set_at(("parameters", "agreement"), 2**31), r"agreement must be in \[0, 1\]"),
    "a list as a metric": (set_at(("parameters", "metric"), ["a"]), "metric"),
    "an option that is none": (set_at(("parameters", "x"), 1), "saved with the option 'x', which this version lacks"),
    "one label": (set_at(("classes",), ["low"]), "classes must be a list of at least 2"),
    "other labels": (set_at(("classes",), ["a", "b"]), "probe rows differ|labels|'low'"),
    "a row of another label": (set_at(("row_labels", 20), 7), "row_labels holds numbers outside 0 to 1"),
    "a label changed": (lambda arrays, _: arrays["row_labels"].__setitem__(20, 1 - arrays["row_labels"][20]), "label"),
    "a centre that is no row": (set_at(("centers", 0), 10**9), "centers holds numbers outside 0 to 44"),
    "an owner that is no ball": (set_at(("owner", 0), -1), "owner holds numbers outside"),
    "a radius that is none": (set_at(("radii", 0), float("nan")), "radii holds no finite numbers"),
    "a larger radius": (set_at(("radii", 0), 1e9), "a ball's radius is not the reach of its centre"),
    "a larger reach": (set_at(("reach", 3), 1e9), "the cover of these rows has other 'reach'|not the reach"),
    "a row moved": (set_at(("Z", 3, 0), 0.123456), "the probe rows are not rows of the map"),
    "a row at infinity": (set_at(("Z", 3, 0), float("inf")), "Z holds no finite numbers"),
    "a row a hair off": (lambda arrays, _: hair_off(arrays["Z"][3]), "the rows are encoded otherwise"),
    "balls in another order": (turned, "the cover of these rows has other 'centers'"),
    "fewer rows": (lambda arrays, _: arrays.update(Z=arrays["Z"][:-1]), "has shape"),
    "no rows": (lambda arrays, _: arrays.pop("Z"), "KeyError: 'Z'"),
    "rows as whole numbers": (lambda arrays, _: arrays.update(Z=arrays["Z"].astype(np.int64)), "Z"),
    "an unknown kind": (set_at(("features", 0, "kind"), "number"), "kind must be one of 'continuous'"),
    "another kind": (set_at(("features", 0, "kind"), "integer"), "InvalidFileError|no map that fit makes"),
    "another dtype": (set_at(("dtypes", 0), "int64"), "no map that fit makes"),
    "a dtype that is none": (set_at(("dtypes", 0), "nonsense"), "no map that fit makes"),
    "a name twice": (set_at(("features", 0, "name"), "k"), "schema names a feature twice"),
    "other decimals": (set_at(("readable", 0), 9), "the rows give another readable"),
    "a rule as a list": (set_at(("rules", "features", 0), ["x", [1]]), "rule for 'x' must be a table"),
    "a rule for nothing": (set_at(("rules", "features", 0, 0), "q"), "rule for 'q': there is no such feature"),
    "no manifest": (lambda _, manifest: manifest.clear(), "parameters must be a table, got None"),
    "no decimals": (lambda _, manifest: manifest.pop("readable"), "the key 'readable' is missing"),
    "deep": (set_at(("warnings",), [[["a"]]]), r"warnings\[0\] must be text"),
}  # fmt: skip


@pytest.mark.parametrize("change, pattern", FORGED.values(), ids=FORGED)
def test_a_forged_map_is_refused_with_the_reason(original, tmp_path, change, pattern):
    arrays, manifest = store.read(original)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(arrays, manifest)
    path = tmp_path / "forged.onb"
    store.write(path, arrays, manifest)
    with pytest.raises((StoreError, ModelError), match=pattern) as caught:
        ONBMACF.load(path, forging.model)
    assert "forged.onb" in str(caught.value) or isinstance(caught.value, ModelError)


def test_forged_maps_are_refused_or_answer_as_a_fresh_fit(tmp_path):
    counts, wrong = forging.forge_all(120, tmp_path, seed=10_000)
    assert wrong == []
    assert counts["refused"] > 80
    assert counts["the same"] > 0


@pytest.mark.long
def test_2000_forged_maps_are_refused_or_answer_as_a_fresh_fit(tmp_path):
    assert forging.forge_all(2000, tmp_path)[1] == []


def test_a_block_whose_size_the_file_does_not_have_is_refused(original, tmp_path):
    raw = original.read_bytes()
    path = tmp_path / "forged.onb"
    path.write_bytes(raw.replace(b'"shape":[45,8]', b'"shape":[99,8]', 1))
    assert path.read_bytes() != raw
    with pytest.raises(CorruptFileError, match=r"a block of shape \(99, 8\) has 2880 bytes"):
        ONBMACF.load(path, forging.model)


def test_a_pipe_is_no_map_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ForeignFileError, match="no regular file"):
        ONBMACF.load(tmp_path / "pipe", forging.model)


def waves(rows):
    return (np.sin(9 * rows["a"]) + rows["b"] > 0.9).astype(int)


def points(n, seed, scale=1.0, decimals=2):
    rows = np.random.default_rng(seed).random((n, 2)) * scale
    return pd.DataFrame(rows.round(decimals), columns=list("ab"))


def test_a_map_that_an_older_version_let_rows_into_is_refused_with_a_reason(tmp_path):
    ONBMACF().fit(points(60, 1), waves).save(tmp_path / "m.onb")
    arrays, manifest = store.read(tmp_path / "m.onb")
    recover = {**manifest["parameters"], "recover": "persist"}  # an option that is gone, and changes no answer
    store.write(tmp_path / "old.onb", arrays, {**manifest, "parameters": recover})
    assert len(ONBMACF.load(tmp_path / "old.onb", waves).Z_) == 60
    store.write(tmp_path / "grown.onb", arrays, {**manifest, "n_fitted": 40})
    with pytest.raises(StoreError, match="let into the map after fit"):
        ONBMACF.load(tmp_path / "grown.onb", waves)


NARROW = ["float16", "float32", "Float32", "float64", "int8", "uint8", "Int16"]


@pytest.mark.parametrize("dtype", NARROW)
def test_a_map_of_narrow_numbers_is_loaded_and_answers_alike(dtype, tmp_path):
    """Their decimals are those of the narrow dtype: decoded, they are the fitted numbers in it, not in float64."""
    rng = np.random.default_rng(3)
    wide = rng.normal(size=80) * (1 if "loat" in dtype else 20)
    table = pd.DataFrame(
        {"a": rng.random(80).round(2), "b": pd.Series(np.abs(wide)).round(7 if "loat" in dtype else 0)}
    )
    table = table.astype({"b": dtype})
    explainer = ONBMACF().fit(table, lambda rows: rows["a"] + rows["b"].astype(float) > 1.2)
    explainer.explain(table.head(30).assign(a=0.9))
    explainer.save(tmp_path / "m.onb")
    loaded = ONBMACF.load(tmp_path / "m.onb", explainer.fitted_.black_box.model)
    pd.testing.assert_frame_equal(loaded.explain(table).to_frame(), explainer.explain(table).to_frame())


def test_a_map_of_a_narrow_array_is_loaded(tmp_path):
    table = np.random.default_rng(3).random((80, 3)).astype(np.float32)
    ONBMACF().fit(table, lambda rows: rows[:, 0] > 0.5).save(tmp_path / "m.onb")
    assert ONBMACF.load(tmp_path / "m.onb", lambda rows: rows[:, 0] > 0.5).Z_.shape == (80, 3)


def test_a_large_map_is_checked_in_part(tmp_path, monkeypatch):
    """The cover is not made again, but what is cheap is checked, and the radii of some rows."""
    from onbmacf._disk import map_check

    monkeypatch.setattr(map_check, "WORK", 0)
    path = tmp_path / "m.onb"
    forging.explainer().save(path)
    ONBMACF.load(path, forging.model)
    arrays, manifest = store.read(path)
    larger = {**arrays, "reach": arrays["reach"] * 2, "radii": arrays["radii"] * 2}
    store.write(tmp_path / "forged.onb", larger, manifest)
    with pytest.raises(InvalidFileError, match="row 0 has another nearest row of another label"):
        ONBMACF.load(tmp_path / "forged.onb", forging.model)


@pytest.mark.parametrize("name, most", [("predict_chunk", 1_000_000), ("n_jobs", 10_000)])
def test_options_that_ask_for_memory_without_end_are_refused_in_fit_too(name, most):
    with pytest.raises(ParameterError, match=f"{name} must be at most {most:,}"):
        ONBMACF(**{name: most + 1}).fit(forging.table(), forging.model)


def test_every_refusal_is_one_of_ours():
    assert issubclass(InvalidFileError, StoreError)
    assert issubclass(StoreError, OnbmacfError)
