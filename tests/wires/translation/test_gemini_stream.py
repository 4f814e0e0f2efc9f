"""Streams of Gemini's wire: read however they are split, and written."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.wires.translation.answer import (
    AnswerEvent,
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    ForeignBlock,
    ReasoningDelta,
    RefusalDelta,
    Started,
    Stop,
    StreamFailed,
    TextDelta,
    Usage,
)
from rung.wires.translation.conversation import Conversation, Family
from rung.wires.translation.gemini_events import GeminiStreamReader, GeminiStreamWriter

FEW = settings(deadline=None, max_examples=60)
CLIENT = Conversation(family=Family.GEMINI, model="gemini-3-pro")
USAGE = {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6}


def event(*parts: Any, reason: str = "", usage: Any = USAGE, **more: Any) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    data = {"candidates": [candidate], "responseId": "r1", "modelVersion": "gemini-3-pro", **more}
    if usage:
        data["usageMetadata"] = usage
    return f"data: {json.dumps(data)}\r\n\r\n".encode()


def read(*chunks: bytes) -> list[AnswerEvent]:
    reader = GeminiStreamReader()
    return [found for chunk in chunks for found in reader.feed(chunk)]


def written(*events: AnswerEvent) -> tuple[list[Any], GeminiStreamWriter]:
    writer = GeminiStreamWriter(CLIENT)
    text = b"".join(writer.write([each]) for each in events).decode()
    assert text == "" or text.endswith("\n\n")
    return [json.loads(block.removeprefix("data: ")) for block in text.split("\n\n") if block], writer


STREAM = b"".join(
    [
        event({"text": "hm", "thought": True}),
        event({"text": "hel"}, {"text": "lo ✓"}),
        event({"functionCall": {"name": "read", "args": {"a": 1}}, "thoughtSignature": "c2ln"}),
        event({"functionCall": {"name": "read", "args": {}, "id": "x"}}, {"executableCode": {"code": "1"}}),
        event({"text": "bye"}),
        event({"text": "", "thoughtSignature": "c2ln"}, reason="STOP", usage={**USAGE, "thoughtsTokenCount": 3}),
    ]
)
EVENTS = [
    Started(id="r1", model="gemini-3-pro", usage=Usage(input=4, output=2)),
    ReasoningDelta(text="hm"),
    TextDelta(text="hel"),
    TextDelta(text="lo ✓"),
    CallStarted(index=0, id="gemini_r1_0", name="read"),
    CallDelta(index=0, json='{"a":1}'),
    CallEnded(index=0),
    CallStarted(index=1, id="x", name="read"),
    CallDelta(index=1, json="{}"),
    CallEnded(index=1),
    ForeignBlock(kind="executable_code"),
    TextDelta(text="bye", block=1),
    Ended(stop=Stop.TOOL_CALLS, usage=Usage(input=4, output=5, reasoning=3)),
]


@FEW
@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=9))
def test_a_stream_is_the_same_however_it_is_split(cuts: list[int]) -> None:
    """The events do not depend on where the bytes are split."""
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[start:end] for start, end in pairwise(edges))) == EVENTS


def test_an_end_without_usage_waits_for_it() -> None:
    """The usage may follow the end; the end of the transfer ends the waiting."""
    reader = GeminiStreamReader()
    assert len(reader.feed(event({"text": "a"}, reason="STOP", usage=None))) == 2
    assert reader.feed(b'data: {"usageMetadata": {"promptTokenCount": 9}}\n\n') == [
        Ended(stop=Stop.END, usage=Usage(input=9))
    ]
    assert reader.finish() == []
    assert reader.feed(event({"text": "late"})) == []
    reader = GeminiStreamReader()
    reader.feed(event({"text": "a"}, reason="MAX_TOKENS", usage=None))
    assert reader.finish() == [Ended(stop=Stop.MAX_TOKENS)]


def test_a_stream_that_breaks_off_has_no_end() -> None:
    """Without a finish reason there is no end, also at the end of the transfer."""
    reader = GeminiStreamReader()
    reader.feed(event({"text": "a"}))
    assert reader.finish() == []


def test_a_blocked_prompt_in_a_stream() -> None:
    """A blocked prompt is a refusal."""
    data = {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "no"}, "usageMetadata": USAGE}
    found = read(f"data: {json.dumps(data)}\n\n".encode())
    assert found[1:] == [RefusalDelta(text="no"), Ended(stop=Stop.REFUSAL, usage=Usage(input=4, output=2))]


@pytest.mark.parametrize("is_list", [False, True])
def test_an_error_in_a_stream(is_list: bool) -> None:
    """An error object fails the stream, also in a list; nothing follows it."""
    error = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    data = json.dumps([error] if is_list else error)
    found = read(event({"text": "a"}), f"data: {data}\n\n".encode(), event({"text": "b"}, reason="STOP"))
    assert found[-1] == StreamFailed(name="error", data=json.dumps(error, separators=(",", ":")))


@pytest.mark.parametrize("data", [b"{", b"5", b'["a"]', b"[" * 100_000])
def test_an_invalid_event(data: bytes) -> None:
    """An event that is not a JSON object raises ValueError."""
    with pytest.raises(ValueError):
        read(b"data: " + data + b"\n\n")


def test_a_written_stream() -> None:
    """Texts are written at once, calls when they are complete, and the last event has the reason and the usage."""
    chunks, writer = written(
        Started(id="msg_1", model="claude"),
        ReasoningDelta(text="hm"),
        TextDelta(text="hello"),
        CallStarted(index=0, id="t1", name="read"),
        CallStarted(index=1, id="t2", name="now"),
        CallDelta(index=0, json='{"a"'),
        CallDelta(index=0, json=":1}"),
        CallEnded(index=0),
        CallEnded(index=1),
        ForeignBlock(kind="web_search_result"),
        Ended(stop=Stop.TOOL_CALLS, usage=Usage(input=3, output=4)),
        TextDelta(text="late"),
    )
    head = {"responseId": "msg_1", "modelVersion": "claude"}
    assert all({**chunk, **head} == chunk for chunk in chunks)
    parts = [chunk["candidates"][0]["content"]["parts"][0] for chunk in chunks]
    assert parts == [
        {"text": "hello"},
        {
            "functionCall": {"id": "t1", "name": "read", "args": {"a": 1}},
            "thoughtSignature": "skip_thought_signature_validator",
        },
        {"functionCall": {"id": "t2", "name": "now", "args": {}}},
        {"text": ""},
    ]
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None, None, None, "STOP"]
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] == 7
    assert writer.dropped == {"reasoning", "web_search_result"}


def test_an_incomplete_call_is_not_written() -> None:
    """Gemini has whole calls only: an incomplete one is dropped, a malformed one ends the answer."""
    started = CallStarted(index=0, id="t", name="read")
    chunks, writer = written(started, CallDelta(index=0, json="{"), Ended(stop=Stop.MAX_TOKENS))
    assert len(chunks) == 1
    assert writer.dropped == {"incomplete_call"}
    chunks, _ = written(started, CallDelta(index=0, json="{"), CallEnded(index=0), Ended(stop=Stop.TOOL_CALLS))
    assert [chunk["candidates"][0]["finishReason"] for chunk in chunks] == ["MALFORMED_FUNCTION_CALL"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            {"code": 503, "message": "busy", "status": "UNAVAILABLE"},
        ),
        (
            {"response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}}},
            {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"},
        ),
        (
            {"error": {"code": 500, "message": "x", "status": "INTERNAL", "details": []}},
            {"code": 500, "message": "x", "status": "INTERNAL", "details": []},
        ),
        ({"error": {"code": ["odd"], "type": {}}}, None),
        ("no JSON", None),
    ],
)
def test_a_written_error(data: Any, error: Any) -> None:
    """An error of any wire is written in Google's format, and ends the stream."""
    text = data if isinstance(data, str) else json.dumps(data)
    chunks, _ = written(TextDelta(text="a"), StreamFailed(name="error", data=text), Ended(stop=Stop.END))
    assert chunks[1:] == [{"error": error or {"code": 500, "message": text, "status": "INTERNAL"}}]


TEXTS = st.text(min_size=1, max_size=9)
CALLS = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)


@FEW
@given(content=st.lists(TEXTS | CALLS, max_size=6), stop=st.sampled_from([Stop.END, Stop.MAX_TOKENS]))
def test_a_written_stream_is_read_again(content: list[Any], stop: Stop) -> None:
    """What is written is read as the same texts, calls, end and usage."""
    events: list[AnswerEvent] = [Started(id="r", model="m")]
    calls = 0
    for item in content:
        if isinstance(item, str):
            events.append(TextDelta(text=item))
        else:
            events += [
                CallStarted(index=calls, id=f"c{calls}", name="read"),
                CallDelta(index=calls, json=json.dumps(item, separators=(",", ":"), ensure_ascii=False)),
                CallEnded(index=calls),
            ]
            calls += 1
    ended = Ended(stop=Stop.TOOL_CALLS if calls and stop is Stop.END else stop, usage=Usage(input=1, output=2))
    found = read(GeminiStreamWriter(CLIENT).write([*events, ended]))
    if content:
        texts = [event.text for event in found if isinstance(event, TextDelta)]
        assert texts == [item for item in content if isinstance(item, str)]
        assert [each for each in found if isinstance(each, CallStarted | CallDelta | CallEnded)] == [
            each for each in events if isinstance(each, CallStarted | CallDelta | CallEnded)
        ]
    assert found[-1] == ended
