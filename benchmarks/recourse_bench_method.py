"""A method of RecourseBench (arXiv 2606.16113) made of this package, named `onbmacf` in its configurations.

    train set  ->  Columns (what its encoder made of each feature)  ->  rows as people have them  ->  ONBMACF
    factuals   ->  rows  ->  explain  ->  rows  ->  factuals' columns, NaN where there is no answer

Import this module after `recourse_bench`; docs/benchmark/recourse-bench.md says how, and what is kept of its metadata.
Its interface as of `charmlab/recourse_bench`, commit 44922e9: `MethodObject` with `fit` and `get_counterfactuals`.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from recourse_bench import MethodObject, register

from onbmacf import ONBMACF, Rule, Rules, Schema

DIRECTIONS = {"increase": "up", "same-or-increase": "up", "decrease": "down", "same-or-decrease": "down"}
HELD = ("none", "same")


@dataclass(frozen=True)
class Feature:
    """One feature before it was encoded, and the columns that it has become."""

    name: str
    columns: list[str]
    kind: str  # onehot, thermometer, or one column: numerical, binary or categorical
    is_held: bool
    direction: str | None


class Columns:
    """What the encoder made of each feature: rows with one column each, and back."""

    def __init__(self, train_set):
        names = list(train_set.get(target=False).columns)
        groups = {source: list(made) for source, made in said(train_set, "encoding", {}).items()}
        source_of = {column: source for source, made in groups.items() for column in made}
        self.names, self.features, seen = names, [], set()
        for name in names:
            source = source_of.get(name, name)
            if source not in seen:
                seen.add(source)
                self.features.append(feature_of(train_set, source, groups.get(source, [name])))

    def rows(self, frame):
        """Return encoded rows as one column per feature: a level by the column that has it, a thermometer by height."""
        made = {}
        for feature in self.features:
            block = frame[feature.columns]
            if feature.kind == "onehot":
                made[feature.name] = np.array(feature.columns, dtype=object)[block.to_numpy(dtype=float).argmax(axis=1)]
            elif feature.kind == "thermometer":
                made[feature.name] = block.to_numpy(dtype=float).round().sum(axis=1).astype(int)
            else:
                made[feature.name] = block.iloc[:, 0].to_numpy()
        return pd.DataFrame(made, index=frame.index)

    def frame(self, rows):
        """Return rows as they are encoded."""
        made = {}
        for feature in self.features:
            values = rows[feature.name].to_numpy()
            if feature.kind == "onehot":
                made |= {column: (values == column).astype(float) for column in feature.columns}
            elif feature.kind == "thermometer":
                made |= {column: (values > at).astype(float) for at, column in enumerate(feature.columns)}
            else:
                made[feature.columns[0]] = values
        return pd.DataFrame(made, index=rows.index)[self.names]

    def schema(self, rows):
        """Return kinds, immutable features and directions in this package's words."""
        whole = {"onehot": "categorical", "thermometer": "integer", "categorical": "categorical"}
        kinds = {one.name: whole[one.kind] for one in self.features if one.kind in whole}
        up = {one.name: Rule(one.direction) for one in self.features if one.direction and not one.is_held}
        held = [one.name for one in self.features if one.is_held]
        return Schema.infer(rows, immutable=held, kinds=kinds, rules=Rules(up))


def said(dataset, flag, default):
    """Return what a dataset says of its features, encoded ones first."""
    try:
        return dataset.attr(flag)
    except AttributeError:
        return default


def feature_of(train_set, source, columns):
    """Return a feature with what its metadata say; that of its first column holds for all."""
    told = {
        what: {**said(train_set, f"raw_feature_{what}", {}), **said(train_set, f"encoded_feature_{what}", {})}
        for what in ("type", "mutability", "actionability")
    }
    first = columns[0]
    kind = str(told["type"].get(first, "numerical")).lower()
    if len(columns) > 1:
        kind = "thermometer" if all("_therm_" in column for column in columns) else "onehot"
    action = str(told["actionability"].get(first, "any")).lower()
    is_held = not told["mutability"].get(first, True) or action in HELD
    return Feature(source, columns, kind, bool(is_held), DIRECTIONS.get(action))


class Target:
    """Their model, asked about rows of one column per feature."""

    def __init__(self, model, columns):
        self.model, self.columns = model, columns
        self.classes_ = np.array(sorted(model.get_class_to_index(), key=model.get_class_to_index().get))

    def predict_proba(self, rows):
        """Return the probability of each class."""
        answer = self.model.get_prediction(self.columns.frame(rows), proba=True)
        return answer.detach().cpu().numpy().astype(float)

    def predict(self, rows):
        """Return the class with the highest probability, which is how their measures read the model."""
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


@register("onbmacf")
class OnbMacfMethod(MethodObject):
    """Counterfactuals of this package; further options of a configuration are those of `ONBMACF`."""

    def __init__(self, target_model, seed=None, device="cpu", desired_class=None, **options):
        self._target_model, self._desired_class = target_model, desired_class
        self._seed, self._device = seed, device  # nothing here is random, and nothing runs on a device of its own
        self._need_grad = self._is_trained = False
        self._options = options

    def fit(self, train_set):
        """Map the rows that the model was trained on."""
        self._columns = Columns(train_set)
        target = Target(self._target_model, self._columns)
        if self._desired_class is None and len(target.classes_) > 2:
            raise ValueError(f"desired_class is needed with {len(target.classes_)} classes: another is no one class.")
        rows = self._columns.rows(train_set.get(target=False))
        schema = self._columns.schema(rows)
        self._target = target
        self._explainer = ONBMACF(**self._options).fit(rows, target, schema=schema)
        self._is_trained = True

    def get_counterfactuals(self, factuals):
        """Return the nearest answer of each row, NaN where there is none or the class is the desired one already."""
        rows = self._columns.rows(factuals).reset_index(drop=True)
        target = self._desired_class
        if target is None:
            target = pd.Series([self._other(label) for label in self._target.predict(rows)])
        result = pd.DataFrame(np.nan, index=factuals.index, columns=factuals.columns)
        found = {
            at: one.counterfactuals[0].values
            for at, one in enumerate(self._explainer.explain(rows, target))
            if one.counterfactuals
        }
        if found:
            after = pd.DataFrame(list(found.values())).astype(rows.dtypes.to_dict())
            result.iloc[list(found)] = self._columns.frame(after).to_numpy(dtype=float)
        return result

    def _other(self, label):
        return next(one for one in self._target.classes_.tolist() if one != label)
