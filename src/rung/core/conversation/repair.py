"""Repair a conversation's history, so that every tool call has a result and every result a call.

A history breaks when an agent is stopped in the middle of a turn, or when another model takes over. Both common
formats are supported: blocks (`tool_use`, `tool_result`) and fields (`tool_calls`, role `tool`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Message = Mapping[str, Any]

MISSING_RESULT_TEXT: Final = "[the result of this call was lost; call again if it is needed]"


def repair_history(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without orphan results, and with a stub for each missing result."""
    repaired: list[Message] = []
    open_calls: dict[str, str] = {}  # ids of calls without a result so far, and their format
    for message in messages:
        results = _result_ids(message)
        if open_calls and not results:
            repaired.extend(_stubs(open_calls))
            open_calls = {}
        cleaned = _without_orphans(message, open_calls)
        if cleaned is None:
            continue
        repaired.append(_with_missing_results(cleaned, open_calls, results))
        for call_id in results:
            open_calls.pop(call_id, None)
        if _is_user_message(cleaned) and results:
            open_calls = {}  # _with_missing_results added stubs for the others
        open_calls.update(_calls(cleaned))
    repaired.extend(_stubs(open_calls))
    return repaired


def _blocks(message: Message) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _is_user_message(message: Message) -> bool:
    return message.get("role") == "user"


def _of_type(blocks: Iterable[Any], kind: str) -> list[Mapping[str, Any]]:
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == kind]


def _calls(message: Message) -> dict[str, str]:
    """Return the ids of the message's tool calls, and their format."""
    calls = {str(block.get("id")): "block" for block in _of_type(_blocks(message), "tool_use")}
    fields = message.get("tool_calls")
    if isinstance(fields, list):
        calls.update({str(call.get("id")): "field" for call in fields if isinstance(call, Mapping)})
    return calls


def _result_ids(message: Message) -> list[str]:
    if message.get("role") == "tool":
        return [str(message.get("tool_call_id"))]
    return [str(block.get("tool_use_id")) for block in _of_type(_blocks(message), "tool_result")]


def _without_orphans(message: Message, open_calls: Mapping[str, str]) -> Message | None:
    """Return the message without results that belong to no open call; None if nothing is left."""
    results = _result_ids(message)
    if all(call_id in open_calls for call_id in results):
        return message
    if message.get("role") == "tool":
        return None
    blocks = [
        block
        for block in _blocks(message)
        if not (isinstance(block, Mapping) and block.get("type") == "tool_result")
        or str(block.get("tool_use_id")) in open_calls
    ]
    return {**message, "content": blocks} if blocks else None


def _with_missing_results(message: Message, open_calls: Mapping[str, str], results: Sequence[str]) -> Message:
    """Add stubs for missing results: in the block format, all results of a turn must be in one message."""
    missing = [call for call, form in open_calls.items() if form == "block" and call not in results]
    if not missing or not results or message.get("role") == "tool":
        return message
    return {**message, "content": [*map(_stub_block, missing), *_blocks(message)]}


def _stubs(open_calls: Mapping[str, str]) -> list[Message]:
    blocks = [_stub_block(call) for call, form in open_calls.items() if form == "block"]
    stubs: list[Message] = [{"role": "user", "content": blocks}] if blocks else []
    fields = (call for call, form in open_calls.items() if form == "field")
    return stubs + [{"role": "tool", "tool_call_id": call, "content": MISSING_RESULT_TEXT} for call in fields]


def _stub_block(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": MISSING_RESULT_TEXT, "is_error": True}
