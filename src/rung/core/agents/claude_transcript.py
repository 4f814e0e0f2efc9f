"""Session files of Claude Code: entries that name their parent; a tool's result is a user entry below its call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from rung.core.agents.transcript import INTERRUPTED_TEXT, RepairedTranscript, interrupted, read_entries, write_entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COPIED: tuple[str, ...] = ("isSidechain", "userType", "entrypoint", "cwd", "version", "gitBranch", "timestamp")


def repair_claude(data: bytes, session: str) -> RepairedTranscript | None:
    """Return the file as a copy that belongs to the session with this id; None if it has no message to continue."""
    entries, damage = read_entries(data)
    if not any(_content(entry) for entry in entries if entry.get("type") == "user"):
        return None
    entries = [{**entry, "sessionId": session} if "sessionId" in entry else dict(entry) for entry in entries]
    _link(entries)
    open_calls = _open_calls(entries)
    entries += [_result(entry, call, session) for entry, call in open_calls]
    damage += interrupted(str(call.get("name", "a tool")) for _, call in open_calls)
    return RepairedTranscript(write_entries(entries), tuple(damage))


def _link(entries: Sequence[dict[str, Any]]) -> None:
    """Give an entry whose parent was lost the entry before it as its parent: the history before it would be dropped."""
    known: set[str] = set()
    before: dict[bool, str] = {}
    for entry in entries:
        name, parent = entry.get("uuid"), entry.get("parentUuid")
        if not isinstance(name, str):
            continue
        is_side = bool(entry.get("isSidechain"))
        if parent is not None and (not isinstance(parent, str) or parent not in known):
            entry["parentUuid"] = before.get(is_side)
        known.add(name)
        before[is_side] = name


def _open_calls(entries: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the calls of the last turn that have no result, each with its entry. Claude Code went on after earlier ones."""
    calls: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    turn: Any = None
    for entry in entries:
        if entry.get("isSidechain") or not isinstance(entry.get("uuid"), str):
            continue
        message = entry.get("message")
        if entry.get("type") == "assistant" and isinstance(message, dict):
            if message.get("id") != turn:
                calls.clear()
            turn = message.get("id")
        for block in _content(entry):
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                calls[block["id"]] = entry, block
            elif block.get("type") == "tool_result":
                calls.pop(str(block.get("tool_use_id")), None)
        if entry.get("type") == "user" and not any(block.get("type") == "tool_result" for block in _content(entry)):
            calls.clear()  # a new prompt
    return list(calls.values())


def _content(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a message."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str) and content:
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _result(entry: Mapping[str, Any], call: Mapping[str, Any], session: str) -> dict[str, Any]:
    """Return the entry of a call's result that says that the call was interrupted."""
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": INTERRUPTED_TEXT, "is_error": True}
    return {
        "parentUuid": entry.get("uuid"),
        **{key: entry[key] for key in _COPIED if key in entry},
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "uuid": str(uuid5(NAMESPACE_URL, f"{session}/{call['id']}")),
        "toolUseResult": f"Error: {INTERRUPTED_TEXT}",
        "sourceToolAssistantUUID": entry.get("uuid"),
        "sessionId": session,
    }
