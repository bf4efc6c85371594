"""What would not fit into memory is refused before the work, with both numbers."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._balls.cover import build_cover
from onbmacf._base import memory as _memory
from onbmacf.errors import NotEnoughMemoryError

Z = np.random.default_rng(0).random((400, 3))
LABELS = (Z[:, 0] > 0.5).astype(np.intp)


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 50_000)


def test_this_machine_says_how_much_is_left():
    assert 1e6 < _memory.available_bytes() < 1e15


@pytest.mark.parametrize("fast", [True, False])
def test_a_cover_that_does_not_fit_is_refused(little, fast):
    with pytest.raises(NotEnoughMemoryError, match=r"a cover of 400 rows x 3 .* needs about .* GB .* available"):
        build_cover(Z, LABELS, fast=fast)


def test_fit_is_refused_before_the_model_is_asked(little):
    asked = []
    with pytest.raises(MemoryError, match="400 rows"):
        ONBMACF().fit(pd.DataFrame(Z), lambda rows: asked.append(len(rows)))
    assert asked == []


def test_the_matrix_of_the_plain_cover_is_reckoned_with(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 250_000)  # 400 x 3 fits; 400 x 400 / 2 does not
    with pytest.raises(NotEnoughMemoryError):
        build_cover(np.repeat(Z, 2, axis=0), np.repeat(LABELS, 2), metric=lambda a, b: float(np.abs(a - b).sum()))
    build_cover(np.repeat(Z, 2, axis=0), np.repeat(LABELS, 2), fast=True)


@pytest.mark.parametrize(
    "limit, used, expected", [("max", "10", None), ("1000", "400", 700), ("1000", "5000", 0), ("", "", None)]
)
def test_a_container_may_have_less_than_the_machine(tmp_path, monkeypatch, limit, used, expected):
    for name, content in (("memory.max", limit), ("memory.current", used), ("memory.stat", "anon 300\nfile 100\n")):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(_memory, "CGROUP", tmp_path)
    assert _memory._container() == expected


def test_where_nothing_is_known_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: None)
    _memory.check_memory(1e30, "this", "")
