"""Commands that are struck down and gone on with: some of the 20 blows of `python tests/helpers/kills.py`.

SIGKILL, SIGTERM and a full disk under `explain` are in test_output_files.py and cli/test_stopped.py already, those
under `bench` in bench/test_run.py.
"""

import signal

import pytest

import kills
from kills import Blow

BLOWS = [Blow("audit", signal.SIGKILL, 1)]


@pytest.mark.long
@pytest.mark.parametrize("blow", BLOWS, ids=str)
def test_a_command_that_was_struck_ends_as_if_it_had_not_been(blow, tmp_path):
    assert blow in kills.BLOWS
    kills.check(blow, tmp_path / "struck", kills.whole(blow.command, tmp_path / "whole"))


def test_there_are_twenty_blows_of_every_kind():
    assert len(set(kills.BLOWS)) == 20
    kinds = {(blow.command, blow.how) for blow in kills.BLOWS}
    assert kinds == {(name, how) for name in kills.COMMANDS for how in (signal.SIGKILL, signal.SIGTERM, None)}
