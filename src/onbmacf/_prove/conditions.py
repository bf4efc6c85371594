"""The conditions of trees and rules in the caller's own units, and which of them a change crosses.

    model, TableForm, fitted rows  ->  Conditions.of  ->  Conditions.crossed(before, after)  ->  Crossings

A condition is a column and a threshold of the model; a row keeps it or not, as the model's own structure says. Its
`Cut` is the same for the feature behind the column: the largest number that keeps it, to the bit, or the levels that
do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._prove.columns import NotKnownError, Program, Recipe, is_single, parted
from onbmacf._prove.copies import taken_apart
from onbmacf._prove.readers import quietly, read, reader_of
from onbmacf._prove.structures import Structure, Tree, Trees, leaves
from onbmacf._table.form import TableForm
from onbmacf._table.readings import Reading

OF_FUNCTIONS = ": give the model in it, prove=model"  # what proofs advise, who can be given another model


class Cut(NamedTuple):
    """A condition of the model as one about a feature."""

    feature: int
    at: float  # the largest number that keeps it; NaN for a feature with levels
    levels: Mask  # which levels keep it, the first one first; none for numbers
    lacking: bool  # whether a missing value does


class Crossings(NamedTuple):
    """What changes cross, a line each; those of one change follow each other."""

    line: Rows  # of the change
    unit: Rows  # the tree or rule, by its place in the model
    code: Rows  # the condition
    is_left: Mask  # whether it is named as kept; else its opposite is
    held: Mask  # whether what is named held before
    holds: Mask  # and after
    fires: NDArray[np.intp]  # 1 where a rule fires now, -1 where no longer; 0 for trees
    gain: Matrix  # what it adds to the score of each class

    @classmethod
    def none(cls, n_classes: int) -> "Crossings":
        """Return nothing crossed."""
        whole, is_true = np.empty(0, dtype=np.intp), np.empty(0, dtype=bool)
        return cls(whole, whole, whole, is_true, is_true, is_true, whole, np.empty((0, n_classes)))


@dataclass(frozen=True, eq=False)
class Conditions:
    """The conditions of a model: its structure, and how its columns come from features."""

    structure: Trees
    recipes: list[Recipe]
    whole: list[int]
    form: TableForm

    @classmethod
    def of(cls, model: Any, form: TableForm, N: Matrix, reading: Reading) -> "Conditions":
        """Read a model; `N` are fitted rows as numbers. NotKnownError says why it cannot be read."""
        if reading.between is not None:
            raise NotKnownError("a model behind a range is not known")
        if getattr(model, "__name__", "") == "predict":  # a method, where labels are not those of classes_
            model = getattr(model, "__self__", model)
        try:
            reader_of(parted(model)[1])
        except NotKnownError as error:
            raise NotKnownError(str(error).replace(OF_FUNCTIONS, ": fit with the model in it")) from error
        with quietly():
            parts = taken_apart(model, form, N)
            size = np.nanmax(np.abs(parts.columns), axis=0, initial=0.0)
        found: Structure = read(parts.estimator, parts.columns, size)
        if reading.classes is not None:
            found = replace(found, classes=np.array([*reading.classes, None], dtype=object)[:-1])
        if not isinstance(found, Trees):
            raise NotKnownError(f"a {found.words} has no conditions")
        if found.is_double and is_single(parts.given):
            raise NotKnownError("a model of this kind is not known over columns of single precision")
        # Without the model; and what a tree does with a missing value is nothing where there can be none.
        trees = [
            tree._replace(lacking=_lacking(tree) & parts.lacks[np.maximum(tree.column, 0)]) for tree in found.trees
        ]
        return cls(replace(found, own_scores=np.asarray, trees=trees), parts.recipes, parts.whole, form)

    def columns(self, N: Matrix) -> Matrix:
        """Return rows, given as numbers, as the trees compare their columns."""
        return self.structure.rounded(Program.of(self.recipes, self.whole).columns(N))

    # --- conditions ---------------------------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> Matrix:
        """The conditions, each once: column, threshold, and whether a missing value of the column keeps it."""
        nodes = [np.empty((0, 3))]
        for tree in self.structure.trees:
            nodes.append(np.column_stack([tree.column, tree.threshold, _lacking(tree)])[tree.left >= 0])
        return np.unique(np.concatenate(nodes), axis=0)

    @cached_property
    def _code_of(self) -> dict[tuple[float, ...], int]:
        return {tuple(line): code for code, line in enumerate(self._known.tolist())}

    def kept(self, columns: Matrix) -> Mask:
        """Say which conditions rows of columns keep, rows x conditions."""
        column, threshold, lacking = self._known.T
        seen = columns[:, column.astype(np.intp)]
        return np.asarray((seen <= threshold) | (np.isnan(seen) & lacking.astype(bool)))

    def kept_by(self, code: int, values: Matrix) -> Mask:
        """Say which values of its feature keep a condition, by the model's own columns."""
        column, threshold, lacks = self._known[code]
        seen = self._seen(self.recipes[int(column)], values)
        return np.asarray((seen <= threshold) | (np.isnan(seen) & bool(lacks)))

    def _seen(self, recipe: Recipe, values: Matrix) -> Matrix:
        """Return what trees compare where a feature has these values."""
        columns = Program.of([recipe._replace(feature=0)]).columns(values[:, np.newaxis])
        return self.structure.rounded(columns)[:, 0]

    @cached_property
    def cuts(self) -> list[Cut]:
        """Each condition as one about its feature."""
        found: list[Cut] = []
        for column in np.unique(self._known[:, 0]).astype(np.intp):  # in the order of codes
            recipe, codes = self.recipes[column], np.flatnonzero(self._known[:, 0] == column)
            n_levels = len(self.form.schema.features[recipe.feature].levels or ())
            threshold, lacks = self._known[codes, 1], self._known[codes, 2].astype(bool)
            seen = self._seen(recipe, np.append(np.arange(n_levels), np.nan))
            kept = (seen <= threshold[:, np.newaxis]) | (np.isnan(seen) & lacks[:, np.newaxis])
            ends = np.full(len(codes), np.nan) if n_levels else self._largest(recipe, threshold)
            parts = zip(ends.tolist(), kept[:, :-1], kept[:, -1].tolist(), strict=True)
            found += [Cut(recipe.feature, *part) for part in parts]
        return found

    def _largest(self, recipe: Recipe, thresholds: Matrix) -> Matrix:
        """Return the largest number that keeps each condition, to the bit; infinite where all do, or none does.

        What is read of steps rounds and scales upwards: if a number keeps a condition, so do all smaller ones, and
        halving finds the largest. A 0 that counts as missing is an exception, left to who names the condition.
        """
        if len(recipe.table if recipe.table is not None else ()) == 1:  # a column that never changes
            return np.full(len(thresholds), np.inf)
        recipe = recipe._replace(stages=tuple(stage._replace(zero=0.0) for stage in recipe.stages))
        low, high = (np.full(len(thresholds), _key(np.array([end]))[0]) for end in (-np.inf, np.inf))
        with np.errstate(over="ignore"):
            while (low < high - 1).any():
                middle = (low >> 1) + (high >> 1) + (low & high & 1)  # the sum of two keys may be too large
                keeps = self._seen(recipe, _number(middle)) <= thresholds
                low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
        return np.where(_number(low) == np.finfo(np.float64).max, np.inf, _number(low))

    @cached_property
    def uses(self) -> Rows:
        """Which trees or rules have which conditions: lines of a code and a unit."""
        of_units = [[code for code, _ in rule] for rule in self.rules] or [codes.tolist() for codes in self._of_trees]
        pairs = [(code, unit) for unit, codes in enumerate(of_units) for code in {*codes} if code >= 0]
        return np.array(pairs, dtype=np.intp).reshape(-1, 2)

    @cached_property
    def _of_trees(self) -> list[Rows]:
        """The code of the condition at each node of each tree; -1 at leaves."""
        found = []
        for tree in self.structure.trees:
            lines = np.column_stack([tree.column, tree.threshold, _lacking(tree)]).tolist()
            codes = [
                self._code_of[tuple(line)] if left >= 0 else -1 for line, left in zip(lines, tree.left, strict=True)
            ]
            found.append(np.array(codes, dtype=np.intp))
        return found

    @cached_property
    def rules(self) -> list[list[tuple[int, bool]]]:
        """Per rule of a rule model, in its order: the codes of its conditions, and whether it wants them kept."""
        found: list[list[tuple[int, bool]]] = []
        for rule in self.structure.rules or ():
            found.append([])
            for column, *ends in rule:
                sides = [(end, is_high) for end, is_high in zip(ends, (False, True), strict=True) if np.isfinite(end)]
                found[-1] += [(self._code_of[column, end, 0.0], is_high) for end, is_high in sides]
        return found

    # --- what changes cross -------------------------------------------------------------------------------------------

    def crossed(self, before: Matrix, after: Matrix) -> Crossings:
        """Return what each of some rows crosses that becomes the row at its place in `after`; both as numbers.

        Of a tree, the conditions on the way of the new row that the old one answers otherwise, from the root on. What
        such a condition adds is what the tree says of the old row once this condition, too, is answered as by the new
        one: the gains of a tree add up to its whole change. Of rules, the conditions of those that fire now or no
        longer; the first line of a rule has what it adds.
        """
        before, after = self.columns(before), self.columns(after)
        ways = self._through_rules(before, after) if self.structure.rules else self._through_trees(before, after)
        found = stack([Crossings.none(len(self.structure.offset)), *ways])
        return take(found, np.argsort(found.line, kind="stable"))

    def _through_trees(self, before: Matrix, after: Matrix) -> Iterator[Crossings]:
        for unit, (tree, codes) in enumerate(zip(self.structure.trees, self._of_trees, strict=True)):
            node, lines = np.zeros(len(after), dtype=np.intp), np.arange(len(after))
            while len(lines := lines[tree.left[node[lines]] >= 0]):
                at = node[lines]
                was, goes = tree.goes_left(at, before[lines]), tree.goes_left(at, after[lines])
                node[lines] = np.where(goes, tree.left[at], tree.right[at])
                new = np.flatnonzero(was != goes)
                here, old = lines[new], np.where(was[new], tree.left[at[new]], tree.right[at[new]])
                ends = (leaves(tree, before[here], start) for start in (node[here], old))
                gain = np.subtract(*(tree.values[end] for end in ends))
                of_unit, no = np.full(len(new), unit), np.zeros(len(new), dtype=bool)
                yield Crossings(here, of_unit, codes[at[new]], goes[new], no, ~no, of_unit * 0, gain)

    def _through_rules(self, before: Matrix, after: Matrix) -> Iterator[Crossings]:
        was, now = self.kept(before), self.kept(after)
        fired, fires = self._firing(was), self._firing(now)
        trees, is_told = self.structure.trees, np.zeros(len(after), dtype=bool)
        for unit, rule in enumerate(self.rules):
            tree = trees[0 if self.is_list else unit]
            for line in np.flatnonzero(fired[:, unit] != fires[:, unit]).tolist():
                gain = tree.values[leaves(tree, after[[line]])] - tree.values[leaves(tree, before[[line]])]
                gain = gain * (not self.is_list or not is_told[line])  # the one tree of a list has one change
                is_told[line] = True
                crossed = [one for one in rule if was[line, one[0]] != now[line, one[0]]] or rule[:1]
                code, is_left = np.array(crossed, dtype=np.intp).reshape(-1, 2).T
                side, n = is_left.astype(bool), len(crossed)
                gains = np.concatenate([gain, np.zeros((max(n - 1, 0), gain.shape[1]))])[:n]
                sign = 1 if fires[line, unit] else -1
                held, holds = was[line, code] == side, now[line, code] == side
                yield Crossings(np.full(n, line), np.full(n, unit), code, side, held, holds, np.full(n, sign), gains)

    @property
    def is_list(self) -> bool:
        """Whether only the first rule that holds says something."""
        return self.structure.words == "rule list"

    def _firing(self, kept: Mask) -> Mask:
        """Say which rules fire, rows x rules."""
        held = [np.all([kept[:, code] == side for code, side in rule], axis=0) for rule in self.rules]
        fires = np.column_stack([np.broadcast_to(one, len(kept)) for one in held])
        return fires & (np.cumsum(fires, axis=1) == 1) if self.is_list else fires


def _lacking(tree: Tree) -> Mask:
    return np.zeros(len(tree.left), dtype=bool) if tree.lacking is None else tree.lacking


# --- floats as whole numbers ------------------------------------------------------------------------------------------


def _key(numbers: Matrix) -> NDArray[np.int64]:
    """Return a whole number for each float, in the order of the floats and without gaps."""
    bits = numbers.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _number(keys: NDArray[np.int64]) -> Matrix:
    """Return the floats of keys."""
    return np.where(keys < 0, np.iinfo(np.int64).min - keys, keys).view(np.float64)
