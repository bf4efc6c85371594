"""The plain arithmetic under paper.py: encoding, rounding and distances, with loops and without numpy.

A raw row is a tuple of Python values; an encoded point is a tuple of blocks, one per feature, each a
tuple of columns. Shares no code with the package.
"""

from collections.abc import Sequence
from math import floor, sqrt
from typing import Any, NamedTuple

Row = tuple[Any, ...]
Point = tuple[tuple[float, ...], ...]

HEIGHT = {"manhattan": 0.5, "euclidean": sqrt(0.5), "chebyshev": 1.0}  # reading 15


class Feature(NamedTuple):
    kind: str  # continuous, integer, ordinal, categorical or binary
    immutable: bool = False
    levels: tuple = ()  # in order; ordinal, categorical and binary features


class Space(NamedTuple):
    features: Sequence[Feature]
    low: list
    span: list
    height: float


def learn_space(rows: Sequence[Row], features: Sequence[Feature], metric: str) -> Space:
    low, span = [], []
    for f, feature in enumerate(features):
        seen = [0, len(feature.levels) - 1] if feature.levels else [row[f] for row in rows]
        low.append(min(seen))
        span.append(max(seen) - min(seen) or 1.0)
    return Space(features, low, span, HEIGHT[metric])


def encode(row: Row, space: Space) -> Point:
    return tuple(encode_value(value, f, space) for f, value in enumerate(row))


def encode_value(value: Any, f: int, space: Space) -> tuple[float, ...]:
    feature = space.features[f]
    if feature.kind == "categorical":
        return tuple(space.height if level == value else 0.0 for level in feature.levels)
    v = feature.levels.index(value) if feature.levels else value
    return ((v - space.low[f]) / space.span[f],)


def snap_value(x: tuple[float, ...], goal: Any, f: int, space: Space) -> Any:
    """The raw value for an encoded one, rounded on the way to the goal (reading 12)."""
    feature = space.features[f]
    if feature.kind == "categorical":
        return feature.levels[highest(x, feature.levels.index(goal))]
    v = space.low[f] + x[0] * space.span[f]
    if feature.kind == "continuous":
        return v
    if feature.levels:
        return feature.levels[nearest_integer(v, feature.levels.index(goal))]
    return nearest_integer(v, goal)


def highest(x: tuple[float, ...], goal: int) -> int:
    tied = [level for level in range(len(x)) if x[level] >= max(x) - 1e-9]
    return goal if goal in tied else tied[0]


def nearest_integer(v: float, goal: int) -> int:
    below = floor(v)
    if abs((v - below) - 0.5) <= 1e-9:
        return below + 1 if goal > v else below
    return below if v - below < 0.5 else below + 1


def distance(u: Point, v: Point, metric: str) -> float:
    """Column by column from the left. Not sum(), which compensates rounding in newer Pythons."""
    total = 0.0
    for block_u, block_v in zip(u, v, strict=True):
        for a, b in zip(block_u, block_v, strict=True):
            gap = abs(a - b)
            if metric == "manhattan":
                total = total + gap
            elif metric == "euclidean":
                total = total + gap * gap
            else:
                total = max(total, gap)
    return sqrt(total) if metric == "euclidean" else total


def distances(Z: Sequence[Point], metric: str) -> list[list[float]]:
    return [[distance(u, v, metric) for v in Z] for u in Z]
