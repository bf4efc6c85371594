"""The stages in their order, over arrays: from encoded factuals to encoded counterfactuals.

    z, codes -> home balls -> (re-cover) -> opposing pairs -> shortlist -> walk -> Found

Nothing here sees pandas, the schema or the model. A chunk of factuals is explained together; the answers do
not depend on which others are in the chunk.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf.associate import home_balls
from onbmacf.candidates import Features, LabelOf, Pairs, Rows, shortlist
from onbmacf.cover import BallCover
from onbmacf.distance import Matrix, Metric, distances
from onbmacf.geometry import Balls
from onbmacf.recover import reach_of, recover
from onbmacf.walk import Snap, walk

MOST_PAIRS = 1 << 17  # factual-ball pairs that are held in memory together


@dataclass(frozen=True, eq=False)
class Ground:
    """What every search stands on: the fitted rows, their cover, the features, and the options."""

    Z: Matrix
    labels: Rows
    cover: BallCover
    features: Features
    metric: Metric
    competitors: str
    association: str
    boundary: str
    step_ratio: float
    max_steps: int

    @property
    def balls(self) -> Balls:
        """The cover's balls as places."""
        return Balls(self.Z[self.cover.centers], self.cover.radii, self.cover.labels)


class Found(NamedTuple):
    """One line per counterfactual; those of one factual follow each other, nearest boundary first."""

    factual: Rows
    ball: Rows  # position in the cover; -1 for a ball that re-covering made
    label: Rows
    relaxation: Rows
    counterfactual: Matrix
    semifactual: Matrix
    has_semifactual: NDArray[np.bool_]


def search(
    ground: Ground, z: Matrix, codes: Rows, wanted: NDArray[np.bool_], label_of: LabelOf, snap: Snap, n: int
) -> Found:
    """Explain the factuals z with label codes `codes`; wanted (factuals x classes) says which labels to reach."""
    home, balls, pairs = prepare(ground, z, codes, wanted)
    candidates = shortlist(
        z, home, pairs, balls, ground.features, label_of, n=n, metric=ground.metric, boundary=ground.boundary
    )
    labels = balls.labels[candidates.ball]
    walked = walk(
        z, codes, candidates, labels, label_of, snap, step_ratio=ground.step_ratio, max_steps=ground.max_steps
    )
    ball = np.where(candidates.ball < len(ground.cover), candidates.ball, -1)
    return Found(candidates.factual, ball, labels, candidates.relaxation, *walked)


def prepare(ground: Ground, z: Matrix, codes: Rows, wanted: NDArray[np.bool_]) -> tuple[Rows, Balls, Pairs]:
    """Return each factual's home ball, all balls with those of re-covered homes behind, and the opposing pairs."""
    balls = ground.balls
    home = home_balls(distances(z, balls.points, ground.metric), balls.radii, ground.association, ground.boundary)
    opposing = wanted[:, balls.labels]
    strangers = np.flatnonzero(balls.labels[home] != codes)  # line 15
    opposing[strangers, home[strangers]] = False  # line 17
    extra = [_overlay(ground, z[line], int(home[line])) for line in strangers]
    reach = reach_of(z[strangers], codes[strangers], ground.Z, ground.labels, ground.metric)
    own = Balls(z[strangers], reach, codes[strangers])  # line 19: a = i
    factual, ball = np.nonzero(opposing)
    return _with_overlays(home, balls, Pairs(factual, ball), strangers, own, extra, wanted)


def _overlay(ground: Ground, z: Matrix, home: int) -> Balls:
    """Line 16: the balls that replace the home ball of one factual."""
    rows = ground.cover.members(home)
    chosen, radii = recover(z, ground.Z[rows], ground.cover.reach[rows], ground.metric, ground.competitors)
    return Balls(ground.Z[rows[chosen]], radii, np.full(len(chosen), ground.cover.labels[home]))


def _with_overlays(
    home: Rows,
    balls: Balls,
    pairs: Pairs,
    strangers: Rows,
    own: Balls,
    extra: list[Balls],
    wanted: NDArray[np.bool_],
) -> tuple[Rows, Balls, Pairs]:
    """Line 18: append the strangers' own balls, then the balls that replace their homes."""
    home = home.copy()
    home[strangers] = len(balls.radii) + np.arange(len(strangers))
    all_balls = Balls(*(np.concatenate(parts) for parts in zip(balls, own, *extra, strict=True)))
    first = len(balls.radii) + len(strangers)
    owner = np.repeat(strangers, np.array([len(part.radii) for part in extra], dtype=np.intp))
    added = first + np.arange(len(owner))
    reachable = wanted[owner, all_balls.labels[added]]
    factual = np.concatenate([pairs.factual, owner[reachable]])
    ball = np.concatenate([pairs.ball, added[reachable]])
    order = np.lexsort((ball, factual))
    return home, all_balls, Pairs(factual[order], ball[order])


def chunks(n_factuals: int, n_balls: int) -> Iterator[slice]:
    """Cut factuals into slices whose pairs fit in memory together."""
    step = max(1, MOST_PAIRS // max(1, n_balls))
    for start in range(0, n_factuals, step):
        yield slice(start, min(start + step, n_factuals))
