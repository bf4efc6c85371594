"""Many clients at once, signals and kills: nothing is wrong, nothing that was accepted is lost, an audit goes on."""

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pandas as pd
import pytest

from cli.conftest import run  # noqa: F401 - fixture
from commands import PATIENCE, command, wait_for
from onbmacf import ONBMACF
from serving import serving

CLIENTS = 8
REQUESTS = int(os.environ.get("ONBMACF_REQUESTS", "40"))  # of each client; 200 take a minute
# A model that takes its time, and shows in a file that it was asked, and where.
SLOW = """
import os
import time
from pathlib import Path
import numpy as np
def predict(rows):
    Path("asked").write_text(str(os.getpid()))
    time.sleep(float(Path("wait").read_text()) if Path("wait").exists() else 0)
    return np.where(rows["a"] + rows["b"] > 1, "yes", "no")
"""


@pytest.mark.long
def test_eight_clients_get_the_librarys_answers(heart):
    explainer = ONBMACF().fit(heart, lambda rows: np.where(rows["age"] + rows["tobacco"] > 50, "old", "young"))
    rows = json.loads(heart.to_json(orient="records"))
    expected = [explainer.explain(pd.DataFrame([row])).to_json() for row in rows[:50]]
    with serving(explainer, heart, max_waiting=CLIENTS) as running:

        def client(number):
            wrong = []
            with running.client() as own:
                for turn in range(REQUESTS):
                    place = (7 * number + turn) % 50
                    answer = own.post("/v1/explain", json={"rows": rows[place]})
                    if answer.status_code != 200 or answer.text != expected[place]:
                        wrong.append((place, answer.status_code))
            return wrong

        with ThreadPoolExecutor(CLIENTS) as pool:
            assert [one for wrong in pool.map(client, range(CLIENTS)) for one in wrong] == []


def test_overload_is_refused_quickly_and_passes(heart):
    explainer = ONBMACF().fit(heart, lambda rows: np.where(rows["age"] > 40, "old", "young"))
    body = {"rows": json.loads(heart.head(60).to_json(orient="records"))}
    with serving(explainer, heart, max_waiting=2) as running, ThreadPoolExecutor(24) as pool:

        def ask(_):
            with running.client() as own:
                return own.post("/v1/explain", json=body)

        answers = list(pool.map(ask, range(24)))
        statuses = {answer.status_code for answer in answers}
        assert statuses == {200, 503}
        assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status_code == 503)
        assert ask(0).status_code == 200


def started(folder, *more):
    """Start the command on a table of its own; return the process, its address and a client."""
    process = command(
        "serve", "table.csv", "--model", "slow:predict", "--port", "0", "--no-open", "--folder", "kept",
        "--target", "yes", "--token", "the token of the test", *more, cwd=folder,
    )  # fmt: skip
    link = process.stdout.readline().strip()
    assert link.startswith("http://127.0.0.1:"), process.stderr.read()
    headers = {"Authorization": "Bearer the token of the test"}
    return process, httpx.Client(base_url=link.split("/?")[0], headers=headers, timeout=PATIENCE)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.random(120).round(2), "b": rng.random(120).round(2)})
    table.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def test_sigterm_loses_no_request_that_was_accepted(folder):
    process, client = started(folder)
    try:
        body = {"rows": [{"a": 0.1, "b": 0.2}, {"a": 0.3, "b": 0.1}]}
        expected = client.post("/v1/explain", json=body).text
        (folder / "wait").write_text("0.05")
        (folder / "asked").unlink()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(client.post("/v1/explain", json=body)))
        asking.start()
        wait_for((folder / "asked").exists, process)
        process.send_signal(signal.SIGTERM)
        asking.join()
        assert [answer.text for answer in answers] == [expected]
        assert process.wait(PATIENCE) == 0
        assert "The service has ended." in process.stderr.read()
    finally:
        process.kill()


@pytest.mark.long  # `test_service.py` kills one, too
def test_a_request_whose_worker_is_killed_is_told_to_ask_again_and_the_next_is_answered(folder):
    process, client = started(folder, "--workers", "2")
    try:
        body = {"rows": [{"a": 0.1, "b": 0.2}]}
        expected = client.post("/v1/explain", json=body).text
        (folder / "wait").write_text("600")
        (folder / "asked").unlink()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(client.post("/v1/explain", json=body)))
        asking.start()
        wait_for(lambda: (folder / "asked").exists() and (folder / "asked").read_text(), process)
        (folder / "wait").unlink()
        os.kill(int((folder / "asked").read_text()), signal.SIGKILL)
        asking.join()
        assert [(one.status_code, one.json()["title"], one.headers["retry-after"]) for one in answers] == [
            (503, "Worker lost", "1")
        ]
        assert client.post("/v1/explain", json=body).text == expected
        wait_for(lambda: client.get("/healthz").status_code == 200)
    finally:
        process.kill()


@pytest.mark.long
def test_workers_that_hang_are_replaced(folder):
    process, client = started(folder, "--workers", "1", "--timeout", "3")
    try:
        body = {"rows": [{"a": 0.1, "b": 0.2}]}
        wait_for(lambda: client.post("/v1/explain", json=body).status_code == 200, process)
        (folder / "wait").write_text("600")
        assert client.post("/v1/explain", json=body).json()["title"] == "Timed out"
        (folder / "wait").unlink()
        wait_for(lambda: client.post("/v1/explain", json=body).status_code == 200, process)
        wait_for(lambda: client.get("/healthz").status_code == 200, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()


@pytest.mark.long
def test_ctrl_c_ends_it_cleanly(folder):
    process, client = started(folder)
    try:
        assert client.get("/healthz").text == "ok\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()


@pytest.mark.long
def test_an_audit_goes_on_after_a_kill_and_is_the_same(folder):
    process, client = started(folder)
    try:
        (folder / "wait").write_text("0.02")
        name = client.post("/v1/audit", json={"most": 60, "by": []}).json()["id"]
        wait_for(lambda: 8 <= client.get(f"/v1/audit/{name}").json()["n_done"] < 40, process)
        process.kill()
        process.wait(PATIENCE)
        (folder / "wait").unlink()
        parts = {path.name: path.stat().st_mtime_ns for path in folder.glob("kept/*/*/part-*.onb")}
        assert parts
        process, client = started(folder)
        finished(client, name)
        later = {path.name: path.stat().st_mtime_ns for path in folder.glob("kept/*/*/part-*.onb")}
        assert {part: later[part] for part in parts} == parts  # what was done is not done again
        again = client.post("/v1/audit", json={"most": 60, "by": []}).json()["id"]
        finished(client, again)
        assert client.get(f"/v1/audit/{again}").json()["findings"] == client.get(f"/v1/audit/{name}").json()["findings"]
    finally:
        process.kill()


def finished(client, name):
    wait_for(lambda: client.get(f"/v1/audit/{name}").json()["status"] != "running" or time.sleep(0.3))
    assert client.get(f"/v1/audit/{name}").json()["status"] == "done"


def test_other_machines_are_refused_on_the_command_line_before_any_work(run, folder, monkeypatch):  # noqa: F811
    monkeypatch.chdir(folder)
    code, out, err = run("serve", "--host", "0.0.0.0", "--port", "0", "--no-open")
    assert (code, out) == (2, "")
    assert "give a token of your own" in err.splitlines()[-1]


@pytest.mark.parametrize("is_of_environment", [True, False])
def test_a_token_of_the_environment_is_not_printed(run, folder, monkeypatch, is_of_environment):  # noqa: F811
    """What is printed may be kept in a log; whoever set the variable knows what is in it."""
    from onbmacf.web import server

    token = "a secret of the environment"
    if is_of_environment:
        monkeypatch.setenv("ONBMACF_TOKEN", token)
    monkeypatch.chdir(folder)
    told = []

    def serve_nothing(source, settings, *, open_browser, tell):
        told.append(settings.token)
        tell(server.link(settings))

    monkeypatch.setattr(server, "run_server", serve_nothing)
    words = () if is_of_environment else ("--token", token)
    code, out, err = run("serve", "table.csv", "--model", "slow:predict", "--no-open", *words)
    assert (code, told) == (0, [token]), err
    assert out.startswith("http://127.0.0.1:8017/")
    assert ("secret" in out + err) is not is_of_environment
    assert ("ONBMACF_TOKEN" in err) is is_of_environment


def test_settings_are_given_whole_or_field_by_field(heart_explainer, monkeypatch):
    import onbmacf
    from onbmacf.errors import ParameterError
    from onbmacf.web import server
    from onbmacf.web.settings import Limits, Settings

    served = []
    monkeypatch.setattr(server, "run_server", lambda source, settings, open_browser: served.append(settings))
    wanted = Settings(port=8123, token="the token of the test", limits=Limits(timeout=5, head_timeout=3))
    onbmacf.serve(heart_explainer, settings=wanted)
    onbmacf.serve(heart_explainer, port=8123, token="the token of the test", timeout=5, head_timeout=3)
    assert served == [wanted, wanted]
    with pytest.raises(ParameterError, match="give settings or 'port'"):
        onbmacf.serve(heart_explainer, settings=wanted, port=8000)
    with pytest.raises(ParameterError, match="settings must be Settings"):
        onbmacf.serve(heart_explainer, settings={"port": 8000})


def test_the_examples_of_the_docs_run(running):
    """The curl of docs/serve.md and its Python, against a running service."""
    import os
    import re
    import shutil
    import subprocess
    import sys
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    environment = {**os.environ, "BASE": running.base, "TOKEN": running.token}
    code = re.search(r"```python\n(.*?)```", page, flags=re.S)[1]
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "->" in ran.stdout
    assert "tobacco" not in ran.stdout
    if shutil.which("curl"):
        line = next(block for block in re.findall(r"```bash\n(.*?)```", page, flags=re.S) if block.startswith("curl"))
        said = subprocess.run(["sh", "-c", f"NO_PROXY=* {line}"], env=environment, capture_output=True, check=True)
        assert json.loads(said.stdout)["format"] == "onbmacf-explanations"
