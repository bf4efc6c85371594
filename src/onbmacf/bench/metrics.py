"""The metrics: arrays in, one number per counterfactual out.

    factuals, counterfactuals (encoded, line by line), blocks  ->  L0 .. redundancy, yNN, distance to data
    counterfactuals, the rows with the target label, blocks    ->  LOF, isolation: how unusual a counterfactual is

Definitions are CARLA's (Pawelczyk et al., 2021) with the two corrections that the paper's tables imply: a
changed category counts once, not once per encoded column, and redundancy is counted over whole features. CARLA's own
redundancy is kept as `redundancy_columns`. Success rate and time belong to a whole run: see cells.py.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from onbmacf.bench.protocol import Labels, Matrix, Model

Blocks = Sequence[slice]
LabelOf = Callable[[Matrix], Labels]
Measure = Callable[[Matrix], Matrix]  # counterfactuals to numbers

CHANGED = 1e-5  # share of a feature's range up to which it counts as unchanged
NEIGHBOURS = 5
LOF_NEIGHBOURS = 20  # scikit-learn's default, and the upper end of what the paper of LOF advises
MOST_LOF_ROWS = 10_000  # LOF needs the neighbours of every row: more of them are thinned out evenly


def feature_differences(factuals: Matrix, counterfactuals: Matrix, blocks: Blocks) -> Matrix:
    """Return how far each feature moved, as a share of its range; another category counts 1."""
    difference = np.abs(counterfactuals - factuals)
    return np.maximum.reduceat(difference, [block.start for block in blocks], axis=1)


def changed_features(factuals: Matrix, counterfactuals: Matrix, blocks: Blocks) -> NDArray[np.bool_]:
    """Return which features changed."""
    return feature_differences(factuals, counterfactuals, blocks) > CHANGED


def l0(differences: Matrix) -> Matrix:
    """Return the number of changed features."""
    return np.sum(differences > CHANGED, axis=1).astype(np.float64)


def l1(differences: Matrix) -> Matrix:
    """Return the Manhattan distance."""
    return np.asarray(differences.sum(axis=1))


def l2(differences: Matrix) -> Matrix:
    """Return the squared Euclidean distance: no root, as in CARLA and the paper."""
    return np.asarray((differences**2).sum(axis=1))


def linf(differences: Matrix) -> Matrix:
    """Return the largest move of one feature."""
    return np.asarray(differences.max(axis=1))


def violations(differences: Matrix, is_immutable: NDArray[np.bool_]) -> Matrix:
    """Return the number of immutable features that changed."""
    return l0(differences[:, is_immutable])


def redundancy(factuals: Matrix, counterfactuals: Matrix, blocks: Blocks, label_of: LabelOf, target: int) -> Matrix:
    """Return how many changed features can be reverted one at a time without losing the target label."""
    changed = changed_features(factuals, counterfactuals, blocks)
    return _reversible(factuals, counterfactuals, changed, blocks, label_of, target)


def redundancy_columns(factuals: Matrix, counterfactuals: Matrix, label_of: LabelOf, target: int) -> Matrix:
    """Return CARLA's count: single encoded columns, any difference at all."""
    columns = [slice(column, column + 1) for column in range(factuals.shape[1])]
    return _reversible(factuals, counterfactuals, factuals != counterfactuals, columns, label_of, target)


def ynn(counterfactuals: Matrix, index: NearestNeighbors, labels: Labels, target: int) -> Matrix:
    """Return the share of target labels among the 5 nearest rows.

    `index` is fitted on the whole encoded table (Euclidean), `labels` are the model's for these rows. Rows at
    the same distance are taken as scikit-learn returns them.
    """
    neighbours = index.kneighbors(counterfactuals, n_neighbors=NEIGHBOURS, return_distance=False)
    return np.asarray((labels[neighbours] == target).mean(axis=1))


def stability(counterfactuals: Matrix, retrained: Sequence[Model], target: int) -> Matrix:
    """Return the share of retrained models that give the target label, too; NaN where there are none.

    This is no metric of the paper's: it is shown beside them and enters no mean.
    """
    if not len(retrained):
        return np.full(len(counterfactuals), np.nan)
    return np.mean([model.label_of(counterfactuals) == target for model in retrained], axis=0)


def steadiness(
    factuals: Matrix, counterfactuals: Matrix, noisy: Matrix, counterfactuals_of_noisy: Matrix, blocks: Blocks
) -> Matrix:
    """Return 1 where the same features change for a factual and for itself with a little noise, 0 elsewhere."""
    before = changed_features(factuals, counterfactuals, blocks)
    after = changed_features(noisy, counterfactuals_of_noisy, blocks)
    return np.asarray((before == after).all(axis=1).astype(np.float64))


def distance_to_rows(counterfactuals: Matrix, rows: Matrix, blocks: Blocks, neighbour: int = 1) -> Matrix:
    """Return the Manhattan distance to the nearest of the rows (or to the fifth), a changed category counting 1.

    With the rows to which the model gives the target label, this is the distance of a counterfactual to the data. Where
    there are fewer rows, the last of them is taken.
    """
    weights = _column_weights(blocks)
    index = NearestNeighbors(n_neighbors=min(neighbour, len(rows)), metric="manhattan").fit(rows * weights)
    return np.asarray(index.kneighbors(counterfactuals * weights)[0][:, -1])


def lof(counterfactuals: Matrix, rows: Matrix, blocks: Blocks) -> Matrix:
    """Return the local outlier factor among the rows (Breunig et al., 2000): about 1 inside the data, more outside."""
    return lof_among(rows, blocks)(counterfactuals)


def lof_among(rows: Matrix, blocks: Blocks) -> Measure:
    """Return `lof` among these rows, learned once for the counterfactuals of many methods.

    Equal rows count once: more than 20 of them would have no distance among themselves, and everything beside them
    a factor of millions. NaN where fewer than two rows are left.
    """
    distinct = np.unique(rows, axis=0)
    if len(distinct) < 2:
        return lambda counterfactuals: np.full(len(counterfactuals), np.nan)
    if len(distinct) > MOST_LOF_ROWS:
        distinct = distinct[np.linspace(0, len(distinct) - 1, MOST_LOF_ROWS).astype(np.intp)]
    weights = _column_weights(blocks)
    model = LocalOutlierFactor(
        n_neighbors=min(LOF_NEIGHBOURS, len(distinct) - 1), metric="manhattan", novelty=True
    ).fit(distinct * weights)
    return lambda counterfactuals: np.asarray(-model.score_samples(counterfactuals * weights))


def isolation(counterfactuals: Matrix, rows: Matrix) -> Matrix:
    """Return the score of an isolation forest fitted on the rows (Liu et al., 2008): above one half, unusual."""
    return isolation_among(rows)(counterfactuals)


def isolation_among(rows: Matrix) -> Measure:
    """Return `isolation` among these rows, learned once for the counterfactuals of many methods.

    Its trees ask for one column at a time, so the weight of a column has no say.
    """
    model = IsolationForest(random_state=0).fit(rows)
    return lambda counterfactuals: np.asarray(-model.score_samples(counterfactuals))


def pairwise_distance(counterfactuals: Matrix, blocks: Blocks) -> float:
    """Return the mean Manhattan distance between one factual's counterfactuals; NaN for fewer than two."""
    first, second = np.triu_indices(len(counterfactuals), k=1)
    if not len(first):
        return float("nan")
    return float(l1(feature_differences(counterfactuals[first], counterfactuals[second], blocks)).mean())


def distinct_changes(factual: Matrix, counterfactuals: Matrix, blocks: Blocks) -> float:
    """Return the share of distinct sets of changed features; NaN for fewer than two counterfactuals."""
    if len(counterfactuals) < 2:
        return float("nan")
    changed = changed_features(np.broadcast_to(factual, counterfactuals.shape), counterfactuals, blocks)
    return len(np.unique(changed, axis=0)) / len(counterfactuals)


def n_ways(
    factual: Matrix,
    counterfactuals: Matrix,
    blocks: Blocks,
    is_immutable: NDArray[np.bool_],
    label_of: LabelOf,
    target: int,
) -> float:
    """Return the number of distinct sets of features that must change, among counterfactuals that keep the immutables.

    Unnecessary changes do not count: features are first reverted, smallest change first, as long as the target label
    stays. NaN for fewer than two counterfactuals.
    """
    if len(counterfactuals) < 2:
        return float("nan")
    start = np.broadcast_to(factual, counterfactuals.shape)
    points = counterfactuals[~changed_features(start, counterfactuals, blocks)[:, is_immutable].any(axis=1)]
    start = start[: len(points)]
    order = np.argsort(feature_differences(start, points, blocks), axis=1, kind="stable")
    for rank in range(len(blocks)):
        trial = points.copy()
        for line, position in enumerate(order[:, rank]):
            trial[line, blocks[position]] = factual[blocks[position]]
        stays = label_of(trial) == target if len(trial) else np.zeros(0, dtype=bool)
        points = np.where(stays[:, np.newaxis], trial, points)
    return float(len(np.unique(changed_features(start, points, blocks), axis=0)))


def _column_weights(blocks: Blocks) -> Matrix:
    """Return weights that make another level cost 1: it moves two columns of its block by 1, so each counts half."""
    widths = [block.stop - block.start for block in blocks]
    return np.concatenate([np.full(width, 1.0 if width == 1 else 0.5) for width in widths])


def _reversible(
    factuals: Matrix,
    counterfactuals: Matrix,
    changed: NDArray[np.bool_],
    blocks: Blocks,
    label_of: LabelOf,
    target: int,
) -> Matrix:
    """Revert each changed block on its own, call the model once for all of them, and count per counterfactual."""
    lines, positions = np.nonzero(changed)
    reverted = counterfactuals[lines].copy()
    for position, block in enumerate(blocks):
        chosen = positions == position
        reverted[chosen, block] = factuals[lines[chosen], block]
    kept = label_of(reverted) == target if len(lines) else np.zeros(0, dtype=bool)
    return np.bincount(lines, weights=kept, minlength=len(factuals)).astype(np.float64)
