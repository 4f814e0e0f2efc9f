"""What an agent has done, read off the conversation that its next request carries: the last calls and their outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.wires.wire_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STEPS: Final = 48  # the last of them; no rule looks further back for what it says at once
_MESSAGES: Final = 4 * STEPS  # that are looked through for them
_ARGUMENTS: Final = 20_000  # characters: longer ones are compared as text


class ConversationStep(NamedTuple):
    """A tool call of a conversation and its outcome; a turn without a call has no tool, and its text as arguments."""

    tool: str
    args: Any
    result: Any = ""
    error: bool = False


Found = list[ConversationStep]  # the newest first while it is read
Outcomes = dict[str, tuple[Any, bool]]  # by a call's id: what came of it, and whether that is an error


def steps(wire: str, body: Mapping[str, Any]) -> tuple[list[ConversationStep], int]:
    """The last steps since a person spoke, oldest first, and how many of them are new; a turn without a call has no tool."""
    said = body.get("input" if wire == "responses" else "messages")
    if not isinstance(said, list):
        return [], 0
    found: Found = []
    outcomes: Outcomes = {}
    read = _READ[wire]
    new = 0
    for message in reversed(said[-_MESSAGES:]):
        if not found:
            new = len(outcomes)  # what came since the model was last asked
        if not isinstance(message, dict) or not read(message, found, outcomes) or len(found) >= STEPS:
            break
    return found[::-1], max(1, new)


def _messages(message: Mapping[str, Any], found: Found, outcomes: Outcomes) -> bool:
    """Anthropic's: false when a person spoke, and nothing before it counts."""
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if message.get("role") == "user":
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            outcomes[str(block.get("tool_use_id"))] = (_text(block.get("content")), block.get("is_error") is True)
        return bool(results)
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    for block in reversed(calls):
        _take(found, outcomes, str(block.get("id")), block.get("name"), block.get("input"))
    if not calls:
        _say(found, _text(content))
    return True


def _chat(message: Mapping[str, Any], found: Found, outcomes: Outcomes) -> bool:
    """OpenAI's Chat Completions."""
    role = message.get("role")
    if role == "tool":
        outcomes[str(message.get("tool_call_id"))] = (_text(message.get("content")), False)
        return True
    if role != "assistant":
        return role in ("system", "developer")
    calls = message.get("tool_calls")
    calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    for call in reversed(calls):
        made = call.get("function")
        if isinstance(made, dict):
            _take(found, outcomes, str(call.get("id")), made.get("name"), _arguments(made.get("arguments")))
    if not calls:
        _say(found, _text(message.get("content")))
    return True


def _responses(item: Mapping[str, Any], found: Found, outcomes: Outcomes) -> bool:
    """OpenAI's Responses, where the conversation is in the request and not kept by the provider."""
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "function_call_output":
        outcomes[str(item.get("call_id"))] = (_text(item.get("output")), False)
    elif kind == "function_call":
        _take(found, outcomes, str(item.get("call_id")), item.get("name"), _arguments(item.get("arguments")))
    elif kind == "message" and role == "assistant":
        _say(found, _text(item.get("content")))
    elif kind == "message" and role not in ("system", "developer"):
        return False
    return True


_READ: Final[Mapping[str, Callable[[Mapping[str, Any], Found, Outcomes], bool]]] = {
    "messages": _messages,
    "chat": _chat,
    "responses": _responses,
}


def _take(found: Found, outcomes: Outcomes, call: str, name: object, args: Any) -> None:
    outcome = outcomes.pop(call, None)
    if outcome is not None and isinstance(name, str):  # one without an outcome has not been made yet
        found.append(ConversationStep(name, args, outcome[0], outcome[1]))


def _say(found: Found, text: str) -> None:
    if text:
        found.append(ConversationStep("", text))


def _text(content: Any) -> str:
    """The text of a content, whole or in parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _arguments(text: Any) -> Any:
    made = parse_json(text) if isinstance(text, str) and len(text) <= _ARGUMENTS else None
    return text if made is None else made
