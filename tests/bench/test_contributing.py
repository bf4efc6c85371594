"""The example method of CONTRIBUTING.md, run as printed."""

import re
import sys
import types
from pathlib import Path

import numpy as np

from onbmacf.bench import methods
from onbmacf.bench.cells import Cell, _run
from onbmacf.bench.protocol import factual_rows

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def example():
    text = GUIDE.read_text(encoding="utf-8")
    code = re.search(r"```python\n(from typing import ClassVar\n.*?)```", text, flags=re.DOTALL)[1]
    line = re.search(r'`"NEAREST": Entry\("([\w.]+)", "(\w+)"\),`', text)
    return code, *line.groups()


def test_the_example_method_runs_in_the_benchmark(small_task, small_network, tmp_path, monkeypatch):
    code, module_name, class_name = example()
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    module = types.ModuleType(module_name)
    exec(compile(code, str(GUIDE), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module_name, module)
    monkeypatch.setitem(methods.REGISTRY, "NEAREST", methods.Entry(module_name, class_name))
    rows = factual_rows(small_task, small_network, 5)
    found = methods.create("NEAREST").fit(small_task, small_network, 0).explain(small_task.Z[rows], 2)
    assert [answer.shape for answer in found] == [(2, small_task.Z.shape[1])] * 5
    document = _run(Cell("saheart", "NEAREST", n_factuals=5, n_retrainings=0), None, tmp_path)
    assert np.min(document["lines"]["n_found"]) == 1
