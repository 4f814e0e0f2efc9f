"""Session files (rollouts) of Codex: numbered items after a header; a tool's result names the id of its call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.agents.transcript import INTERRUPTED_TEXT, RepairedTranscript, interrupted, read_entries, write_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_RESULT_TYPES: Final[Mapping[str, str]] = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}


def repair_codex(data: bytes, session: str) -> RepairedTranscript | None:
    """Return the file as a copy that belongs to the session with this id; None if it has no header or no item."""
    entries, damage = read_entries(data)
    if not entries or entries[0].get("type") != "session_meta" or not isinstance(entries[0].get("payload"), dict):
        return None
    if not any(_item(entry) for entry in entries):
        return None
    former = entries[0]["payload"].get("id")
    open_calls = _open_calls(entries)
    repaired = []
    for entry in entries:
        repaired.append(_renamed(entry, former, session))
        if (call_id := _call_id(entry, _RESULT_TYPES)) in open_calls:
            repaired.append(_result(entry, call_id))
    damage += interrupted(open_calls.values())
    return RepairedTranscript(write_entries(_numbered(repaired)), tuple(damage))


def _item(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the item of the conversation in an entry; empty if it is another entry."""
    payload = entry.get("payload")
    return payload if entry.get("type") == "response_item" and isinstance(payload, dict) else {}


def _open_calls(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the ids and names of the calls that have no result."""
    calls: dict[str, str] = {}
    for entry in entries:
        if call_id := _call_id(entry, _RESULT_TYPES):
            calls[call_id] = str(_item(entry).get("name", "a tool"))
        elif call_id := _call_id(entry, _RESULT_TYPES.values()):
            calls.pop(call_id, None)
    return calls


def _call_id(entry: Mapping[str, Any], types: Collection[str]) -> str:
    """Return the call that an item of one of these types is about; empty if it is another item."""
    item = _item(entry)
    kind, call_id = item.get("type"), item.get("call_id")
    return call_id if isinstance(kind, str) and kind in types and isinstance(call_id, str) else ""


def _result(entry: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """Return the entry of a call's result that says that the call was interrupted."""
    kind = _RESULT_TYPES[_item(entry)["type"]]
    return {**entry, "payload": {"type": kind, "call_id": call_id, "output": INTERRUPTED_TEXT}}


def _renamed(entry: Mapping[str, Any], former: Any, session: str) -> dict[str, Any]:
    """Return an entry with the new id where it names the session. Texts of the conversation are not changed."""
    payload = entry.get("payload")
    if not isinstance(payload, dict) or entry.get("type") == "response_item" or not isinstance(former, str):
        return dict(entry)
    names = {key: session for key in ("id", "session_id", "thread_id") if payload.get(key) == former}
    return {**entry, "payload": {**payload, **names}}


def _numbered(entries: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the entries with consecutive numbers, if they are numbered."""
    for number, entry in enumerate(entries):
        yield {**entry, "ordinal": number} if "ordinal" in entry else entry
