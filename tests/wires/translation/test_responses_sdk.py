"""The openai package on both ends: its requests are read, and it parses what the writers write."""

from __future__ import annotations

import random
import types
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import openai
import pytest
from openai.types.responses import Response, ResponseInputItemParam, ToolParam
from pydantic import BaseModel
from typing_extensions import is_typeddict

from rung.wires.translation.answer import (
    Answer,
    AnswerEvent,
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    RefusalDelta,
    Started,
    Stop,
    StreamFailed,
    TextDelta,
    Usage,
)
from rung.wires.translation.conversation import Family, ForeignPart, RefusalPart, TextPart, ToolCallPart
from rung.wires.translation.responses import RESPONSES_TRANSLATOR
from tests.wires.translation.responses_loopback import ResponsesLoopback, responses_loopback

# Items that are no content of one family alone. All others are foreign to other wires.
NEUTRAL = {
    "message", "function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call",
    "apply_patch_call_output", "tool_search_call", "tool_search_output", "additional_tools",
}  # fmt: skip
TOOLS: list[Any] = [
    {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
    {"type": "local_shell"},
]
USAGE = Usage(input=10, output=7, cache_read=4, cache_write=2, reasoning=3)


def examples(hint: Any, depth: int = 0) -> list[Any]:
    """Return values of a type: one for each alternative, and each with all of its fields."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Required, NotRequired) or str(origin) == "typing.Annotated":
        return examples(inner[0], depth)
    if origin is Literal:
        return [inner[0]]
    if origin in (Union, types.UnionType):
        return [value for one in inner if one is not type(None) for value in examples(one, depth)]
    if is_typeddict(hint):
        fields = {name: examples(one, depth + 1) for name, one in get_type_hints(hint).items() if depth < 5}
        most = max((len(values) for values in fields.values()), default=1) if depth < 2 else 1
        return [{name: values[at % len(values)] for name, values in fields.items() if values} for at in range(most)]
    if origin in (list, Iterator) or str(origin).endswith(("Iterable'>", "SequenceNotStr", "SequenceNotStr'>")):
        return [examples(inner[0], depth + 1)[:3]] if inner else [[]]
    if origin is dict or hint is object:
        return [{"key": "value"}]
    return [{int: 1, float: 0.5, bool: True}.get(hint, "text")]


@pytest.fixture
def provider() -> Iterator[ResponsesLoopback]:
    with responses_loopback() as told:
        yield told


@pytest.fixture
def client(provider: ResponsesLoopback) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=provider.url, api_key="sk-lab", max_retries=0) as found:
        yield found


def whole(*parts: Any, stop: Stop = Stop.END) -> Answer:
    return Answer(family=Family.ANTHROPIC, id="msg_1", model="m", parts=parts, stop=stop, usage=USAGE, created=5)


def test_every_item_of_the_package_is_read(provider: ResponsesLoopback, client: openai.OpenAI) -> None:
    """Requests with every type of item come back exactly, and only the provider's own items are foreign."""
    provider.answer = RESPONSES_TRANSLATOR.write_answer(whole(), RESPONSES_TRANSLATOR.read_request({})).body
    items = examples(ResponseInputItemParam)
    seen = set()
    for item in items:
        client.responses.create(model="m", input=[item])
        conversation = RESPONSES_TRANSLATOR.read_request(provider.bodies[-1])
        assert RESPONSES_TRANSLATOR.write_request(conversation).body == provider.bodies[-1]
        kinds = [part.kind for turn in conversation.turns for part in turn.parts if isinstance(part, ForeignPart)]
        seen.add(item["type"])
        is_foreign = item["type"] not in NEUTRAL or item.get("execution") == "server"
        assert bool(kinds) == is_foreign, item
    assert seen > NEUTRAL
    assert len(seen) >= 30


def test_every_tool_of_the_package_is_read(provider: ResponsesLoopback, client: openai.OpenAI) -> None:
    """Requests with every type of tool come back exactly."""
    provider.answer = RESPONSES_TRANSLATOR.write_answer(whole(), RESPONSES_TRANSLATOR.read_request({})).body
    tools = examples(ToolParam)
    client.responses.create(model="m", input="hi", tools=tools)
    conversation = RESPONSES_TRANSLATOR.read_request(provider.bodies[-1])
    assert RESPONSES_TRANSLATOR.write_request(conversation).body == provider.bodies[-1]
    assert {"function", "custom", "namespace", "web_search", "mcp"} <= {tool["type"] for tool in tools}


def test_the_package_parses_a_whole_answer(provider: ResponsesLoopback, client: openai.OpenAI) -> None:
    """Text, a refusal and calls of a function, a custom tool and a shell are parsed as what they are, with their usage."""
    call = '{"input":"*** Begin"}'
    parts = (
        TextPart(text="Hello"),
        RefusalPart(text="no"),
        ToolCallPart(id="c1", name="look", arguments=""),
        ToolCallPart(id="c2", name="patch", arguments=call),
        ToolCallPart(id="c3", name="local_shell", arguments='{"command":["ls"]}'),
    )
    conversation = RESPONSES_TRANSLATOR.read_request({"model": "m", "input": "hi", "tools": TOOLS, "temperature": 0.5})
    provider.answer = RESPONSES_TRANSLATOR.write_answer(whole(*parts, stop=Stop.TOOL_CALLS), conversation).body
    Response.model_validate(provider.answer)
    got = client.responses.create(model="m", input="hi", tools=TOOLS)
    assert got.output_text == "Hello"
    assert [item.type for item in got.output] == ["message", "function_call", "custom_tool_call", "local_shell_call"]
    assert got.output[1].arguments == "{}"  # type: ignore[union-attr]  # a function call
    assert got.output[2].input == "*** Begin"  # type: ignore[union-attr]  # a custom tool call
    assert got.output[3].action.command == ["ls"]  # type: ignore[union-attr]  # a shell call
    assert (got.temperature, got.status, len(got.tools)) == (0.5, "completed", 3)
    assert got.usage is not None
    assert (got.usage.input_tokens, got.usage.input_tokens_details.cached_tokens, got.usage.total_tokens) == (16, 4, 23)


class City(BaseModel):
    """Answer that a client demands."""

    name: str


def test_the_package_parses_a_stream(provider: ResponsesLoopback, client: openai.OpenAI) -> None:
    """A stream in chunks of any size has the text, the parsed output and the calls, and ends with the whole response."""
    conversation = RESPONSES_TRANSLATOR.read_request({"model": "m", "input": "hi", "tools": TOOLS, "stream": True})
    written = RESPONSES_TRANSLATOR.stream_writer(conversation).write(
        [
            Started(id="msg_1", model="m", created=5),
            *(TextDelta(text=text) for text in ('{"name"', ':"Ulm"', "}")),
            CallStarted(index=0, id="c1", name="look"),
            CallDelta(index=0, json='{"a'),
            CallDelta(index=0, json='":1}'),
            CallEnded(index=0),
            CallStarted(index=1, id="c2", name="patch"),
            CallDelta(index=1, json='{"input":"*** Begin"}'),
            CallEnded(index=1),
            Ended(stop=Stop.TOOL_CALLS, usage=USAGE),
        ]
    )
    provider.answer = split(written, random.Random(4))
    with client.responses.stream(model="m", input="hi", text_format=City, tools=TOOLS) as stream:
        names = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_parsed == City(name="Ulm")
    assert [item.type for item in final.output] == ["message", "function_call", "custom_tool_call"]
    assert final.output[1].arguments == '{"a":1}'  # type: ignore[union-attr]  # a function call
    assert final.output[2].input == "*** Begin"  # type: ignore[union-attr]  # a custom tool call
    assert names == [
        "response.created", "response.in_progress",
        "response.output_item.added", "response.content_part.added",
        "response.output_text.delta", "response.output_text.delta", "response.output_text.delta",
        "response.output_text.done", "response.content_part.done", "response.output_item.done",
        "response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.delta",
        "response.function_call_arguments.done", "response.output_item.done",
        "response.output_item.added", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
        "response.output_item.done", "response.completed",
    ]  # fmt: skip


def test_the_package_sees_a_refusal_that_reached_its_limit(provider: ResponsesLoopback, client: openai.OpenAI) -> None:
    """A stream that ends at the limit is incomplete, and its refusal is one."""
    conversation = RESPONSES_TRANSLATOR.read_request({"model": "m", "input": "hi"})
    events: list[AnswerEvent] = [
        Started(id="x", model="m"),
        RefusalDelta(text="I can"),
        RefusalDelta(text="not"),
        Ended(stop=Stop.MAX_TOKENS),
    ]
    provider.answer = [RESPONSES_TRANSLATOR.stream_writer(conversation).write(events)]
    with client.responses.stream(model="m", input="hi") as stream:
        last: Any = list(stream)[-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"
    assert last.response.output[0].content[0].refusal == "I cannot"


def test_the_package_sees_a_failed_stream(provider: ResponsesLoopback, client: openai.OpenAI) -> None:
    """A failure in the middle is a failed response with the code that clients of this wire know."""
    conversation = RESPONSES_TRANSLATOR.read_request({"model": "m", "input": "hi"})
    failure = StreamFailed(name="error", data='{"error":{"type":"rate_limit_error","message":"slow down"}}')
    writer = RESPONSES_TRANSLATOR.stream_writer(conversation)
    provider.answer = [writer.write([Started(id="x", model="m"), TextDelta(text="a"), failure, TextDelta(text="b")])]
    with client.responses.stream(model="m", input="hi") as stream:
        last: Any = list(stream)[-1]
    assert last.type == "response.failed"
    assert (last.response.error.code, last.response.error.message) == ("rate_limit_exceeded", "slow down")


def split(data: bytes, chance: random.Random) -> list[bytes]:
    """Split bytes at random places."""
    places = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(40))})
    return [data[start:end] for start, end in pairwise(places)]
