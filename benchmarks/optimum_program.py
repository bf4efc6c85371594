"""A mixed-integer linear program, written row by row and solved by HiGHS through scipy.

variables, rows  ->  solve  ->  Solution (the point, its cost, the proven bound)
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

GAP = 1e-7  # relative: where HiGHS calls a point optimal
OPTIMAL, OUT_OF_TIME, INFEASIBLE = 0, 1, 2  # scipy's numbers


class Solution(NamedTuple):
    """What HiGHS says: values is None where it has no point."""

    status: int
    values: np.ndarray | None
    cost: float
    bound: float  # no point costs less; infinite where none exists


class Program:
    """Variables with bounds and costs, and rows low <= a x <= high."""

    def __init__(self):
        self.low, self.high, self.cost, self.is_integer = [], [], [], []
        self.columns, self.factors, self.starts, self.row_low, self.row_high = [], [], [0], [], []

    def add(self, low, high, cost=0.0, is_integer=False):
        """Add a variable and return its number."""
        self.low.append(low)
        self.high.append(high)
        self.cost.append(cost)
        self.is_integer.append(int(is_integer))
        return len(self.low) - 1

    def add_row(self, columns, factors, low=-np.inf, high=np.inf):
        """Add a row: low <= the sum of factors times variables <= high."""
        self.columns.extend(columns)
        self.factors.extend(factors)
        self.starts.append(len(self.columns))
        self.row_low.append(low)
        self.row_high.append(high)

    def fixed(self, values):
        """Return the program with its integer variables at these values: what remains is linear."""
        other = Program.__new__(Program)
        other.__dict__.update(self.__dict__)
        rounded = np.round(values)
        is_integer = np.array(self.is_integer, dtype=bool)
        other.low = np.where(is_integer, rounded, self.low)
        other.high = np.where(is_integer, rounded, self.high)
        other.is_integer = np.zeros(len(self.low))
        return other

    def solve(self, seconds):
        """Minimise the cost."""
        shape = (len(self.row_low), len(self.low))
        factors = csr_array((self.factors, self.columns, self.starts), shape)
        found = milp(
            np.array(self.cost),
            integrality=np.array(self.is_integer),
            bounds=Bounds(np.array(self.low, dtype=float), np.array(self.high, dtype=float)),
            constraints=LinearConstraint(factors, self.row_low, self.row_high),
            options={"time_limit": max(seconds, 0.1), "mip_rel_gap": GAP},
        )
        if found.status == INFEASIBLE:
            return Solution(INFEASIBLE, None, np.inf, np.inf)
        bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
        cost = np.inf if found.x is None else float(found.fun)
        if found.status == OPTIMAL and not any(self.is_integer):
            bound = cost
        return Solution(int(found.status), found.x, cost, bound)
