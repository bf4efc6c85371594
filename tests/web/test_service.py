"""The service for programs: the library's own answers to the byte, typed errors, figures."""

import inspect
import json
import os
import re
import signal
import threading
import time
from dataclasses import fields
from typing import get_type_hints

import jsonschema
import numpy as np
import pandas as pd
import pytest
from prometheus_client.parser import text_string_to_metric_families

from commands import PATIENCE, command, kill_group, members, wait_for
from onbmacf import ONBMACF, Rules
from onbmacf._base.asked import ASKED
from onbmacf._explain.request import Question
from onbmacf.cli.explain import Arguments
from onbmacf.errors import ModelError
from onbmacf.web.api import Explain
from serving import serving


def records(table):
    return json.loads(table.to_json(orient="records"))


def test_one_row_gets_the_bytes_of_the_library(client, heart_explainer, heart):
    row = records(heart.iloc[[3]])[0]
    answer = client.post("/v1/explain", json={"rows": row})
    assert answer.status_code == 200
    assert answer.text == heart_explainer.explain(pd.DataFrame([row]), "healthy").to_json()


def test_options_reach_the_library(client, heart_explainer, heart):
    rows = records(heart.head(3))
    asked = {"rows": rows, "target": "at risk", "n": 2, "plausibility": 1, "ranges": True, "min_probability": 0.6}
    asked |= {"min_neighbours": 4}
    explainer = heart_explainer.with_options(n_counterfactuals=2, plausibility=1.0)
    expected = explainer.explain(pd.DataFrame(rows), "at risk", ranges=True, min_probability=0.6, min_neighbours=4)
    assert client.post("/v1/explain", json=asked).text == expected.to_json()
    front = heart_explainer.explain(pd.DataFrame(rows), "healthy", front=True)
    assert client.post("/v1/explain", json={"rows": rows, "front": True}).text == front.to_json()


@pytest.mark.parametrize(
    "asked",
    [{"vary": ["tobacco", "ldl"]}, {"prove": True, "prove_seconds": 60.0}, {"max_seconds": 600}, {"immutable": []}],
)
def test_the_service_asks_what_the_library_does(client, heart_explainer, heart, asked):
    rows = records(heart.head(3))
    expected = heart_explainer.explain(pd.DataFrame(rows), "healthy", **asked).to_json()
    assert client.post("/v1/explain", json={"rows": rows, **asked}).text == expected
    lines = client.post("/v1/explain", json={"rows": rows, **asked}, headers={"Accept": "application/x-ndjson"})
    assert [json.loads(line) for line in lines.text.splitlines()[1:]] == json.loads(expected)["answers"]


def test_library_command_line_and_service_have_the_same_fields():
    """Whatever may be asked is said in one table: ASKED."""
    names = list(ASKED)
    assert [field.name for field in fields(Question)] == [*names, "deadline"]
    assert list(inspect.signature(ONBMACF.explain).parameters)[2:-1] == names
    assert list(Explain.model_fields) == ["rows", *names]
    assert set(names) <= {field.name for field in fields(Arguments)}
    hints = get_type_hints(Arguments, include_extras=True)
    of_numbers = ("n", "plausibility", "min_probability", "min_neighbours", "prove_seconds", "max_seconds")
    for name in (*of_numbers, "front", "ranges", "prove"):
        assert hints[name].__metadata__[0].help == ASKED[name].says


def test_a_stream_has_the_lines_of_the_document(client, heart_explainer, heart):
    rows = records(heart.head(40))
    answer = client.post("/v1/explain", json={"rows": rows}, headers={"Accept": "application/x-ndjson"})
    head, *lines = answer.text.splitlines()
    expected = heart_explainer.explain(pd.DataFrame(rows), "healthy").to_json()
    assert head[:-1] + ', "answers": [' + ", ".join(lines) + "]}\n" == expected
    assert len(lines) == 40


def test_a_prediction_is_the_models(client, heart_explainer, heart):
    model = heart_explainer.fitted_.black_box.model
    answers = client.post("/v1/predict", json={"rows": records(heart.head(20))}).json()["answers"]
    assert [answer["label"] for answer in answers] == model.predict(heart.head(20)).tolist()
    best = model.predict_proba(heart.head(20)).max(axis=1)
    assert np.allclose([answer["probability"] for answer in answers], best)
    assert {answer["status"] for answer in answers} == {"predicted"}


def test_a_row_that_cannot_be_asked_does_not_stop_the_others(client, heart):
    rows = records(heart.head(3))
    rows[1]["famhist"] = "Maybe"
    answers = client.post("/v1/predict", json={"rows": rows}).json()["answers"]
    assert [answer["status"] for answer in answers] == ["predicted", "invalid_row", "predicted"]
    assert "'Absent'" in answers[1]["reason"]
    told = client.post("/v1/explain", json={"rows": rows}).json()["answers"]
    assert [answer["status"] == "invalid_row" for answer in told] == [False, True, False]


def test_the_schema_says_what_a_row_needs(client, heart):
    said = client.get("/v1/schema").json()
    assert [feature["name"] for feature in said["features"]] == list(heart.columns)
    age = said["features"][-1]
    assert (age["kind"], age["immutable"], age["low"], age["high"]) == ("integer", True, 15, 64)
    assert said["labels"] == ["at risk", "healthy"]
    assert said["target"] == ["healthy"]


@pytest.mark.filterwarnings("ignore:nearly every row")
def test_the_schema_does_not_list_what_tells_people_apart(heart):
    """A column of names is kept as it is: its values are those of other people, and nobody may change to one."""
    table = heart.assign(person=[f"person {number}" for number in range(len(heart))])
    with serving(ONBMACF().fit(table, lambda rows: rows["ldl"] > 5), table) as running, running.client() as client:
        levels = {feature["name"]: feature["levels"] for feature in client.get("/v1/schema").json()["features"]}
    assert levels["person"] is None
    assert levels["famhist"] == ["Absent", "Present"]


FAULTS = [
    ({"rows": {"sbp": 1}}, 422, "Rows error", "row 0 lacks 'tobacco'"),
    ({"rows": []} | {"extra": 1}, 422, "Unexpected body", "Unknown key 'extra'. Allowed: 'rows', 'target'"),
    ({"rows": []} | {"imutable": ["age"]}, 422, "Unexpected body", "'imutable'. Did you mean 'immutable'?"),
    ({}, 422, "Unexpected body", "rows: Field required"),
    ({"rows": 3}, 422, "Unexpected body", "rows"),
    ({"rows": [], "n": 0}, 422, "Unexpected body", "n: "),
    ({"rows": [], "n": 21}, 422, "Parameter error", "n must be at most 20, got 21"),
    ({"rows": [], "target": "ill"}, 422, "Parameter error", "'at risk', 'healthy'"),
    ({"rows": [], "plausibility": 2}, 422, "Unexpected body", "plausibility"),
    ({"rows": [], "rules": {"features": {"ages": {}}}}, 422, "Parameter error", "there is no such feature"),
    ({"rows": [], "rules": {"nonsense": {}}}, 422, "Parameter error", "unknown key 'nonsense'"),
    ({"rows": [], "immutable": ["nonsense"]}, 422, "Parameter error", "nonsense"),
]


@pytest.mark.parametrize("body, status, title, words", FAULTS)
def test_a_fault_is_a_problem_with_the_librarys_sentence(client, body, status, title, words):
    answer = client.post("/v1/explain", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert (said["title"], said["status"]) == (title, status)
    assert words in said["detail"]


def test_a_row_with_a_foreign_or_nested_value_is_named(client, heart):
    row = records(heart.head(1))[0]
    for more, words in (
        ({"agee": 3}, "'agee', which is not a column. Did you mean 'age'?"),
        ({"age": []}, "'age' must be"),
    ):
        answer = client.post("/v1/explain", json={"rows": row | more})
        assert answer.status_code == 422
        assert words in answer.json()["detail"]


def test_a_row_that_json_can_write_and_nobody_can_hold_is_an_invalid_row(client, heart):
    """A number beyond float64, and half a character."""
    row = json.dumps(records(heart.head(1))[0])
    for name, value in (("age", "1e999"), ("famhist", r'"\ud800"')):
        body = re.sub(rf'"{name}": [^,}}]*', lambda _, name=name, value=value: f'"{name}": {value}', row)
        assert value in body
        for path in ("explain", "predict"):
            answer = client.post(f"/v1/{path}", content=f'{{"rows": {body}}}')
            assert (answer.status_code, answer.json()["answers"][0]["status"]) == (200, "invalid_row")


@pytest.mark.parametrize("path", ["/v1/nothing", "/nothing", "/v1/explain/more"])
def test_an_unknown_address_is_not_found(client, path):
    assert client.get(path).status_code == 404


def test_a_method_that_an_address_does_not_take_is_told(client):
    for path, allowed in [("/v1/explain", "POST"), ("/v1/schema", "GET"), ("/healthz", "GET")]:
        refused = client.request("PATCH", path)
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
        assert f"This address takes {allowed} only." in refused.text
    assert client.request("PATCH", "/v1/explain").json()["title"] == "Method not allowed"


def test_a_model_that_fails_is_a_bad_gateway_and_the_service_goes_on(heart):
    away, broken = threading.Event(), threading.Event()

    def model(rows):
        if away.is_set():  # as a model behind HTTP is
            raise ModelError("it cannot be asked.")
        return np.array([[[1]]]) if broken.is_set() else np.where(rows["age"] > 40, "old", "young")

    with serving(ONBMACF().fit(heart, model), heart) as running, running.client() as client:
        body = {"rows": records(heart.head(1))}
        away.set()
        answer = client.post("/v1/explain", json=body)
        assert (answer.status_code, answer.json()["title"]) == (502, "Model error")
        away.clear()
        broken.set()
        answer = client.post("/v1/explain", json=body).json()["answers"][0]
        assert answer["status"] == "model_error"
        assert answer["reason"].startswith("predict returned an array of shape (1, 1, 1)")
        broken.clear()
        assert client.post("/v1/explain", json=body).json()["answers"][0]["status"] == "found"


def test_a_full_queue_answers_at_once_and_recovers(heart):
    hold, held = threading.Event(), threading.Event()

    def model(rows):
        if hold.is_set():
            held.set()
            wait_for(lambda: not hold.is_set())
        return np.where(rows["age"] > 40, "old", "young")

    explainer = ONBMACF().fit(heart, model)
    body = {"rows": records(heart.head(1))}
    with serving(explainer, heart, max_waiting=2, timeout=600) as running, running.client() as client:
        hold.set()
        waiting = [threading.Thread(target=client.post, args=("/v1/explain",), kwargs={"json": body}) for _ in "ab"]
        for thread in waiting:
            thread.start()
        wait_for(lambda: held.is_set() and running.service().engine.n_waiting == 2)
        for path in ("/v1/explain", "/v1/predict"):
            refused = client.post(path, json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert client.get("/healthz").text == "ok\n"
        hold.clear()
        for thread in waiting:
            thread.join()
        assert client.post("/v1/explain", json=body).status_code == 200


def test_an_answer_that_takes_too_long_is_given_up(heart):
    hold = threading.Event()

    def model(rows):
        wait_for(lambda: not hold.is_set())
        return np.where(rows["age"] > 40, "old", "young")

    explainer = ONBMACF().fit(heart, model)
    with serving(explainer, heart, timeout=0.2) as running, running.client() as client:
        hold.set()
        answer = client.post("/v1/explain", json={"rows": records(heart.head(1))})
        hold.clear()
        assert (answer.status_code, answer.json()["title"]) == (503, "Timed out")
        assert "retry-after" in answer.headers


@pytest.mark.parametrize("n_rows", [3, 120])
def test_a_request_that_was_given_up_asks_the_model_nothing_more(heart, n_rows):
    """The call that is under way cannot be ended; when it comes back, the request ends with it."""
    begun, let_go, calls = threading.Event(), threading.Event(), []

    def model(rows):
        calls.append(len(rows))
        if begun.is_set():
            let_go.wait(PATIENCE)
        return np.where(rows["age"] > 40, "old", "young")

    explainer = ONBMACF(read_model=False).fit(heart, model)
    with serving(explainer, heart, timeout=0.5) as running, running.client() as client:
        row = {"rows": records(heart.head(1))}
        wait_for(lambda: client.post("/v1/predict", json=row).status_code == 200)  # after what is made on first use
        n_before = len(calls)
        begun.set()
        answer = client.post("/v1/explain", json={"rows": records(heart.head(n_rows))})
        assert (answer.status_code, answer.json()["title"]) == (503, "Timed out")
        begun.clear()
        let_go.set()
        wait_for(lambda: client.get("/healthz").text == "ok\n")  # its thread has come back
        assert len(calls) == n_before + 1
        wait_for(lambda: client.post("/v1/predict", json=row).status_code == 200)


def test_an_answer_in_time_is_the_same_as_without_a_time(heart):
    """Also of rows without an answer, which a model that can be read is proven to have."""
    from sklearn.tree import DecisionTreeClassifier

    numbers = heart.select_dtypes("number")
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(numbers, heart["ldl"] > 5)
    explainer = ONBMACF().fit(numbers, model)
    rows, free = records(numbers.head(4)), ["age"]  # which the tree does not ask about
    expected = explainer.explain(pd.DataFrame(rows), immutable=[n for n in numbers if n not in free])
    assert "infeasible" in expected.statuses
    with serving(explainer, numbers, timeout=600) as running, running.client() as client:
        body = {"rows": rows, "immutable": [n for n in numbers if n not in free]}
        assert client.post("/v1/explain", json=body).text == expected.to_json()


def test_processes_give_the_same_answers(heart_explainer, heart):
    rows = records(heart.head(8))
    expected = heart_explainer.explain(pd.DataFrame(rows), "healthy").to_json()
    with serving(heart_explainer, heart, "healthy", workers=2) as running, running.client() as client:
        folder = running.service().engine.folder
        assert client.post("/v1/explain", json={"rows": rows}).text == expected
        assert client.post("/v1/predict", json={"rows": rows}).status_code == 200
    assert not folder.exists()


def killed(executor):
    """Kill the workers of a pool, and wait until it has noticed."""
    for worker in list(executor._processes.values()):
        worker.kill()
    wait_for(lambda: executor._broken)


def test_workers_that_were_killed_are_replaced(heart_explainer, heart):
    row = records(heart.head(1))[0]
    expected = heart_explainer.explain(pd.DataFrame([row]), "healthy").to_json()
    with serving(heart_explainer, heart, "healthy", workers=1) as running, running.client() as client:
        for _ in range(2):
            assert client.post("/v1/explain", json={"rows": row}).text == expected
            killed(running.service().engine.executor)
        assert client.post("/v1/explain", json={"rows": row}).text == expected
        wait_for(lambda: client.get("/healthz").text == "ok\n")


def test_health_is_asked_of_the_workers(heart_explainer, heart):
    with serving(heart_explainer, heart, "healthy", workers=1) as running, running.client() as client:
        wait_for(lambda: client.get("/healthz").text == "ok\n")
        engine = running.service().engine
        file = engine.folder / "explainer"
        file.rename(file.with_name("away"))  # no new worker can start
        killed(engine.executor)
        wait_for(lambda: client.get("/healthz").status_code == 503)
        assert client.get("/healthz").text.startswith("worker lost")
        assert client.post("/v1/predict", json={"rows": records(heart.head(1))}).status_code == 503
        file.with_name("away").rename(file)
        wait_for(lambda: client.get("/healthz").text == "ok\n")
        assert client.post("/v1/predict", json={"rows": records(heart.head(1))}).status_code == 200


def half_a_result(explainer):
    """In a worker: write the beginning of a result, as one that is killed in the middle does, and wait."""
    import gc
    from multiprocessing.queues import SimpleQueue

    for queue in gc.get_objects():
        if isinstance(queue, SimpleQueue):
            os.write(queue._writer.fileno(), (1000).to_bytes(4, "big") + b"half")
    threading.Event().wait(600)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # Python's own, of the lost pool
def test_half_a_result_of_a_killed_worker_blocks_nobody(heart_explainer, heart):
    row = records(heart.head(1))[0]
    with serving(heart_explainer, heart, "healthy", workers=1, timeout=5) as running, running.client() as client:
        wait_for(lambda: client.post("/v1/predict", json={"rows": row}).status_code == 200)
        engine = running.service().engine
        pool, call = engine._submit(half_a_result, ())
        wait_for(call.running)
        time.sleep(1)  # where it has not begun to write by then, its worker is replaced all the same
        for worker in list(pool._processes.values()):
            worker.kill()
        wait_for(lambda: client.post("/v1/predict", json={"rows": row}).status_code == 200)


def test_an_audit_goes_on_where_its_worker_was_killed(heart_explainer, heart, tmp_path):
    with (
        serving(heart_explainer, heart, "healthy", workers=1, folder=tmp_path) as running,
        running.client() as client,
    ):
        name = client.post("/v1/audit", json={"most": 60, "by": []}).json()["id"]
        wait_for(lambda: client.get(f"/v1/audit/{name}").json()["n_done"] >= 8)
        killed(running.service().engine.executor)
        wait_for(lambda: client.get(f"/v1/audit/{name}").json()["status"] != "running")
        assert client.get(f"/v1/audit/{name}").json()["status"] == "done"


def test_a_killed_service_leaves_neither_its_file_nor_its_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    words = ("serve", "--workers", "2", "--port", "0", "--no-open")
    service = command(*words, cwd=tmp_path, start_new_session=True)
    try:
        assert "http://127.0.0.1" in service.stdout.readline()
        wait_for(lambda: len(members(service.pid)) >= 3, service)  # a worker is there
        file = next(tmp_path.glob("onbmacf-map-*/explainer"))
        assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
        os.kill(service.pid, signal.SIGKILL)
        service.wait()
        wait_for(lambda: not file.parent.exists() and not members(service.pid))
    finally:
        kill_group(service.pid)


def test_processes_need_a_model_that_can_be_sent(heart):
    explainer = ONBMACF().fit(heart, lambda rows: np.where(rows["age"] > 40, "old", "young"))
    from onbmacf.errors import ParameterError

    with pytest.raises(ParameterError, match="workers need a model that can be pickled"), serving(explainer, workers=2):
        pass


def test_figures_count_requests_and_model_rows(heart):
    explainer = ONBMACF().fit(heart, lambda rows: np.where(rows["age"] > 40, "old", "young"))
    rows = records(heart.head(2))
    with serving(explainer, heart) as running, running.client() as client:
        client.post("/v1/explain", json={"rows": rows})
        client.get("/v1/secret-row-17")
        said = client.get("/metrics")
    assert said.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "secret-row-17" not in said.text
    samples = [sample for family in text_string_to_metric_families(said.text) for sample in family.samples]
    values = {(sample.name, *sample.labels.items()): sample.value for sample in samples}
    n_model_rows = explainer.explain(pd.DataFrame(rows)).n_model_rows
    assert values["onbmacf_model_rows_total",] == n_model_rows
    assert values["onbmacf_rows_explained_total",] == 2
    assert values["onbmacf_requests_waiting",] == 0
    route = ("route", "/v1/explain")
    assert values["onbmacf_requests_total", ("method", "POST"), route, ("status", "200")] == 1
    assert values["onbmacf_requests_total", ("method", "GET"), ("route", "other"), ("status", "404")] == 1
    assert values["onbmacf_request_seconds_bucket", ("le", "+Inf"), route] == 1
    assert values["onbmacf_request_seconds_count", route] == 1


def test_two_services_in_one_process_count_apart(heart):
    explainer = ONBMACF().fit(heart, lambda rows: np.where(rows["age"] > 40, "old", "young"))
    with serving(explainer, heart) as one, serving(explainer, heart) as other:
        with one.client() as client:
            client.post("/v1/explain", json={"rows": records(heart.head(2))})
            assert "onbmacf_rows_explained_total 2.0\n" in client.get("/metrics").text
        with other.client() as client:
            assert "onbmacf_rows_explained_total 0.0\n" in client.get("/metrics").text


def test_the_api_is_described(client):
    described = client.get("/v1/openapi.json").json()
    assert {"/v1/schema", "/v1/explain", "/v1/predict", "/healthz", "/metrics"} <= set(described["paths"])
    body = described["paths"]["/v1/explain"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"rows", *ASKED}
    assert body["properties"]["ranges"]["description"] == ASKED["ranges"].says


def test_the_api_says_that_it_needs_a_token_and_where(client):
    described = client.get("/v1/openapi.json").json()
    (name, scheme), *more = described["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"], more) == ("http", "bearer", [])
    for path, operations in described["paths"].items():
        for operation in operations.values():
            assert ("security" in operation) == (path != "/healthz"), path
            assert operation.get("security", [{name: []}]) == [{name: []}]


def test_every_answer_is_as_described(client, heart):
    """Nothing that is not described, and everything that is: of all kinds of answers."""
    described = client.get("/v1/openapi.json").json()
    paths, rows = described["paths"], records(heart.head(3))
    rows[1]["famhist"] = "Maybe"

    def check(method, path, response, pattern=None, kind="application/json"):
        assert response.headers["content-type"].startswith(kind), response.text
        said = paths[pattern or path][method]["responses"][str(response.status_code)]["content"][kind]["schema"]
        schema = strict({**said, "components": described["components"]})
        jsonschema.validate(response.json(), schema)

    check("get", "/v1/schema", client.get("/v1/schema"))
    check("post", "/v1/predict", client.post("/v1/predict", json={"rows": rows}))
    for more in ({}, {"ranges": True, "prove": True, "n": 2}, {"front": True}, {"target": "at risk"}):
        check("post", "/v1/explain", client.post("/v1/explain", json={"rows": rows, **more}))
    refused = client.post("/v1/explain", json={"rows": rows, "n": 99})
    check("post", "/v1/explain", refused, kind="application/problem+json")
    started = client.post("/v1/audit", json={"most": 2})
    check("post", "/v1/audit", started)
    address = f"/v1/audit/{started.json()['id']}"
    check("get", address, client.get(address), "/v1/audit/{name}")
    check("delete", address, client.delete(address), "/v1/audit/{name}")
    missing = client.get("/v1/audit/none")
    check("get", "", missing, "/v1/audit/{name}", kind="application/problem+json")


def strict(schema):
    """Return a schema that forbids properties it does not name."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: strict(part) for name, part in schema.items()}
    return found | {"additionalProperties": False} if "properties" in found and "type" in found else found


def test_rules_of_one_request_change_nothing_for_the_next(client, heart_explainer, heart):
    row = records(heart.iloc[[0]])[0]
    plain = client.post("/v1/explain", json={"rows": row}).text
    rules = {"features": {"tobacco": {"direction": "up"}}}
    ruled = client.post("/v1/explain", json={"rows": row, "rules": rules, "immutable": ["age", "ldl"]})
    assert ruled.status_code == 200
    expected = heart_explainer.explain(
        pd.DataFrame([row]), "healthy", rules=Rules.from_dict(rules), immutable=["age", "ldl"]
    )
    assert ruled.text == expected.to_json() != plain
    assert client.post("/v1/explain", json={"rows": row}).text == plain


def test_a_model_that_is_slow_is_not_stuck(heart):
    """While a call that was given up goes on, who comes next waits for its end, and is answered then."""
    is_slow, comes_back = threading.Event(), threading.Event()

    def model(rows):
        if is_slow.is_set():
            comes_back.wait(60)
        return (rows["ldl"] > 5).map({True: "high", False: "low"})

    row = json.loads(heart.iloc[[0]].to_json(orient="records"))
    with serving(ONBMACF().fit(heart, model), heart, timeout=5.0) as running, running.client() as client:
        assert client.post("/v1/predict", json={"rows": row}).status_code == 200  # what is done at the start is over
        is_slow.set()
        first = client.post("/v1/explain", json={"rows": row})
        assert (first.status_code, first.json()["title"]) == (503, "Timed out")
        threading.Timer(0.5, comes_back.set).start()
        assert client.post("/v1/predict", json={"rows": row}).status_code == 200
        assert client.get("/healthz").status_code == 200


def test_a_model_that_hangs_is_refused_at_once_and_told_and_recovers(heart):
    """The call that was given up goes on in its thread; as long again later, nobody waits behind it."""
    hangs, comes_back = threading.Event(), threading.Event()

    def model(rows):
        if hangs.is_set():
            comes_back.wait(60)
        return (rows["ldl"] > 5).map({True: "high", False: "low"})

    explainer = ONBMACF().fit(heart, model)
    row = json.loads(heart.iloc[[0]].to_json(orient="records"))
    with serving(explainer, heart, timeout=1.0) as running, running.client() as client:
        assert client.post("/v1/predict", json={"rows": row}).status_code == 200
        hangs.set()
        first = client.post("/v1/predict", json={"rows": row})
        assert (first.status_code, first.json()["title"]) == (503, "Timed out")
        wait_for(lambda: client.post("/v1/predict", json={"rows": row}).json()["title"] == "Model stuck")
        second = client.post("/v1/predict", json={"rows": row})
        assert (second.status_code, second.json()["title"]) == (503, "Model stuck")
        assert second.headers["Retry-After"] == "30"
        assert client.get("/healthz").status_code == 503
        assert client.get("/healthz").text.startswith("stuck")
        hangs.clear()
        comes_back.set()
        wait_for(lambda: client.get("/healthz").status_code == 200)
        assert client.post("/v1/predict", json={"rows": row}).status_code == 200
