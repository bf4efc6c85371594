"""The outcomes that bad input and faults may have; each checks that what is done has exactly this one.

something to do  ->  E, W, R or Is  ->  passes, or fails with what happened instead
"""

import re
import warnings
from collections import namedtuple

import pytest

from onbmacf import ONBMACF
from onbmacf.errors import OnbmacfWarning


class E(namedtuple("E", "error pattern cause", defaults=(None,))):
    """An error of exactly this type."""

    def check(self, do):
        with pytest.raises(self.error, match=self.pattern) as caught:
            do()
        assert caught.type is self.error
        assert self.cause is None or isinstance(caught.value.__cause__, self.cause)


class W(namedtuple("W", "pattern")):
    """A warning that is kept in the result."""

    def check(self, do):
        with pytest.warns(OnbmacfWarning, match=self.pattern):
            result = do()
        kept = result.warnings_ if isinstance(result, ONBMACF) else result.warnings
        assert any(re.search(self.pattern, message) for message in kept), kept


class R(namedtuple("R", "status pattern")):
    """A status and a reason for the row in the middle, and answers for the others."""

    def check(self, do):
        answers = do()
        assert list(answers.statuses) == ["found", self.status, "found"]
        assert re.search(self.pattern, answers[1].reason), answers[1].reason


class Is(namedtuple("Is", "expected")):
    """No warning of numpy or pandas, and this result."""

    def check(self, do):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", OnbmacfWarning)
            assert do() == self.expected
