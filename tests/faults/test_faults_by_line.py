"""Bad input and faults, line by line: what is done, and the one outcome that it must have.

An error has exactly its type and names the column, row or value; a warning is kept in the result; a bad row has its
status and reason, and the rows around it are answered; everything else equals what is written beside it. Ctrl-C,
kill -9, locales and terminals need processes of their own: cli/test_stopped.py, cli/test_printed.py.
Reports, pictures and the terminal get the same hostile names in test_payloads.py.
"""

import pytest

from faults.by_line.lines_of_explain import EXPLAIN
from faults.by_line.lines_of_fit import FIT
from faults.by_line.lines_of_machine import MACHINE, OUTPUT
from faults.by_line.lines_of_model import MODEL

SECTIONS = {"fit": FIT, "explain": EXPLAIN, "model": MODEL, "machine": MACHINE, "output": OUTPUT}
LINES = {f"{section}: {line}": entry for section, lines in SECTIONS.items() for line, entry in lines.items()}


@pytest.mark.parametrize("do, outcome", LINES.values(), ids=LINES)
def test_every_line_has_its_outcome(do, outcome):
    outcome.check(do)
