"""Algorithm 1 without the distance matrix: the same cover bit for bit, in memory proportional to the table.

    Z, labels  ->  nearest_enemy_fast  ->  reach
    Z, reach of one class  ->  greedy_cover_fast  ->  centers, owner

`sums` says what is compared, `grid` makes most comparisons cheap, `leaves` avoids most of them.
"""

from onbmacf._cover_fast.enemies import nearest_enemy_fast
from onbmacf._cover_fast.greedy import greedy_cover_fast

__all__ = ["greedy_cover_fast", "nearest_enemy_fast"]
