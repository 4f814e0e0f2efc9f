"""The anthropic SDK's exceptions, as it raises them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}  # fmt: skip


def ask(url: str) -> object:
    with anthropic.Anthropic(api_key="sk-ant-x", base_url=url, max_retries=0, timeout=patience()) as client:
        return client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])


def listen(url: str) -> None:
    with anthropic.Anthropic(api_key="sk-ant-x", base_url=url, max_retries=0, timeout=patience()) as client:
        messages: Any = [{"role": "user", "content": "hi"}]
        with client.messages.stream(model="m", max_tokens=5, messages=messages) as stream:
            for _ in stream:
                pass


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_a_rate_limit_with_its_type_and_wait(provider: Provider) -> None:
    """Status, error type, message, request id and retry-after are read."""
    provider.says(
        429,
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Number of requests exceeded"}},
        retry_after="7",
        request_id="req_011",
    )
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.code, evidence.provider) == (429, "rate_limit_error", "anthropic")
    assert evidence.retry_after == 7.0
    assert evidence.headers["retry-after"] == "7"
    assert evidence.headers["request-id"] == "req_011"
    assert "Number of requests exceeded" in evidence.text
    assert evidence.exceptions[0] == "anthropic.RateLimitError"
    assert evidence.phase is Phase.CALL


def test_the_stable_code_beside_the_type(provider: Provider) -> None:
    """`error.details.error_code`, where the API sends one, follows the type."""
    error = {"type": "invalid_request_error", "message": "no", "details": {"error_code": "prompt_too_long"}}
    provider.says(400, {"type": "error", "error": error})
    assert seen(raised_by(lambda: ask(provider.url))).code == "invalid_request_error prompt_too_long"


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", ["odd"], {"error": "text"}, {"error": {"type": 5}}])
def test_a_body_of_any_other_shape(provider: Provider, body: object) -> None:
    """A proxy's page, or JSON nobody expected, leaves the status and no code."""
    provider.says(502, body)
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.code) == (502, "")


def test_an_error_event_in_a_stream(provider: Provider) -> None:
    """The stream's 200 is not the error's status; type and message are the error's own."""
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    provider.streams(("message_start", START), ("error", overloaded))
    evidence = seen(raised_by(lambda: listen(provider.url)))
    assert (evidence.status, evidence.code, evidence.phase) == (None, "overloaded_error", Phase.STREAM)
    assert "Overloaded" in evidence.text


def test_a_stream_that_is_cut(provider: Provider) -> None:
    """A connection that ends within an answer is trouble of the stream."""
    provider.streams(("message_start", START), cut=True)
    evidence = seen(raised_by(lambda: listen(provider.url)))
    assert evidence.phase is Phase.STREAM
    assert evidence.status is None
    assert any(name.endswith("RemoteProtocolError") for name in evidence.exceptions)


def test_no_answer_in_time(provider: Provider) -> None:
    """The SDK's timeout, and the transport's behind it."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert evidence.exceptions[0] == "anthropic.APITimeoutError"
    assert any(name.endswith(".ReadTimeout") for name in evidence.exceptions)
    assert evidence.status is None


def test_nobody_listens(refused: str) -> None:
    """Behind "Connection error." stands the transport's errno."""
    evidence = seen(raised_by(lambda: ask(refused)))
    assert evidence.exceptions[0] == "anthropic.APIConnectionError"
    assert evidence.errno == 111
    assert "Connection refused" in evidence.text
