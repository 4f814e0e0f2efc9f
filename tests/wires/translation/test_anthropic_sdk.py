"""The real SDK of Anthropic on both ends: what it sends is read, and what is written for it, it parses."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic.types import ContentBlockParam, ToolUnionParam, tool_result_block_param
from anthropic.types.beta import BetaContentBlockParam, BetaToolUnionParam
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.wires.translation.answer import (
    Answer,
    AnswerEvent,
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    Started,
    Stop,
    StreamFailed,
    TextDelta,
    Usage,
)
from rung.wires.translation.anthropic import ANTHROPIC_TRANSLATOR
from rung.wires.translation.conversation import Conversation, Family, TextPart, ToolCallPart, ToolResultPart
from tests.wires.translation.anthropic_loopback import Loopback, loopback
from tests.wires.translation.anthropic_types import members_of, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = Conversation(family=Family.ANTHROPIC, model="claude")
USAGE = Usage(input=10, output=20, cache_read=30, reasoning=5)
ANSWER = Answer(
    family=Family.RESPONSES,
    id="resp_1",
    model="gpt",
    parts=(
        TextPart(text="I look."),
        ToolCallPart(id="call_1", name="read", arguments='{"path": "ü"}'),
        ToolCallPart(id="call_2", name="list", arguments=""),
    ),
    stop=Stop.TOOL_CALLS,
    usage=USAGE,
)
EVENTS: list[AnswerEvent] = [
    Started(id="resp_1", model="gpt"),
    TextDelta(text="I "),
    TextDelta(text="look."),
    CallStarted(index=0, id="call_1", name="read"),
    CallStarted(index=1, id="call_2", name="list"),
    CallDelta(index=0, json='{"path": '),
    CallDelta(index=0, json='"ü"}'),
    CallEnded(index=0),
    CallEnded(index=1),
    Ended(stop=Stop.TOOL_CALLS, usage=USAGE),
]
CONTENT: list[dict[str, Any]] = [
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "ü"}},
    {"type": "tool_use", "id": "call_2", "name": "list", "input": {}},
]
TASK: dict[str, Any] = {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
MANY = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(scope="module")
def sdk() -> Iterator[Loopback]:
    with loopback() as found:
        yield found


def content_of(message: Any) -> list[dict[str, Any]]:
    return [block.to_dict() for block in message.content]


def written() -> bytes:
    return ANTHROPIC_TRANSLATOR.stream_writer(CLIENT).write(EVENTS)


@pytest.mark.parametrize("is_beta", [False, True], ids=["messages", "beta"])
@MANY
@given(data=st.data())
def test_requests_of_the_sdk_come_back(sdk: Loopback, is_beta: bool, data: st.DataObject) -> None:
    """The SDK sends blocks and tools of every type that it has; each request is read and comes back as it was."""
    sdk.answer(ANTHROPIC_TRANSLATOR.write_answer(ANSWER, CLIENT).body)
    blocks = [
        data.draw(values_of(kind)) for kind in members_of(BetaContentBlockParam if is_beta else ContentBlockParam)
    ]
    results = [data.draw(values_of(kind)) for kind in members_of(tool_result_block_param.Content)]
    content = [*blocks, {"type": "tool_result", "tool_use_id": "a", "content": results}]
    tools = [data.draw(values_of(kind)) for kind in members_of(BetaToolUnionParam if is_beta else ToolUnionParam)]
    create: Any = sdk.client.beta.messages.create if is_beta else sdk.client.messages.create
    create(**TASK | {"messages": [{"role": "user", "content": content}], "tools": tools})
    sent = sdk.bodies[-1]
    assert sent["messages"][0]["content"] == content
    assert ANTHROPIC_TRANSLATOR.write_request(ANTHROPIC_TRANSLATOR.read_request(sent)).body == sent


def test_whole_answer_is_parsed(sdk: Loopback) -> None:
    """The SDK parses an answer of another wire: its content, its stop reason and its usage."""
    sdk.answer(ANTHROPIC_TRANSLATOR.write_answer(ANSWER, CLIENT).body)
    message = sdk.client.messages.create(**TASK)
    assert content_of(message) == CONTENT
    assert (message.id, message.model, message.stop_reason) == ("resp_1", "gpt", "tool_use")
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (10, 30)


@MANY
@given(cuts=st.lists(st.integers(0, len(written())), max_size=8))
def test_stream_is_accumulated(sdk: Loopback, cuts: list[int]) -> None:
    """The SDK's stream helper accumulates the same message from a stream, however it is split."""
    raw = written()
    places = [0, *sorted(cuts), len(raw)]
    sdk.stream([raw[start:end] for start, end in pairwise(places) if start < end])
    with sdk.client.messages.stream(**TASK) as stream:
        message = stream.get_final_message()
    assert content_of(message) == CONTENT
    assert (message.id, message.stop_reason, message.stop_sequence) == ("resp_1", "tool_use", None)
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (10, 30, 20)


def test_events_are_parsed_one_by_one(sdk: Loopback) -> None:
    """The SDK's plain stream gives each event, in the order of the wire, also in the beta."""
    sdk.stream([written()])
    kinds = [event.type for event in sdk.client.messages.create(**TASK, stream=True)]
    blocks = [["start", "delta", "delta", "stop"], ["start", "delta", "delta", "stop"], ["start", "stop"]]
    assert kinds == [
        "message_start",
        *[f"content_block_{kind}" for each in blocks for kind in each],
        "message_delta",
        "message_stop",
    ]
    with sdk.client.beta.messages.stream(**TASK) as stream:
        assert content_of(stream.get_final_message()) == CONTENT


def test_broken_stream_has_no_stop_reason(sdk: Loopback) -> None:
    """A stream that breaks off leaves the SDK with a message that has no stop reason."""
    sdk.stream([ANTHROPIC_TRANSLATOR.stream_writer(CLIENT).write(EVENTS[:-1])])
    with sdk.client.messages.stream(**TASK) as stream:
        assert stream.get_final_message().stop_reason is None


def test_error_event_raises(sdk: Loopback) -> None:
    """An error in a stream of another wire is raised by the SDK with its message."""
    failed = StreamFailed(name="error", data='{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}')
    sdk.stream([ANTHROPIC_TRANSLATOR.stream_writer(CLIENT).write([*EVENTS[:3], failed])])
    with pytest.raises(anthropic.APIStatusError, match="busy"), sdk.client.messages.stream(**TASK) as stream:
        stream.get_final_message()


def test_answer_is_sent_back_with_results(sdk: Loopback) -> None:
    """The ids of another wire's calls come back in the next request, in the calls and in their results."""
    sdk.answer(ANTHROPIC_TRANSLATOR.write_answer(ANSWER, CLIENT).body)
    message = sdk.client.messages.create(**TASK)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
        for block in message.content
        if block.type == "tool_use"
    ]
    history: list[Any] = [
        *TASK["messages"],
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": results},
    ]
    sdk.client.messages.create(**TASK | {"messages": history})
    turns = ANTHROPIC_TRANSLATOR.read_request(sdk.bodies[-1]).turns
    calls = [(part.id, part.name, part.arguments) for part in turns[1].parts if isinstance(part, ToolCallPart)]
    assert calls == [("call_1", "read", '{"path":"ü"}'), ("call_2", "list", "{}")]
    assert [part.call_id for part in turns[2].parts if isinstance(part, ToolResultPart)] == ["call_1", "call_2"]
