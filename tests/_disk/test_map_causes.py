"""Saved maps with causes: what is in the file, what is asked for again, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from onbmacf import ONBMACF, Causes
from onbmacf._disk import map_file
from onbmacf._disk.store import read, write
from onbmacf.errors import InvalidFileError, ParameterError


def rows(n=120):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"town": rng.choice(["a", "b", "c"], n), "income": np.round(rng.normal(3000, 500, n))})
    table["savings"] = np.round(2 * table["income"] + 900 * (table["town"] == "b") + rng.normal(0, 300, n))
    table["ratio"] = np.round(table["savings"] / table["income"], 3)
    return table


TABLE = rows()
MODEL = LogisticRegression(max_iter=1000).fit(TABLE[["savings"]] / 1000, TABLE["savings"] > 6500)


def model(rows):
    return MODEL.predict(rows[["savings"]] / 1000)


def ratio(rows):
    return rows["savings"] / rows["income"]


def saved(tmp_path, causes):
    explainer = ONBMACF().fit(TABLE, model, causes=causes)
    explainer.save(tmp_path / "map.onb")
    return explainer, tmp_path / "map.onb"


def test_linear_mechanisms_are_in_the_file(tmp_path):
    explainer, path = saved(tmp_path, Causes({"savings": ["income", "town"]}))
    again = ONBMACF.load(path, model)
    assert again.explain(TABLE.iloc[:8]).to_json() == explainer.explain(TABLE.iloc[:8]).to_json()
    assert repr(again.causes_) == repr(explainer.causes_) == "Causes: savings follows from income, town"
    effects = explainer.fitted_.space.effects, again.fitted_.space.effects
    assert effects[0].each[0].mechanism.weights == effects[1].each[0].mechanism.weights


def test_functions_and_regressors_are_asked_for_again(tmp_path):
    causes = {"ratio": ratio, "savings": (["income"], DecisionTreeRegressor(max_depth=3, random_state=0))}
    explainer, path = saved(tmp_path, Causes(causes))
    with pytest.raises(ParameterError, match=r"'savings', 'ratio' follow from are not in the file.* causes=causes"):
        ONBMACF.load(path, model)
    again = ONBMACF.load(path, model, causes=Causes(causes))
    assert again.explain(TABLE.iloc[:8]).to_json() == explainer.explain(TABLE.iloc[:8]).to_json()
    with pytest.raises(ParameterError, match=r"not those that the map was saved with: 'ratio' .* of 64 probe rows"):
        ONBMACF.load(path, model, causes=Causes({**causes, "ratio": lambda rows: rows["income"] / rows["savings"]}))
    with pytest.raises(ParameterError, match="must be Causes of 'savings', 'ratio'"):
        ONBMACF.load(path, model, causes=Causes({"ratio": ratio}))


def test_a_map_without_causes_takes_none(tmp_path):
    _, path = saved(tmp_path, None)
    assert "causes" not in read(path)[1]
    with pytest.raises(ParameterError, match="this map was saved without causes"):
        ONBMACF.load(path, model, causes=Causes({"ratio": ratio}))


def nothing_follows(manifest, arrays):
    """Forge a mechanism of nothing, and what followed by it."""
    weights = manifest["causes"][0]["weights"]
    manifest["causes"][0]["weights"] = [0.0, [[level, 0.0] for level, _ in weights[1]]]
    arrays["followed"] = arrays["followed"].copy()
    arrays["followed"][:, 2] = arrays["probes"][:, 2]


FORGED = {
    "nothing follows": nothing_follows,
    "another weight": lambda manifest, arrays: manifest["causes"][0]["weights"].__setitem__(0, 7.0),
    "no number": lambda manifest, arrays: manifest["causes"][0]["weights"].__setitem__(0, "much"),
    "a category without a level": lambda manifest, arrays: manifest["causes"][0]["weights"][1].pop(),
    "too few weights": lambda manifest, arrays: manifest["causes"][0]["weights"].pop(),
    "no such column": lambda manifest, arrays: manifest["causes"][0].update(effect="debt"),
    "a category": lambda manifest, arrays: manifest["causes"][0].update(effect="town", causes=["income"]),
    "a circle": lambda manifest, arrays: manifest["causes"][0].update(causes=["savings"]),
    "no rows that followed": lambda manifest, arrays: arrays.pop("followed"),
    "other rows that followed": lambda manifest, arrays: arrays.update(followed=arrays["followed"] + 1.0),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_mechanism_is_refused(tmp_path, forge):
    _, path = saved(tmp_path, Causes({"savings": ["income", "town"]}))
    arrays, manifest = read(path)
    arrays = dict(arrays)
    forge(manifest, arrays)
    write(path, arrays, manifest, map_file.NOTICE)
    with pytest.raises((InvalidFileError, ParameterError)):
        ONBMACF.load(path, model)
