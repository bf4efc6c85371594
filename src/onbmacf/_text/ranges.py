"""A range of values around a counterfactual, and how it reads.

Range  ->  words  ->  "at most 3.2", "no later than 2024-05-31", "between 2.1 and 3.2", "one of a, b", "exactly 3.1"
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from onbmacf._text.wording import is_moment, shown


@dataclass(frozen=True)
class Range:
    """The values of one changed feature with which the model keeps the counterfactual's label, as far as asked.

    Attributes
    ----------
    feature : hashable
        The feature's name.
    low : object
        The lower end, in the caller's dtype: a readable value that was asked itself. None for a feature with levels.
    high : object
        The upper end.
    levels : tuple or None
        The levels that hold, for a feature with levels.
    n_asked : int
        Points inside that the model was asked about; all hold.
    reaches_low : bool
        Whether the range goes down to the end of the fitted values.
    reaches_high : bool
        Whether it goes up to their other end.

    Examples
    --------
    >>> str(Range("ldl", 0.98, 3.2, None, 210, True, False)), str(Range("city", None, None, ("A", "B"), 3))
    ('at most 3.2', 'one of A, B')
    >>> Range("ldl", 0.98, 3.2, None, 210, True, False)
    <Range: ldl at most 3.2; of 210 points asked, all hold>

    """

    feature: Hashable
    low: Any
    high: Any
    levels: tuple[Any, ...] | None
    n_asked: int
    reaches_low: bool = False
    reaches_high: bool = False

    def __str__(self) -> str:
        """Return the range in words, without the feature's name."""
        if self.levels is not None:
            texts = [shown(level) for level in self.levels]
            return f"exactly {texts[0]}" if len(texts) == 1 else f"one of {', '.join(texts)}"
        if self.low == self.high:
            return f"exactly {shown(self.low)}"
        if self.reaches_low and not self.reaches_high:
            return f"{'no later than' if is_moment(self.high) else 'at most'} {shown(self.high)}"
        if self.reaches_high and not self.reaches_low:
            return f"{'no earlier than' if is_moment(self.low) else 'at least'} {shown(self.low)}"
        return f"between {shown(self.low)} and {shown(self.high)}"

    def __repr__(self) -> str:
        return f"<Range: {self.feature} {self}; of {self.n_asked} points asked, all hold>"


Ranges = Mapping[Hashable, Range]
