"""The binary event stream of Bedrock becomes the server-sent events of Anthropic."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from anthropic import AnthropicBedrock
from hypothesis import given
from hypothesis import strategies as st

from rung.adapters.errors.sse import read_event
from rung.core.classify.classifier import classify
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.upstream.bedrock_stream import FrameDecoder
from rung.gateway.upstream.make_provider import make_provider
from rung.wires.sse import EventReader
from tests.gateway.upstream.event_frames import chunk_frame, exception_frame, frame
from tests.gateway.upstream.requests_seen import send_to, upstream_of
from tests.security.upstream.raw_upstream import RawUpstream, http_answer

BODY = {"model": "anthropic.claude-x", "max_tokens": 5, "stream": True, "messages": []}
STREAM_HEADER = "content-type: application/vnd.amazon.eventstream"
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße\n\U0001f600"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"outputTokenCount": 3}},
]


def events_in(data: bytes) -> list[tuple[str, Any]]:
    return [(event.name.decode(), json.loads(event.data)) for event in EventReader().feed(data)]


@given(
    events=st.lists(st.sampled_from(EVENTS), max_size=5),
    cuts=st.lists(st.integers(0, 3_000), max_size=8),
    indent=st.sampled_from([None, 2]),
)
def test_any_chunking(events: list[dict[str, Any]], cuts: list[int], indent: int | None) -> None:
    """Every event comes once, in order and unchanged, however the bytes of the frames are split."""
    data = b"".join(chunk_frame(event, indent=indent) for event in events)
    decoder, bounds = FrameDecoder(), sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    decoded = b"".join(decoder.feed(data[a:b]) for a, b in pairwise(bounds))
    assert events_in(decoded) == [(event["type"], event) for event in events]
    assert not decoder.is_inside_frame


def test_frames_without_an_event() -> None:
    """A frame of another kind gives nothing."""
    assert FrameDecoder().feed(frame(b"{}", event_type="initial-response", message_type="event")) == b""


@pytest.mark.parametrize(
    ("code", "message", "kind", "retryable"),
    [
        ("throttlingException", "Too many requests, please wait before trying again.", Kind.RATE_LIMIT, True),
        ("serviceUnavailableException", "x", Kind.OVERLOADED, True),
        ("modelStreamErrorException", "An error occurred while streaming.", Kind.SERVER_ERROR, True),
        ("internalServerException", "x", Kind.SERVER_ERROR, True),
        ("modelTimeoutException", "x", Kind.TIMEOUT, True),
        ("validationException", "Input is too long for requested model.", Kind.CONTEXT_LIMIT, False),
        ("validationException", "max_tokens: must be >= 1", Kind.INVALID_REQUEST, False),
    ],
)
def test_exceptions(code: str, message: str, kind: Kind, retryable: bool) -> None:
    """An exception inside the stream is an error event whose kind the classifier reads."""
    ((name, data),) = events_in(FrameDecoder().feed(exception_frame(code, message=message)))
    assert (name, data) == ("error", {"type": "error", "error": {"type": code, "message": message}})
    evidence = read_event(name, json.dumps(data))
    assert evidence is not None
    failure = classify(evidence)
    assert (failure.kind, failure.retryable) == (kind, retryable)


def test_what_the_model_reported() -> None:
    """The original message of a failed model is part of the error event; without any message, the code is."""
    decoder = FrameDecoder()
    said = exception_frame("modelStreamErrorException", message="failed", originalMessage="Overloaded")
    silent = frame(b"", error_code="internalError", message_type="error")
    (_, first), (_, second) = events_in(decoder.feed(said + silent))
    assert first["error"]["message"] == "failed: Overloaded"
    assert second["error"] == {"type": "internalError", "message": "internalError"}


def ask(*pieces: bytes, headers: str = STREAM_HEADER, status: str = "200 OK") -> bytes:
    """Return what the gateway reads when Bedrock answers with these pieces."""
    whole = http_answer(b"".join(pieces), headers, status=status)
    with RawUpstream(lambda _: [whole[at : at + 50] for at in range(0, len(whole), 50)]) as bedrock:
        row = {"type": "bedrock", "url": bedrock.url, "region": "us-east-1", "key_env": "UPSTREAM_KEY"}
        return asyncio.run(send_to(make_provider(upstream_of(**row)), "messages", BODY))


def test_a_stream_over_http() -> None:
    """The frames of a response are read as events."""
    assert [name for name, _ in events_in(ask(*map(chunk_frame, EVENTS)))] == [event["type"] for event in EVENTS]


def test_what_the_sdk_reads() -> None:
    """AnthropicBedrock reads the same events from the same frames."""
    frames = b"".join(map(chunk_frame, EVENTS))
    with RawUpstream(http_answer(frames, STREAM_HEADER)) as bedrock:
        client = AnthropicBedrock(aws_region="us-east-1", api_key="k", base_url=bedrock.url, max_retries=0)
        stream = client.messages.create(
            model="anthropic.claude-x", max_tokens=5, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        theirs = [event.type for event in stream]
    assert theirs == [name for name, _ in events_in(ask(frames))]


@pytest.mark.parametrize("cut", [1, 11, 60, 200])
def test_a_stream_that_breaks_inside_a_frame(cut: int) -> None:
    """The end of the data inside a frame interrupts the stream."""
    frames = b"".join(map(chunk_frame, EVENTS))
    with pytest.raises(AttemptError) as caught:
        asyncio.run(_read_all(frames[:-cut]))
    assert classify(caught.value.evidence).kind is Kind.STREAM_INTERRUPTED


async def _read_all(data: bytes) -> None:
    row = {"type": "bedrock", "url": "http://127.0.0.1:9", "region": "us-east-1", "key_env": "UPSTREAM_KEY"}
    response = make_provider(upstream_of(**row)).wrap(_Received(data))
    while await response.read_chunk():
        pass


class _Received:
    """A response that was received in two parts."""

    def __init__(self, data: bytes) -> None:
        self.status = 200
        self.raw_headers = [(b"content-type", b"application/vnd.amazon.eventstream"), (b"content-length", b"1")]
        self._parts = [data[:100], data[100:]]

    @property
    def ended(self) -> bool:
        return not self._parts

    async def read_chunk(self) -> bytes:
        return self._parts.pop(0) if self._parts else b""

    def close(self) -> None:
        self._parts.clear()


@pytest.mark.parametrize(
    "damaged",
    [
        chunk_frame(EVENTS[0])[:-1] + b"\0",
        b"HTTP is not this format at all",
        frame(b"no json", content_type="x" * 3)[:12] + b"\xff" * 40,
        frame(b"no json", event_type="chunk", message_type="event"),
        frame(b'{"bytes": "!"}', event_type="chunk", message_type="event"),
        frame(b"{}", event_type="chunk", message_type="event"),
        frame(b"[]", event_type="chunk", message_type="event"),
    ],
)
def test_damaged_frames(damaged: bytes) -> None:
    """A frame with a wrong checksum or without an event interrupts the stream."""
    with pytest.raises(AttemptError) as caught:
        FrameDecoder().feed(damaged)
    assert classify(caught.value.evidence).kind is Kind.STREAM_INTERRUPTED


def test_other_answers_are_unchanged() -> None:
    """A whole answer and an error keep their bytes and their headers."""
    assert ask(b'{"id": 1}', headers="content-type: application/json") == b'{"id": 1}'
    assert ask(b'{"message": "x"}', status="429 Too Many Requests") == b'{"message": "x"}'
