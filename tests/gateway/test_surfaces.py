"""Unrecoverable errors reach the client as the provider sent them, marked not retryable."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.behind import ASK, QUICK, WHOLE, WIRES, Behind, ask

HOPELESS = ["bad_request", "unauthorized", "payment", "forbidden", "not_found", "unprocessable", "quota", "spend_limit"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", HOPELESS)
def test_the_providers_own_error(fault: str, wire: str, stream: bool) -> None:
    """A permanent error is passed on byte for byte after one attempt, without fallback."""
    policy = {"models": ["small", "large"]} if fault not in ("quota", "spend_limit", "payment") else {}
    with Behind([{"fault": fault}], policy=policy) as behind, behind.http() as client:
        path = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}[wire]
        body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": "hi", "stream": stream}
        got = client.post(path, json=body)
        direct = client.post(behind.lab.url + path, json=body)
        assert got.status_code == direct.status_code
        assert _without_id(got.content) == _without_id(direct.content)
        assert got.headers["x-should-retry"] == "false"
        assert got.headers["x-rung-outcome"] == "failed"
        assert [call.model for call in behind.lab.calls] == ["small", "small"]


def _without_id(body: bytes) -> Any:
    found = json.loads(body)
    found.pop("request_id", None)
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_when_all_is_spent(stream: bool) -> None:
    """After the last attempt the SDKs go on with their own retries, then raise their usual exception."""
    with Behind([{"fault": "overloaded"}]) as behind:
        client = behind.claude().with_options(max_retries=1)
        with pytest.raises(anthropic.APIStatusError) as caught:
            client.messages.create(model="small", max_tokens=500, messages=ASK, stream=stream)
        assert caught.value.status_code == 529
        assert behind.attempts == 8
        assert "x-should-retry" not in caught.value.response.headers
        assert caught.value.response.headers["x-rung-attempts"] == "4"
        assert caught.value.response.headers["x-rung-failure"] == "overloaded"


def test_nobody_there() -> None:
    """An unreachable upstream is an error in the API's format with a matching status."""
    with Behind(anthropic="http://127.0.0.1:9", openai="http://127.0.0.1:9") as behind:
        with pytest.raises(anthropic.APIStatusError) as caught:
            behind.claude().messages.create(model="small", max_tokens=500, messages=ASK)
        assert caught.value.status_code == 502
        assert caught.value.body["error"]["type"] == "api_error"  # type: ignore[index]
        with pytest.raises(openai.APIStatusError) as other:
            behind.gpt().chat.completions.create(model="small", messages=ASK)
        assert other.value.status_code == 502
        assert behind.http().get("/v1/files").status_code == 502


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_refusal_passes(wire: str, stream: bool) -> None:
    """A refusal is an answer: it is passed on unchanged after one attempt."""
    with Behind([{"fault": "refusal"}]) as behind:
        got = ask(behind, wire, stream=stream)
        assert behind.attempts == 1
        assert got.stop in ("refusal", "content_filter", "completed", "incomplete", "stop")


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_keeps_breaking(wire: str) -> None:
    """A stream that cannot be resumed ends with an error, never as if complete."""
    path = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}[wire]
    body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK[0]["content"], "stream": True}
    with Behind([{"fault": "cut", "after": 3}], words=200) as behind, behind.http() as client:
        text = client.post(path, json=body).text
        assert "error" in text.strip().rpartition("\n\n")[2]
        assert "message_stop" not in text
        assert "[DONE]" not in text
        assert "response.completed" not in text
        assert behind.attempts == 1 + QUICK["retries"]


def test_a_cut_that_cannot_be_resumed_is_the_providers_own() -> None:
    """An answer that ended at the output limit and cannot be resumed is passed on with its stop reason."""
    rules = [{"fault": "max_tokens", "after": 5, "request": 1}, {"fault": "server_error"}]
    for stream in (False, True):
        with Behind(rules) as behind:
            got = ask(behind, "messages", stream=stream)
            assert got.text == "apple1 apple2 apple3 apple4 apple5"
            assert got.stop == "max_tokens"


def test_a_limit_that_was_meant() -> None:
    """A request with a small output limit is not resumed."""
    with Behind() as behind:
        got = ask(behind, "messages", stream=False, max_tokens=3)
        assert (got.stop, behind.attempts) == ("max_tokens", 1)
        assert got.text == "apple1 apple2 apple3"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_limit_above_the_models_own(wire: str, stream: bool) -> None:
    """If the model rejects a raised output limit, the answer is resumed under the original limit."""
    limit = {"messages": "max_tokens", "chat": "max_completion_tokens", "responses": "max_output_tokens"}[wire]
    with Behind([{"fault": "max_tokens", "after": 10, "request": 1}], max_output=500) as behind:
        got = ask(behind, wire, stream=stream, **{limit: 400})
        assert got.text == WHOLE
        assert behind.attempts == (2 if stream else 3)
