"""Event streams of Anthropic's Messages API are read however they are split, and written as strict parsers demand."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.wires.anthropic_stream import PING
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
from rung.wires.translation.anthropic_events import AnthropicStreamReader, AnthropicStreamWriter
from rung.wires.translation.conversation import Conversation, Family
from rung.wires.wire_json import named_event
from tests.wires.strict import streamed

CLIENT = Conversation(family=Family.ANTHROPIC, model="claude")
START = Started(id="msg_1", model="claude", usage=Usage(input=5, cache_read=7, output=1))
END = Ended(stop=Stop.END, usage=Usage(input=5, cache_read=7, output=20))


def event(kind: str, **fields: Any) -> bytes:
    return named_event(kind, {"type": kind, **fields})


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    events = [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    start = event("content_block_start", index=index, content_block=content)
    return start + b"".join(events) + event("content_block_stop", index=index)


MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1},
}
STREAM = b"".join(
    [
        event("message_start", message=MESSAGE),
        PING,
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "s"},
        ),
        block(
            1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hé"}, {"type": "text_delta", "text": "🙂"}
        ),
        block(2, {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []}),
        block(3, {"type": "text", "text": "more"}, {"type": "citations_delta", "citation": {"type": "char_location"}}),
        event("event_of_tomorrow", anything=1),
        block(
            4,
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"a":'},
            {"type": "input_json_delta", "partial_json": "1}"},
        ),
        block(5, {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {"whole": True}}),
        event("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 20}),
        event("message_stop"),
    ]
)
EVENTS: list[AnswerEvent] = [
    START,
    ReasoningDelta(text="hm"),
    TextDelta(text="Hé"),
    TextDelta(text="🙂"),
    ForeignBlock(kind="web_search_tool_result"),
    TextDelta(text="more", block=1),
    ForeignBlock(kind="citations"),
    CallStarted(index=0, id="toolu_1", name="f"),
    CallDelta(index=0, json='{"a":'),
    CallDelta(index=0, json="1}"),
    CallEnded(index=0),
    CallStarted(index=1, id="toolu_2", name="g"),
    CallDelta(index=1, json='{"whole":true}'),
    CallEnded(index=1),
    Ended(stop=Stop.TOOL_CALLS, usage=Usage(input=5, cache_read=7, output=20)),
]


def write(*events: AnswerEvent) -> tuple[list[dict[str, Any]], set[str]]:
    writer = AnthropicStreamWriter(CLIENT)
    text = b"".join(writer.write([event]) for event in events).decode()
    datas = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return [json.loads(data) for data in datas], writer.dropped


def told(events: list[dict[str, Any]]) -> list[str]:
    """The order of events, in short."""
    return [f"{each['type']} {each['index']}" if "index" in each else each["type"] for each in events]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_read_however_it_is_split(cuts: list[int]) -> None:
    """The events are the same wherever the bytes are split."""
    reader = AnthropicStreamReader()
    places = [0, *sorted(cuts), len(STREAM)]
    found = [each for start, end in pairwise(places) for each in reader.feed(STREAM[start:end])]
    assert found == EVENTS


@pytest.mark.parametrize("length", range(0, len(STREAM) - 1, 97))
def test_broken_stream_does_not_end(length: int) -> None:
    """A stream that breaks off has no end, and its writer writes none."""
    found = AnthropicStreamReader().feed(STREAM[:length])
    assert not any(isinstance(each, Ended) for each in found)
    assert b"message_stop" not in AnthropicStreamWriter(CLIENT).write(found)


@pytest.mark.parametrize(("is_stopped", "count"), [(True, 1), (False, 0)])
def test_end_without_its_marker(is_stopped: bool, count: int) -> None:
    """At the regular end of a transfer, a stop reason ends the message even if message_stop did not come."""
    reader = AnthropicStreamReader()
    reader.feed(STREAM[: STREAM.index(b"event: message_stop" if is_stopped else b"event: message_delta")])
    assert reader.finish() == EVENTS[-1:] * count
    assert reader.finish() == []


def test_error_event_is_read() -> None:
    """An error is given with its name and its data, and nothing after it is read."""
    data = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    raw = f"event: error\ndata: {data}\n\n".encode()
    assert AnthropicStreamReader().feed(raw + STREAM) == [StreamFailed(name="error", data=data)]


@pytest.mark.parametrize("data", ["{", "NaN", "[" * 100_000])
def test_invalid_json_is_an_error(data: str) -> None:
    """An event that is not JSON raises ValueError."""
    with pytest.raises(ValueError):
        AnthropicStreamReader().feed(f"event: ping\ndata: {data}\n\n".encode())


def test_any_json_event_is_read() -> None:
    """Events of other shapes are ignored."""
    reader = AnthropicStreamReader()
    odd: list[Any] = [
        1,
        None,
        [],
        {"type": []},
        {"type": "content_block_delta", "index": []},
        {"type": "message_delta"},
    ]
    assert reader.feed("".join(f"data: {json.dumps(each)}\n\n" for each in odd).encode()) == []


def test_start_is_written_at_once() -> None:
    """The message starts with its usage before there is content."""
    (found,), _ = write(START)
    assert found["message"] | {"usage": None} == {**MESSAGE, "usage": None}
    assert (found["message"]["usage"]["input_tokens"], found["message"]["usage"]["cache_read_input_tokens"]) == (5, 7)


def test_blocks_follow_each_other() -> None:
    """Text after a call opens a new block; indexes count up; an answer with calls ends with tool_use."""
    found, dropped = write(
        START,
        ReasoningDelta(text="hm"),
        TextDelta(text="a"),
        TextDelta(text="b"),
        TextDelta(text="c", block=1),
        CallStarted(index=0, id="call.1", name="f"),
        CallDelta(index=0, json="{}"),
        CallEnded(index=0),
        TextDelta(text="d", block=1),
        END,
    )
    blocks = [(0, 2), (1, 1), (2, 1), (3, 1)]
    assert told(found) == [
        "message_start",
        *[
            f"content_block_{kind} {index}"
            for index, deltas in blocks
            for kind in ("start", *["delta"] * deltas, "stop")
        ],
        "message_delta",
        "message_stop",
    ]
    assert found[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert found[-2]["usage"]["output_tokens"] == 20
    assert dropped == {"reasoning"}


def test_interleaved_calls_are_put_in_order() -> None:
    """Parallel calls whose arguments come mixed are written one after the other, and nothing of them is lost."""
    found, _ = write(
        START,
        CallStarted(index=0, id="a", name="f"),
        CallStarted(index=1, id="b", name="g"),
        CallDelta(index=1, json='{"b":'),
        CallDelta(index=0, json='{"a":1}'),
        TextDelta(text="after"),
        CallDelta(index=1, json="2}"),
        CallEnded(index=1),
        CallEnded(index=0),
        END,
    )
    deltas = [each["delta"] for each in found if each["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "input_json_delta", "partial_json": '{"a":1}'},
        {"type": "input_json_delta", "partial_json": '{"b":2}'},
        {"type": "text_delta", "text": "after"},
    ]
    assert [each["index"] for each in found if "index" in each] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_refusal_is_text() -> None:
    """A refusal is a block of text, and the answer ends with refusal."""
    found, _ = write(START, TextDelta(text="Well"), RefusalDelta(text="No"), RefusalDelta(text="."), END)
    assert [each["delta"].get("text") for each in found if each["type"] == "content_block_delta"] == ["Well", "No", "."]
    assert found[-2]["delta"]["stop_reason"] == "refusal"


def test_foreign_content_is_named() -> None:
    """Content of another family is named by its kind."""
    assert write(START, ForeignBlock(kind="web_search_call"), END)[1] == {"web_search_call"}


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ('{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}', "overloaded_error", "busy"),
        ('{"error":{"type":"rate_limit_exceeded","message":"slow down"}}', "rate_limit_error", "slow down"),
        ('{"type":"error","code":"server_error","message":"oops"}', "api_error", "oops"),
        ('{"type":"error","error":{"type":"api_error","message":"own"}}', "api_error", "own"),
        ("not json", "api_error", "not json"),
    ],
)
def test_error_is_written(data: str, kind: str, message: str) -> None:
    """An error of any wire becomes an error event of this one."""
    found, _ = write(START, StreamFailed(name="error", data=data))
    assert found[-1] == {"type": "error", "error": {"type": kind, "message": message}}


@st.composite
def interleaved(draw: st.DrawFn) -> list[AnswerEvent]:
    """Texts and calls whose events are mixed in any way; each has its own events in order."""
    texts = st.builds(TextDelta, text=st.text(max_size=3), block=st.integers(0, 1))
    other = st.builds(RefusalDelta, text=st.text(max_size=3)) | st.builds(ReasoningDelta, text=st.text(max_size=3))
    queues: list[list[AnswerEvent]] = [draw(st.lists(texts | other, max_size=6))]
    for index in range(draw(st.integers(0, 3))):
        json_text = json.dumps({"call": index})
        cut = draw(st.integers(0, len(json_text)))
        pieces: list[AnswerEvent] = [CallDelta(index=index, json=each) for each in (json_text[:cut], json_text[cut:])]
        ended: list[AnswerEvent] = draw(st.sampled_from([[CallEnded(index=index)], []]))
        queues.append([CallStarted(index=index, id=draw(st.text(max_size=2)), name="f"), *pieces, *ended])
    order = draw(st.permutations([number for number, queue in enumerate(queues) for _ in queue]))
    return [queues[number].pop(0) for number in order]


@given(events=interleaved())
def test_every_stream_is_well_formed(events: list[AnswerEvent]) -> None:
    """Whatever the order of events, strict parsers accept the stream, and all text and calls of the answer are in it."""
    raw = AnthropicStreamWriter(CLIENT).write([START, *events, END])
    found = streamed("messages", raw.decode())
    assert found.text == "".join(each.text for each in events if isinstance(each, TextDelta | RefusalDelta))
    calls = [str({"call": each.index}) for each in events if isinstance(each, CallStarted)]
    assert found.calls == calls


def test_written_stream_is_read_back() -> None:
    """What the writer writes, the reader reads: all but reasoning and foreign content."""
    found = AnthropicStreamReader().feed(AnthropicStreamWriter(CLIENT).write(EVENTS))
    assert found == [each for each in EVENTS if not isinstance(each, ReasoningDelta | ForeignBlock)]
