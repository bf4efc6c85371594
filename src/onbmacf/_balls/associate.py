"""Algorithm 2: the ball an instance belongs to.

    distances (factuals x balls), radii  ->  home_balls  ->  one ball per factual

The boundary of two balls is where the signed surface distances d - r are equal (decision 0005), so the side
test of lines 12 to 14 is a comparison of d - r, and the loop of lines 8 to 15 an argmin that no order can change.
"""

import numpy as np

from onbmacf._balls.geometry import surface_distance
from onbmacf._base.arrays import Matrix, Rows

ASSOCIATIONS = ("surface", "center")


def home_balls(distances: Matrix, radii: Matrix, association: str = "surface", boundary: str = "surface") -> Rows:
    """Return the home ball of each factual; ties go to the ball chosen first.

    With no covering ball: the nearest surface (the paper's text), or with association="center" the nearest
    centre (its line 4); decision 0006.
    """
    covering = distances < radii  # line 2
    inside = np.where(covering, surface_distance(distances, radii, boundary), np.inf)  # lines 8-15
    outside = distances - radii if association == "surface" else distances  # line 4
    is_covered = covering.any(axis=1)  # lines 3, 5
    return np.where(is_covered, inside.argmin(axis=1), outside.argmin(axis=1))
