"""Streams of the Responses API: what the writer writes is strictly valid, and the reader reads the same events again."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from rung.testing.provider import Lab
from rung.wires.replay import response_events
from rung.wires.translation.answer import (
    Answer,
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
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
)
from rung.wires.translation.responses import RESPONSES_TRANSLATOR
from rung.wires.translation.responses_answer import read_answer, write_answer
from rung.wires.translation.responses_event_writer import ResponsesStreamWriter
from rung.wires.translation.responses_events import ResponsesStreamReader
from rung.wires.translation.responses_request import read_request
from tests.wires.strict import events_of, streamed
from tests.wires.test_wires import ANYTHING, TABLES

TOOLS = [
    {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "patch"},
    {"type": "namespace", "name": "box", "description": "", "tools": [{"type": "custom", "name": "exec"}]},
    {"type": "apply_patch"},
]
REQUEST = read_request(
    {"model": "m", "input": "hi", "tools": TOOLS, "instructions": "be brief", "metadata": {"a": "b"}}
)
SDK_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
PIECES = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3)
ARGUMENTS = {
    "look": '{"a": "\u00e9"}', "patch": '{"input":"*** Begin"}', "exec": '{"input":"run"}', "apply_patch": '{"type":"delete_file","path":"a"}',
}  # fmt: skip
EVENTS = [
    "response.created", "response.output_item.added", "response.output_item.done", "response.output_text.delta",
    "response.refusal.delta", "response.function_call_arguments.delta", "response.function_call_arguments.done",
    "response.completed", "response.incomplete", "response.failed", "error",
]  # fmt: skip
USAGE = st.builds(
    Usage,
    input=st.integers(0, 9),
    output=st.integers(0, 9),
    cache_read=st.integers(0, 9),
    cache_write=st.integers(0, 9),
    reasoning=st.integers(0, 9),
)
BLOCKS = st.lists(
    PIECES.map(lambda pieces: ("text", pieces))
    | PIECES.map(lambda pieces: ("refusal", pieces))
    | st.sampled_from(sorted(ARGUMENTS)).map(lambda name: ("call", [name])),
    max_size=5,
)


def events_from(blocks: list[tuple[str, list[str]]], stop: Stop, usage: Usage) -> list[AnswerEvent]:
    """Return the events of an answer with these blocks."""
    events: list[AnswerEvent] = [Started(id="msg_1", model="m", created=7)]
    calls = 0
    for block, (kind, pieces) in enumerate(blocks):
        if kind == "text":
            events += [TextDelta(text=piece, block=block) for piece in pieces]
        elif kind == "refusal":
            events += [RefusalDelta(text=piece) for piece in pieces]
        else:
            text = ARGUMENTS[pieces[0]]
            events += [
                CallStarted(index=calls, id=f"call_{calls}", name=pieces[0]),
                CallDelta(index=calls, json=text[:4]),
            ]
            events += [CallDelta(index=calls, json=text[4:]), CallEnded(index=calls)]
            calls += 1
    return [*events, Ended(stop=stop, usage=usage)]


def answer_from(blocks: list[tuple[str, list[str]]], stop: Stop, usage: Usage) -> Answer:
    """Return the whole answer with these blocks."""
    parts: list[Any] = []
    calls = 0
    for kind, pieces in blocks:
        if kind == "text":
            parts.append(TextPart(text="".join(pieces)))
        elif kind == "refusal" and parts and isinstance(parts[-1], RefusalPart):
            parts[-1] = RefusalPart(text=parts[-1].text + "".join(pieces))
        elif kind == "refusal":
            parts.append(RefusalPart(text="".join(pieces)))
        else:
            parts.append(ToolCallPart(id=f"call_{calls}", name=pieces[0], arguments=ARGUMENTS[pieces[0]]))
            calls += 1
    found = tuple(parts)
    return Answer(family=Family.CHAT, id="msg_1", model="m", parts=found, stop=stop, usage=usage, created=7)


def read_in_chunks(data: bytes, sizes: list[int]) -> list[AnswerEvent]:
    """Read a stream in chunks of these sizes, again and again."""
    reader, found, start, turn = ResponsesStreamReader(), [], 0, 0
    while start < len(data):
        size = sizes[turn % len(sizes)]
        found += reader.feed(data[start : start + size])
        start, turn = start + size, turn + 1
    return [*found, *reader.finish()]


def joined(events: list[AnswerEvent]) -> list[Any]:
    """Return the events with the pieces of each block together, and the arguments of calls as values."""
    found: list[Any] = []
    arguments: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta | RefusalDelta):
            key = (type(event), event.block if isinstance(event, TextDelta) else 0)
            if found and found[-1][0] == key:
                found[-1] = (key, found[-1][1] + event.text)
            else:
                found.append((key, event.text))
        elif isinstance(event, CallDelta):
            arguments[event.index] = arguments.get(event.index, "") + event.json
        elif isinstance(event, CallEnded):
            found.append(((CallEnded, event.index), json.loads(arguments[event.index])))
        else:
            found.append(((type(event), 0), event))
    return found


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(blocks=BLOCKS, stop=st.sampled_from([Stop.END, Stop.MAX_TOKENS]), usage=USAGE)
def test_a_stream_is_strictly_valid_and_ends_with_the_whole_answer(
    blocks: list[tuple[str, list[str]]], stop: Stop, usage: Usage
) -> None:
    """Every event has the fields that the package demands, in strict order, and the last has the unstreamed response."""
    data = ResponsesStreamWriter(REQUEST).write(events_from(blocks, stop, usage))
    events = [json.loads(text) for _, text in events_of(data.decode())]
    for event in events:
        SDK_EVENT.validate_python(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    streamed("responses", data.decode())
    whole = write_answer(answer_from(blocks, stop, usage), REQUEST).body
    final = events[-1]["response"]
    if stop is Stop.END:  # the items of an incomplete answer are incomplete themselves only in a stream
        assert final == whole
    assert {**final, "output": []} == {**whole, "output": []}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(blocks=BLOCKS, usage=USAGE, sizes=st.lists(st.integers(1, 200), min_size=1, max_size=5))
def test_a_stream_is_read_as_it_was_written(
    blocks: list[tuple[str, list[str]]], usage: Usage, sizes: list[int]
) -> None:
    """However the bytes are split, the reader finds the texts, refusals and calls in their order, and the usage."""
    plain = read_request({"model": "m", "input": "hi"})  # all tools are functions
    kinds = {kind for kind, _ in blocks}
    stop = Stop.TOOL_CALLS if "call" in kinds else Stop.REFUSAL if "refusal" in kinds else Stop.END
    events = events_from(blocks, stop, usage)
    found = joined(read_in_chunks(ResponsesStreamWriter(plain).write(events), sizes))
    expected = joined(events)
    assert found[0][1] == Started(id="resp_msg_1", model="m", created=7)
    assert [value for _, value in found[1:]] == [value for _, value in expected[1:]]
    assert found[-1][1] == events[-1]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(blocks=BLOCKS, usage=USAGE)
def test_an_answer_is_read_as_it_was_written(blocks: list[tuple[str, list[str]]], usage: Usage) -> None:
    """A whole answer has the same parts, stop and usage after the way through this wire."""
    kinds = {kind for kind, _ in blocks}
    stop = Stop.TOOL_CALLS if "call" in kinds else Stop.REFUSAL if "refusal" in kinds else Stop.END
    answer = answer_from(blocks, stop, usage)
    found = read_answer(write_answer(answer, read_request({"model": "m"})).body)
    assert found.parts == answer.parts
    assert (found.stop, found.usage, found.created, found.model) == (stop, usage, 7, "m")


def test_calls_that_mix_are_written_one_after_the_other() -> None:
    """Pieces of a second call, and text, wait for the end of the first call."""
    events: list[AnswerEvent] = [
        Started(id="a", model="m"),
        CallStarted(index=0, id="c0", name="look"),
        CallStarted(index=1, id="c1", name="look"),
        CallDelta(index=1, json='{"b":'),
        CallDelta(index=0, json="{}"),
        TextDelta(text="and"),
        CallDelta(index=1, json="1}"),
        CallEnded(index=0),
        CallEnded(index=1),
        Ended(stop=Stop.TOOL_CALLS),
    ]
    got = streamed("responses", ResponsesStreamWriter(REQUEST).write(events).decode())
    assert (got.text, got.calls) == ("and", ["{}", '{"b":1}'])


def test_calls_that_never_end_are_incomplete() -> None:
    """An answer that ends inside of calls has them as incomplete items, and the reader sees no end of them."""
    events: list[AnswerEvent] = [
        Started(id="a", model="m"),
        CallStarted(index=0, id="c0", name="look"),
        CallDelta(index=0, json='{"a'),
        CallStarted(index=1, id="c1", name="look"),
        Ended(stop=Stop.MAX_TOKENS),
    ]
    data = ResponsesStreamWriter(REQUEST).write(events)
    items = json.loads(events_of(data.decode())[-1][1])["response"]["output"]
    assert [(item["status"], item["arguments"]) for item in items] == [("incomplete", '{"a'), ("incomplete", "")]
    assert not any(isinstance(event, CallEnded) for event in ResponsesStreamReader().feed(data))


def test_a_call_without_arguments_has_an_empty_object() -> None:
    """A call whose model wrote no arguments has those of an empty object, in its pieces, too."""
    events: list[AnswerEvent] = [
        Started(id="a", model="m"),
        CallStarted(index=0, id="c", name="f"),
        CallEnded(index=0),
        Ended(stop=Stop.TOOL_CALLS),
    ]
    data = ResponsesStreamWriter(REQUEST).write(events)
    assert streamed("responses", data.decode()).calls == ["{}"]
    assert CallDelta(index=0, json="{}") in ResponsesStreamReader().feed(data)


def test_tools_of_the_client_are_called_as_it_defined_them() -> None:
    """A call of a tool in a namespace has both names, and a patch is an operation."""
    calls = (
        ToolCallPart(id="c0", name="exec", arguments='{"input":"run"}'),
        ToolCallPart(id="c1", name="apply_patch", arguments='{"type":"delete_file","path":"a"}'),
        ToolCallPart(id="c2", name="patch", arguments="not JSON"),
    )
    answer = Answer(family=Family.CHAT, id="x", model="m", parts=calls, stop=Stop.TOOL_CALLS)
    one, two, three = write_answer(answer, REQUEST).body["output"]
    assert (one["type"], one["namespace"], one["name"], one["input"]) == ("custom_tool_call", "box", "exec", "run")
    assert (two["type"], two["operation"]) == ("apply_patch_call", {"type": "delete_file", "path": "a"})
    assert three["input"] == "not JSON"


@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [
        (Stop.END, "completed", None),
        (Stop.TOOL_CALLS, "completed", None),
        (Stop.STOP_SEQUENCE, "completed", None),
        (Stop.PAUSE, "completed", None),
        (Stop.UNKNOWN, "completed", None),
        (Stop.MAX_TOKENS, "incomplete", "max_output_tokens"),
        (Stop.CONTEXT_WINDOW, "incomplete", "max_output_tokens"),
        (Stop.REFUSAL, "incomplete", "content_filter"),
        (Stop.MALFORMED_CALL, "failed", None),
    ],
)
def test_stops_have_a_status(stop: Stop, status: str, reason: str | None) -> None:
    """Every stop has a status, in a stream and whole; a refusal without its text is a filter's."""
    answer = Answer(family=Family.GEMINI, id="x", model="m", parts=(TextPart(text="a"),), stop=stop)
    body = write_answer(answer, REQUEST).body
    assert (body["status"], (body["incomplete_details"] or {}).get("reason")) == (status, reason)
    data = ResponsesStreamWriter(REQUEST).write([Started(id="x", model="m"), TextDelta(text="a"), Ended(stop=stop)])
    name, last = events_of(data.decode())[-1]
    assert name == f"response.{status}"
    assert json.loads(last)["response"]["incomplete_details"] == body["incomplete_details"]


def test_what_the_wire_cannot_say_is_named() -> None:
    """Reasoning and content of another family do not cross; the writer names them."""
    writer = ResponsesStreamWriter(REQUEST)
    data = writer.write(
        [
            Started(id="x", model="m"),
            ReasoningDelta(text="hm"),
            ForeignBlock(kind="server_tool_use"),
            TextDelta(text="a"),
            Ended(stop=Stop.STOP_SEQUENCE),
        ]
    )
    assert writer.dropped == {"reasoning", "server_tool_use", "stop_sequence"}
    assert streamed("responses", data.decode()).text == "a"


def test_what_a_whole_answer_cannot_say_is_named() -> None:
    """Reasoning, media, citations and content of another family are dropped from a whole answer by name."""
    parts = (
        ReasoningPart(family=Family.ANTHROPIC, block={"type": "thinking"}, text="hm"),
        ForeignPart(family=Family.ANTHROPIC, block={}, kind="server_tool_use"),
        MediaPart(kind=MediaKind.IMAGE, mime_type="image/png", data="QUJD"),
        TextPart(text="a", extras={"citations": [{}]}, family=Family.ANTHROPIC),
        ToolCallPart(id="c", name="look", arguments="{}", extras={"thoughtSignature": "x"}, family=Family.GEMINI),
    )
    answer = Answer(
        family=Family.ANTHROPIC, id="x", model="m", parts=parts, stop=Stop.STOP_SEQUENCE, extras={"container": 1}
    )
    written = write_answer(answer, REQUEST)
    assert [item["type"] for item in written.body["output"]] == ["message", "function_call"]
    named = ("citations", "container", "image", "reasoning", "server_tool_use", "stop_sequence")
    assert written.dropped == named


@pytest.mark.parametrize(
    ("ending", "stop"),
    [
        ({"status": "completed"}, Stop.END),
        ({"status": "failed"}, Stop.UNKNOWN),
        ({"status": "cancelled"}, Stop.UNKNOWN),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, Stop.MAX_TOKENS),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, Stop.REFUSAL),
        ({"status": "incomplete", "incomplete_details": None}, Stop.UNKNOWN),
    ],
)
def test_a_status_is_a_stop(ending: dict[str, Any], stop: Stop) -> None:
    """Each status of a response, and each reason of an incomplete one, is a stop."""
    assert read_answer({"output": [], **ending}).stop is stop


def test_a_search_for_tools_is_one_of_the_client() -> None:
    """A call of the client's search for tools says that the client runs it."""
    search = {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}
    request = read_request({"model": "m", "input": "hi", "tools": [search]})
    call = ToolCallPart(id="c", name="tool_search", arguments='{"query":"x"}')
    answer = Answer(family=Family.CHAT, id="x", model="m", parts=(call,), stop=Stop.TOOL_CALLS)
    (item,) = write_answer(answer, request).body["output"]
    assert (item["type"], item["execution"], item["arguments"]) == ("tool_search_call", "client", {"query": "x"})


def test_a_failure_before_the_answer_is_an_error_event() -> None:
    """A stream that fails before it begins has one event, which the reader reads as a failure."""
    data = ResponsesStreamWriter(REQUEST).write([StreamFailed(name="error", data="not JSON")])
    ((name, text),) = events_of(data.decode())
    assert name == "error"
    SDK_EVENT.validate_python(json.loads(text))
    (failed,) = ResponsesStreamReader().feed(data)
    assert isinstance(failed, StreamFailed)


def test_the_reader_reads_streams_of_the_lab() -> None:
    """Streams of a provider with reasoning, text and a call are read with their ends."""
    body = {"model": "m", "input": "hi", "stream": True, "tools": [TOOLS[0]], "reasoning": {"effort": "low"}}
    found = []
    for turn in ({"text": "Hello there"}, {"tool": "look", "input": {"a": 1}}):
        with Lab({"turns": [turn]}) as lab:
            data = httpx.post(f"{lab.url}/v1/responses", json=body, headers={"authorization": "Bearer sk-lab"}).content
        found.append(read_in_chunks(data, [7]))
    said, called = found
    assert isinstance(said[0], Started)
    assert any(isinstance(event, ReasoningDelta) for event in said)
    assert "".join(event.text for event in said if isinstance(event, TextDelta)) == "Hello there"
    assert "".join(event.json for event in called if isinstance(event, CallDelta)) == '{"a":1}'
    assert [event.stop for event in (said[-1], called[-1]) if isinstance(event, Ended)] == [Stop.END, Stop.TOOL_CALLS]


def test_content_without_deltas_is_read_from_the_end() -> None:
    """Texts and calls that came in no delta are read from the end of their items, or of the response, once."""
    answer = answer_from([("text", ["a"]), ("call", ["look"])], Stop.END, Usage())
    response = write_answer(answer, read_request({"model": "m"})).body
    ends = [
        {"type": "response.output_item.done", "output_index": at, "item": item}
        for at, item in enumerate(response["output"])
    ]
    completed = {"type": "response.completed", "response": response}
    for events in ([*ends, completed], [completed], [ends[1], completed]):
        data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
        found = ResponsesStreamReader().feed(data)
        assert sum(isinstance(event, TextDelta) for event in found) == 1
        assert [event.json for event in found if isinstance(event, CallDelta)] == [ARGUMENTS["look"]]
        assert sum(isinstance(event, CallEnded) for event in found) == 1
        assert isinstance(found[-1], Ended)
        assert found[-1].stop is Stop.TOOL_CALLS


def test_other_items_are_foreign_blocks_and_unknown_events_are_ignored() -> None:
    """A search of the provider is foreign content, and an unknown event is nothing."""
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
    response = {**write_answer(answer_from([], Stop.END, Usage()), REQUEST).body, "output": [item]}
    data = response_events(response) + b'event: response.new\ndata: {"type":"response.new"}\n\n: ping\n\ndata: 5\n\n'
    assert [event for event in ResponsesStreamReader().feed(data) if isinstance(event, ForeignBlock)] == [
        ForeignBlock(kind="web_search_call")
    ]
    assert read_answer(response).parts[0].kind == "web_search_call"  # type: ignore[union-attr]  # a foreign part


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    body=TABLES,
    outputs=st.lists(ANYTHING, max_size=3),
    kind=st.sampled_from(EVENTS),
    events=st.lists(TABLES, max_size=4),
)
def test_any_answer_and_any_event_can_be_read(
    body: dict[str, Any], outputs: list[Any], kind: str, events: list[dict[str, Any]]
) -> None:
    """An answer and the events of a stream are read whatever is in them, and the answer can be written again."""
    answer = read_answer({**body, "output": outputs})
    written = write_answer(answer, REQUEST).body
    assert json.loads(json.dumps(written)) == written
    reader = ResponsesStreamReader()
    for event in events:
        more = {"item": event, "response": {**event, "output": [event]}, "output_index": len(events)}
        data = json.dumps({**event, **more, "type": kind}).encode()
        ResponsesStreamWriter(REQUEST).write(reader.feed(b"data: " + data + b"\n\n"))


def test_an_event_that_is_no_json_is_a_value_error() -> None:
    """Invalid JSON, also nested too deeply, raises ValueError."""
    for text in (b"{", b"[" * 100_000):
        with pytest.raises(ValueError):
            ResponsesStreamReader().feed(b"data: " + text + b"\n\n")


def test_answers_of_the_same_family_keep_its_content() -> None:
    """Reasoning, searches and annotations of a response are in the response that is written from it."""
    output: list[Any] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "file_path"}], "logprobs": []}],
        },
    ]  # fmt: skip
    body = {**write_answer(answer_from([], Stop.END, Usage()), REQUEST).body, "output": output}
    written = write_answer(read_answer(body), REQUEST)
    assert written.dropped == ()
    assert written.body["output"][:2] == output[:2]
    assert written.body["output"][2]["content"] == output[2]["content"]


def test_the_translator_has_all_functions() -> None:
    """The translator of this wire is complete, and of its family."""
    assert RESPONSES_TRANSLATOR.family is Family.RESPONSES
    assert isinstance(RESPONSES_TRANSLATOR.stream_reader(), ResponsesStreamReader)
    assert isinstance(RESPONSES_TRANSLATOR.stream_writer(REQUEST), ResponsesStreamWriter)
