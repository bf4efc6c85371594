"""Rows that are numbers until somebody looks at them as a frame.

    numbers, their form  ->  LazyRows  ->  frame, made once        a frame there is already  ->  LazyRows.of_frame

A DataFrame takes longer to make than the search for one row takes beside its model, and most callers look at a few
changed values only.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Mask, Matrix, Rows
from onbmacf._table.form import TableForm
from onbmacf._text.frames import row_of


@dataclass(frozen=True, eq=False, repr=False)
class LazyRows:
    """Rows as numbers and the form that makes a frame of them: a column for `take` and `stack`."""

    form: TableForm | None  # None: there are no numbers, only the frame
    N: Matrix | None
    known: pd.DataFrame | None = None  # the frame, where there is one already

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> "LazyRows":
        """Return rows of which only the frame is known."""
        return cls(None, None, frame)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows in the caller's columns and dtypes, numbered."""
        if self.known is not None:
            return self.known
        assert self.form is not None, "rows without a frame have numbers"
        assert self.N is not None, "numbers and their form come together"
        return self.form.frame(self.N)

    def row(self, line: int, label: Hashable) -> "pd.Series[Any]":
        """Return one of the rows, under a label of its own."""
        if self.form is None or self.N is None:
            return row_of(self.frame, line).rename(label)
        return self.form.row(self.N[line], label)

    def __len__(self) -> int:
        return len(self.frame if self.N is None else self.N)

    def __getitem__(self, lines: Rows | Mask) -> "LazyRows":
        if self.N is None:
            return LazyRows.of_frame(self.frame.iloc[lines].reset_index(drop=True))
        return LazyRows(self.form, self.N[lines])

    @staticmethod
    def stacked(parts: "Sequence[LazyRows]") -> "LazyRows":
        """Return the rows of several as those of one; forms of different maps may give different codes to a level."""
        numbers = [part.N for part in parts if part.N is not None and part.form is parts[0].form]
        if len(numbers) == len(parts):
            return LazyRows(parts[0].form, np.concatenate(numbers))
        frames = [part.frame for part in parts if len(part)] or [parts[0].frame]
        return LazyRows.of_frame(pd.concat(frames, ignore_index=True))

    def __reduce__(self) -> Any:
        return LazyRows.of_frame, (self.frame,)  # answers travel without what is known of the table
