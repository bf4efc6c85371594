"""The tests can fail: each of these slips in Algorithm 1 is seen by the comparison with the paper."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, find, settings

import onbmacf._balls.cover
from strategies import LabelledGrid, labelled_grids

SLIPS = {
    "closed balls": ("apart < reach[part, np.newaxis]", "apart <= reach[part, np.newaxis]"),
    "twins left out": ("| (apart == 0)", "| (np.eye(len(Z))[part] > 0)"),
    "ties to the last row": (
        "int(np.argmax(np.where(allowed, gains, -1)))",
        "len(gains) - 1 - int(np.argmax(np.where(allowed, gains, -1)[::-1]))",
    ),
    "smallest ball first": ("np.argmax(np.where(allowed, gains, -1))", "np.argmin(np.where(allowed, gains, 99))"),
    "second-nearest enemy": (".min(axis=1)", ".max(axis=1)"),
    "own class as enemy": ("np.flatnonzero(labels != label)", "np.flatnonzero(labels <= label)"),
    "gains never fall": ("gains[part] -= within[part, gained] @ counts[gained]", "pass"),
    "all compete": ('uncovered if competitors == "uncovered" else', "np.ones_like(uncovered) if 1 else"),
}


@pytest.mark.long
@pytest.mark.parametrize("right, wrong", SLIPS.values(), ids=SLIPS)
def test_a_slip_in_the_cover_is_seen(right, wrong, monkeypatch):
    source = Path(onbmacf._balls.cover.__file__).read_text(encoding="utf-8")
    assert source.count(right) == 1, "the line this slip breaks is gone: update SLIPS"
    broken = types.ModuleType("broken_cover")
    monkeypatch.setitem(sys.modules, broken.__name__, broken)
    exec(source.replace(right, wrong), broken.__dict__)
    how = settings(max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])
    grids = labelled_grids().filter(lambda grid: grid.competitors == "uncovered")  # with "all" some slips never end
    found = find(grids, lambda grid: not agrees(broken, grid), settings=how)
    assert isinstance(found, LabelledGrid)


def agrees(module: types.ModuleType, grid: LabelledGrid) -> bool:
    balls = grid.balls()
    Z, labels = np.array(grid.points, dtype=float), np.array(grid.labels)
    try:
        cover = module.build_cover(Z, labels, grid.metric, grid.competitors)
    except ValueError:
        return False
    return list(cover.centers) == [ball.l for ball in balls] and list(cover.radii) == [ball.r for ball in balls]
