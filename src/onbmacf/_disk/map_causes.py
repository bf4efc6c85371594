"""The causes of a saved map: linear mechanisms are in the file, functions and regressors are given again at load.

    Effects, probe rows  ->  causes_out  ->  entries of the manifest, an array
    these, causes        ->  causes_in   ->  Effects

What is given again is asked what follows when the probe rows take over each other's values, as it was when the map was
saved (docs/decisions/0131-what-follows.md).
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from onbmacf._base.arrays import Mask, Matrix
from onbmacf._base.checks import Check, checked, flag, level, listed, number, optional, sequence
from onbmacf._base.missing import differs
from onbmacf._table.effects import Effects
from onbmacf._table.space import FeatureSpace
from onbmacf.causes import Causes, Mechanism
from onbmacf.errors import InvalidFileError, ParameterError

CLOSE = 1e-6  # of a feature's range: machines differ in the last digits


def _weight(name: str, entry: Any) -> Any:
    """Return the weight of a number, or what each level adds, as a list of pairs."""
    if isinstance(entry, list):
        pairs = sequence(sequence(lambda _, value: value, length=2))(name, entry)
        return {level(name, key): number(finite=True)(name, value) for key, value in pairs}
    return number(finite=True)(name, entry)


CAUSE_KEYS: dict[str, Check] = {
    "effect": level,
    "causes": sequence(level, least=1),
    "is_exact": flag,
    "weights": optional(sequence(_weight)),
}


def check_causes(name: str, entry: Any) -> Any:
    """Return the entries of a manifest, checked."""
    each = sequence(lambda where, one: checked(where, one, CAUSE_KEYS, CAUSE_KEYS), least=1)
    return each(name, entry)


def causes_out(effects: Effects, probes: Matrix) -> tuple[list[dict[str, Any]], Matrix]:
    """Return mechanisms as entries of a manifest, and what follows from some actions on the probe rows."""
    entries = []
    for one in (effect.mechanism for effect in effects.each):
        weights = one.weights and [list(w.items()) if isinstance(w, dict) else w for w in one.weights]
        entries.append({"effect": one.effect, "causes": list(one.causes), "is_exact": one.is_exact, "weights": weights})
    return entries, _followed(effects, probes)


def causes_in(
    space: FeatureSpace, Z: Matrix, probes: Matrix, entries: Any, followed: Matrix, causes: Causes | None
) -> Effects:
    """Return the effects of a saved map; what is not in the file comes from `causes`."""
    by_name: dict[Hashable, Any] = {entry["effect"]: entry for entry in entries}
    open_ = [name for name, entry in by_name.items() if entry["weights"] is None]
    if causes is None and open_:
        raise ParameterError(
            f"the functions and regressors that {listed(open_)} follow from are not in the file, as the model is not. "
            "Give them again; in Python, ONBMACF.load(path, model, causes=causes)."
        )
    causes = Causes({name: entry["causes"] for name, entry in by_name.items()}) if causes is None else causes
    if not isinstance(causes, Causes) or {*causes.effects} != {*by_name}:
        raise ParameterError(f"causes must be Causes of {listed(by_name)}, as when the map was saved, got {causes!r}.")
    linear = {
        name: Mechanism(name, tuple(entry["causes"]), weights=tuple(entry["weights"]))
        for name, entry in by_name.items()
        if entry["weights"] is not None
    }
    N = space.decode_numbers(Z)
    again = Effects.of(space.form, N, space.readable, causes)
    effects = Effects.of(space.form, N, space.readable, causes, linear)
    try:
        is_forged = _apart(_followed(again, N), _followed(effects, N), space).any()
    except (TypeError, ValueError) as error:  # weights of another column, or too few
        raise InvalidFileError(f"a mechanism of {listed(linear)} does not fit its columns.") from error
    if is_forged:
        raise InvalidFileError(f"the rows give other mechanisms of {listed(linear)}.")
    apart = _apart(_followed(effects, probes), followed, space)
    if apart.any():
        others = np.asarray(apart.any(axis=0)).tolist()
        names = [name for name, is_other in zip(space.schema.names, others, strict=True) if is_other]
        raise ParameterError(
            f"causes are not those that the map was saved with: {listed(names)} would be otherwise in "
            f"{int(apart.any(axis=1).sum())} of {len(probes)} probe rows. Fit again."
        )
    return effects


def _followed(effects: Effects, N: Matrix) -> Matrix:
    """Return rows that take over the values of the rows before them, but for the effects, which follow unrounded."""
    effect = [one.at for one in effects.each]
    actions = np.where(np.isin(np.arange(N.shape[1]), effect), N, np.roll(N, 1, axis=0))
    return effects.unrounded().whole(actions, N)


def _apart(one: Matrix, other: Matrix, space: FeatureSpace) -> Mask:
    return np.asarray(differs(one, other) & ~(np.abs(one - other) <= CLOSE * space.span))
