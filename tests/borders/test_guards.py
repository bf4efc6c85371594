"""The guards of the borders are there, and so are the tests that see them; `python tests/guards.py` breaks each."""

import pytest

import guards
from guards import BORDERS, SOURCE, place_of

EVERY = {f"{border}: {against}": own for border, table in BORDERS.items() for against, own in table.items()}


@pytest.mark.parametrize("guard", EVERY.values(), ids=EVERY)
def test_a_guard_is_one_line_and_has_its_test(guard):
    text = (SOURCE / "onbmacf" / guard.file).read_text(encoding="utf-8")
    assert text.count(guard.right) == 1, "the line that this breaks is gone: update the table"
    test, _, case = guard.test.partition("::")[2].rstrip("]").partition("[")
    content = place_of(guard).read_text(encoding="utf-8")
    assert f"def {test}(" in content
    assert all(f'"{part}"' in content or part in content for part in case.split("-"))


def test_a_broken_guard_is_seen(tmp_path):
    package = guards.copied(tmp_path)
    assert guards.check(BORDERS["rows"]["300 in int8"], package)
    whole = BORDERS["rows"]["300 in int8"]._replace(wrong=BORDERS["rows"]["300 in int8"].right)
    assert not guards.check(whole, package)
