"""Missing values among encoded ones: a code so far away that its difference to every value is one and the same number.

    weight  ->  missing_code  ->  its code in Z        differences  ->  as_costs  ->  what they cost

float64 has 53 bits, so taking a number below 2**300 from one near 2**400 leaves the latter as it is, to the bit. The
difference of a missing value and any other is therefore the feature's weight times 2**400, and that of two missing ones
is 0: the distances of decision 0062 need no more than to scale such differences back. Codes are compared with `==` and
`!=` like all others. Among numbers in the caller's unit a missing value is NaN, and `differs` compares them.
"""

import numpy as np

from onbmacf._base.arrays import Mask, Matrix

# A power of two, so that scaling by it and back is exact. So large that no value shows beside it, and small enough that
# its square, 2**800, and a sum of such squares are still below 2**1024, where float64 ends.
UNIT = 2.0**400  # the code of a missing value at weight 1, but for its sign
LEAST, MOST = 2.0**300, 2.0**500  # differences between these are to a missing value
WEIGHTS = (1e-12, 1e12)  # a feature's weight: about 2**-40 to 2**40, so that codes stay well between LEAST and MOST


def missing_code(weight: Matrix) -> Matrix:
    """Return the code of a missing value of features with these weights."""
    return -weight * UNIT


def is_missing(Z: Matrix) -> Mask:
    """Say which encoded values are missing ones."""
    return np.asarray((Z <= -LEAST) & (Z >= -MOST))


def may_lack(Z: Matrix) -> bool:
    """Say whether encoded values, or sums of their differences, can hold a missing one: quickly."""
    return bool(Z.size) and not (Z.min() > -LEAST and Z.max() < LEAST)


def has_missing(Z: Matrix) -> bool:
    """Say whether any encoded value is a missing one."""
    return may_lack(Z) and bool(is_missing(Z).any())


def as_costs(differences: Matrix) -> Matrix:
    """Scale differences to missing values, without their signs, back to what they cost, in place."""
    is_far = (differences >= LEAST) & (differences <= MOST)
    return np.multiply(differences, 1.0 / UNIT, out=differences, where=is_far)


def gaps(A: Matrix, B: Matrix) -> Matrix:
    """Return how far apart two sets of points are, column by column.

    >>> gaps(np.array([0.25, missing_code(2.0), missing_code(2.0)]), np.array([1.0, 0.5, missing_code(2.0)])).tolist()
    [0.75, 2.0, 0.0]
    """
    apart = A - B
    np.abs(apart, out=apart)
    return as_costs(apart) if apart.size and not apart.max() < LEAST else apart


def between(start: Matrix, goal: Matrix, share: Matrix) -> Matrix:
    """Return the points at these shares of the way; a value missing at the start is filled in from the middle on.

    >>> between(np.array([[0.0, missing_code(1.0)]] * 2), np.array([[1.0, 0.5]] * 2), np.array([0.25, 0.5])).tolist()[1]
    [0.5, 0.5]
    """
    way, share = goal - start, share[:, np.newaxis]
    points = start + share * way
    if not may_lack(way):
        return points
    return np.where(is_missing(start) != is_missing(goal), np.where(share < 0.5, start, goal), points)


def known_ends(Z: Matrix) -> tuple[Matrix, Matrix]:
    """Return the lowest and the highest value of each column that is not missing; 0 where all are."""
    if not may_lack(Z):
        return Z.min(axis=0), Z.max(axis=0)
    known = np.where(is_missing(Z), np.nan, Z)
    known[:, np.isnan(known).all(axis=0)] = 0.0
    return np.nanmin(known, axis=0), np.nanmax(known, axis=0)


def as_nan(Z: Matrix) -> Matrix:
    """Return encoded points with NaN in place of missing values: what a caller's own function gets to see."""
    return np.where(is_missing(Z), np.nan, Z) if may_lack(Z) else Z


def differs(A: Matrix, B: Matrix) -> Mask:
    """Say which numbers are not the same value; a missing one, NaN, is the same as another.

    >>> differs(np.array([1.0, np.nan, np.nan]), np.array([1.0, np.nan, 2.0])).tolist()
    [False, False, True]
    """
    unequal = A != B
    if not unequal.any():
        return np.asarray(unequal)
    return np.asarray(unequal & ~(np.isnan(A) & np.isnan(B)))
