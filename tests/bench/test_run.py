"""Cells, the resumable run, and the report."""

import json
import multiprocessing
import os
import re
import resource
import signal
import time

import numpy as np
import pandas as pd
import pytest

from commands import PATIENCE, command, kill_group, members, wait_for
from onbmacf.bench import methods
from onbmacf.bench import run as run_module
from onbmacf.bench.cases import Case
from onbmacf.bench.cells import Cell, collect, compute, digest, evaluate, read_manifest, summary
from onbmacf.bench.report import write_report
from onbmacf.bench.run import run
from onbmacf.errors import StoreError

FAST = ["NICE", "GS", "FACE-EPSILON", "FACE-KNN", "ONB-MACF", "WACHTER"]
CELLS = [Cell("saheart", name, n_factuals=6, n_retrainings=2) for name in FAST]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A whole run of fast methods on the embedded table; its children are forks, which need not import torch again."""
    folder = tmp_path_factory.mktemp("finished")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "_context", lambda: multiprocessing.get_context("fork"))
        run(CELLS, folder, jobs=2, say=said.append)
    return folder, said


def test_every_cell_is_done_and_said(finished):
    folder, said = finished
    lines, cells = collect(folder)
    assert cells["status"].tolist() == ["done"] * len(FAST)
    assert len(lines) == 6 * len(FAST)
    assert len(said) == 1 + len(FAST)
    assert re.search(r"\[6/6\] saheart .* success \d\.\d{3}  \(about 0 s left\)", said[-1])


def test_a_second_run_computes_nothing(finished):
    folder, _ = finished
    before = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*")}
    said = []
    run(CELLS, folder, say=said.append)
    assert said == [f"{len(FAST)} cells, {len(FAST)} already computed, 1 at a time."]
    assert before == {path: path.stat().st_mtime_ns for path in folder.glob("cells/*")}


def bench_run(folder, methods=FAST, n_factuals=6):
    words = ("--datasets", "saheart", "--methods", ",".join(methods), "--factuals", n_factuals, "--jobs", 2)
    words += ("--retrainings", 2)
    return command("bench", "run", "--folder", folder, *words, start_new_session=True)


@pytest.mark.long
def test_a_run_killed_again_and_again_ends_with_the_same_digest(finished, tmp_path):
    """Killed when it has begun, then twice when one cell more is done: the slowest is the last, and still to do."""
    groups = []
    for n_lines in (1, 2, 2):
        with bench_run(tmp_path) as process:
            said = [process.stderr.readline() for _ in range(n_lines)]
            process.kill()
        assert process.returncode == -signal.SIGKILL, said
        groups.append(process.pid)
    wait_for(lambda: not any(map(members, groups)))
    n_done = len(list(tmp_path.glob("cells/*.json")))
    assert 2 <= n_done < len(FAST)
    with bench_run(tmp_path) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert err.startswith(f"{len(FAST)} cells, {n_done} already computed")
    assert f"digest {digest(*collect(finished[0]))}" in out
    assert len(list(tmp_path.glob("cells/[!.]*"))) == len(FAST)


@pytest.mark.long
def test_children_die_with_a_killed_run(tmp_path):
    """They are killed at work on cells of many seconds each: had one lived on, its cell would be there."""
    process = bench_run(tmp_path, ["CLUE", "CRUDS"], n_factuals=400)
    try:
        wait_for(lambda: list(tmp_path.glob("models/[!.]*")), process)
        assert len(members(process.pid)) > 2
        process.kill()
        process.communicate(timeout=PATIENCE)
        wait_for(lambda: not members(process.pid))
        assert not list(tmp_path.glob("cells/*"))
    finally:
        kill_group(process.pid)


class Broken:
    needs_gradient = False

    def fit(self, task, model, seed):
        raise RuntimeError("no luck today")


class Sleeper:
    needs_gradient = False

    def fit(self, task, model, seed):
        time.sleep(3600)


class Crasher:
    needs_gradient = False

    def fit(self, task, model, seed):
        os._exit(7)


def test_a_failing_method_becomes_a_document(tmp_path, monkeypatch):
    monkeypatch.setitem(methods.REGISTRY, "BROKEN", methods.Entry(__name__, "Broken"))
    document = compute(Cell("saheart", "BROKEN"), None, tmp_path)
    assert document["status"] == "failed"
    assert document["error"] == "RuntimeError: no luck today"
    json.dumps(document)


def test_failures_timeouts_and_crashes_are_kept_and_shown(tmp_path, monkeypatch):
    """Run in this process's children by fork, so that they know the methods of this test."""
    monkeypatch.setattr(run_module, "_context", lambda: multiprocessing.get_context("fork"))
    for name in ("Broken", "Sleeper", "Crasher"):
        monkeypatch.setitem(methods.REGISTRY, name.upper(), methods.Entry(__name__, name))
    cells = [Cell("saheart", name, n_factuals=4, n_retrainings=0) for name in ("BROKEN", "SLEEPER", "CRASHER", "NICE")]
    said = []
    run([cell for cell in cells if cell.method != "SLEEPER"], tmp_path, jobs=2, say=said.append)
    run(cells, tmp_path, time_limit=1, say=said.append)  # the others are there: only the sleeper has a limit to exceed
    table = collect(tmp_path)[1].set_index("method")
    assert table["status"].to_dict() == {
        "BROKEN": "failed",
        "SLEEPER": "timeout",
        "CRASHER": "crashed",
        "NICE": "done",
    }
    assert table.loc["SLEEPER", "error"] == "more than 1 s"
    assert "exit code 7" in table.loc["CRASHER", "error"]
    assert any("no luck today" in line for line in said)
    write_report(tmp_path, tmp_path / "report", plots=False)
    problems = pd.read_csv(tmp_path / "report" / "problems.csv")
    assert problems["method"].tolist() == ["BROKEN", "SLEEPER", "CRASHER"]


def test_cells_of_one_table_and_model_share_a_process_and_outlive_a_crash(tmp_path, monkeypatch):
    """Twelve cells, one job: three are taken at first, and the crash among them costs its own cell only."""
    monkeypatch.setattr(run_module, "_context", lambda: multiprocessing.get_context("fork"))
    monkeypatch.setitem(methods.REGISTRY, "CRASHER", methods.Entry(__name__, "Crasher"))
    cells = [
        Cell("saheart", name, protocol="unknown", model="boosting", seed=seed, n_factuals=2, n_retrainings=0)
        for seed in range(6)
        for name in ("CRASHER" if seed == 0 else "NICE-NONE", "NICE")
    ]
    said = []
    run(cells, tmp_path, say=said.append)
    table = collect(tmp_path)[1]
    assert table["status"].tolist() == ["crashed"] + ["done"] * 11
    assert table["seed"].tolist() == [seed for seed in range(6) for _ in range(2)]
    assert len(said) == 13
    assert any("unknown boosting 5" in line for line in said)


def test_fewer_and_fewer_cells_are_taken_of_one_table_and_model():
    cells = [Cell(dataset, "NICE", seed=seed) for dataset in ("saheart", "wine") for seed in range(20)]
    sizes, waiting = [], list(cells)
    while waiting:
        taken = run_module._take(waiting, jobs=2)
        assert len({cell.dataset for cell in taken}) == 1
        assert waiting == cells[len(cells) - len(waiting) :]
        sizes.append(len(taken))
    assert sum(sizes) == 40
    assert sizes[0] == 5
    assert sizes[-1] == 1


class FullDisk:
    needs_gradient = False

    def fit(self, task, model, seed):
        """From here on, no file of this process may have more than some bytes."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    def explain(self, Z, n):
        return [None] * len(Z)


def test_a_disk_that_is_full_is_no_fault_of_a_method(tmp_path, monkeypatch):
    """The run ends with an error and keeps no document of that cell: the same command computes it then."""
    monkeypatch.setattr(run_module, "_context", lambda: multiprocessing.get_context("fork"))
    monkeypatch.setitem(methods.REGISTRY, "FULL", methods.Entry(__name__, "FullDisk"))
    cells = [Cell("saheart", name, n_factuals=4, n_retrainings=0) for name in ("NICE", "FULL")]
    with pytest.raises(
        StoreError, match=r"could not write to .*cells\. Finished cells are kept: the same command goes"
    ):
        run(cells, tmp_path)
    assert [path.name.split("-")[1] for path in tmp_path.glob("cells/*")] == ["nice"]
    monkeypatch.setattr(FullDisk, "fit", lambda *own: None)
    run(cells, tmp_path)
    assert len(list(tmp_path.glob("cells/*"))) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells", "manifest.json", "models"]


def asked(task, model, rows):
    return Case(task, model, rows, task.Z[rows], [], 1.0)


def test_a_counterfactual_that_does_not_flip_is_not_a_success(small_task, small_network):
    rows = np.flatnonzero(small_network.label_of(small_task.Z) == 0)[:2]
    flipped = small_task.Z[small_network.label_of(small_task.Z) == 1][0]
    lines = evaluate(asked(small_task, small_network, rows), [small_task.Z[rows[0]], flipped])
    assert lines["n_found"].tolist() == [0, 1]
    assert lines["l0"].isna().tolist() == [True, False]


def test_a_method_that_answers_nonsense_is_told(small_task, small_network):
    with pytest.raises(ValueError, match="finite numbers"):
        evaluate(asked(small_task, small_network, np.array([0])), [np.array([1.0, np.nan])])


def test_the_summary_is_the_mean_of_the_successes(finished):
    lines, cells = collect(finished[0])
    table = summary(lines, cells).set_index("method")
    nice = lines[lines["method"] == "NICE"]
    assert table.loc["NICE", "l1"] == pytest.approx(nice["l1"].mean())
    assert table.loc["NICE", "success_rate"] == (nice["n_found"] > 0).mean()
    assert table.loc["NICE", "average_time"] == pytest.approx(table.loc["NICE", "explain_seconds"] / 6)


def test_stability_is_reported_and_is_in_no_mean(finished, tmp_path):
    lines, _ = collect(finished[0])
    assert set(lines["stability"]) <= {0.0, 0.5, 1.0}
    assert lines["stability"].min() < lines["stability"].max()
    write_report(finished[0], tmp_path, plots=False)
    more, mean = pd.read_csv(tmp_path / "more_metrics.csv"), pd.read_csv(tmp_path / "average_results.csv")
    nice = lines[lines["method"] == "NICE"]
    assert more.set_index("method").loc["NICE", "stability"] == pytest.approx(nice["stability"].mean())
    assert "stability" not in mean.columns
    averages = pd.read_csv(tmp_path / "average_stability.csv")
    assert averages.columns.tolist() == ["method", "stability", "l1"]
    assert averages["method"].tolist() == FAST


def test_without_retrainings_there_is_no_stability(small_task, small_network):
    flipped = small_task.Z[small_network.label_of(small_task.Z) == 1][0]
    lines = evaluate(asked(small_task, small_network, np.array([0])), [flipped])
    assert lines["n_found"].tolist() == [1]
    assert lines["stability"].isna().all()


def test_violations_of_onb_macf_are_only_where_it_reports_them(finished):
    lines, _ = collect(finished[0])
    own = lines[lines["method"] == "ONB-MACF"]
    assert (own["n_found"] > 0).all()
    assert own["remark"].str.startswith("relaxation: ").all()
    assert (own.loc[own["remark"] != "relaxation: immutability", "violations"] == 0).all()


def test_the_report_has_every_table_and_plot(finished, tmp_path):
    folder, _ = finished
    written = {path.name for path in write_report(folder, tmp_path)}
    assert {"report.md", "tables.tex", "raw_results.csv", "average_results.csv", "times.csv"} <= written
    assert {"radar_saheart.svg", "radar_saheart.png", "radar_average.svg", "radar_average.png"} <= written
    raw = pd.read_csv(tmp_path / "raw_results.csv")
    assert raw.columns.tolist() == [
        *("dataset", "method", "l0", "l1", "l2", "linf", "violations", "redundancy", "ynn", "success_rate")
    ]
    assert raw["method"].tolist() == FAST
    text = (tmp_path / "report.md").read_text()
    assert "## Results for saheart" in text
    assert digest(*collect(folder)) in text
    changes = pd.read_csv(tmp_path / "feature_changes.csv")
    assert changes["feature"].tolist()[0] == "sbp"
    assert changes.loc[changes["feature"] == "age", "ONB-MACF"].item() == 0


def test_the_report_is_the_same_twice(finished, tmp_path):
    folder, _ = finished
    write_report(folder, tmp_path / "a")
    write_report(folder, tmp_path / "b")
    for path in (tmp_path / "a").glob("*.csv"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_folder_without_a_run_is_told(tmp_path):
    with pytest.raises(StoreError, match="onbmacf bench run"):
        collect(tmp_path)


def test_a_cell_not_yet_run_is_missing_not_lost(finished, tmp_path):
    folder, _ = finished
    manifest = read_manifest(folder)
    manifest["cells"] = [{**manifest["cells"][0], "file": "cells/none.json"}]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    lines, cells = collect(tmp_path)
    assert cells["status"].tolist() == ["missing"]
    assert len(lines) == 0
