"""Algorithm 1 without the distance matrix: the same cover bit for bit, in memory proportional to the table.

    Z, labels  ->  nearest_enemy_fast  ->  reach
    Z, reach of one class  ->  greedy_cover_fast  ->  centers, owner
    centers, radii, Z of one class  ->  first_balls_fast  ->  owner of further rows
    Z, points  ->  NearestRows  ->  the nearest rows of each point
    points, Z, labels  ->  reach_of_fast, for many points enemies_among_fast  ->  reach of each point

`sums` defines what is compared, `grid` makes most comparisons cheap, `leaves` avoids most of them.
"""

from onbmacf._balls.kernels.enemies import enemies_among_fast, nearest_enemy_fast, reach_of_fast
from onbmacf._balls.kernels.greedy import first_balls_fast, greedy_cover_fast
from onbmacf._balls.kernels.nearest import NearestRows

__all__ = [
    "NearestRows",
    "enemies_among_fast",
    "first_balls_fast",
    "greedy_cover_fast",
    "nearest_enemy_fast",
    "reach_of_fast",
]
