"""Answers of the Chat Completions API are read from any compatible server, and written for any client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.usage_formats import chat_usage
from rung.wires.translation.answer import Answer, Stop, Usage
from rung.wires.translation.chat_answer import FINISH_REASONS, read_answer, write_answer, write_usage
from rung.wires.translation.chat_request import read_request
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
)
from tests.wires.translation.chat_bodies import JSON

CLIENT = Conversation(family=Family.CHAT)
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def read(message: dict[str, Any], reason: str = "stop", **fields: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason, **fields}
    return read_answer({"id": "chatcmpl-1", "model": "m", "created": 7, "choices": [choice]})


def write(stop: Stop, *parts: Any, client: Conversation = CLIENT) -> tuple[dict[str, Any], tuple[str, ...]]:
    written = write_answer(Answer(family=Family.ANTHROPIC, id="msg_1", model="m", parts=parts, stop=stop), client)
    return written.body["choices"][0], written.dropped


def test_an_answer_is_read() -> None:
    """Text, calls, refusals and reasoning become parts of the answer."""
    found = read({"content": "a", "reasoning_content": "r", "tool_calls": [CALL]}, "tool_calls")
    assert found.parts == (
        ReasoningPart(family=Family.CHAT, block={"reasoning_content": "r"}, text="r"),
        TextPart(text="a"),
        ToolCallPart(id="1", name="f", arguments='{"a":1}'),
    )
    assert (found.id, found.model, found.created, found.stop) == ("chatcmpl-1", "m", 7, Stop.TOOL_CALLS)


@pytest.mark.parametrize(
    ("message", "reason", "fields", "stop"),
    [
        ({"content": "a"}, "stop", {}, Stop.END),
        ({"content": "a"}, "STOP", {}, Stop.END),
        ({"content": "a"}, "stop", {"stop_reason": "###"}, Stop.STOP_SEQUENCE),
        ({"content": "a"}, "length", {}, Stop.MAX_TOKENS),
        ({"content": "a"}, "content_filter", {}, Stop.REFUSAL),
        ({"refusal": "no"}, "stop", {}, Stop.REFUSAL),
        ({"tool_calls": [CALL]}, "stop", {}, Stop.TOOL_CALLS),
        ({"function_call": CALL["function"]}, "function_call", {}, Stop.TOOL_CALLS),
        ({"tool_calls": [CALL]}, "length", {}, Stop.MAX_TOKENS),
        ({"content": "a"}, "strange", {}, Stop.UNKNOWN),
    ],
)
def test_the_end_of_an_answer(message: dict[str, Any], reason: str, fields: dict[str, Any], stop: Stop) -> None:
    """Finish reasons are read, and calls and refusals count for more than "stop"."""
    assert read(message, reason, **fields).stop is stop


def test_calls_without_an_id_get_one() -> None:
    """A call that its server gives no id gets one that is unique and always the same."""
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    ids = [part.id for part in read({"tool_calls": [call, call]}).parts if isinstance(part, ToolCallPart)]
    assert len(set(ids)) == 2
    assert all(ids)
    assert ids == [part.id for part in read({"tool_calls": [call, call]}).parts if isinstance(part, ToolCallPart)]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(input=5, output=5, cache_read=4, cache_write=1, reasoning=2),
        ),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}, Usage(input=6, cache_read=4)),
        ({"prompt_tokens": 10, "cache_creation_input_tokens": 40}, Usage(input=10, cache_write=40)),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "total_tokens": 6,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input=1, output=5, reasoning=3),
        ),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, Usage()),
    ],
)
def test_usage_of_compatible_servers(usage: dict[str, Any], expected: Usage) -> None:
    """The names and sums of OpenAI, DeepSeek, OpenRouter, LiteLLM and xAI give the same neutral usage."""
    assert chat_usage(usage) == expected


COUNTS = st.integers(0, 1_000_000)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_usage_survives(fresh: int, output: int, cached: int, written: int) -> None:
    """Usage is the same after it was written and read."""
    usage = Usage(input=fresh, output=output, cache_read=cached, cache_write=written, reasoning=output // 2)
    assert chat_usage(write_usage(usage)) == usage


def test_an_answer_of_another_family_is_written() -> None:
    """Text and calls are written; reasoning, media and the provider's own blocks are dropped by name."""
    family = Family.ANTHROPIC
    choice, dropped = write(
        Stop.TOOL_CALLS,
        ReasoningPart(family=family, block={}),
        TextPart(text="a"),
        TextPart(text="b"),
        ForeignPart(family=family, kind="web_search_tool_result", block={}),
        TextPart(text="c"),
        MediaPart(kind=MediaKind.IMAGE, data="AAAA"),
        ToolCallPart(id="1", name="f", arguments=""),
    )
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert choice["message"] == {"role": "assistant", "content": "ab\n\nc", "refusal": None, "tool_calls": [call]}
    assert choice["finish_reason"] == "tool_calls"
    assert dropped == ("image", "reasoning", "web_search_tool_result")


def test_a_refusal_in_words_is_a_regular_answer() -> None:
    """A refusal ends by stop, as OpenAI's own do. Without words, a filter has ended the answer: content_filter."""
    choice, _ = write(Stop.REFUSAL, RefusalPart(text="no"))
    assert (choice["message"]["content"], choice["message"]["refusal"]) == (None, "no")
    assert choice["finish_reason"] == "stop"
    assert write(Stop.REFUSAL, TextPart(text="I be"))[0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("stop", list(Stop))
def test_every_end_has_a_finish_reason(stop: Stop) -> None:
    """Calls and finish reason agree: a complete answer with calls ends by them, and one without calls never does."""
    call = ToolCallPart(id="1", name="f", arguments="{}")
    is_complete = stop in (Stop.END, Stop.TOOL_CALLS, Stop.STOP_SEQUENCE, Stop.UNKNOWN)
    without = write(stop, TextPart(text="a"))[0]["finish_reason"]
    assert without == ("stop" if stop is Stop.TOOL_CALLS else FINISH_REASONS[stop])
    assert write(stop, call)[0]["finish_reason"] == ("tool_calls" if is_complete else FINISH_REASONS[stop])


WORDS = st.sampled_from(
    ["choices", "message", "content", "tool_calls", "function", "type", "name", "usage", "text", "audio"]
)
ANY = st.recursive(JSON | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5))


@given(st.dictionaries(WORDS, ANY))
def test_no_object_is_an_error(body: dict[str, Any]) -> None:
    """Any JSON object is read as an answer, and written again, without an error."""
    json.dumps(write_answer(read_answer(body), CLIENT).body)
    json.dumps(write_answer(read_answer({"choices": [{"message": body}]}), CLIENT).body)


def test_a_client_of_legacy_functions_gets_a_function_call() -> None:
    """A client that sent functions gets its answer as a function call."""
    client = read_request({"model": "m", "messages": [], "functions": [{"name": "f"}]})
    calls = [ToolCallPart(id=str(number), name="f", arguments="{}") for number in range(2)]
    choice, dropped = write(Stop.TOOL_CALLS, *calls, client=client)
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert "tool_calls" not in choice["message"]
    assert (choice["finish_reason"], dropped) == ("function_call", ("parallel_tool_calls",))
