"""Numbers that several kernels share."""

from math import inf

NEW, OPEN, CANDIDATE, FIRM = -1, 0, 1, 2  # not bounded yet; to be cut; a candidate; one beyond all rounding error
NEVER = inf  # the bound of a box that holds nothing
SLACK = 1e-12  # rounding error forgiven to a bound: the edge of a bucket, what is bought, a budget
