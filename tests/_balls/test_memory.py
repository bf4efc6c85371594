"""What would not fit into memory is refused before the work, with both numbers."""

import numpy as np
import pandas as pd
import pytest

from onbmacf import ONBMACF
from onbmacf._balls import cover
from onbmacf._balls.cover import build_cover
from onbmacf._base import limits as _memory
from onbmacf.errors import NotEnoughMemoryError

Z = np.random.default_rng(0).random((400, 3))
LABELS = (Z[:, 0] > 0.5).astype(np.intp)


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 50_000)


def test_this_machine_says_how_much_is_left():
    assert 1e6 < _memory.available_bytes() < 1e15


def test_the_least_of_machine_and_container_counts(monkeypatch):
    for machine, container, least in ((5, 3, 3), (3, 5, 3), (None, 4, 4), (4, None, 4), (None, None, None)):
        monkeypatch.setattr(_memory, "_machine", lambda machine=machine: machine)
        monkeypatch.setattr(_memory, "_container", lambda container=container: container)
        assert _memory.available_bytes() == least


@pytest.mark.parametrize("fast", [True, False])
def test_a_cover_that_does_not_fit_is_refused(little, fast):
    with pytest.raises(NotEnoughMemoryError, match=r"a cover of 400 rows x 3 .* needs about .* GB .* available"):
        build_cover(Z, LABELS, fast=fast)


def test_fit_is_refused_before_the_model_is_asked(little):
    asked = []
    with pytest.raises(MemoryError, match="400 rows"):
        ONBMACF().fit(pd.DataFrame(Z), lambda rows: asked.append(len(rows)))
    assert asked == []


def city_block(a, b):
    return float(np.abs(a - b).sum())


@pytest.mark.parametrize("how", [{"fast": False}, {"fast": True, "metric": city_block}], ids=["plain", "own metric"])
def test_the_matrix_of_the_plain_cover_is_counted(monkeypatch, how):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 100_000)  # 400 x 3 fits; 200 x 200 more does not
    with pytest.raises(NotEnoughMemoryError, match="manhattan"):
        build_cover(Z, LABELS, **how)


def test_the_compiled_cover_needs_no_matrix(monkeypatch):
    class WorkHasBegunError(Exception):
        pass

    def work(*_):
        raise WorkHasBegunError

    monkeypatch.setattr(_memory, "available_bytes", lambda: 100_000)
    monkeypatch.setattr(cover, "nearest_enemy_fast", work)  # what is beyond the check is tested elsewhere
    with pytest.raises(WorkHasBegunError):
        build_cover(Z, LABELS, fast=True)


@pytest.mark.parametrize(
    "limit, used, expected", [("max", "10", None), ("1000", "400", 700), ("1000", "5000", 0), ("", "", None)]
)
def test_a_container_may_have_less_than_the_machine(tmp_path, monkeypatch, limit, used, expected):
    for name, content in (("memory.max", limit), ("memory.current", used), ("memory.stat", "anon 300\nfile 100\n")):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(_memory, "CGROUP", tmp_path)
    assert _memory._container() == expected


def test_where_nothing_is_known_or_enough_is_there_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: None)
    assert _memory.check_memory(1e30, "this", "") is None
    monkeypatch.setattr(_memory, "available_bytes", lambda: 2e30)
    assert _memory.check_memory(1e30, "this", "") is None
    with pytest.raises(NotEnoughMemoryError, match=r"this needs .* Buy more\."):
        _memory.check_memory(3e30, "this", "Buy more.")
