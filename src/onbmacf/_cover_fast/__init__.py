"""Algorithm 1 without the distance matrix: the same cover, bit for bit, in memory proportional to the table.

    Z, labels  ->  nearest_enemy_fast  ->  reach  ->  greedy_cover_fast (per class)  ->  centers, owner
"""

from onbmacf._cover_fast.enemies import nearest_enemy_fast
from onbmacf._cover_fast.greedy import greedy_cover_fast

__all__ = ["greedy_cover_fast", "nearest_enemy_fast"]
