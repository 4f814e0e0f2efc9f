"""Repair of session files: whatever was cut off, the copy can be read, and every call of its last turn has a result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.agents.claude_transcript import repair_claude
from rung.core.agents.codex_transcript import repair_codex
from rung.core.agents.transcript import INTERRUPTED_TEXT

OLD, NEW = "02e22c43-8c62-4811-a03e-95069523933c", "5e0f2c1d-2f0f-4d84-8a0f-2b1b0c5b7a11"


def dumped(entries: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries).encode()


def loaded(data: bytes) -> list[dict[str, Any]]:
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def claude_entry(number: int, parent: int | None, kind: str, message: dict[str, Any]) -> dict[str, Any]:
    above = None if parent is None else f"u{parent}"
    common = {
        "isSidechain": False,
        "sessionId": OLD,
        "cwd": "/w",
        "version": "2.1.325",
        "timestamp": "2026-11-17T04:28:17Z",
    }
    return {"parentUuid": above, "type": kind, "message": message, "uuid": f"u{number}", **common}


def call_block(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": f"echo {name} — ü"}}


def result_block(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "done", "is_error": False}


# As Claude Code 2.1.325 writes it: one entry for each block, and the result below the call that it belongs to.
CLAUDE: list[dict[str, Any]] = [
    {"type": "queue-operation", "operation": "enqueue", "sessionId": OLD, "content": "do it"},
    claude_entry(1, None, "user", {"role": "user", "content": "do it"}),
    claude_entry(2, 1, "assistant", {"id": "m1", "role": "assistant", "content": [call_block("t1")]}),
    {"type": "last-prompt", "lastPrompt": "do it", "leafUuid": "u2", "sessionId": OLD},
    claude_entry(3, 2, "user", {"role": "user", "content": [result_block("t1")]}),
    claude_entry(4, 3, "assistant", {"id": "m2", "role": "assistant", "content": [call_block("t2")]}),
    claude_entry(5, 4, "assistant", {"id": "m2", "role": "assistant", "content": [call_block("t3")]}),
    claude_entry(6, 4, "user", {"role": "user", "content": [result_block("t2")]}),
]


def codex_entry(number: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-11-17T04:28:52.498Z", "ordinal": number, "type": kind, "payload": payload}


def codex_call(number: int, name: str, kind: str = "function_call") -> dict[str, Any]:
    return codex_entry(
        number, "response_item", {"type": kind, "name": "exec_command", "arguments": "{}", "call_id": name}
    )


def codex_result(number: int, name: str) -> dict[str, Any]:
    return codex_entry(number, "response_item", {"type": "function_call_output", "call_id": name, "output": "done — ü"})


# As Codex 0.166.0 writes it.
CODEX: list[dict[str, Any]] = [
    codex_entry(0, "session_meta", {"session_id": OLD, "id": OLD, "cwd": "/w", "timestamp": "2026-11-17T04:28:52Z"}),
    codex_entry(
        1, "response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": OLD}]}
    ),
    codex_entry(2, "event_msg", {"type": "item_completed", "thread_id": OLD, "item": {"type": "UserMessage"}}),
    codex_call(3, "c1"),
    codex_result(4, "c1"),
    codex_call(5, "c2"),
    codex_call(6, "c3", "custom_tool_call"),
    codex_entry(7, "token_usage_record", {"thread_id": OLD}),
]


def claude_open_calls(entries: list[dict[str, Any]]) -> set[str]:
    blocks = [
        block for entry in entries for block in entry.get("message", {}).get("content", []) if isinstance(block, dict)
    ]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert len(results) == len(set(results))
    return {block["id"] for block in blocks if block["type"] == "tool_use"} - set(results)


def codex_open_calls(entries: list[dict[str, Any]]) -> set[str]:
    items = [entry["payload"] for entry in entries if entry["type"] == "response_item"]
    results = [item["call_id"] for item in items if item["type"].endswith("_output")]
    assert len(results) == len(set(results))
    return {item["call_id"] for item in items if item["type"].endswith("_call")} - set(results)


def whole_entries(entries: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """Return the entries that are complete in the first bytes of the file; the line break may be cut off."""
    kept, end = [], 0
    for entry in entries:
        end += len(dumped([entry]))
        if end - 1 <= size:
            kept.append(entry)
    return kept


def test_claude_code_cut_at_every_byte() -> None:
    """The copy has all whole entries under the new id, a result for each call, and its chain of parents is complete."""
    data = dumped(CLAUDE)
    for size in range(len(data) + 1):
        found = repair_claude(data[:size], NEW)
        whole = whole_entries(CLAUDE, size)
        if not any(entry["type"] == "user" for entry in whole):
            assert found is None
            continue
        assert found is not None
        entries = loaded(found.data)
        assert entries[: len(whole)] == [{**entry, "sessionId": NEW} for entry in whole]
        assert claude_open_calls(entries) == set()
        known = [None, *(entry.get("uuid") for entry in entries)]
        assert all(entry["parentUuid"] in known for entry in entries if "uuid" in entry)
        assert bool(found.damage) is (dumped(whole)[:-1] != data[:size].rstrip(b"\n") or bool(claude_open_calls(whole)))
        again = repair_claude(found.data, NEW)
        assert again == (found.data, ())


def test_codex_cut_at_every_byte() -> None:
    """The copy has all whole entries, numbered anew, under the new id, and a result for each call."""
    data = dumped(CODEX)
    for size in range(len(data) + 1):
        found = repair_codex(data[:size], NEW)
        whole = whole_entries(CODEX, size)
        if not any(entry["type"] == "response_item" for entry in whole):
            assert found is None
            continue
        assert found is not None
        entries = loaded(found.data)
        assert entries[0]["payload"]["id"] == entries[0]["payload"]["session_id"] == NEW
        assert [entry["ordinal"] for entry in entries] == list(range(len(entries)))
        assert codex_open_calls(entries) == set()
        kept = [entry["payload"] for entry in entries if entry["payload"].get("output") != INTERRUPTED_TEXT]
        assert [list(payload) for payload in kept] == [list(entry["payload"]) for entry in whole]
        assert kept[1]["content"][0]["text"] == OLD  # a text of the conversation
        again = repair_codex(found.data, NEW)
        assert again == (found.data, ())


def test_an_interrupted_call_says_that_its_effect_is_unknown() -> None:
    """The result of an interrupted call is an error below the call, so that the agent checks before it repeats it."""
    found = repair_claude(dumped(CLAUDE), NEW)
    assert found is not None
    assert found.damage == ("a call of Bash has no result",)
    added = loaded(found.data)[-1]
    assert (added["parentUuid"], added["type"], added["cwd"]) == ("u5", "user", "/w")
    assert added["message"]["content"] == [
        {"type": "tool_result", "tool_use_id": "t3", "content": INTERRUPTED_TEXT, "is_error": True}
    ]
    codex = repair_codex(dumped(CODEX), NEW)
    assert codex is not None
    assert len(codex.damage) == 2
    types = [entry["payload"]["type"] for entry in loaded(codex.data)[5:9]]
    assert types == ["function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"]


def test_an_entry_whose_parent_is_lost_is_linked_to_the_one_before() -> None:
    """After a line that cannot be read, the history before it stays part of the conversation."""
    lines = dumped(CLAUDE).splitlines(keepends=True)
    found = repair_claude(b"".join([*lines[:4], b"\0\0\0\n", *lines[5:]]), NEW)
    assert found is not None
    assert found.damage[0] == "line 5 cannot be read"
    entries = {entry.get("uuid"): entry for entry in loaded(found.data)}
    assert "u3" not in entries
    assert entries["u4"]["parentUuid"] == "u2"


def test_calls_before_the_last_turn_are_left_alone() -> None:
    """Claude Code went on after an earlier call without a result: it has its own stand-in for it."""
    more = [
        *CLAUDE,
        claude_entry(7, 5, "user", {"role": "user", "content": "go on"}),
        claude_entry(8, 7, "assistant", {"id": "m3", "role": "assistant", "content": [{"type": "text", "text": "ok"}]}),
    ]
    found = repair_claude(dumped(more), NEW)
    assert found is not None
    assert found.damage == ()


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"null\n", b"[1]\n", b'{"type":"user"}\n', b"\xff\xfe\n", b"[" * 100_000]
)
def test_files_without_a_session(data: bytes) -> None:
    """A file in which there is nothing to continue is no session."""
    assert repair_claude(data, NEW) is None
    assert repair_codex(data, NEW) is None


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.sampled_from(["tool_use", "tool_result", "t1", OLD]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "id", "tool_use_id"]), inner),
    max_leaves=6,
)
NAMES = ["type", "message", "content", "id", "uuid", "parentUuid", "payload", "call_id", "isSidechain", "sessionId"]
ENTRIES = st.sampled_from([*CLAUDE, *CODEX]).flatmap(
    lambda entry: st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3).flatmap(
        lambda odd: st.sampled_from(
            [
                {**entry, **odd},
                {**entry, "message": {**entry.get("message", {}), **odd}},
                {**entry, "payload": {**entry.get("payload", {}), **odd}},
            ]
        )
    )
)


@given(st.lists(ENTRIES | JSON, max_size=6), st.integers(0, 200))
def test_any_lines_are_read_without_an_error(values: list[Any], cut: int) -> None:
    """Whatever JSON a file contains, repair returns lines of JSON or nothing, and a second repair changes nothing."""
    lines = [*CLAUDE[:2], *values], [*CODEX[:2], *values]
    for entries, repair in zip(lines, (repair_claude, repair_codex), strict=True):
        data = "".join(json.dumps(value) + "\n" for value in entries).encode()
        found = repair(data[: max(0, len(data) - cut)], NEW)
        if found is not None:
            assert all(isinstance(entry, dict) for entry in loaded(found.data))
            again = repair(found.data, NEW)
            assert again is not None
            assert again.data == found.data
