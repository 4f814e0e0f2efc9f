"""The exceptions of google-genai and google-api-core, as they raise them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider

QUOTA = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerMinute"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"},
        ],
    }
}
PIECE = {"candidates": [{"content": {"parts": [{"text": "hel"}], "role": "model"}, "index": 0}]}


def client_at(url: str) -> genai.Client:
    return genai.Client(
        api_key="x", http_options=types.HttpOptions(base_url=url, timeout=int(1_000 * patience()))
    )  # milliseconds


def ask(url: str) -> object:
    with client_at(url) as client:
        return client.models.generate_content(model="gemini-x", contents="hi")


def listen(url: str) -> None:
    with client_at(url) as client:
        for _ in client.models.generate_content_stream(model="gemini-x", contents="hi"):
            pass


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_a_quota_with_its_reason_and_wait(provider: Provider) -> None:
    """Status by number and by name, the reason, and the wait that stands in the body."""
    provider.says(429, QUOTA)
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert evidence.status == 429
    assert evidence.code == "RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED"
    assert evidence.retry_after == 34.5
    assert evidence.provider == "google"
    assert "You exceeded your current quota" in evidence.text
    assert evidence.exceptions[0] == "google.genai.errors.ClientError"
    assert evidence.phase is Phase.CALL


def test_a_page_of_a_proxy(provider: Provider) -> None:
    """Without JSON the SDK puts the reason phrase where the status's name would be."""
    provider.says(502, b"<html>bad gateway</html>", retry_after="2")
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.retry_after) == (502, 2.0)
    assert "bad gateway" in evidence.text


def test_an_error_in_a_stream(provider: Provider) -> None:
    """An error among the events: its own status, and the stream's phase."""
    provider.streams(("", PIECE), ("", QUOTA))
    evidence = seen(raised_by(lambda: listen(provider.url)))
    assert (evidence.status, evidence.phase, evidence.retry_after) == (429, Phase.STREAM, 34.5)


def test_a_refused_stream_is_not_a_broken_one(provider: Provider) -> None:
    """A stream that never began fails in the call."""
    provider.says(429, QUOTA)
    assert seen(raised_by(lambda: listen(provider.url))).phase is Phase.CALL


def test_a_cut_stream(provider: Provider) -> None:
    """The SDK lets the transport's exception through."""
    provider.streams(("", PIECE), cut=True)
    assert seen(raised_by(lambda: listen(provider.url))).phase is Phase.STREAM


def test_no_answer_in_time(provider: Provider) -> None:
    """The SDK lets the transport's timeout through."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert any(name.endswith(".ReadTimeout") for name in evidence.exceptions)


def test_nobody_listens(refused: str) -> None:
    """The SDK lets the transport's refusal through."""
    assert seen(raised_by(lambda: ask(refused))).errno == 111


def test_a_continuation_that_broke_off() -> None:
    """It says of itself that output was made before it failed."""
    kind = getattr(errors, "ContinuationInterruptedError", None)
    if kind is None:
        pytest.skip("this google-genai has no such error")
    assert seen(kind("interrupted")).output_started


def test_a_rest_error_of_api_core(provider: Provider) -> None:
    """google-api-core keeps the details of a REST answer as mappings."""
    exceptions = pytest.importorskip("google.api_core.exceptions")
    requests = pytest.importorskip("requests")
    provider.says(429, QUOTA, retry_after="1")
    with requests.post(provider.url, timeout=60) as response:
        error: Any = exceptions.from_http_response(response)
    evidence = seen(error)
    assert (evidence.status, evidence.retry_after) == (429, 34.5)
    assert "RATE_LIMIT_EXCEEDED" in evidence.code
    assert "google.api_core.exceptions.TooManyRequests" in evidence.exceptions


def test_a_grpc_error_of_api_core() -> None:
    """google-api-core keeps the details of a gRPC answer as protobuf messages."""
    exceptions = pytest.importorskip("google.api_core.exceptions")
    protos = pytest.importorskip("google.rpc.error_details_pb2")
    durations = pytest.importorskip("google.protobuf.duration_pb2")
    details = [
        protos.RetryInfo(retry_delay=durations.Duration(seconds=3, nanos=500_000_000)),
        protos.ErrorInfo(reason="RATE_LIMIT_EXCEEDED"),
    ]
    evidence = seen(exceptions.ResourceExhausted("quota", details=details))
    assert (evidence.status, evidence.retry_after) == (429, 3.5)
    assert "RATE_LIMIT_EXCEEDED" in evidence.code.split()
