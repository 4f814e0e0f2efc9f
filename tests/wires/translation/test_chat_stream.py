"""Streams of the Chat Completions API are read as servers send them, and written as strict clients need them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
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
from rung.wires.translation.chat_events import ChatStreamReader, ChatStreamWriter
from rung.wires.translation.chat_request import read_request
from rung.wires.translation.conversation import Conversation, Family
from tests.wires.translation.chat_bodies import JSON

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **fields: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": choices}
    return b"data: " + json.dumps(head | fields).encode() + b"\n\n"


def read(*chunks: bytes) -> list[AnswerEvent]:
    """All events but Started."""
    found = ChatStreamReader().feed(b"".join(chunks))
    assert found[0] == Started(id="c1", model="m", created=7)
    return found[1:]


def calls(*items: dict[str, Any]) -> bytes:
    return chunk({"tool_calls": list(items)})


def function(name: str | None = None, arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    given = {"name": name, "arguments": arguments}
    return {"function": {key: value for key, value in given.items() if value is not None}, **fields}


def joined(events: list[AnswerEvent]) -> list[tuple[str, str]]:
    """The calls in a stream, by name and arguments; each must be complete before the next begins."""
    found: list[tuple[str, str]] = []
    is_open = False
    for event in events:
        if isinstance(event, CallStarted):
            assert not is_open
            assert event.index == len(found)
            is_open = True
            found.append((event.name, ""))
        elif isinstance(event, CallDelta):
            assert is_open
            assert event.index == len(found) - 1
            found[-1] = (found[-1][0], found[-1][1] + event.json)
        elif isinstance(event, CallEnded):
            is_open = False
    assert not is_open
    return found


def test_an_answer_is_read_with_its_usage() -> None:
    """Text, reasoning and refusals come as they are sent, and the end has the usage that follows it."""
    found = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "r"}),
        chunk({"content": "a"}),
        chunk({"refusal": "n"}),
        chunk({}, "stop"),
        chunk(usage=USAGE),
        DONE,
    )
    assert found == [
        ReasoningDelta(text="r"),
        TextDelta(text="a"),
        RefusalDelta(text="n"),
        Ended(stop=Stop.REFUSAL, usage=Usage(input=3, output=2)),
    ]


@pytest.mark.parametrize(
    "ending",
    [
        (chunk({}, "stop", usage=USAGE), DONE),
        (chunk({}, "stop"), chunk({"content": ""}, usage=USAGE), DONE),
        (chunk({}, "stop"), chunk(usage=USAGE)),
        (chunk({"content": ""}, None, usage=USAGE), chunk({}, "stop"), DONE),
    ],
)
def test_usage_comes_where_servers_send_it(ending: tuple[bytes, ...]) -> None:
    """Usage is taken from the chunk of the finish reason, from one after it, or from one before it."""
    assert read(chunk({"content": "a"}), *ending)[1:] == [Ended(stop=Stop.END, usage=Usage(input=3, output=2))]


def test_an_end_without_a_marker_is_told_at_the_end_of_the_transfer() -> None:
    """If neither usage nor [DONE] comes, `finish` tells the end, once; without a finish reason it tells nothing."""
    reader = ChatStreamReader()
    assert len(reader.feed(chunk({"content": "a"}) + chunk({}, "length"))) == 2
    assert reader.finish() == [Ended(stop=Stop.MAX_TOKENS)]
    assert reader.finish() == []
    broken = ChatStreamReader()
    broken.feed(chunk({"content": "a"}))
    assert broken.finish() == []


SERVERS = {
    "OpenAI": [
        calls(function("f", "", index=0, id="1", type="function")),
        calls(function(None, '{"a"', index=0)),
        calls(function(None, ":1}", index=0)),
        calls(function("g", "", index=1, id="2", type="function")),
        calls(function(None, "{}", index=1)),
    ],
    "whole calls": [calls(function("f", '{"a":1}', index=0, id="1"), function("g", "{}", index=1, id="2"))],
    "one chunk for each": [calls(function("f", '{"a":1}', index=0, id="1")), calls(function("g", "{}", index=1, id="2"))],
    "no index": [calls(function("f", '{"a":1}', id="1")), calls(function("g", "{}", id="2"))],
    "no index, in pieces": [calls(function("f", '{"a"', id="1")), calls(function(None, ":1}")), calls(function("g", "{}", id="2"))],
    "no index, no id": [calls(function("f", '{"a":1}')), calls(function("g", "{}"))],
    "index always 0": [calls(function("f", '{"a":1}', index=0, id="1")), calls(function("g", "{}", index=0, id="2"))],
    "name repeated": [
        calls(function("f", '{"a"', index=0, id="1")),
        calls(function("f", ":1}", index=0, id="1")),
        calls(function("g", "{}", index=1, id="2")),
    ],
    "interleaved": [
        calls(function("f", "", index=0, id="1"), function("g", "", index=1, id="2")),
        calls(function(None, '{"a"', index=0), function(None, "{", index=1)),
        calls(function(None, "}", index=1)),
        calls(function(None, ":1}", index=0)),
    ],
    "id before name": [
        calls({"index": 0, "id": "1"}),
        calls(function("f", '{"a":1}', index=0)),
        calls(function("g", None, index=1, id="2")),
        calls(function(None, "{}", index=1)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("server", SERVERS)
def test_calls_of_every_server_are_read(server: str) -> None:
    """Two parallel calls are told one after the other, however a server sends them."""
    found = read(*SERVERS[server], chunk({}, "stop"), DONE)
    assert joined(found) == [("f", '{"a":1}'), ("g", "{}")]
    assert found[-1] == Ended(stop=Stop.TOOL_CALLS)
    ids = [event.id for event in found if isinstance(event, CallStarted)]
    assert len(set(ids)) == 2
    assert all(ids)


def test_a_call_without_arguments_is_told() -> None:
    """Calls whose arguments never come are complete at the end of the answer."""
    found = read(
        calls(function("f", index=0, id="1"), function("g", "", index=1, id="2")), chunk({}, "tool_calls"), DONE
    )
    assert joined(found) == [("f", ""), ("g", "")]


def test_text_after_a_call_ends_the_call() -> None:
    """Text does not come between the pieces of a call."""
    found = read(
        calls(function("f", "{", index=0, id="1")),
        chunk({"content": "late"}),
        calls(function(None, "}", index=0)),
        chunk({"content": "later"}),
        chunk({}, "tool_calls"),
        DONE,
    )
    kinds = [type(event).__name__ for event in found]
    assert kinds == ["CallStarted", "CallDelta", "CallDelta", "CallEnded", "TextDelta", "TextDelta", "Ended"]


def test_a_legacy_function_call_is_a_call() -> None:
    """The function calls of old servers are read like tool calls."""
    pieces = [chunk({"function_call": {"name": "f", "arguments": "{"}}), chunk({"function_call": {"arguments": "}"}})]
    assert joined(read(*pieces, chunk({}, "function_call"), DONE)) == [("f", "{}")]


def test_lists_of_content_are_read() -> None:
    """Mistral sends text and reasoning as lists of items."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}
    found = read(
        chunk({"content": [thinking, {"type": "text", "text": "a"}, {"type": "odd"}]}), chunk({"audio": {"id": "1"}})
    )
    assert found == [
        ReasoningDelta(text="r"),
        TextDelta(text="a"),
        ForeignBlock(kind="odd"),
        ForeignBlock(kind="audio"),
    ]


@pytest.mark.parametrize(
    "last",
    [
        b'data: {"error": {"message": "overloaded"}}\n\n',
        b'event: error\ndata: {"message": "overloaded"}\n\n',
        b'data: {"object": "error", "message": "overloaded"}\n\n',
        chunk({}, "error"),
        chunk({}, "insufficient_system_resource"),
    ],
)
def test_an_error_ends_the_stream(last: bytes) -> None:
    """An error chunk, or a finish reason by which a server gives up, is a failure, and nothing follows it."""
    reader = ChatStreamReader()
    found = reader.feed(chunk({"content": "a"}) + last + chunk({}, "stop", usage=USAGE) + DONE)
    assert isinstance(found[-1], StreamFailed)
    assert not any(isinstance(event, Ended) for event in found)
    assert reader.finish() == []


def test_other_choices_are_left_out() -> None:
    """Only the first choice is read."""
    other = {"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}
    assert read(chunk({"content": "a"}), chunk(choices=[other]), DONE) == [TextDelta(text="a")]


WORDS = st.sampled_from(
    ["content", "tool_calls", "function", "type", "name", "index", "id", "text", "arguments", "refusal"]
)
ANY = st.recursive(JSON | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5))


@given(st.lists(st.dictionaries(WORDS, ANY), max_size=3), JSON, JSON)
def test_no_chunk_is_an_error(deltas: list[dict[str, Any]], usage: Any, reason: Any) -> None:
    """Chunks of any JSON are read without an error, and what is read can be written."""
    found = ChatStreamReader().feed(b"".join([*map(chunk, deltas), chunk({}, reason, usage=usage), DONE]))
    ChatStreamWriter(Conversation(family=Family.CHAT)).write(found)


def test_a_chunk_that_is_no_json_is_an_error() -> None:
    """The reader raises ValueError if a chunk is not valid JSON."""
    with pytest.raises(ValueError):
        ChatStreamReader().feed(b"data: {oops\n\n")


# -- writer --------------------------------------------------------------------------------------------------------------


def chunks_of(data: bytes) -> list[Any]:
    found = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    return [line if line == b"[DONE]" else json.loads(line) for line in found]


def write(*events: AnswerEvent, client: Conversation | None = None) -> tuple[list[Any], set[str]]:
    client = client or Conversation(family=Family.CHAT, wants_usage=False)
    writer = ChatStreamWriter(client)
    data = b"".join(writer.write([event]) for event in events)
    return chunks_of(data), writer.dropped


STARTED = Started(id="msg_1", model="m", created=7)


def test_chunks_come_in_order() -> None:
    """The role comes first, then content, the finish reason alone, the usage without choices if wanted, and [DONE]."""
    client = Conversation(family=Family.CHAT, wants_usage=True)
    found, _ = write(STARTED, TextDelta(text="a"), Ended(stop=Stop.END, usage=Usage(input=3, output=2)), client=client)
    assert [item["choices"][0]["delta"] for item in found[:3]] == [
        {"role": "assistant", "content": ""},
        {"content": "a"},
        {},
    ]
    assert [item["choices"][0]["finish_reason"] for item in found[:3]] == [None, None, "stop"]
    assert (found[3]["choices"], found[3]["usage"]["total_tokens"]) == ([], 5)
    assert found[4] == b"[DONE]"
    assert {(item["id"], item["created"], item["model"], item["object"]) for item in found[:4]} == {
        ("msg_1", 7, "m", "chat.completion.chunk")
    }


def test_usage_is_only_sent_if_wanted() -> None:
    """A client that did not ask for usage gets no chunk without choices."""
    found, _ = write(STARTED, Ended(stop=Stop.MAX_TOKENS))
    assert all(item["choices"] for item in found[:-1])


def test_calls_begin_with_their_name() -> None:
    """The first delta of a call has index, id, type and name; a call without arguments has an empty object."""
    found, _ = write(
        STARTED,
        CallStarted(index=0, id="1", name="f"),
        CallDelta(index=0, json='{"a":1}'),
        CallEnded(index=0),
        CallStarted(index=1, id="2", name="g"),
        CallEnded(index=1),
        Ended(stop=Stop.END),
    )
    deltas = [item["choices"][0]["delta"]["tool_calls"][0] for item in found[1:5]]
    assert deltas == [
        {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a":1}'}},
        {"index": 1, "id": "2", "type": "function", "function": {"name": "g", "arguments": ""}},
        {"index": 1, "function": {"arguments": "{}"}},
    ]
    assert found[5]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_client_of_legacy_functions_gets_one_function_call() -> None:
    """A client that sent functions gets the first call as a function call."""
    client = read_request({"model": "m", "messages": [], "functions": [{"name": "f"}], "stream": True})
    events: list[AnswerEvent] = [
        CallStarted(index=0, id="1", name="f"),
        CallStarted(index=1, id="2", name="f"),
        CallEnded(index=1),
    ]
    found, dropped = write(STARTED, *events, Ended(stop=Stop.TOOL_CALLS), client=client)
    assert found[1]["choices"][0]["delta"] == {"function_call": {"name": "f", "arguments": ""}}
    assert found[2]["choices"][0]["finish_reason"] == "function_call"
    assert dropped == {"parallel_tool_calls"}


def test_what_the_wire_cannot_say_is_named() -> None:
    """Reasoning and foreign blocks are dropped by name, and the texts around them are kept apart."""
    found, dropped = write(
        STARTED,
        TextDelta(text="a", block=0),
        TextDelta(text="b", block=1),
        ReasoningDelta(text="r"),
        ForeignBlock(kind="web_search"),
        TextDelta(text="c", block=2),
        TextDelta(text="d", block=2),
        Ended(stop=Stop.PAUSE),
    )
    texts = [item["choices"][0]["delta"].get("content", "") for item in found[:-1]]
    assert "".join(texts) == "ab\n\ncd"
    assert found[-2]["choices"][0]["finish_reason"] == "length"
    assert dropped == {"reasoning", "web_search"}


def test_an_error_is_written_in_the_form_of_the_wire() -> None:
    """The error of another wire becomes an error chunk, with its message."""
    data = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    [found], _ = write(StreamFailed(name="error", data=data))
    assert found == {"error": {"message": "Overloaded", "type": "overloaded_error", "param": None, "code": None}}


CALLS = st.lists(
    st.tuples(st.sampled_from("fg"), st.sampled_from(["{}", '{"a":1}', '{"b":"x\\n\\u00e9"}'])), max_size=3
)


@given(st.lists(st.text(min_size=1, max_size=5), max_size=3), CALLS, st.data())
def test_what_is_written_is_read_again(texts: list[str], wanted: list[tuple[str, str]], data: st.DataObject) -> None:
    """The reader gives the events that the writer was given, however the bytes are split."""
    events: list[AnswerEvent] = [STARTED, *(TextDelta(text=text) for text in texts)]
    for index, (name, arguments) in enumerate(wanted):
        events += [CallStarted(index=index, id=f"call_{index}", name=name), CallDelta(index=index, json=arguments)]
        events.append(CallEnded(index=index))
    events.append(Ended(stop=Stop.TOOL_CALLS if wanted else Stop.END, usage=Usage(input=1, output=2, cache_read=3)))
    written = ChatStreamWriter(Conversation(family=Family.CHAT)).write(events)
    reader, found, at = ChatStreamReader(), [], 0
    while at < len(written):
        size = data.draw(st.integers(1, 200))
        found += reader.feed(written[at : at + size])
        at += size
    assert found == events
