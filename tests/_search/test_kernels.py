"""The kernels of the rounds: compiled as their source says, and their choices those of plain loops over everything."""

from itertools import product
from unittest import mock

import numpy as np
import pytest

import onbmacf._search.kernels
from amounts import seeds
from onbmacf._search import choose, record
from onbmacf._search.kernels import donors, rounds
from onbmacf._search.record import Record
from plain_kernels import from_source

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of infinite margins, in the source

SOURCE = from_source(onbmacf._search.kernels, "rounds", "donors")
SEEDS = seeds(40)
SALT = np.random.default_rng(1).integers(1, 1 << 61, 5, dtype=np.uint64)
PRIME = (1 << 61) - 1


class Case:
    """Factuals and points on a small grid, full of ties, levels and missing values; what a model said is made up."""

    def __init__(self, seed, kernels=rounds, n=4, capacity=80, whole=False, farther=0.0):
        rng = np.random.default_rng(seed)
        width = int(rng.integers(1, 6))
        self.is_level = (rng.random(width) < 0.3).astype(np.int8)
        self.scale, self.absent = rng.choice([0.25, 0.5, 1.0], width), rng.choice([0.25, 1.0], width)
        ranks = np.sort(rng.integers(0, 5, (width, 11)).astype(float), axis=1)
        ranks[self.is_level == 1] = np.r_[rng.permutation(4), np.full(7, np.nan)]
        self.ranks = ranks
        self.power = int(rng.choice([0, 1, 2]))
        self.most_changes = int(rng.choice([2, width]))
        step, farther = rng.choice([1.0, 0.5, 0.1], width), np.full(width, farther)
        self.features = kernels.Features(
            self.is_level,
            self.scale,
            self.absent,
            step,
            ranks,
            SALT[:width].copy(),
            self.power,
            self.most_changes,
            farther,
        )
        self.factuals = self.values(rng, (n, width), 0.1 * (not whole))
        self.free = rng.random((n, width)) < 0.9
        with mock.patch.object(record, "rounds", kernels):
            self.record = Record.of(self.factuals, self.free, self.features, capacity, 150)
        self.trace, self.rng = self.record.trace, rng

    @staticmethod
    def values(rng, shape, missing=0.05):
        return np.where(rng.random(shape) < missing, np.nan, rng.integers(0, 5, shape).astype(float))

    def points(self, n_points):
        """Return points near the factuals, with few changes and repeats, and whose they are."""
        rng, (n, width) = self.rng, self.factuals.shape
        owner = rng.integers(0, n, n_points)
        is_kept = rng.random((n_points, width)) < 0.6
        values = self.values(rng, (n_points, width))
        points = np.where(is_kept | np.isnan(values), self.factuals[owner], values)  # a value is never removed
        return points, owner, rng.random(n_points) < 0.9

    def add(self, points, owner, allowed, room, kernels, *parts):
        with mock.patch.object(record, "rounds", kernels):
            return self.record.add(points, owner, allowed, room, *parts)

    def asked(self, kernels=rounds, n_points=150):
        """Write down factuals and points with margins, most of which refuse."""
        n = len(self.factuals)
        every = np.full(n, 60)
        self.add(self.factuals, np.arange(n), np.ones(n, dtype=bool), every, kernels)
        self.add(*self.points(n_points), every, kernels)
        margin = self.rng.integers(-6, 4, self.record.margin.shape) / 2
        margin[self.rng.random(margin.shape) < 0.05] = -np.inf
        margin[:, 0] = -self.rng.integers(1, 5, n) / 2
        is_known = np.arange(margin.shape[1]) < self.record.size[:, np.newaxis]
        self.record.margin[:] = np.where(is_known, margin, np.nan)
        self.record.code[:] = self.rng.integers(0, 2, margin.shape)
        self.record.share[:] = np.where(
            self.rng.random(margin.shape) < 0.5, np.nan, self.rng.integers(0, 6, margin.shape) / 5
        )
        return self

    def scores(self):
        """Return a score of each accepted point."""
        return np.where(self.record.accepted(), self.rng.integers(0, 20, self.record.margin.shape) / 4, np.inf)

    def state(self):
        """Return all that a kernel may have written."""
        known = np.arange(self.record.margin.shape[1]) < self.record.size[:, np.newaxis]
        names = ("points", "margin", "base", "key", "n_changed")
        return [self.record.size, *(getattr(self.record, name)[known] for name in names)]


def both(seed, **how):
    how = {"farther": (0.0, 0.02, 0.3)[seed % 3], **how}
    return [(Case(seed, module, **how), module) for module in (rounds, SOURCE.rounds)]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def written(kernel, most, width):
    """Return the points that a kernel proposes, and the factual of each."""
    out, owner = np.full((most, width), -7.0), np.full(most, -7, dtype=np.intp)
    n = kernel(out, owner)
    assert (owner[n:] == -7).all()
    return out[:n], owner[:n]


# Compiled, and as the Python that the kernels are written in.


@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_kernel_adds_what_its_source_adds(seed):
    found = []
    for case, module in both(seed):
        room, added = np.full(len(case.factuals), 25), []
        for _ in range(3):
            points = case.points(60)
            parts = case.rng.integers(0, 2, 60).astype(np.int8), 0.5
            added.append(case.add(*points, room, module, *parts))
        found.append([*case.state(), *(array for pair in added for array in pair)])
    assert_same(*found)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_kernel_measures_as_its_source_does_and_as_a_plain_loop(seed):
    found = []
    for case, module in both(seed):
        points, owner, _ = case.points(40)
        with mock.patch.object(record, "rounds", module):
            found.append(case.record.measured(points, owner))
        for point, r, apart, n_changed in zip(points, owner, *found[-1], strict=True):
            whole, changed = cost(case, r, point)
            assert (pytest.approx(whole), len(changed)) == (apart, n_changed)
    assert_same(*found)


@pytest.mark.parametrize("seed", SEEDS)
def test_refused_is_where_the_same_changes_were_refused_that_cost_as_much(seed):
    found = []
    for case, module in both(seed):
        points, owner, _ = case.asked(module).points(60)
        with mock.patch.object(record, "rounds", module):
            found.append([case.record.refused(points, owner)])
        for point, r, is_refused in zip(points, owner, found[-1][0], strict=True):
            whole, changed = cost(case, r, point)
            others = [
                s
                for s in range(1, case.record.size[r])
                if case.record.margin[r, s] <= 0 and cost(case, r, case.record.points[r, s])[1] == changed
            ]
            assert is_refused == any(case.record.base[r, s] >= whole for s in others)
    assert_same(*found)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_kernel_proposes_the_singles_of_its_source(seed):
    found = []
    for case, module in both(seed):
        shares, width = np.array([1.0, 0.15, 0.6]), case.factuals.shape[1]
        order = case.rng.permutation(width)
        for most in (3, 40):
            room = case.rng.integers(1, most + 1, len(case.factuals))
            given = case.trace, case.features, order, shares, room
            found.append(written(lambda *out, given=given, own=module: own.singles(*given, *out), 200, width))
    assert_same(found[0] + found[1], found[2] + found[3])
    assert len(found[1][0]) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_singles_of_a_factual_do_not_depend_on_the_others(seed):
    case = Case(seed, n=6)
    width, shares, room = case.factuals.shape[1], np.array([1.0, 0.15, 0.6]), np.full(6, 2 * case.factuals.shape[1])
    given = case.features, np.arange(width), shares
    points, owner = written(lambda *out: rounds.singles(case.trace, *given, room, *out), 400, width)
    for r in range(6):
        alone = Record.of(case.factuals[[r]], case.free[[r]], case.features, 60, 150).trace
        own, _ = written(lambda *out, one=alone: rounds.singles(one, *given, room[:1], *out), 400, width)
        np.testing.assert_array_equal(points[owner == r], own)


COMBINED = np.array([3, 6, 4, 3, 4])


def proposals(case, module, combined, near, good, active, most=150):
    """Return what the kernel proposes, whose it is, and the part of each."""
    case.asked(module)
    score, width = case.scores(), case.factuals.shape[1]
    part = np.full(most * len(case.factuals), -7, dtype=np.int8)
    sizes = (np.array(own, dtype=np.intp) for own in (combined, near, good))
    given = case.trace, case.features, score, np.array([1.0, 0.75, 1.5]), *sizes, 1.15, active.astype(np.int8)
    points, owner = written(lambda *out: module.propose(*given, *out, part), most * len(case.factuals), width)
    return points, owner, part[: len(points)]


@pytest.mark.parametrize("sizes", [(5, 12, 7, 24, 2, 24), (3, 8, 0, 0, 1, 5), (8, 12, 7, 5, 2, 0)])
@pytest.mark.parametrize("combined", [COMBINED, ()], ids=["combined", "refined"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_kernel_proposes_as_its_source_does(seed, sizes, combined):
    found = []
    for case, module in both(seed):
        active = case.rng.random(len(case.factuals)) < 0.8
        found.append(proposals(case, module, combined, sizes, (8, 12, 7, 24, 2, 9), active))
        assert set(found[-1][1].tolist()) <= set(np.flatnonzero(active).tolist())
        assert set(found[-1][2].tolist()) <= {0, 1}
    assert_same(*found)


@pytest.mark.parametrize("combined", [COMBINED, ()], ids=["combined", "refined"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_factual_takes_the_room_of_another(seed, combined):
    sizes = (8, 12, 7, 24, 2, 12)
    alone = []
    for active in [*np.eye(4, dtype=bool), np.ones(4, dtype=bool)]:
        alone.append(proposals(Case(seed), rounds, combined, sizes, sizes, active, most=25))
    points, owner, part = alone.pop()
    for own, line in zip(alone, range(4), strict=True):
        assert_same([own[0], own[2]], [points[owner == line], part[owner == line]])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_kernel_pulls_as_its_source_does(seed):
    found = []
    for case, module in both(seed):
        case.asked(module)
        score, active = case.scores(), (case.rng.random(len(case.factuals)) < 0.8).astype(np.int8)
        label, most = np.full(13 * len(case.factuals), -7), 13 * len(case.factuals)
        given = case.trace, case.features, score, active

        def kernel(out, owner, given=given, own=module, label=label):
            return own.pull(*given, out, owner, label)

        points, owner = written(kernel, most, case.factuals.shape[1])
        found.append([points, owner, label[: len(points)]])
        for point, r in zip(points, owner, strict=True):  # within the values of the table and of the factual
            low = np.fmin(case.factuals[r], case.ranks[:, 0])
            high = np.fmax(case.factuals[r], case.ranks[:, -1])
            fine = (case.is_level == 1) | np.isnan(case.factuals[r]) | ((point >= low) & (point <= high))
            assert fine.all()
    assert_same(*found)


@pytest.mark.parametrize("seed", SEEDS)
def test_margins_are_those_of_the_source_and_of_the_best_labels(seed):
    rng = np.random.default_rng(seed)
    n, n_labels = 60, int(rng.integers(2, 5))
    scores = rng.integers(-2, 3, (n, n_labels + seed % 2)) / 2
    scores[rng.random(n) < 0.1, 0] = np.nan
    codes = np.nan_to_num(scores, nan=9.0).argmax(axis=1)
    codes = np.where(rng.random(n) < 0.2, rng.integers(0, scores.shape[1], n), codes)  # the model decided otherwise
    wanted, owner = rng.random((3, n_labels)) < 0.5, rng.integers(0, 3, n)
    found = []
    for module in (rounds, SOURCE.rounds):
        found.append(np.empty(n))
        module.margins(scores, codes, wanted.view(np.int8), owner, -1e-6, found[-1])
    assert_same(*found)
    for i, margin in enumerate(found[0]):
        is_wanted = np.append(wanted[owner[i]], False)[: scores.shape[1]]
        is_wanted = np.pad(is_wanted, (0, scores.shape[1] - len(is_wanted)))
        if np.isnan(scores[i]).any() or not is_wanted.any():
            assert margin == -np.inf
            continue
        expected = scores[i][is_wanted].max() - scores[i][~is_wanted].max(initial=-np.inf)
        assert margin == (-1e-6 if expected > 0 and not is_wanted[codes[i]] else expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_kernel_weighs_as_its_source_does(seed):
    found = []
    for case, module in both(seed):
        case.asked(module)
        shape = case.record.margin.shape
        price, total = case.rng.choice([0.0, 0.5, 2.0], len(case.factuals)), np.empty(shape)
        row, slot = np.full((2, 5 * len(case.factuals)), -1, dtype=np.intp)
        needless = np.zeros(shape, dtype=np.int8)
        looked, is_open = np.zeros(shape[0], dtype=np.intp), case.rng.integers(0, 2, shape[0]).astype(np.int8)
        module.find_needless(case.trace, case.features, needless, looked)
        total[:] = -1.0
        n = module.weigh(case.trace, price, needless, is_open, total, case.record.lowest, 5, row, slot)
        known = np.arange(shape[1]) < case.record.size[:, np.newaxis]
        found.append([total[known], row[:n], slot[:n], needless[known], case.record.lowest, looked, is_open])
    assert_same(*found)


def nearest_case(seed):
    case = Case(seed)
    rng, width = case.rng, case.factuals.shape[1]
    rows, labels = case.values(rng, (30, width), 0.15), rng.integers(0, 3, 30)
    wanted = (rng.random((len(case.factuals), 3)) < 0.6).astype(np.int8)
    radii = rng.choice([0.0, 0.25, 0.5], 30) * bool(seed % 2)
    free = case.free.astype(np.int8)
    return case.factuals, free, case.is_level, case.scale, case.absent, rows, labels, wanted, radii


@pytest.mark.parametrize("most", [1, 4, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_nearest_donors_are_those_of_the_source_and_of_sorting_all(seed, most):
    given = nearest_case(seed)
    own, free, is_level, scale, absent, rows, labels, wanted, radii = given
    found = []
    for module in (donors, SOURCE.donors):
        out = np.empty((len(own), most), dtype=np.intp), np.empty((len(own), most))
        module.nearest(*given, *out)
        found.append(out)
    assert_same(*found)
    for r, (places, apart) in enumerate(zip(*found[0], strict=True)):
        moved = np.where(is_level == 1, scale * (rows != own[r]), np.abs(rows - own[r]) * scale)
        moved = np.where(np.isnan(own[r]) & ~np.isnan(rows), absent, np.where(np.isnan(rows), 0.0, moved))
        total = (moved * (free[r] == 1)).sum(axis=1) - radii
        order = [i for i in np.argsort(total, kind="stable") if wanted[r, labels[i]]][:most]
        assert places.tolist() == order + [-1] * (most - len(order))
        np.testing.assert_allclose(apart[: len(order)], total[order], rtol=0, atol=1e-12)


# Plain loops over everything.


def cost(case, r, point):
    """Return distance and price of changes of a point, and its changes."""
    changed = [
        f
        for f, v in enumerate(point)
        if not (v == case.factuals[r, f] or (np.isnan(v) and np.isnan(case.factuals[r, f])))
    ]
    costs = []
    for f in changed:
        if np.isnan(point[f]) or np.isnan(case.factuals[r, f]):
            costs.append(case.absent[f])
        else:
            costs.append(case.scale[f] * (1.0 if case.is_level[f] else abs(point[f] - case.factuals[r, f])))
    whole = {0: max(costs, default=0.0), 1: sum(costs), 2: sum(own * own for own in costs) ** 0.5}[case.power]
    return whole, tuple(changed)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_added_is_what_a_set_of_tuples_lacks(seed):
    case = Case(seed)
    seen = [set() for _ in case.factuals]
    points, owner, allowed = case.points(200)
    points, owner = np.concatenate([case.factuals, points]), np.concatenate([np.arange(len(case.factuals)), owner])
    allowed = np.concatenate([np.ones(len(case.factuals), dtype=bool), allowed])
    for part in np.array_split(np.arange(len(points)), 3):
        room = case.rng.integers(0, 30, len(case.factuals)) + (part[0] == 0)
        left, expected = room.copy(), []
        for line in part:
            r, key = owner[line], tuple("missing" if np.isnan(v) else v for v in points[line])
            n_changes = len(cost(case, r, points[line])[1])
            is_first = not seen[r] and n_changes == 0
            if allowed[line] and left[r] and key not in seen[r] and (is_first or 0 < n_changes <= case.most_changes):
                expected.append((r, len(seen[r]), key))
                seen[r].add(key)
                left[r] -= 1
        given = room.copy()
        row, slot, line = case.add(points[part], owner[part], allowed[part], given, rounds)
        np.testing.assert_array_equal(given, room)
        np.testing.assert_array_equal(points[part][line], case.record.points[row, slot])
        kept = case.record.points[row, slot]
        keys = [tuple("missing" if np.isnan(v) else v for v in point) for point in kept]
        assert [*zip(row.tolist(), slot.tolist(), keys, strict=True)] == [(int(r), s, k) for r, s, k in expected]
        for r, s, point in zip(row, slot, kept, strict=True):
            apart, changed = cost(case, r, point)
            assert case.record.base[r, s] == pytest.approx(apart + choose.SPARSITY * len(changed))
            assert case.record.key[r, s] == sum(map(int, SALT[list(changed)])) % PRIME
            assert case.record.n_changed[r, s] == len(changed)
    assert case.record.size.tolist() == [len(own) for own in seen]


def curves(case, r):
    """Return what the singles of a factual say: by feature and side, (cost, -gain, value), the cheapest first."""
    found = {}
    for s in range(1, case.record.size[r]):
        point = case.record.points[r, s]
        apart, changed = cost(case, r, point)
        if len(changed) == 1:
            (f,) = changed
            side = int(not case.is_level[f] and point[f] > case.factuals[r, f])
            gain = case.record.margin[r, s] - case.record.margin[r, 0]
            if np.isfinite(gain):  # the model did not raise there
                found.setdefault((f, side), []).append((apart, -gain, point[f]))
    return {key: sorted(own, key=lambda line: line[:2]) for key, own in found.items()}


def least(case, r, f, curve, gain):
    """Return the value of a feature that should gain so much: the cheapest single, or before it on the line to it."""
    start, before = case.factuals[r, f], 0.0
    for _, minus, value in curve:
        if -minus >= gain:
            if case.is_level[f] or np.isnan(case.factuals[r, f]) or -minus <= before or gain <= before:
                return value
            return start + (value - start) * (gain - before) / (-minus - before)
        start, before = value, -minus
    return None


@pytest.mark.parametrize("most", [1, 4, 12])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_pairs_proposed_are_the_cheapest_of_all_whose_gains_add_up(seed, most):
    case = Case(seed, whole=True)
    points, owner, _ = proposals(case, rounds, [0, most, 0, 0, 0], [0] * 6, [0] * 6, np.ones(4), most=500)
    for r in range(len(case.factuals)):
        need, known, best = -case.record.margin[r, 0], curves(case, r), {}
        worthy = {f for (f, _), curve in known.items() if any(minus < 0 for _, minus, _ in curve)}
        for (f, side), (g, other) in product(known, repeat=2):
            if f == g or not {f, g} <= worthy:
                continue
            for _, minus, value in known[f, side]:
                last = least(case, r, g, known[g, other], need + minus) if 0 < -minus < need else None
                if last is not None:
                    point = case.factuals[r].copy()
                    point[[f, g]] = value, last
                    best[f, g] = min(best.get((f, g), np.inf), cost(case, r, point)[0])
        expected = sorted(best.values())[:most]
        mine = points[owner == r]
        found = [cost(case, r, point)[0] for point in mine]
        assert found[: len(expected)] == pytest.approx(expected)  # of the first belief; the second ends at singles


def test_pairs_are_proposed_in_most_cases():
    """Else the test above would say nothing."""
    n = 0
    for seed in SEEDS:
        case = Case(seed, whole=True)
        n += len(proposals(case, rounds, [0, 12, 0, 0, 0], [0] * 6, [0] * 6, np.ones(4), most=500)[0]) > 4
    assert n > len(SEEDS) / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_score_is_distance_changes_and_missing_neighbours_and_what_is_open_are_the_cheapest_that_may_win(seed):
    case = Case(seed).asked()
    shape, rng = case.record.margin.shape, case.rng
    share = case.record.share
    price, total = rng.choice([0.0, 0.5, 2.0], len(case.factuals)), np.empty(shape)
    row, slot = np.empty((2, 3 * len(case.factuals)), dtype=np.intp)
    needless, is_open = np.zeros(shape, dtype=np.int8), np.ones(shape[0], dtype=np.int8)
    n = rounds.weigh(case.trace, price, needless, is_open, total, case.record.lowest, 3, row, slot)
    assert (is_open == np.isin(np.arange(shape[0]), row[:n])).all()
    accepted, base = case.record.accepted(), case.record.base
    for r in range(len(case.factuals)):
        missing = np.where(price[r] == 0, 0.0, 1 - share[r])
        plain = np.where(accepted[r] & ~np.isnan(missing), base[r] + price[r] * missing**choose.POWER, np.inf)
        size = case.record.size[r]
        np.testing.assert_allclose(total[r, :size], plain[:size])
        np.testing.assert_allclose(
            case.record.lowest[:, r], [plain.min(), np.where(accepted[r], base[r], np.inf).min()]
        )
        still = [s for s in np.argsort(base[r], kind="stable") if accepted[r, s] and np.isnan(missing[s])]
        assert slot[:n][row[:n] == r].tolist() == [s for s in still if base[r, s] < plain.min()][:3]


def shares_of(points, labels=None):
    """Return shares of neighbours that follow from the point alone."""
    return (np.nan_to_num(points, nan=9.0) @ np.arange(1.0, points.shape[-1] + 1) % 6).round() / 6


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_point_is_the_one_that_counting_all_neighbours_says(seed, n):
    case, counted = Case(seed).asked(), []
    case.record.share[:] = np.nan
    price = case.rng.choice([0.1, 0.5, 2.0], len(case.factuals))
    needless = np.zeros(case.record.margin.shape, dtype=np.int8)
    rounds.find_needless(case.trace, case.features, needless, np.zeros(len(price), dtype=np.intp))
    accepted = case.record.accepted() & (needless == 0)
    every = np.where(accepted, 1 - shares_of(case.record.points), np.nan)
    every = np.where(accepted, case.record.base + price[:, np.newaxis] * every**choose.POWER, np.inf)

    def share(points, labels):
        counted.append(len(points))
        return shares_of(points)

    found = choose.worth(case.record, price, n, share)
    np.testing.assert_array_equal(found.argmin(axis=1), every.argmin(axis=1))
    np.testing.assert_allclose(found.min(axis=1), every.min(axis=1))
    assert sum(counted) <= accepted.sum()  # none twice
    assert not np.isfinite(found[~accepted]).any()


def test_neighbours_of_points_that_cannot_win_are_not_counted(monkeypatch):
    monkeypatch.setattr(choose, "TOGETHER", 2)
    n_counted = n_accepted = 0
    for seed in SEEDS:
        case, counted = Case(seed).asked(), []
        case.record.share[:] = np.nan
        choose.worth(
            case.record, np.full(4, 0.1), 1, lambda points, labels, own=counted: own.append(points) or shares_of(points)
        )
        n_counted, n_accepted = n_counted + sum(map(len, counted)), n_accepted + case.record.accepted().sum()
    assert 0 < n_counted < 0.5 * n_accepted


@pytest.mark.parametrize("seed", SEEDS)
def test_settled_is_a_best_point_that_changes_one_number_with_little_left_before_the_last_refusal(seed):
    found = []
    for case, module in both(seed):
        case.asked(module)
        score, settled = case.scores(), np.zeros(len(case.factuals), dtype=np.int8)
        module.settle(case.trace, case.features, score, 0.5, settled)
        found.append(settled)
    assert_same(*found)
    expected = [settled_plainly(case, score[r], r, 0.5) for r in range(len(settled))]
    np.testing.assert_array_equal(settled.astype(bool), expected)


def settled_plainly(case, score, r, part):
    """Say the same of one factual, by looking at every single change of the feature."""
    if not np.isfinite(score[1 : case.record.size[r]]).any():
        return False
    own, points = case.factuals[r], case.record.points[r, : case.record.size[r]]
    best = 1 + int(np.argmin(score[1 : len(points)]))
    (changed,) = np.nonzero([repr(a) != repr(b) for a, b in zip(points[best].tolist(), own.tolist(), strict=True)])
    if len(changed) != 1:
        return False
    (f,) = changed
    if case.is_level[f] or np.isnan(own[f]):
        return False
    alone = [s for s in range(1, len(points)) if np.array_equal(np.delete(points[s], f), np.delete(own, f), True)]
    refused = [points[s, f] for s in alone if case.record.margin[r, s] <= 0]
    goal = points[best, f]
    before = [value for value in refused if min(own[f], goal) <= value <= max(own[f], goal) and value != goal]
    gap = abs(goal - max(before, key=lambda value: abs(value - own[f]), default=own[f]))
    return gap * case.scale[f] <= part * case.record.base[r, best]


def test_some_are_settled_and_some_are_not():
    shares = []
    for seed in range(40):
        case = Case(seed).asked()
        settled = np.zeros(len(case.factuals), dtype=np.int8)
        rounds.settle(case.trace, case.features, case.scores(), 0.5, settled)
        shares.append(settled.mean())
    assert 0.05 < np.mean(shares) < 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_needless_is_what_was_also_accepted_with_one_change_undone(seed):
    case = Case(seed).asked()
    needless, looked = np.zeros(case.record.margin.shape, dtype=np.int8), np.zeros(len(case.factuals), dtype=np.intp)
    sizes = case.record.size.copy()
    for share in (0.4, 0.7, 1.0):  # points come in rounds, and those of earlier ones are not compared again
        case.record.size[:] = np.ceil(share * sizes)
        rounds.find_needless(case.trace, case.features, needless, looked)
    accepted = case.record.accepted()
    for r, own in enumerate(case.factuals):
        size = case.record.size[r]
        good = {tuple(map(repr, case.record.points[r, s].tolist())) for s in range(1, size) if accepted[r, s]}
        for s in range(1, size):
            point = case.record.points[r, s]
            changed = [f for f in range(len(own)) if repr(float(point[f])) != repr(float(own[f]))]
            undone = [tuple(repr(float(own[g] if g == f else point[g])) for g in range(len(own))) for f in changed]
            expected = accepted[r, s] and len(changed) > 1 and any(one in good for one in undone)
            assert needless[r, s] == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_points_that_may_be_nearer_get_their_share_of_the_room_first_and_what_others_leave(seed):
    case = Case(seed)
    case.add(case.factuals, np.arange(4), np.ones(4, dtype=bool), np.full(4, 9), rounds)
    points, owner, allowed = case.points(120)
    part, room = case.rng.integers(0, 2, 120).astype(np.int8), case.rng.integers(0, 12, 4)
    row, slot, _ = case.add(points, owner, allowed, room, rounds, part, 0.5)
    keys = [tuple(map(repr, point.tolist())) for point in points]
    for r in range(4):
        seen, lists = {tuple(map(repr, case.factuals[r].tolist()))}, ([], [])
        for own in (0, 1):
            for line in np.flatnonzero((owner == r) & (part == own) & allowed):
                if keys[line] not in lists[own] and len(cost(case, r, points[line])[1]) <= case.most_changes:
                    lists[own].append(keys[line])
        first = [key for key in lists[0] if key not in seen][: -(-room[r] // 2)]
        second = [key for key in lists[1] if key not in seen and key not in first][: room[r] - len(first)]
        rest = [key for key in lists[0] if key not in seen and key not in first and key not in second]
        expected = first + second + rest[: room[r] - len(first) - len(second)]
        found = [tuple(map(repr, case.record.points[r, s].tolist())) for s in slot[row == r]]
        assert found == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_model_said_scores_highest_whatever_the_map_says(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (40, 4)) / 2
    scores[:, -1] = -np.inf
    codes, found = rng.integers(-1, 6, 40), []
    for module in (donors, SOURCE.donors):
        found.append(scores.copy())
        module.believe(found[-1], codes, 1e-6)
    assert_same(*found)
    for before, after, code in zip(scores, found[0], codes, strict=True):
        if code < 0:
            assert np.isnan(after).all()
            continue
        said = min(code, 3)
        others = np.delete(after, said)
        assert after[said] >= others.max() + 1e-6 * 0.999
        assert (others <= np.delete(before, said)).all()
        assert after[said] >= before[said]


def n_digits(value):
    """Return how many digits of a number are more than zeros at its ends."""
    return len(f"{abs(value):.6f}".replace(".", "").strip("0"))


@pytest.mark.parametrize("kernels", [rounds, SOURCE.rounds], ids=["compiled", "source"])
def test_a_number_goes_on_to_the_roundest_in_reach(kernels):
    """Beside all numbers of six decimals in reach, of which it has the fewest digits, and of these the nearest."""
    rng, n_moved = np.random.default_rng(0), 0
    for _ in range(300):
        start, value = rng.normal(0, 10.0 ** rng.integers(-1, 3), 2).round(3)
        ranks = np.sort(rng.normal(0, 100, (1, 101)).round(1), axis=1)
        ones, part = np.ones(1), float(rng.choice([0.02, 0.1]))
        given = np.zeros(1, np.int8), ones, ones, ones, ranks, SALT[:1].copy(), 1, 1, np.array([part])
        found = kernels.rounder(kernels.Features(*given), 0, start, value)
        most, side = abs(value - start) * part, np.sign(value - start)
        assert -1e-9 <= side * (found - value) <= most + 1e-9
        low, high = ranks[0, [0, -1]]
        if low <= value <= high:
            assert low - 1e-9 <= found <= high + 1e-9
            most = min(most, high - value if side > 0 else value - low)
        units = 10.0 ** np.arange(-6, 4)
        tried = [side * np.ceil(side * value / unit - 1e-9) * unit for unit in units]
        tried = [near for near in tried if abs(near - value) <= most]
        best = min(tried, key=n_digits, default=value)
        assert n_digits(found) <= max(n_digits(best), n_digits(value))
        n_moved += found != value
    assert n_moved > 200
    assert kernels.rounder(kernels.Features(np.ones(1, np.int8), *given[1:]), 0, 1.0, 2.123) == 2.123  # a level
    assert kernels.rounder(kernels.Features(*given[:-1]), 0, 1.0, 2.123) == 2.123  # nothing is allowed
    assert np.isnan(kernels.rounder(kernels.Features(*given), 0, np.nan, np.nan))
    assert kernels.rounder(kernels.Features(*given), 0, np.nan, 2.123) == 2.123  # filled in: there is no way
