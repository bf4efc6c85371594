"""The stages in their order, over arrays: from encoded factuals to encoded counterfactuals.

    z, codes -> home balls -> (re-cover) -> opposing pairs -> shortlist -> walk -> Found

Nothing here sees pandas, the schema or the model. A chunk of factuals is explained together; the answers do
not depend on which others are in the chunk.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.associate import home_balls
from onbmacf._balls.cover import BallCover
from onbmacf._balls.distance import Matrix, Metric, distances, paired
from onbmacf._balls.geometry import Balls
from onbmacf._balls.neighbours import Neighbours
from onbmacf._balls.recover import reach_of, recover
from onbmacf._search.pairs import Features, LabelOf, Pairs, Rows, Search, only, places, shortlist
from onbmacf._search.refined import Wish, better_points
from onbmacf._search.walk import WAY_BACK, Snap, walk, way_back

STRATEGIES = ("refined", "paper")
SEARCHES = ("best_first", "exhaustive")
FIRST_ROUND = 128  # balls per factual in the first round of a best-first search
UNASKED = -2  # the label of a point that was not asked
MOST_PAIRS = 1 << 17  # factual-ball pairs that are tried together
MOST_LISTED = 1 << 19  # factual-ball pairs that are put in order together


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
    search: str = "best_first"
    max_model_rows: int | None = None
    strategy: str = "paper"
    plausibility: float = 0.0
    neighbours: Neighbours | None = None

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


def found_at(found: Found, lines: Rows) -> Found:
    """Return some lines of what was found."""
    return Found(
        found.factual[lines],
        found.ball[lines],
        found.label[lines],
        found.relaxation[lines],
        found.counterfactual[lines],
        found.semifactual[lines],
        found.has_semifactual[lines],
    )


def search(
    ground: Ground, z: Matrix, codes: Rows, wanted: NDArray[np.bool_], label_of: LabelOf, snap: Snap, n: int
) -> tuple[Found, NDArray[np.bool_]]:
    """Explain the factuals z with label codes `codes`; wanted (factuals x classes) says which labels to reach.

    Also returned: which factuals' budget of questions ran out before the balls did.
    """
    home, balls, pairs = prepare(ground, z, codes, wanted)
    meter = Meter(label_of, len(z), ground, n)
    rounds = rounds_of(ground.search, pairs)
    how = Search(n, ground.metric, ground.boundary, rounds, meter.afford)
    if ground.strategy == "paper":
        candidates = shortlist(z, home, pairs, balls, ground.features, meter.label_of, how)
        labels = balls.labels[candidates.ball]
        walked = walk(
            z, codes, candidates, labels, label_of, snap, step_ratio=ground.step_ratio, max_steps=ground.max_steps
        )
        factual, ball, relaxation = candidates.factual, candidates.ball, candidates.relaxation
    else:
        wish = Wish(n, ground.metric, ground.plausibility, rounds, meter.afford)
        share = ground.neighbours.share if ground.neighbours else _anything
        lines = better_points(z, pairs, balls, ground.features, meter.label_of, snap, share, wish)
        factual, ball, labels, relaxation = lines.factual, lines.ball, lines.label, lines.relaxation
        walked = way_back(z, codes, lines.factual, lines.point, label_of, snap)
    ball = np.where(ball < len(ground.cover), ball, -1)
    return Found(factual, ball, labels, relaxation, *walked), meter.ran_out


def _anything(points: Matrix, labels: Rows) -> Matrix:
    return np.ones(len(points))


class Meter:
    """Counts the questions asked per factual, and tells how many more balls a budget allows at worst."""

    def __init__(self, label_of: LabelOf, n_factuals: int, ground: Ground, n: int) -> None:
        self._label_of = label_of
        walks = n * (ground.max_steps + 2 if ground.strategy == "paper" else WAY_BACK)
        self._spent = np.full(n_factuals, 1 + walks + n * (2 + WAY_BACK))  # its own label, the walks, the last checks
        self._per_ball = 1 + len(ground.features.starts)  # the projection, then each feature put back once
        self._budget = ground.max_model_rows
        self._share = 1 if ground.strategy == "paper" else 2  # the refined strategy keeps half for what comes after
        self.ran_out = np.zeros(n_factuals, dtype=bool)

    def label_of(self, points: Matrix, factual: Rows) -> Rows:
        """Ask, and count the rows of each factual; what its budget does not allow is not asked and has no label."""
        if self._budget is None:
            return self._label_of(points, factual)
        asked = np.flatnonzero(self._spent[factual] + places(factual, np.zeros(len(factual))) < self._budget)
        self._spent += np.bincount(factual[asked], minlength=len(self._spent))
        self.ran_out[np.delete(factual, asked)] = True
        labels = np.full(len(points), UNASKED, dtype=np.intp)
        labels[asked] = self._label_of(points[asked], factual[asked])
        return labels

    def afford(self, n_balls: Rows) -> Rows:
        """Return per factual how many of the balls can be tried within the budget, and note where not all can."""
        if self._budget is None:
            return n_balls
        left = -(-np.maximum(0, (self._budget - self._spent) // self._per_ball) // self._share)  # rounded up
        self.ran_out |= left < n_balls
        return np.minimum(left, n_balls)


def rounds_of(search: str, pairs: Pairs) -> Rows:
    """Return how many balls per factual have been tried after each round: all at once, or 128, 384, 896, ..."""
    most = int(np.bincount(pairs.factual).max(initial=1))
    if search == "exhaustive":
        return np.array([most])
    n_rounds = 1 + max(0, int(np.ceil(np.log2(most / FIRST_ROUND + 1))))
    return FIRST_ROUND * (2 ** np.arange(1, n_rounds + 1) - 1)


def prepare(ground: Ground, z: Matrix, codes: Rows, wanted: NDArray[np.bool_]) -> tuple[Rows, Balls, Pairs]:
    """Return each factual's home ball, all balls with those of re-covered homes behind, and the opposing pairs."""
    balls = ground.balls
    away = distances(z, balls.points, ground.metric)
    home = home_balls(away, balls.radii, ground.association, ground.boundary)
    is_known = balls.labels < wanted.shape[1]  # a row taken into the map may have a label unseen in fit
    opposing = wanted[:, np.where(is_known, balls.labels, 0)] & is_known
    strangers = np.flatnonzero(balls.labels[home] != codes)  # line 15
    opposing[strangers, home[strangers]] = False  # line 17
    extra = [_overlay(ground, z[line], int(home[line])) for line in strangers]
    reach = reach_of(z[strangers], codes[strangers], ground.Z, ground.labels, ground.metric)
    own = Balls(z[strangers], reach, codes[strangers])  # line 19: a = i
    away -= balls.radii
    at_home = away[np.arange(len(z)), home]
    at_home[strangers] = -reach
    factual, ball = np.nonzero(opposing)
    pairs = Pairs(factual, ball, (away[opposing] - at_home[factual]) / 2)
    home, balls, added = _overlays(home, balls, strangers, own, extra, wanted)
    gaps = paired(z[added.factual], balls.points[added.ball], ground.metric) - balls.radii[added.ball]
    added = added._replace(bound=(gaps - at_home[added.factual]) / 2)
    return home, balls, _merged(pairs, added)


def _overlay(ground: Ground, z: Matrix, home: int) -> Balls:
    """Line 16: the balls that replace the home ball of one factual."""
    rows = ground.cover.members(home)
    chosen, radii = recover(z, ground.Z[rows], ground.cover.reach[rows], ground.metric, ground.competitors)
    return Balls(ground.Z[rows[chosen]], radii, np.full(len(chosen), ground.cover.labels[home]))


def _overlays(
    home: Rows, balls: Balls, strangers: Rows, own: Balls, extra: list[Balls], wanted: NDArray[np.bool_]
) -> tuple[Rows, Balls, Pairs]:
    """Line 18: append the strangers' own balls, then the balls that replace their homes; also the pairs these make."""
    home = home.copy()
    home[strangers] = len(balls.radii) + np.arange(len(strangers))
    all_balls = Balls(*(np.concatenate(parts) for parts in zip(balls, own, *extra, strict=True)))
    first = len(balls.radii) + len(strangers)
    owner = np.repeat(strangers, np.array([len(part.radii) for part in extra], dtype=np.intp))
    added = first + np.arange(len(owner))
    reachable = wanted[owner, all_balls.labels[added]]
    return home, all_balls, Pairs(owner[reachable], added[reachable], np.zeros(reachable.sum()))


def _merged(pairs: Pairs, added: Pairs) -> Pairs:
    """Put pairs together in their order; the added balls come after all others."""
    if not len(added.factual):
        return pairs
    both = Pairs(*(np.concatenate(parts) for parts in zip(pairs, added, strict=True)))
    return only(both, np.argsort(both.factual, kind="stable"))


def chunks(n_factuals: int, n_balls: int, n_jobs: int = 1, search: str = "exhaustive") -> list[slice]:
    """Cut factuals into slices whose pairs fit in memory together, and at least one per job.

    A best-first search seldom goes beyond its first two rounds, so it may take more factuals at once.
    """
    n_tried = n_balls if search == "exhaustive" else min(n_balls, 4 * FIRST_ROUND)
    most = min(MOST_PAIRS // max(1, n_tried), MOST_LISTED // max(1, n_balls))
    step = max(1, min(most, -(-n_factuals // n_jobs)))
    return [slice(start, min(start + step, n_factuals)) for start in range(0, n_factuals, step)]
