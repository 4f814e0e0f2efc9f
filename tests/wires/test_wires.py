"""Whatever a request or an answer has in it, the wires read it without an error, and no rung loses the task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.core.conversation.compaction import compact_messages
from rung.wires.registry import CHAT, GEMINI, MESSAGES, RESPONSES

if TYPE_CHECKING:
    from rung.wires.registry import WireFormat

WIRES = (MESSAGES, CHAT, RESPONSES, GEMINI)
NAMES = [
    "messages",
    "input",
    "content",
    "role",
    "type",
    "text",
    "tool_use",
    "tool_result",
    "tool_calls",
    "tool_call_id",
    "function",
    "name",
    "arguments",
    "id",
    "model",
    "tool_use_id",
    "call_id",
    "output",
    "function_call",
    "function_call_output",
    "thinking",
    "reasoning",
    "stop_reason",
    "finish_reason",
    "status",
    "choices",
    "message",
    "usage",
    "max_tokens",
    "tools",
    "input_schema",
    "parameters",
    "required",
    "error",
    "incomplete_details",
    "reason",
    "user",
    "assistant",
    "tool",
    "system",
    "output_text",
    "refusal",
    "completed",
    "incomplete",
    "end_turn",
    "stop",
    "length",
    "contents",
    "parts",
    "functionCall",
    "functionResponse",
    "args",
    "response",
    "thought",
    "thoughtSignature",
    "inlineData",
    "generationConfig",
    "candidates",
    "finishReason",
    "promptFeedback",
    "blockReason",
    "usageMetadata",
    "STOP",
]  # words are easier to read
LEAVES = st.none() | st.booleans() | st.integers(-9, 9**9) | st.text(max_size=6) | st.sampled_from(NAMES)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=6)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(body=TABLES)
def test_any_request_can_be_changed(wire: WireFormat, body: dict[str, Any]) -> None:
    """Each rung makes something of any JSON, changes nothing in place, and what it makes is JSON again."""
    bodies = wire.bodies
    before = json.dumps(body, sort_keys=True)
    bodies.limit(body)
    bodies.tool_schemas(body)
    bodies.allows_empty(body)
    made = [
        bodies.with_limit(body, 100),
        bodies.with_model(body, "other"),
        bodies.with_repaired_history(body),
        bodies.with_user_message(body, "go on"),
        bodies.with_history(body, compact_messages(bodies.history(body), 50)),
        bodies.build_request("other", "words", 10),
    ]
    assert json.dumps(body, sort_keys=True) == before
    assert all(json.loads(json.dumps(one)) == one for one in made)
    assert wire is GEMINI or made[1]["model"] == "other"  # in Gemini's path
    assert "go on" in json.dumps(made[3])


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(answers=st.lists(TABLES, min_size=1, max_size=3))
def test_any_answer_can_be_read(wire: WireFormat, answers: list[dict[str, Any]]) -> None:
    """An answer of any shape is judged and read; only one that is whole can be good."""
    bodies = wire.bodies
    for answer in answers:
        bodies.text_of(answer)
        bodies.tool_calls(answer)
        bodies.validate(answer)
        usage = answer.get("usage")
        wire.read_usage(usage if isinstance(usage, dict) else {})
    assert bodies.validate({}) is not None
