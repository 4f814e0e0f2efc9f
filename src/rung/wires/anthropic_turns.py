"""Turns of an Anthropic conversation that another provider began: the API rejects thinking for the rest of them."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from rung.wires.wire_json import object_field, object_list

# Ids of Anthropic's tool calls begin with toolu_, on every cloud. Bodies without others need not be parsed.
_FOREIGN_RESULT: Final = re.compile(rb'"tool_use_id"\s*:\s*"(?!toolu_)')
_CLEAR_THINKING: Final = "clear_thinking"
_THINKING: Final = ("thinking", "redacted_thinking")


def without_impossible_thinking(body: bytes) -> bytes:
    """Return the request without `thinking` in the middle of a turn that began without it; the same object if it may stay.

    Thinking that the model adapts by itself has no such rule.
    """
    if _FOREIGN_RESULT.search(body) is None:
        return body
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:  # left to the upstream to reject
        return body
    if not isinstance(parsed, dict) or object_field(parsed, "thinking").get("type") != "enabled":
        return body
    if not _is_within_turn_without_thinking(object_list(parsed, "messages")):
        return body
    return orjson.dumps(without_thinking_settings(parsed))


def without_thinking_settings(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request without `thinking`, and without edits of its context that need it."""
    left = {name: value for name, value in body.items() if name != "thinking"}
    management = object_field(body, "context_management")
    edits = object_list(management, "edits")
    kept = [edit for edit in edits if not str(edit.get("type")).startswith(_CLEAR_THINKING)]
    if len(kept) < len(edits):
        left["context_management"] = {**management, "edits": kept}
    return left


def _is_within_turn_without_thinking(messages: list[dict[str, Any]]) -> bool:
    """Return whether tool results come last, and the answer with their calls does not begin with thinking."""
    answers = [message for message in messages if message.get("role") == "assistant"]
    if not answers or not any(block.get("type") == "tool_result" for block in object_list(messages[-1], "content")):
        return False
    first = next(iter(object_list(answers[-1], "content")), {})
    return first.get("type") not in _THINKING
