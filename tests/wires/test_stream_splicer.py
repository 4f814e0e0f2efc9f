"""Streams as they pass: pieces do not matter, nothing that comes can break the reader, nothing is lost or doubled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.wires.anthropic_stream import AnthropicStream
from rung.wires.gemini_stream import GeminiStream
from rung.wires.openai_chat_stream import ChatStream
from rung.wires.openai_responses_stream import ResponsesStream

if TYPE_CHECKING:
    from rung.wires.stream_splicer import StreamSplicer

STREAMS = (AnthropicStream, ChatStream, ResponsesStream, GeminiStream)


def event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def message(words: list[str]) -> bytes:
    """A whole message of these words."""
    deltas = [event("content_block_delta", index=0, delta={"type": "text_delta", "text": word}) for word in words]
    return b"".join(
        (
            event("message_start", message={"id": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}),
            event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            *deltas,
            event("content_block_stop", index=0),
            event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": len(words)}),
            event("message_stop"),
        )
    )


def passed(stream: StreamSplicer, data: bytes, cuts: list[int]) -> bytes:
    """What comes out when a stream comes in pieces."""
    out, at = stream.begin_attempt(), 0
    for size in cuts:
        out += stream.feed(data[at : at + size])
        at += size
    return out + stream.feed(data[at:])


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=8), st.lists(st.integers(1, 60), max_size=40))
def test_bytes_pass_as_they_came(words: list[str], cuts: list[int]) -> None:
    """However a good stream is cut into pieces, the client gets the very bytes that came."""
    stream, data = AnthropicStream(), message(words)
    assert passed(stream, data, cuts) + stream.finish() == data
    assert stream.text() == "".join(words)
    assert stream.ended
    assert stream.validate() is None


@pytest.mark.parametrize("kind", STREAMS)
def test_three_line_ends(kind: type[StreamSplicer]) -> None:
    """Line ends that belong to no event are passed over; found by a fuzzer, which waited for ever."""
    stream = kind()
    stream.begin_attempt()
    stream.feed(b"\n\n\xdf\n\n\n\xdf")
    stream.feed(b"\n\n\n\n\n")
    assert stream.is_interrupted()


def test_one_event_at_a_time() -> None:
    """A stream that comes event by event, as providers send them, ends as one that comes at once."""
    stream, data = AnthropicStream(), message(["one", "two"])
    out = stream.begin_attempt() + b"".join(stream.feed(event + b"\n\n") for event in data.split(b"\n\n")[:-1])
    assert out + stream.finish() == data
    assert stream.ended


@given(st.binary(max_size=400), st.lists(st.integers(1, 50), max_size=10), st.sampled_from(STREAMS))
def test_nothing_breaks_the_reader(data: bytes, cuts: list[int], kind: type[StreamSplicer]) -> None:
    """Whatever bytes come, reading them ends, and without a terminal event it is no success."""
    stream = kind()
    passed(stream, data, cuts)
    stream.begin_attempt()
    stream.finish()
    assert stream.is_interrupted()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "delta",
                    "choices",
                    "content_block",
                    "message",
                    "item",
                    "response",
                    "usage",
                    "index",
                    "text",
                    "finish_reason",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
     "response.created", "response.output_item.added", "response.output_text.delta", "response.output_item.done", "response.completed", "error"]
)  # fmt: skip


@pytest.mark.parametrize("kind", STREAMS)
@given(data=st.data())
def test_strange_events_do_not_break_the_reader(kind: type[StreamSplicer], data: st.DataObject) -> None:
    """Events of the right names with anything in them are read without an error, and hardly more comes out than went in."""
    stream = kind()
    taken, passed_on = 0, len(stream.begin_attempt())
    for _ in range(2):
        for name, body in data.draw(st.lists(st.tuples(NAMES, JSON), max_size=6)):
            event = f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()
            taken += len(event)
            passed_on += len(stream.feed(event))
        passed_on += len(stream.begin_attempt())
    assert passed_on + len(stream.finish()) <= 2 * taken + 4_096  # what closes a message is all that is made up


def test_a_splice_keeps_one_message() -> None:
    """A second attempt goes on in the same message and the same block: one start, one stop, nothing said twice."""
    stream = AnthropicStream()
    whole = message(["one ", "two ", "three ", "four"])
    half = whole[: whole.index(b"three")]
    first = passed(stream, half[: half.rindex(b"event:")], [])
    second = passed(stream, message(["one two ", "three ", "four"]), []) + stream.finish()
    events = [json.loads(line[6:]) for line in (first + second).split(b"\n") if line.startswith(b"data: ")]
    assert [e["type"] for e in events].count("message_start") == 1
    assert [e["index"] for e in events if e["type"] == "content_block_start"] == [0]
    assert [e["index"] for e in events if e["type"] == "content_block_stop"] == [0]
    assert (
        "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")
        == "one two three four"
    )
    assert events[-1]["type"] == "message_stop"


def test_usage_that_the_client_did_not_ask_for() -> None:
    """A usage chunk that the gateway asked for is counted, and not passed on."""
    chunks: list[Any] = [{"choices": [{"index": 0, "delta": {"content": "hi"}}]}]
    chunks += [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3}},
    ]
    stream = ChatStream()
    stream.hides_usage = True
    data = b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"
    out = passed(stream, data, []) + stream.finish()
    assert stream.attempt_usage == {"prompt_tokens": 3}
    assert b"usage" not in out
    assert out.endswith(b"data: [DONE]\n\n")
