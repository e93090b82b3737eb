"""Requests made from the interface's own document, valid and not: never an error inside the server, never a hang."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from ouzel.serve.api_error import FAILED
from serve_case import served, toy_voice

ROUTES = {"speech": "/v1/audio/speech", "batch": "/v1/audio/speech/batch"}


@pytest.fixture(scope="module")
def server():
    with toy_voice() as voice, served(voice) as found:
        yield found
        found.wait_idle()


# Not by its pytest plug-in, which does not know the pytest of today.
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("route", ROUTES)
def test_no_request_breaks_the_server(server, route, mode):
    operation = schemathesis.openapi.from_url(server.url + "/openapi.json")[ROUTES[route]]["POST"]
    statuses = set()

    @settings(max_examples=15, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        answer = case.call(timeout=60)
        statuses.add(answer.status_code)
        assert answer.status_code != 500 or FAILED not in answer.text
        if answer.status_code >= 400:
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}

    ask()
    assert statuses & ({200, 400, 404} if mode is GenerationMode.POSITIVE else {400, 404})
