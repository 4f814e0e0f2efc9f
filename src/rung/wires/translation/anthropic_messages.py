"""Turns of other wires, written as the messages that Anthropic's Messages API demands.

Roles alternate, the first and the last message are the user's, every call has one result in the next message and before
any other content, ids are unique, and no text is empty.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, assert_never

from rung.core.conversation.repair import MISSING_RESULT_TEXT
from rung.wires.translation.anthropic_block_reader import text_of
from rung.wires.translation.anthropic_block_writer import read_arguments, write_block
from rung.wires.translation.anthropic_media import left_out, write_media
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaPart,
    Part,
    ReasoningPart,
    RefusalPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
)
from rung.wires.translation.dropped_names import name_extras as name_said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Block = dict[str, Any]
_OWN: Final = Family.ANTHROPIC
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_-]")  # in the id of a call
# Roles of blocks whatever turn they stand in, because the API rejects them elsewhere.
_ROLES: Final = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}
_FIRST_TEXT: Final = "…"
_LAST_TEXT: Final = "Continue."  # current models reject a conversation that ends with the assistant


class CallIds:
    """Ids of the calls of one conversation: valid and unique. The same history gives the same ids."""

    def __init__(self, answer_id: str = "") -> None:
        # A call without an id gets one with the id of its answer, so that the next answers have other ids.
        self._default = f"toolu_{valid_id(answer_id)}" if answer_id else "toolu"
        self._used: set[str] = set()
        self._current: dict[str, str] = {}  # the client's id, and the id of its latest call

    def assign(self, client_id: str) -> str:
        """Return the id of another call. Some servers use an id again in each turn."""
        base = valid_id(client_id) or self._default
        assigned, number = base, 1
        while assigned in self._used:
            number += 1
            assigned = f"{base}_{number}"
        self._used.add(assigned)
        self._current[client_id] = assigned
        return assigned

    def find(self, client_id: str) -> str:
        """Return the id of the call that a result belongs to."""
        return self._current.get(client_id, client_id)


def valid_id(text: str) -> str:
    """Return an id with valid characters only."""
    return _NOT_ALLOWED.sub("_", text)


def write_messages(turns: Sequence[Turn], dropped: set[str]) -> list[Block]:
    """Write the turns."""
    messages: list[Block] = []
    ids = CallIds()
    for turn in turns:
        speaker = "assistant" if turn.speaker is Speaker.ASSISTANT else "user"
        for block in _write_turn(turn, ids, dropped):
            role = _ROLES.get(block["type"], speaker)
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"].append(block)
            else:
                messages.append({"role": role, "content": [block]})
    if not messages or messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": _FIRST_TEXT}]})
    if messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": []})
    return _pair(messages, dropped)


def _pair(messages: list[Block], dropped: set[str]) -> list[Block]:
    """Put the result of each call, or a stub for it, at the beginning of the next message."""
    calls: list[str] = []
    for message in messages:
        if message["role"] == "user":
            message["content"] = _with_results(calls, message["content"], dropped)
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    last = messages[-1]
    last["content"] = last["content"] or [{"type": "text", "text": _LAST_TEXT}]
    return messages


def _with_results(calls: Sequence[str], blocks: Sequence[Block], dropped: set[str]) -> list[Block]:
    results: dict[str, Block] = {}
    others: list[Block] = []
    for block in blocks:
        if block["type"] != "tool_result":
            others.append(block)
        elif block["tool_use_id"] in calls and block["tool_use_id"] not in results:
            results[block["tool_use_id"]] = block
        else:  # the API rejects a result without a call; its text may still matter
            dropped.add("tool_result")
            text = text_of(block.get("content"))
            others.append({"type": "text", "text": f"[result of an earlier tool call]\n{text}"})
    return [results.get(call) or _stub(call) for call in calls] + others


def _stub(call: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call, "content": MISSING_RESULT_TEXT, "is_error": True}


def _write_turn(turn: Turn, ids: CallIds, dropped: set[str]) -> list[Block]:
    name_extras(turn.extras, turn.family, dropped)
    if turn.name:
        dropped.add("name")
    blocks = []
    for part in turn.parts:
        block = _write_part(part, turn.speaker, ids, dropped)
        if block is not None:
            blocks.append(dict(block))
    return blocks


def _write_part(part: Part, speaker: Speaker, ids: CallIds, dropped: set[str]) -> Mapping[str, Any] | None:
    if isinstance(part, TextPart | RefusalPart):
        return write_text(part, dropped, is_system=speaker is Speaker.SYSTEM)
    if isinstance(part, ToolCallPart):
        return write_call(part, ids.assign(part.id), dropped)
    if isinstance(part, ToolResultPart):
        return _write_result(part, ids, dropped)
    if isinstance(part, MediaPart):  # the API takes none from the assistant
        return left_out(part, dropped) if speaker is Speaker.ASSISTANT else write_media(part, dropped)
    if isinstance(part, ReasoningPart | ForeignPart):
        return write_own(part, dropped)
    assert_never(part)


def write_text(part: TextPart | RefusalPart, dropped: set[str], *, is_system: bool = False) -> Block | None:
    """Write text. Return None for blank text, which the API rejects."""
    if isinstance(part, TextPart):
        name_extras(part.extras, part.family, dropped)
    if not part.text or part.text.isspace():
        return None
    return {"type": "text", "text": f"<system>\n{part.text}\n</system>" if is_system else part.text}


def write_call(part: ToolCallPart, call_id: str, dropped: set[str]) -> Block:
    """Write a call. Arguments that are not a JSON object, such as those that were cut off, stand in the field `raw`."""
    name_extras(part.extras, part.family, dropped)
    arguments = read_arguments(part.arguments)
    if arguments is None:
        dropped.add("invalid_arguments")
        arguments = {"raw": part.arguments}
    return {"type": "tool_use", "id": call_id, "name": part.name, "input": arguments}


def write_own(part: ReasoningPart | ForeignPart, dropped: set[str]) -> Mapping[str, Any] | None:
    """Write content of this family, and drop that of another one."""
    if part.family is _OWN:
        return write_block(part)
    dropped.add("reasoning" if isinstance(part, ReasoningPart) else part.kind)
    return None


def _write_result(part: ToolResultPart, ids: CallIds, dropped: set[str]) -> Block:
    name_extras(part.extras, part.family, dropped)
    block: Block = {"type": "tool_result", "tool_use_id": ids.find(part.call_id)}
    written = (
        write_media(each, dropped) if isinstance(each, MediaPart) else write_text(each, dropped) for each in part.parts
    )
    content = [dict(each) for each in written if each is not None]
    if content:
        block["content"] = content
    if part.is_error:
        block["is_error"] = True
    return block


def name_extras(extras: Mapping[str, Any], family: Family | None, dropped: set[str]) -> None:
    """Name the fields of another family that say something."""
    if extras and family is not _OWN:
        name_said(extras, dropped)
