"""Answers of Anthropic's Messages API are read, come back, and can be written for answers of other wires."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from hypothesis import given
from hypothesis import strategies as st

from rung.wires.translation.answer import Answer, AnswerPart, Stop, Usage
from rung.wires.translation.anthropic import ANTHROPIC_TRANSLATOR
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
from tests.wires.test_wires import TABLES

CLIENT = Conversation(family=Family.ANTHROPIC, model="claude")
USAGE = {
    "input_tokens": 5,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 400,
    "output_tokens": 9,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens_details": {"thinking_tokens": 4},
}
BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "text", "text": "Hello", "citations": None},
    {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "q"}},
    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
]
STOPS = {
    "end_turn": Stop.END,
    "tool_use": Stop.TOOL_CALLS,
    "max_tokens": Stop.MAX_TOKENS,
    "stop_sequence": Stop.STOP_SEQUENCE,
    "refusal": Stop.REFUSAL,
    "pause_turn": Stop.PAUSE,
    "model_context_window_exceeded": Stop.CONTEXT_WINDOW,
}


def message(**fields: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": BLOCKS,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
        **fields,
    }


def written(*parts: AnswerPart, stop: Stop = Stop.END) -> tuple[dict[str, Any], tuple[str, ...]]:
    answer = Answer(family=Family.CHAT, id="chatcmpl-1", model="gpt", parts=parts, stop=stop)
    found = ANTHROPIC_TRANSLATOR.write_answer(answer, CLIENT)
    Message.model_validate(found.body, strict=True)
    return found.body, found.dropped


@pytest.mark.parametrize("reason", [*STOPS, "compaction"])
def test_own_answer_comes_back(reason: str) -> None:
    """An answer with all kinds of content comes back as it was, with each stop reason."""
    body = message(stop_reason=reason, container={"id": "c", "expires_at": "2030-01-01T00:00:00Z"})
    answer = ANTHROPIC_TRANSLATOR.read_answer(body)
    assert answer.stop is STOPS.get(reason, Stop.UNKNOWN)
    found = ANTHROPIC_TRANSLATOR.write_answer(answer, CLIENT)
    assert (found.body, found.dropped) == (body, ())


def test_usage_and_parts() -> None:
    """Token counts are kept apart: cache reads, cache writes, those for an hour, and reasoning."""
    answer = ANTHROPIC_TRANSLATOR.read_answer(message(stop_reason="stop_sequence", stop_sequence="END"))
    assert answer.usage == Usage(input=5, output=9, cache_read=400, cache_write=30, cache_write_1h=20, reasoning=4)
    assert (answer.id, answer.model, answer.stop_sequence) == ("msg_1", "claude", "END")
    assert [type(part) for part in answer.parts] == [ReasoningPart, ReasoningPart, TextPart, ForeignPart, ToolCallPart]


@given(body=TABLES)
def test_any_json_is_read(body: dict[str, Any]) -> None:
    """An answer of any shape is read, and written as a message that the SDK accepts."""
    answer = ANTHROPIC_TRANSLATOR.read_answer(body)
    found = ANTHROPIC_TRANSLATOR.write_answer(answer, CLIENT).body
    assert Message.construct(**found).role == "assistant"


@given(stop=st.sampled_from(Stop))
def test_every_stop_can_be_written(stop: Stop) -> None:
    """Each reason of other wires has a word; those that this API lacks are named."""
    body, dropped = written(TextPart(text="x"), stop=stop)
    assert STOPS.get(body["stop_reason"]) is stop or dropped == ("stop_reason",)


def test_calls_end_with_tool_use() -> None:
    """An answer with calls ends with tool_use, even if its provider gave no reason for it, and its ids are valid."""
    body, dropped = written(TextPart(text=""), ToolCallPart(id="call.1", name="f", arguments='{"a":1}'))
    assert body["content"] == [{"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}]
    assert (body["stop_reason"], dropped) == ("tool_use", ())


def test_calls_without_ids_get_ids() -> None:
    """Calls without an id get different ids, which belong to this answer."""
    body, _ = written(*[ToolCallPart(id="", name="f", arguments="{}")] * 2)
    assert [block["id"] for block in body["content"]] == ["toolu_chatcmpl-1", "toolu_chatcmpl-1_2"]


def test_refusal_is_text() -> None:
    """A refusal is text with the stop reason refusal."""
    body, _ = written(RefusalPart(text="No."))
    assert (body["content"], body["stop_reason"]) == ([{"type": "text", "text": "No."}], "refusal")


def test_content_of_other_families_is_named() -> None:
    """Reasoning, provider content and media of other families are named."""
    body, dropped = written(
        ReasoningPart(family=Family.CHAT, block={}, text="hm"),
        ForeignPart(family=Family.CHAT, block={}, kind="annotations"),
        MediaPart(kind=MediaKind.IMAGE, data="iVBORw0KGgo=", mime_type="image/png"),
    )
    assert body["content"] == [{"type": "text", "text": "[image was left out]"}]
    assert dropped == ("annotations", "image", "reasoning")
