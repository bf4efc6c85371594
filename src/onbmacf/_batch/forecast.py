"""How long fit and explain will take, from the sizes alone: what takes long is told before the work begins.

    sizes  ->  fit_seconds, Searched.seconds  ->  fit_forecast, explain_forecast  ->  a sentence; none where it is short

The figures were measured on one machine: an order of magnitude. The model's own time is not in them. Decision 0078.
"""

from collections.abc import Sequence
from typing import NamedTuple

LONG = 60.0  # seconds that are worth a warning
PER_COVERED, GROWTH = 1e-9, 1.7  # seconds of a compiled cover per feature; how they grow with the rows
PER_PAIR = 5e-6  # seconds of a cover per pair of rows, where the metric is a function of the caller's
PER_ROW = 0.01  # seconds of a search per row, whatever the sizes
PER_BALL = 1e-8  # and per ball and encoded column
PER_FREE = 3e-8  # and per free feature, times itself twice: changes are exchanged for one another
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def fit_seconds(n_rows: int, n_features: int, is_called: bool = False) -> float:
    """Estimate the seconds that a cover takes; `is_called` where the metric is a function of the caller's.

    >>> fit_seconds(100_000, 20) < LONG < fit_seconds(1_000_000, 20)
    True
    """
    return PER_PAIR * n_rows**2 if is_called else PER_COVERED * n_features * n_rows**GROWTH


class Searched(NamedTuple):
    """The sizes that the time of a search depends on."""

    n_rows: int
    n_balls: int
    width: int  # encoded columns
    n_free: int  # features that may change
    is_exchanged: bool = True  # whether the strategy exchanges changes for others
    n_jobs: int = 1

    @property
    def seconds(self) -> float:
        """The estimate.

        >>> Searched(1_000, 500, 30, 20).seconds < LONG < Searched(3, 600, 1_000, 1_000).seconds
        True
        """
        exchange = PER_FREE * self.n_free**3 if self.is_exchanged else 0.0
        return self.n_rows * (PER_ROW + PER_BALL * self.n_balls * self.width + exchange) / self.n_jobs


def fit_forecast(n_rows: int, n_features: int, is_called: bool) -> tuple[str, ...]:
    """Return the warning of a fit that will take long."""
    seconds = fit_seconds(n_rows, n_features, is_called)
    if seconds < LONG:
        return ()
    metric = " A metric by name is much faster than a function." if is_called else ""
    return (
        f"the cover of {n_rows:,} rows with {n_features:,} features will take {duration(seconds)}. Fit fewer rows, or "
        f"save the map and load it the next time.{metric}",
    )


def explain_forecast(searches: Sequence[Searched]) -> tuple[str, ...]:
    """Return the warning of a call that will take long; it names the sizes of the longest of its searches."""
    seconds = sum(own.seconds for own in searches)
    if seconds < LONG:
        return ()
    n_rows, most = sum(own.n_rows for own in searches), max(searches, key=lambda own: own.seconds)
    return (
        f"explaining {n_rows:,} {'row' if n_rows == 1 else 'rows'} with {most.n_free:,} features that may change "
        f"({most.width:,} encoded columns, {most.n_balls:,} balls) will take {duration(seconds)}, beside the model's "
        "own time. Name those that may change (vary=[...]), give fewer rows, or limit the call (max_seconds=60).",
    )


def duration(seconds: float) -> str:
    """Return an order of magnitude in words.

    >>> duration(70), duration(1_300), duration(9_000), duration(900_000)
    ('some minutes', 'about 20 minutes', 'some hours', 'days')
    """
    if seconds < 10 * MINUTE:
        return "some minutes"
    if seconds < HOUR:
        return f"about {round(seconds / MINUTE, -1):.0f} minutes"
    return "some hours" if seconds < DAY else "days"
