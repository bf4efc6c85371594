"""Algorithms 1 to 3 of the ONB-MACF paper (arXiv 2405.12326), line by line, with sets and loops.

    rows, features, model  ->  encode  ->  algorithm_1  ->  algorithm_2  ->  algorithm_3  ->  Answer

The golden reference of the tests. It shares no code with the package and trades all speed for being
readable next to the pseudocode, so it uses the paper's letters: d distances, c(i) the class the model
gives to i, U and V, P and G, l a ball by its centre, r its radius, D and L the cover, a the associated
ball, BCL the best candidate list. A number after # is the line of the algorithm; "reading n" is a place
where the pseudocode is silent or fails as printed.

Encoding, rounding and distances are in paper_space.py. The instance i is numbered as one more row after
the rows of the table.
"""
# ruff: noqa: E741 - the paper calls a ball l

from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Any, NamedTuple

from paper_space import (
    Feature,
    Point,
    Row,
    Space,
    distance,
    distances,
    encode,
    encode_value,
    learn_space,
    snap_value,
)

RELAXATIONS = ("NONE", "PROJECTION", "IMMUTABILITY")


class Ball(NamedTuple):
    l: int  # the centre, a row
    c: Any  # its class
    r: float  # distance to the nearest enemy
    G: frozenset  # the rows it was chosen to cover


class Candidate(NamedTuple):
    l: Ball
    proj: Row  # after "reduce changes"
    s: float  # where on the way from i to proj the boundary is
    d: float  # from i to that point
    relaxation: str


class Counterfactual(NamedTuple):
    values: Row
    distance: float
    label: Any
    relaxation: str
    semifactual: Row | None
    candidate: Candidate


class Answer(NamedTuple):
    status: str  # found, already or infeasible
    home: int  # a, as a position in the cover
    recovered: bool  # whether lines 15 to 20 ran
    counterfactuals: list[Counterfactual]


class Options(NamedTuple):
    n: int = 1
    metric: str = "manhattan"
    step_ratio: float = 0.5  # r of Algorithm 3
    max_steps: int = 10
    competitors: str = "uncovered"
    association: str = "surface"
    boundary: str = "surface"


# ---------------------------------------------------------------- Algorithm 1


def algorithm_1(d: Sequence[Sequence[float]], c: Sequence[Any], competitors: str = "uncovered") -> list[Ball]:
    D = []  # 2
    for k in sorted(set(c)):  # 3
        U = {i for i in range(len(c)) if c[i] == k}  # 4
        V = {i for i in range(len(c)) if c[i] != k}  # 5
        if not V:
            raise ValueError(f"every row is labelled {k!r}")  # reading 4
        r = {i: min(d[i][j] for j in V) for i in U}  # 9
        D = D + cover_class(d, k, U, r, competitors)  # 6-18
    return D  # 20


def cover_class(d: Any, k: Any, U: set[int], r: dict[int, float], competitors: str) -> list[Ball]:
    """Lines 6 to 18. Only uncovered rows compete (reading 1) unless competitors is "all"."""
    D = []
    of_class = sorted(U)
    while U:  # 6
        G: set[int] = set()  # 7
        l = -1
        for i in sorted(U) if competitors == "uncovered" else of_class:  # 8
            P = {u for u in U if d[i][u] < r[i] or d[i][u] == 0}  # 10, reading 3
            if len(P) > len(G):  # 11: strictly more, so a tie stays with the lower row (reading 2)
                G = P  # 12
                l = i  # 13
        D = [*D, Ball(l, k, r[l], frozenset(G))]  # 14, 16
        U = U - G  # 17
    return D


# ---------------------------------------------------------------- Algorithm 2


def algorithm_2(
    d_i: Sequence[float], r: Sequence[float], association: str = "surface", boundary: str = "surface"
) -> int:
    """The ball i is associated with: d_i and r hold, for each ball of L, d(i, l) and r(l)."""
    L = range(len(r))
    E = [l for l in L if d_i[l] < r[l]]  # 2
    a = None
    if len(E) == 0:  # 3
        for l in L:  # 4, reading 6
            if a is None or outside(d_i[l], r[l], association) < outside(d_i[a], r[a], association):
                a = l
    elif len(E) == 1:  # 5
        a = E[0]  # 6
    else:  # 7
        for l in E:  # 8
            if a is None:  # 9
                a = l  # 10
            elif side(d_i[a], r[a], d_i[l], r[l], boundary) > 0:  # 11-13
                a = l  # 14
    return a  # 16


def outside(d: float, r: float, association: str) -> float:
    """How far an uncovered instance is from a ball: from its surface, or from its centre."""
    return d - r if association == "surface" else d


def side(d_a: float, r_a: float, d_l: float, r_l: float, boundary: str) -> float:
    """Above 0 on l's side of the boundary between a and l, 0 on it, below 0 on a's (reading 5)."""
    if boundary == "surface":
        return (d_a - r_a) - (d_l - r_l)
    of_a, of_l = scaled(d_a, r_a), scaled(d_l, r_l)
    return 0.0 if of_a == of_l else of_a - of_l


def scaled(d: float, r: float) -> float:
    if d == 0:
        return 0.0
    return d / r if r > 0 else inf


# ---------------------------------------------------------------- Algorithm 3


class Question(NamedTuple):
    """All that is known while one instance is explained. Row i, the last, is the instance."""

    X: list[Row]
    Z: list[Point]
    c: list
    i: int
    space: Space
    model: Callable[[Row], Any]
    options: Options

    def d(self, u: Point, v: Point) -> float:
        return distance(u, v, self.options.metric)


def algorithm_3(q: Question, L: list[Ball], a: Ball, C_target: Collection) -> list[Counterfactual]:
    if a.c != q.c[q.i]:  # 3, 15
        L, a = cover_again(q, L, a)  # 16-20
    L_target = [l for l in L if l.c in C_target]
    BCL: list[Candidate] = []  # 2
    for relaxation in RELAXATIONS:  # 4-10, then 12, then 14
        if len(BCL) == 0:  # 11, 13
            BCL = best_candidates(q, L_target, a, relaxation)
    return [walk(q, cand) for cand in BCL]  # 21-35


def cover_again(q: Question, L: list[Ball], a: Ball) -> tuple[list[Ball], Ball]:
    """Lines 16 to 20, for this instance only and with the enemies of the whole table (reading 11)."""
    table = range(q.i)
    r = {}
    for u in a.G:
        nearest_enemy = min(q.d(q.Z[u], q.Z[j]) for j in table if q.c[j] != a.c)
        r[u] = min(nearest_enemy, q.d(q.Z[u], q.Z[q.i]))
    D_new = cover_class(distances(q.Z, q.options.metric), a.c, set(a.G), r, q.options.competitors)  # 16
    r_i = min(q.d(q.Z[q.i], q.Z[j]) for j in table if q.c[j] != q.c[q.i])
    ball_i = Ball(q.i, q.c[q.i], r_i, frozenset({q.i}))
    L = [l for l in L if l != a]  # 17
    return [*L, *D_new, ball_i], ball_i  # 18, 19


def best_candidates(q: Question, L: list[Ball], a: Ball, relaxation: str) -> list[Candidate]:
    """Lines 4 to 10."""
    BCL: list[Candidate] = []
    for l in L:  # 4
        proj = project(q, l, relaxation)
        if is_viable(q, l, proj, relaxation):  # 5
            proj = reduce_changes(q, l, proj)  # 6
            s = cut(q, a, l, proj)  # 7
            d_cand = q.d(q.Z[q.i], on_the_way(q, proj, s))
            BCL = update(BCL, Candidate(l, proj, s, d_cand, relaxation), q.options.n)  # 8, 9
    return BCL


def project(q: Question, l: Ball, relaxation: str) -> Row:
    """The centre with the immutable features of i; the centre itself once immutability is withheld."""
    if relaxation == "IMMUTABILITY":
        return q.X[l.l]
    choices = zip(q.space.features, q.X[q.i], q.X[l.l], strict=True)
    return tuple(of_i if feature.immutable else of_l for feature, of_i, of_l in choices)


def is_viable(q: Question, l: Ball, proj: Row, relaxation: str) -> bool:
    """Inside its ball and of its class; only the class counts once relaxed (reading 8)."""
    d = q.d(encode(proj, q.space), q.Z[l.l])
    inside = d < l.r or d == 0
    return (inside or relaxation != "NONE") and q.model(proj) == l.c


def reduce_changes(q: Question, l: Ball, proj: Row) -> Row:
    """From the smallest difference on, take i's value where the class stays (reading 9)."""
    gap = {}
    for f in range(len(proj)):
        gap[f] = distance((encode_value(proj[f], f, q.space),), (q.Z[q.i][f],), "manhattan")
    for f in sorted(gap, key=lambda f: (gap[f], f)):
        put_back = (*proj[:f], q.X[q.i][f], *proj[f + 1 :])
        if gap[f] > 0 and q.model(put_back) == l.c:
            proj = put_back
    return proj


def cut(q: Question, a: Ball, l: Ball, proj: Row) -> float:
    """Where the way from i to proj passes the boundary of a and l; an end where it does not (reading 10)."""

    def beyond(s: float) -> bool:
        x = on_the_way(q, proj, s)
        d_a, d_l = q.d(x, q.Z[a.l]), q.d(x, q.Z[l.l])
        return side(d_a, a.r, d_l, l.r, q.options.boundary) >= -1e-12

    if beyond(0.0):
        return 0.0
    if not beyond(1.0):
        return 1.0
    before, after = 0.0, 1.0
    for _ in range(50):
        middle = (before + after) / 2
        if beyond(middle):
            after = middle
        else:
            before = middle
    return after


def on_the_way(q: Question, proj: Row, s: float) -> Point:
    """The point at share s of the way from i to proj; at 1 it is proj, to the last bit (reading 10)."""
    if s == 1:
        return encode(proj, q.space)
    blocks = zip(q.Z[q.i], encode(proj, q.space), strict=True)
    return tuple(tuple(z + s * (g - z) for z, g in zip(*pair, strict=True)) for pair in blocks)


def update(BCL: list[Candidate], cand: Candidate, n: int) -> list[Candidate]:
    """Lines 8 and 9: strictly nearer goes before, so a tie stays in ball order (reading 14)."""
    place = 0
    while place < len(BCL) and not cand.d < BCL[place].d:
        place = place + 1
    return [*BCL[:place], cand, *BCL[place:]][:n]


def walk(q: Question, cand: Candidate) -> Counterfactual:
    """Lines 22 to 33 from the boundary point on (reading 7), with the last semifactual (reading 13)."""
    r, s_0 = q.options.step_ratio, cand.s
    semifactual = None
    for t in range(q.options.max_steps + 1):  # 23, 25, 29
        s = s_0 if t == 0 else s_0 + (1 - r**t) * (1 - s_0)  # 24, 26
        point = snap(q, cand.proj, s)
        if q.model(point) == cand.l.c:  # 27
            return found(q, cand, point, semifactual)  # 28
        if q.model(point) == q.c[q.i] and point != q.X[q.i]:
            semifactual = point
    return found(q, cand, cand.proj, semifactual)  # 31, 32


def snap(q: Question, proj: Row, s: float) -> Row:
    """The raw row at s. A feature that has not moved keeps i's very value."""
    x = on_the_way(q, proj, s)
    return tuple(
        q.X[q.i][f] if x[f] == q.Z[q.i][f] else snap_value(x[f], proj[f], f, q.space) for f in range(len(proj))
    )


def found(q: Question, cand: Candidate, point: Row, semifactual: Row | None) -> Counterfactual:
    d = q.d(q.Z[q.i], encode(point, q.space))
    return Counterfactual(point, d, cand.l.c, cand.relaxation, semifactual, cand)  # 33


# ---------------------------------------------------------------- all three


def explain(
    rows: Sequence[Row],
    features: Sequence[Feature],
    model: Callable[[Row], Any],
    factuals: Sequence[Row],
    target: Collection | None = None,
    options: Options | None = None,
) -> list[Answer]:
    """Cover the rows once, then answer one factual at a time. target=None is every other class."""
    options = options or Options()
    space = learn_space(rows, features, options.metric)
    Z = [encode(row, space) for row in rows]
    c = [model(row) for row in rows]
    L = algorithm_1(distances(Z, options.metric), c, options.competitors)
    answers = []
    for factual in factuals:
        z, i = encode(factual, space), len(rows)
        q = Question([*rows, factual], [*Z, z], [*c, model(factual)], i, space, model, options)
        answers.append(answer(q, L, target))
    return answers


def answer(q: Question, L: list[Ball], target: Collection | None) -> Answer:
    d_i = [q.d(q.Z[q.i], q.Z[l.l]) for l in L]
    a = algorithm_2(d_i, [l.r for l in L], q.options.association, q.options.boundary)
    wrong_class = L[a].c != q.c[q.i]
    if target is not None and q.c[q.i] in target:
        return Answer("already", a, False, [])
    C_target = set(q.c) - {q.c[q.i]} if target is None else target
    counterfactuals = algorithm_3(q, L, L[a], C_target)
    return Answer("found" if counterfactuals else "infeasible", a, wrong_class, counterfactuals)
