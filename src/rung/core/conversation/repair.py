"""Mending a conversation's history: every tool call has its result, and every result its call.

A history is broken when an agent was stopped in the middle of a turn, or when another model takes over.
Both common forms are read: blocks (`tool_use`, `tool_result`) and fields (`tool_calls`, role `tool`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Message = Mapping[str, Any]

LOST: Final = "[the result of this call was lost; call again if it is needed]"


def mended(messages: Sequence[Message]) -> list[Message]:
    """The messages with orphan results left out and a stub for each call whose result is missing."""
    kept: list[Message] = []
    open_calls: dict[str, str] = {}  # ids of calls not answered yet, and the form they came in
    for message in messages:
        results = _result_ids(message)
        if open_calls and not results:
            kept.extend(_stubs(open_calls))
            open_calls = {}
        cleaned = _without_orphans(message, open_calls)
        if cleaned is None:
            continue
        kept.append(_answering_all(cleaned, open_calls, results))
        for answered in results:
            open_calls.pop(answered, None)
        if _has_blocks(cleaned) and results:
            open_calls = {}  # what it did not answer was stubbed in it
        open_calls.update(_calls(cleaned))
    kept.extend(_stubs(open_calls))
    return kept


def _blocks(message: Message) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _has_blocks(message: Message) -> bool:
    return message.get("role") == "user"


def _of_type(blocks: Iterable[Any], kind: str) -> list[Mapping[str, Any]]:
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == kind]


def _calls(message: Message) -> dict[str, str]:
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
    """The message without results nobody called for; None when nothing is left of it."""
    results = _result_ids(message)
    if all(answered in open_calls for answered in results):
        return message
    if message.get("role") == "tool":
        return None
    left = [
        block
        for block in _blocks(message)
        if not (isinstance(block, Mapping) and block.get("type") == "tool_result")
        or str(block.get("tool_use_id")) in open_calls
    ]
    return {**message, "content": left} if left else None


def _answering_all(message: Message, open_calls: Mapping[str, str], results: Sequence[str]) -> Message:
    """In the block form all results of one turn stand in one message: add those that are missing."""
    missing = [call for call, form in open_calls.items() if form == "block" and call not in results]
    if not missing or not results or message.get("role") == "tool":
        return message
    return {**message, "content": [*map(_stub_block, missing), *_blocks(message)]}


def _stubs(open_calls: Mapping[str, str]) -> list[Message]:
    blocks = [_stub_block(call) for call, form in open_calls.items() if form == "block"]
    stubs: list[Message] = [{"role": "user", "content": blocks}] if blocks else []
    fields = (call for call, form in open_calls.items() if form == "field")
    return stubs + [{"role": "tool", "tool_call_id": call, "content": LOST} for call in fields]


def _stub_block(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": LOST, "is_error": True}
