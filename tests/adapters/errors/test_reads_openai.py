"""The openai SDK's exceptions, as it raises them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pydantic
import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider

MESSAGES: Any = [{"role": "user", "content": "hi"}]
CHUNK = {
    "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
    "choices": [{"index": 0, "delta": {"content": "hel"}, "finish_reason": None}],
}  # fmt: skip


class Answer(pydantic.BaseModel):
    total: int


def client_at(url: str) -> openai.OpenAI:
    return openai.OpenAI(api_key="sk-x", base_url=f"{url}/v1", max_retries=0, timeout=patience())


def ask(url: str) -> object:
    with client_at(url) as client:
        return client.chat.completions.create(model="m", messages=MESSAGES)


def listen(url: str) -> None:
    with client_at(url) as client, client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        for _ in stream:
            pass


def parse(url: str) -> object:
    with client_at(url) as client:
        return client.chat.completions.parse(model="m", messages=MESSAGES, response_format=Answer)


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_type_and_code_of_a_bad_request(provider: Provider) -> None:
    """Both words the API sends, its message, and its request id."""
    error = {
        "message": "This model's maximum context length is 8192 tokens.",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
    }  # fmt: skip
    provider.says(400, {"error": error}, x_request_id="req_2")
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert evidence.status == 400
    assert evidence.code == "invalid_request_error context_length_exceeded"
    assert evidence.provider == "openai"
    assert evidence.headers["x-request-id"] == "req_2"
    assert "maximum context length is 8192" in evidence.text
    assert evidence.exceptions[0] == "openai.BadRequestError"


def test_a_rate_limit_with_its_wait(provider: Provider) -> None:
    """A code that repeats the type is said once; retry-after is read."""
    provider.says(429, {"error": {"message": "slow", "type": "tokens", "code": "tokens"}}, retry_after="20")
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.code, evidence.retry_after) == (429, "tokens", 20.0)


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", [{"error": {"code": 429}}], {"error": "text"}])
def test_a_body_of_any_other_shape(provider: Provider, body: object) -> None:
    """A proxy's page, or JSON nobody expected, is quoted."""
    provider.says(502, body)
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.code) == (502, "")
    assert any(word in evidence.text for word in ("Bad Gateway", '"code": 429', "429", "text"))


@pytest.mark.parametrize(("code", "status"), [(502, 502), ("server_error", None), (7, None)])
def test_an_error_in_a_stream(provider: Provider, code: object, status: int | None) -> None:
    """An error chunk after the first text: its phase is the stream; a status some services put into the code."""
    provider.streams(("", CHUNK), ("", {"error": {"message": "Provider returned error", "type": "x", "code": code}}))
    evidence = seen(raised_by(lambda: listen(provider.url)))
    assert (evidence.status, evidence.phase) == (status, Phase.STREAM)
    assert evidence.code == f"x {code}"
    assert "Provider returned error" in evidence.text


@pytest.mark.parametrize("ending", ["cut", "reset"])
def test_a_stream_that_breaks(provider: Provider, ending: str) -> None:
    """A connection that ends within an answer; a reset shows its errno instead."""
    provider.streams(("", CHUNK), cut=ending == "cut", reset=ending == "reset")
    evidence = seen(raised_by(lambda: listen(provider.url)))
    assert evidence.status is None
    if ending == "cut":
        assert evidence.phase is Phase.STREAM
    else:
        assert evidence.errno == 104


def test_no_answer_in_time(provider: Provider) -> None:
    """The SDK's timeout, and the transport's behind it."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert evidence.exceptions[0] == "openai.APITimeoutError"
    assert any(name.endswith(".ReadTimeout") for name in evidence.exceptions)


def test_nobody_listens(refused: str) -> None:
    """Behind "Connection error." stands the transport's errno."""
    evidence = seen(raised_by(lambda: ask(refused)))
    assert evidence.exceptions[0] == "openai.APIConnectionError"
    assert evidence.errno == 111


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_cannot_be_parsed(provider: Provider, reason: str) -> None:
    """The finish reason is the code, what was written so far is the output."""
    choice = {"index": 0, "message": {"role": "assistant", "content": '{"total":'}, "finish_reason": reason}
    provider.says(200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
    error = raised_by(lambda: parse(provider.url))
    evidence = seen(error)
    assert (evidence.code, evidence.phase) == (reason, Phase.RESULT)
    if reason == "length" or hasattr(error, "completion"):  # 2.x does not keep a filtered answer
        assert evidence.output == '{"total":'
