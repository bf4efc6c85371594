"""Hypothesis strategies that build nasty small cases: ties, duplicates, coincident enemies.

labelled_grids       -> points of a small grid, labels drawn apart from them (equal points may disagree)
associations         -> distances of instances to balls, and the balls' radii
explanation_cases    -> a table of every kind of feature, a toy model, factuals in the table and beside it

Thresholds of the toy models lie off the grid, so a last-bit difference of a continuous value cannot
change a label.
"""

from math import floor
from typing import Any, NamedTuple

from hypothesis import strategies as st

from paper import Options, algorithm_1
from paper_space import Feature, Row, distance, distances

METRICS = ("manhattan", "euclidean", "chebyshev")
COMPETITORS = ("uncovered", "all")
SCALES = (1.0, 0.25, 1 / 3, 0.1)  # the last two do not subtract exactly

GRIDS: dict[str, tuple] = {
    "integer": (10, 11, 12, 13),
    "continuous": (0.0, 0.25, 0.5, 1.0),
    "ordinal": ("low", "mid", "high"),
    "categorical": ("p", "q", "r"),
    "binary": ("no", "yes"),
}
BEYOND = {**GRIDS, "integer": (10, 13, 17), "continuous": (0.0, 1.0, 2.0)}  # factuals may leave the range
LABELS = "abcd"


# ---------------------------------------------------------------- Algorithms 1 and 2


class LabelledGrid(NamedTuple):
    points: list[tuple[float, ...]]
    labels: list[int]
    metric: str
    competitors: str

    def balls(self) -> list:
        """The cover by the paper; a grid point is an encoded point of one block."""
        d = distances([(point,) for point in self.points], self.metric)
        return algorithm_1(d, self.labels, self.competitors)


def grid_points(width: int, scale: float, most: int = 3) -> st.SearchStrategy:
    column = st.integers(0, most).map(lambda value: value * scale)
    return st.tuples(*[column] * width)


@st.composite
def labelled_grids(draw: Any) -> LabelledGrid:
    width, scale = draw(st.integers(1, 3)), draw(st.sampled_from(SCALES))
    size = draw(st.integers(2, 14))
    points = draw(st.lists(grid_points(width, scale), min_size=size, max_size=size))
    labels = draw(st.lists(st.integers(0, draw(st.integers(1, 3))), min_size=size, max_size=size))
    if len(set(labels)) == 1:
        labels[draw(st.integers(0, size - 1))] = (labels[0] + 1) % 2
    return LabelledGrid(points, labels, draw(st.sampled_from(METRICS)), draw(st.sampled_from(COMPETITORS)))


class Association(NamedTuple):
    distances: list[list[float]]  # one list per instance, one entry per ball
    radii: list[float]
    association: str
    boundary: str


@st.composite
def associations(draw: Any) -> Association:
    """Instances on the rows of a grid, between them (half steps) and outside all balls."""
    grid = draw(labelled_grids())
    L = grid.balls()
    step = draw(st.sampled_from(SCALES)) / 2
    instances = draw(st.lists(grid_points(len(grid.points[0]), step, most=12), min_size=1, max_size=4))
    instances.append(draw(st.sampled_from(grid.points)))
    d = [[distance((i,), (grid.points[l.l],), grid.metric) for l in L] for i in instances]  # noqa: E741
    how = st.sampled_from(["surface", "center"]), st.sampled_from(["surface", "ratio"])
    return Association(d, [l.r for l in L], draw(how[0]), draw(how[1]))  # noqa: E741


# ---------------------------------------------------------------- Algorithm 3


class ToyModel(NamedTuple):
    """A deterministic rule on the grid cells of one raw row, with exceptions by cell."""

    kinds: tuple[str, ...]
    stripes: int  # cells per unit of a continuous feature
    rule: str
    weights: tuple[int, ...]
    prototypes: tuple[tuple[int, ...], ...]  # one per class
    exceptions: dict[tuple[int, ...], int]

    def __call__(self, row: Row) -> str:
        cell = self.cell_of(row)
        return LABELS[self.exceptions.get(cell, self.rule_of(cell))]

    def cell_of(self, row: Row) -> tuple[int, ...]:
        return tuple(self.code_of(kind, value) for kind, value in zip(self.kinds, row, strict=True))

    def code_of(self, kind: str, value: Any) -> int:
        if kind == "continuous":
            return floor(self.stripes * value + 0.337)
        return value - 10 if kind == "integer" else GRIDS[kind].index(value)

    def rule_of(self, cell: tuple[int, ...]) -> int:
        total = sum(weight * code for weight, code in zip(self.weights, cell, strict=True))
        if self.rule == "modular":
            return total % len(self.prototypes)
        if self.rule == "threshold":
            return min(total // 3, len(self.prototypes) - 1)
        gaps = [sum(abs(a - b) for a, b in zip(cell, p, strict=True)) for p in self.prototypes]
        return gaps.index(min(gaps))


class ExplanationCase(NamedTuple):
    rows: list[Row]
    features: list[Feature]
    model: ToyModel
    factuals: list[Row]
    target: tuple[str, ...] | None
    options: Options


@st.composite
def feature_lists(draw: Any) -> list[Feature]:
    """One to four features, at least one of them mutable, half the time none of them immutable."""
    width = draw(st.sampled_from([3, 2, 4, 1]))
    kinds = draw(st.lists(st.sampled_from(sorted(GRIDS)), min_size=width, max_size=width))
    free = draw(st.none() | st.integers(0, len(kinds) - 1))
    return [
        Feature(
            kind,
            immutable=free is not None and f != free and draw(st.integers(0, 2)) > 0,
            levels=() if kind in ("integer", "continuous") else GRIDS[kind],
        )
        for f, kind in enumerate(kinds)
    ]


@st.composite
def toy_models(draw: Any, features: list[Feature], rows: list[Row]) -> ToyModel:
    """A rule, sometimes blind to the immutable, sometimes overruled row by row; two labels or more."""
    kinds = tuple(feature.kind for feature in features)
    classes, blind = draw(st.integers(2, 4)), draw(st.booleans())
    weights = draw(st.tuples(*[st.just(0) if blind and f.immutable else st.integers(0, 3) for f in features]))
    prototype = st.tuples(*[st.integers(0, 3)] * len(kinds))
    prototypes = draw(st.tuples(*[prototype] * classes))
    rule = draw(st.sampled_from(["modular", "threshold", "prototype"]))
    model = ToyModel(kinds, draw(st.sampled_from([4, 16])), rule, weights, prototypes, exceptions={})
    cells = [model.cell_of(row) for row in rows]
    if draw(st.booleans()):
        model.exceptions.update({cell: draw(st.integers(0, classes - 1)) for cell in dict.fromkeys(cells)})
    labels = [model(row) for row in rows]
    if len(set(labels)) == 1:
        model.exceptions[cells[0]] = (LABELS.index(labels[0]) + 1) % classes
    return model


def option_sets() -> st.SearchStrategy[Options]:
    return st.builds(
        Options,
        n=st.sampled_from([3, 1, 5]),
        metric=st.sampled_from(METRICS),
        step_ratio=st.sampled_from([0.5, 0.25, 0.9]),
        max_steps=st.sampled_from([10, 3, 1]),
        competitors=st.sampled_from(COMPETITORS),
        association=st.sampled_from(["surface", "center"]),
        boundary=st.sampled_from(["surface", "ratio"]),
    )


@st.composite
def explanation_cases(draw: Any) -> ExplanationCase:
    features = draw(feature_lists())
    on_grid = st.tuples(*[st.sampled_from(GRIDS[feature.kind]) for feature in features])
    size = draw(st.sampled_from([10, 6, 14, 4, 2]))
    rows = draw(st.lists(on_grid, min_size=size, max_size=size).filter(lambda rows: len(set(rows)) > 1))
    model = draw(toy_models(features, rows))
    beyond = st.tuples(*[st.sampled_from(BEYOND[feature.kind]) for feature in features])
    factuals = draw(st.lists(st.sampled_from(rows) | on_grid | beyond, min_size=2, max_size=4))
    target = None
    if draw(st.integers(0, 4)) == 4:
        labels = sorted({model(row) for row in rows})
        target = tuple(draw(st.lists(st.sampled_from(labels), min_size=1, unique=True)))
    return ExplanationCase(rows, features, model, factuals, target, draw(option_sets()))
