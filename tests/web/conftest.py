"""One service about the heart table for all tests that only ask."""

import pytest

for library in ("fastapi", "uvicorn", "httpx", "jinja2", "matplotlib", "multipart", "prometheus_client"):
    pytest.importorskip(library, reason="needs the extra 'web'")

from serving import serving  # noqa: E402


@pytest.fixture(scope="session")
def heart_explainer():
    """The explainer of `onbmacf serve` without a table."""
    from onbmacf import ONBMACF, Schema
    from onbmacf.cli.inputs import labelled_heart
    from onbmacf.datasets import heart_network

    table, labels = labelled_heart()
    model = heart_network().fit(table, labels)
    return ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))


@pytest.fixture(scope="session")
def running(heart_explainer, heart, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    with serving(heart_explainer, heart, "healthy", "heart.csv", folder=folder) as found:
        yield found


@pytest.fixture
def client(running):
    with running.client() as found:
        yield found
