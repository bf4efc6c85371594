"""What answers cross of the model, in the service and on the page: what the library says; nothing of other models."""

import html
import re

import jsonschema
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from onbmacf import ONBMACF, Schema
from serving import serving
from web.test_service import records, strict


@pytest.fixture(scope="module")
def forest(heart):
    steps = make_column_transformer((OneHotEncoder(), ["famhist"]), remainder=StandardScaler())
    model = make_pipeline(steps, RandomForestClassifier(15, max_depth=4, random_state=0))
    labels = {"ldl": {"name": "cholesterol"}}
    schema = Schema.infer(heart, immutable=["age"], labels=labels)
    return ONBMACF().fit(heart, model.fit(heart, heart["ldl"] > 5), schema=schema)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_service_says_what_the_library_says(forest, heart, workers):
    rows = records(heart.head(3))
    expected = forest.explain(pd.DataFrame(rows))
    with serving(forest, heart, workers=workers) as running, running.client() as client:
        answer = client.post("/v1/rules", json={"rows": rows})
        assert answer.text == expected.to_json(rules=True)
        assert client.post("/v1/explain", json={"rows": rows}).text == expected.to_json()
        described = client.get("/v1/openapi.json").json()
        responses = described["paths"]["/v1/rules"]["post"]["responses"]
        schema = responses["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), strict({**schema, "components": described["components"]}))
        said = html.unescape(client.get("/case/r0?ranges=1").text)
    (found,) = answer.json()["answers"][0]["counterfactuals"]
    assert {"ldl"} <= {one["feature"] for one in found["rules"]}
    told = re.search(r"<summary>What the model's rules say</summary><p[^>]*>(.*?)</p>", said)
    assert told[1].startswith("Of the conditions in the model's 15 trees, now hold: ")
    assert "cholesterol" in told[1]


def test_of_other_models_it_says_why_and_the_page_is_silent(client, heart):
    answer = client.post("/v1/rules", json={"rows": records(heart.head(1))})
    assert answer.status_code == 422
    assert "the rules of this model cannot be told: " in answer.json()["detail"]
    assert "rules say" not in client.get("/case/r0?ranges=1").text
