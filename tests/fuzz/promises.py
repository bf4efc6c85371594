"""What README promises, checked with code of its own: nothing here uses the package but its public results."""

import numpy as np
import pandas as pd

STATUSES = {"found", "already", "none_found", "infeasible", "model_error", "invalid_row"}


def same(a, b):
    """Say whether two cells hold the same value."""
    return bool(pd.isna(a) and pd.isna(b)) if _is_na(a) or _is_na(b) else bool(a == b)


def _is_na(value):
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def check_answers(case, model, answers, kinds):
    """Check every row and every counterfactual of a call against the case."""
    assert len(answers) == len(case.rows)
    assert set(map(str, answers.statuses)) <= STATUSES
    assert list(answers.status_frame().index) == list(case.rows.index)
    for row in range(len(answers)):
        own = answers[row]
        assert (own.status == "found") == bool(own.counterfactuals), (own.status, own.reason)
        assert own.status == "found" or own.reason, "a row without an answer says why"
        for found in own.counterfactuals:
            before = {name: case.rows[name].iloc[row] for name in case.table}
            _check_counterfactual(case, model, before, own, found, kinds)


def _check_counterfactual(case, model, before, own, found, kinds):
    after = pd.DataFrame({name: pd.array([found.values[name]], dtype=case.table[name].dtype) for name in case.table})
    predict = getattr(model, "predict", model)
    assert predict(after)[0] == found.label, "asked again, the model says the label"
    assert found.label != own.label
    changed = [name for name in case.table if not same(_cast(case, name, before[name]), after[name].iloc[0])]
    assert changed, "something changes"
    assert np.isfinite(found.distance)
    assert found.distance >= 0
    released = set(map(str, found.released))
    for name in changed:
        assert not _is_na(after[name].iloc[0]), f"{name} is made unknown"
        assert not _is_na(before[name]), f"{name} is filled in"
        assert name not in case.immutable or name in released, f"{name} is immutable"
        assert name not in case.immutable or found.relaxation.startswith("immutability"), found.relaxation
        _check_value(case, name, kinds[name], after[name].iloc[0])
        if name in case.rules and name not in released:
            _check_rule(case.rules[name], kinds[name], before[name], after[name].iloc[0], case.table[name])
    if found.relaxation not in ("rules", "immutability and rules"):
        assert case.max_changes is None or len(changed) <= case.max_changes
        for low, high in case.at_most:
            if {low, high} & set(changed) and not (_is_na(after[low].iloc[0]) or _is_na(after[high].iloc[0])):
                assert float(after[low].iloc[0]) <= float(after[high].iloc[0]), f"{low} <= {high}"
    if "min_probability" in case.asked:
        sure = model.predict_proba(after)[0][list(model.classes_).index(found.label)]
        assert round(sure, 9) >= case.asked["min_probability"], f"probability {sure}"  # decision 0018
    if "min_neighbours" in case.asked:
        assert found.plausibility >= case.asked["min_neighbours"] / 5 - 1e-9, f"plausibility {found.plausibility}"


def check_told(case, model, answers):
    """Check that a row which the model does not answer says so, and that an unknown probability is told."""
    predict = getattr(model, "predict", model)
    for row in range(len(answers)):
        own = answers[row]
        if own.status == "invalid_row":
            continue
        cells = {name: _cast(case, name, case.rows[name].iloc[row]) for name in case.table}
        line = pd.DataFrame({name: pd.array([cell], case.table[name].dtype) for name, cell in cells.items()})
        said = _said(predict, line)
        if isinstance(said, str) and said.startswith("failed: "):
            assert own.status == "model_error", (own.status, said)
            assert said[8:] in own.reason, (own.reason, said)
        else:
            assert own.label == said, (own.label, said)
        unknown = [one for one in own.counterfactuals if one.probability is not None and np.isnan(one.probability)]
        limited = {"max_model_rows", "max_model_calls"} & set(case.options)
        assert limited or not unknown or "probabilities are not known" in own.reason, own.reason


def _said(predict, line):
    """Return what a model says of a row, or the word for what it did instead."""
    try:
        said = predict(line)[0]
    except ArithmeticError:
        return "failed: ArithmeticError"
    return "failed: NaN" if _is_na(said) else said


def _cast(case, name, value):
    """Return a cell as the fitted column holds it."""
    dtype = case.table[name].dtype
    if isinstance(value, bool) and dtype.kind == "O" and type(case.table[name].iloc[0]) is int:
        value = int(value)  # a column of whole numbers holds 1, whatever True is to a model
    return pd.array([np.nan if _is_na(value) and dtype.kind == "f" else value], dtype=dtype)[0]


def _check_value(case, name, kind, value):
    if kind == "integer":
        assert float(value) == round(float(value)), f"{name} is whole"
    elif kind != "continuous":
        levels = case.table[name]
        known = set(levels.cat.categories) if isinstance(levels.dtype, pd.CategoricalDtype) else set(levels)
        assert value in (known | {True, False} if pd.api.types.is_bool_dtype(levels.dtype) else known | set(levels))


def _check_rule(rule, kind, before, after, column):
    if kind in ("continuous", "integer"):
        before, after = float(before), float(after)
        assert rule.low <= after <= rule.high, f"{after} is outside {rule}"
        assert rule.direction != "up" or after >= float(np.asarray(before, column.to_numpy(dtype=float).dtype))
        assert rule.direction != "down" or after <= before or np.float32(before) == np.float32(after)
        if rule.step:
            start = rule.low if np.isfinite(rule.low) else 0.0
            steps = (after - start) / rule.step
            precision = 1e-6 if column.dtype.itemsize >= 8 else 1e-3
            assert abs(steps - round(steps)) <= precision * max(1, abs(steps)), f"{after} is between steps of {rule}"
        return
    assert rule.allowed is None or after in rule.allowed
    assert (before, after) not in rule.forbidden


def check_same(one, other, rows):
    """Check that two results say the same of rows: `rows` are pairs of places."""
    for left, right in rows:
        a, b = one[left], other[right]
        assert a.status == b.status, (a.status, a.reason, b.status, b.reason)
        assert len(a.counterfactuals) == len(b.counterfactuals)
        for x, y in zip(a.counterfactuals, b.counterfactuals, strict=True):
            assert all(same(x.values[name], y.values[name]) for name in x.values.index), (x.values, y.values)
            assert x.label == y.label
            assert x.distance == y.distance


def check_untouched(before, after):
    """Check that a frame is as it was, cell by cell."""
    assert list(before.columns) == list(after.columns)
    assert list(before.dtypes) == list(after.dtypes)
    assert list(before.index) == list(after.index)
    left, right = before.astype(object).to_numpy().tolist(), after.astype(object).to_numpy().tolist()
    assert repr(left) == repr(right), "the input was changed"
