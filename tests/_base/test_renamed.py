"""An argument with an old name does the same as with its new one, and says so once per call."""

import inspect
import warnings

import pytest

from onbmacf._base.renamed import renamed
from onbmacf.errors import ParameterError


@renamed("1.2", most="limit", wish="target")
def first(rows, limit=2, target=None):
    """Return the first rows."""
    return rows[:limit], target


def test_the_new_names_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first([1, 2, 3], limit=1, target="yes") == first([1, 2, 3], 1, "yes") == ([1], "yes")


def test_an_old_name_does_the_same_and_the_warning_names_the_new_one_at_the_line_of_the_caller():
    with pytest.warns(FutureWarning, match=r"most is now called limit\. first\(limit=\.\.\.\) .* goes in 1\.2") as told:
        assert first([1, 2, 3], most=1) == ([1], None)
    assert [warning.filename for warning in told] == [__file__]
    with pytest.warns(FutureWarning) as told:
        assert first([1, 2, 3], most=1, wish="yes") == ([1], "yes")
    assert len(told) == 2


def test_both_names_at_once_are_an_error():
    with pytest.raises(ParameterError, match="most is now called limit: give limit alone, got both"):
        first([1, 2, 3], most=1, limit=2)


def test_help_and_signature_show_the_new_names_only():
    assert list(inspect.signature(first).parameters) == ["rows", "limit", "target"]
    assert first.__doc__ == "Return the first rows."
