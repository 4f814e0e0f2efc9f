"""Fuzzing of what reads an upstream's bytes: server-sent events, the streams of each wire, and whole answers."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.wires.registry import CHAT, MESSAGES, RESPONSES, WireFormat
from rung.wires.sse import EventReader, ServerSentEvent
from tests.gateway.behind import WIRES
from tests.security.upstream.scripted import answer, chat, messages, responses, written
from tests.wires.strict import streamed
from tests.wires.test_wires import TABLES

FORMATS: dict[str, WireFormat] = {"messages": MESSAGES, "chat": CHAT, "responses": RESPONSES}
LINE_ENDS = [b"\n", b"\r", b"\r\n"]
# Pieces from which streams are made: mostly fields, line ends in every mixture, and bytes that mean nothing.
PIECES = st.lists(
    st.sampled_from([b"data", b"event", b"id", b"retry", b":", b": ", b" ", b"\xef\xbb\xbf", b"x", b'{"a":1}', b"[DONE]", b"\xff", b"\0"])
    | st.sampled_from(LINE_ENDS),
    max_size=40,
).map(b"".join)  # fmt: skip
TOOL_USE = {"type": "tool_use", "id": "t_1", "name": "look", "input": {"at": "x"}}
THINKING = {"type": "thinking", "thinking": "hmm", "signature": "signed"}
CALL = {"type": "function_call", "id": "f_1", "call_id": "t_1", "name": "look", "arguments": '{"at":"x"}'}
CHAT_CALL = {"tool_calls": [{"index": 0, "id": "t_1", "function": {"name": "look", "arguments": '{"at":"x"}'}}]}
WITH_CALLS = {
    "messages": messages(THINKING, {"type": "text", "text": "one two"}, TOOL_USE, stop="tool_use"),
    "chat": chat({"role": "assistant"}, {"content": "one"}, {"content": " two"}, CHAT_CALL, stop="tool_calls"),
    "responses": responses({"type": "message", "id": "m_1", "role": "assistant", "content": [{"type": "output_text", "text": "one two"}]}, CALL),
}  # fmt: skip


def by_the_standard(data: bytes) -> list[tuple[bytes, bytes]]:
    """The events of a stream, as the HTML standard's own steps find them, on all the bytes at once."""
    lines = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    found: list[tuple[bytes, bytes]] = []
    name, lines_of_data = b"", list[bytes]()
    for line in lines:
        if line == b"":
            if lines_of_data and b"\n".join(lines_of_data):
                found.append((name, b"\n".join(lines_of_data)))
            name, lines_of_data = b"", []
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field == b"data":
            lines_of_data.append(value)
    return found


def read(chunks: list[bytes]) -> list[ServerSentEvent]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


@settings(max_examples=300)
@given(data=PIECES, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_events_do_not_depend_on_chunks(data: bytes, cuts: list[int]) -> None:
    """However bytes are split, the reader finds the events that the standard's steps find in all of them."""
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    found = read([data[start:end] for start, end in pairwise(places)])
    assert [(event.name, event.data) for event in found if event.data] == by_the_standard(data)
    again = read([b"".join(event.raw for event in found)])
    assert again == found  # what is passed on reads the same


@pytest.mark.parametrize("line_end", LINE_ENDS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_split_at_every_byte(wire: str, line_end: bytes) -> None:
    """Split in two at any byte, and byte by byte, a stream with any line end gives the client the same bytes."""
    data = written(WITH_CALLS[wire]).replace(b"\n", line_end)
    outputs = set()
    for cut in range(len(data)):
        stream = FORMATS[wire].splice()
        out = stream.begin_attempt() + stream.feed(data[:cut]) + stream.feed(data[cut:])
        outputs.add(out + stream.finish())
    stream = FORMATS[wire].splice()
    outputs.add(b"".join(stream.feed(bytes([byte])) for byte in data) + stream.finish())
    assert len(outputs) == 1
    got = streamed(wire, outputs.pop().decode())
    assert (got.text, len(got.calls)) == ("one two", 1)


@settings(max_examples=300)
@given(data=st.data(), wire=st.sampled_from(WIRES), has_call=st.booleans())
def test_a_stream_cut_anywhere_is_completed(data: st.DataObject, wire: str, has_call: bool) -> None:
    """Cut at any byte, once or twice, and resumed, a stream is one valid answer with its text and its call once."""
    whole = written(WITH_CALLS[wire] if has_call else answer(wire))
    stream = FORMATS[wire].splice()
    out = b""
    for cut in [*data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=2)), len(whole)]:
        out += stream.begin_attempt() + stream.feed(whole[:cut])
        if not stream.is_interrupted() or stream.tool_calls:
            break
    out += stream.finish_with_tool_calls() if stream.is_interrupted() else stream.finish()
    got = streamed(wire, out.decode()) if wire != "responses" or b'"usage"' in out else None
    if got is not None:
        assert (got.text, len(got.calls)) == (("one two", 1) if has_call else ("one two three four", 0))


@settings(max_examples=150)
@given(data=st.data(), wire=st.sampled_from(WIRES), bad=st.binary(max_size=30))
def test_bytes_put_into_a_stream(data: st.DataObject, wire: str, bad: bytes) -> None:
    """Whatever stands between two events, every event that reaches the client is JSON, a comment or [DONE]."""
    events = [event + b"\n\n" for event in written(WITH_CALLS[wire]).split(b"\n\n")[:-1]]
    at = data.draw(st.integers(0, len(events)))
    stream = FORMATS[wire].splice()
    out = stream.begin_attempt() + stream.feed(b"".join([*events[:at], b"data: ", bad, b"\n\n", *events[at:]]))
    for event in read([out]):
        assert event.data in (b"", b"[DONE]") or isinstance(json.loads(event.data.decode()), dict)


@pytest.mark.parametrize("wire", WIRES)
@given(body=TABLES)
def test_any_whole_answer_becomes_events(wire: str, body: dict[str, Any]) -> None:
    """A whole answer of any shape is turned into events that the wire's own reader reads."""
    stream = FORMATS[wire].splice()
    stream.begin_attempt()
    stream.feed(FORMATS[wire].replay(body))
    stream.validate()
    stream.finish()
    assert not stream.malformed


def test_a_long_event_in_small_pieces() -> None:
    """An event of 20 MB that comes in pieces is joined once, and one without an end is given up at the limit."""
    reader = EventReader()
    for _ in range(5_000):
        assert reader.feed(b"x" * 4_000) == []
    assert not reader.oversized
    for _ in range(4_000):
        reader.feed(b"x" * 4_000)
    assert reader.oversized


@pytest.mark.parametrize(
    "odd", [None, 5, "x", [], {}, [5], [None], [{"type": "text", "text": 5}], [{"type": "output_text", "text": {}}]]
)
@pytest.mark.parametrize("wire", WIRES)
def test_whole_answers_with_odd_content(wire: str, odd: Any) -> None:
    """A whole answer whose content has another type than its wire defines is judged, read, merged and replayed."""
    item = {"type": "message", "content": odd}
    body = {"type": "message", "content": odd, "stop_reason": "end_turn", "status": "completed", "output": [item]}
    body["choices"] = [{"index": odd, "message": {"content": odd, "tool_calls": odd}, "finish_reason": "stop"}]
    wire_format = FORMATS[wire]
    for answer_body in (body, {**body, "output": odd}, {**body, "choices": odd}):
        wire_format.bodies.validate(answer_body)
        wire_format.bodies.text_of(answer_body)
        wire_format.bodies.tool_calls(answer_body)
        wire_format.replay(answer_body)
    wire_format.bodies.merge([body, body])
