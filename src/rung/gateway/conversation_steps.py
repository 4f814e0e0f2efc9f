"""Extracts an agent's last tool calls and their outcomes from the conversation in a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.wires.gemini_messages import to_messages
from rung.wires.wire_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_STEPS: Final = 48  # loop rules look no further back
_MAX_MESSAGES: Final = 4 * MAX_STEPS  # searched for steps
_FIELDS: Final = {"responses": "input", "gemini": "contents"}  # that hold a conversation, if not `messages`
_MAX_ARGUMENT_CHARACTERS: Final = 20_000  # longer arguments are compared as text, not parsed


class ConversationStep(NamedTuple):
    """A tool call of a conversation and its outcome; a turn without a call has no tool, and its text as arguments."""

    tool: str
    args: Any
    result: Any = ""
    error: bool = False


Steps = list[ConversationStep]  # newest first while reading
Outcomes = dict[str, tuple[Any, bool]]  # by call id: result, and whether it is an error


def recent_steps(wire: str, body: Mapping[str, Any]) -> tuple[list[ConversationStep], int]:
    """Return the last steps since the last user message, oldest first, and how many of them are new."""
    messages = body.get(_FIELDS.get(wire, "messages"))
    if not isinstance(messages, list):
        return [], 0
    messages = messages[-_MAX_MESSAGES:]
    if wire == "gemini":
        messages = to_messages(content for content in messages if isinstance(content, dict))
    steps: Steps = []
    outcomes: Outcomes = {}
    read = _READERS[wire]
    new_count = 0
    for message in reversed(messages):
        if not steps:
            new_count = len(outcomes)  # results since the last model turn
        if not isinstance(message, dict) or not read(message, steps, outcomes) or len(steps) >= MAX_STEPS:
            break
    return steps[::-1], max(1, new_count)


def _messages(message: Mapping[str, Any], steps: Steps, outcomes: Outcomes) -> bool:
    """Read an Anthropic message; return False at a user message, where reading stops."""
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if message.get("role") == "user":
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            outcomes[str(block.get("tool_use_id"))] = (_text(block.get("content")), block.get("is_error") is True)
        return bool(results)
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    for block in reversed(calls):
        _add_call(steps, outcomes, str(block.get("id")), block.get("name"), block.get("input"))
    if not calls:
        _add_text(steps, _text(content))
    return True


def _chat(message: Mapping[str, Any], steps: Steps, outcomes: Outcomes) -> bool:
    """Read an OpenAI Chat Completions message; return False at a user message."""
    role = message.get("role")
    if role == "tool":
        outcomes[str(message.get("tool_call_id"))] = (_text(message.get("content")), False)
        return True
    if role != "assistant":
        return role in ("system", "developer")
    calls = message.get("tool_calls")
    calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    for call in reversed(calls):
        function = call.get("function")
        if isinstance(function, dict):
            _add_call(steps, outcomes, str(call.get("id")), function.get("name"), _arguments(function.get("arguments")))
    if not calls:
        _add_text(steps, _text(message.get("content")))
    return True


def _responses(item: Mapping[str, Any], steps: Steps, outcomes: Outcomes) -> bool:
    """Read an OpenAI Responses item; return False at a user message. Needs the conversation in the request."""
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "function_call_output":
        outcomes[str(item.get("call_id"))] = (_text(item.get("output")), False)
    elif kind == "function_call":
        _add_call(steps, outcomes, str(item.get("call_id")), item.get("name"), _arguments(item.get("arguments")))
    elif kind == "message" and role == "assistant":
        _add_text(steps, _text(item.get("content")))
    elif kind == "message" and role not in ("system", "developer"):
        return False
    return True


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any], Steps, Outcomes], bool]]] = {
    "messages": _messages,
    "chat": _chat,
    "responses": _responses,
    "gemini": _messages,
}


def _add_call(steps: Steps, outcomes: Outcomes, call_id: str, name: object, args: Any) -> None:
    outcome = outcomes.pop(call_id, None)
    if outcome is not None and isinstance(name, str):  # a call without an outcome was not executed yet
        steps.append(ConversationStep(name, args, outcome[0], outcome[1]))


def _add_text(steps: Steps, text: str) -> None:
    if text:
        steps.append(ConversationStep("", text))


def _text(content: Any) -> str:
    """Return the text of a message content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _arguments(text: Any) -> Any:
    value = parse_json(text) if isinstance(text, str) and len(text) <= _MAX_ARGUMENT_CHARACTERS else None
    return text if value is None else value
