"""Repair of a history: every call has a result, and an intact history is unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from rung.core.conversation.repair import MISSING_RESULT_TEXT, repair_history

if TYPE_CHECKING:
    from collections.abc import Mapping

IDS = st.sampled_from(["a", "b", "c", "d"])
SAID = st.builds(lambda role: {"role": role, "content": "words"}, st.sampled_from(["user", "assistant"]))
CALLED = st.lists(IDS, min_size=1, max_size=3, unique=True)


def blocks_called(ids: list[str]) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "t", "input": {}} for i in ids]}


def blocks_answered(ids: list[str]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": "x"} for i in ids]}


def fields_called(ids: list[str]) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": i, "function": {"name": "t", "arguments": "{}"}} for i in ids]}


BLOCKS = st.lists(st.one_of(SAID, CALLED.map(blocks_called), CALLED.map(blocks_answered)), max_size=8)
FIELDS = st.lists(
    st.one_of(SAID, CALLED.map(fields_called), IDS.map(lambda i: {"role": "tool", "tool_call_id": i, "content": "x"})),
    max_size=8,
)


def open_after(messages: list[Mapping[str, Any]]) -> list[str]:
    """What is wrong with a history: calls the next message does not answer, answers without a call."""
    wrong: list[str] = []
    waiting: set[str] = set()
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        answers = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if message["role"] == "tool":
            answers = [message["tool_call_id"]]
        wrong += [f"orphan result {i}" for i in answers if i not in waiting]
        waiting -= set(answers)
        if waiting and (message["role"] != "tool"):
            wrong += [f"open call {i}" for i in waiting]
            waiting = set()
        waiting |= {b["id"] for b in blocks if b["type"] == "tool_use"}
        waiting |= {call["id"] for call in message.get("tool_calls", ())}
    return wrong + [f"open call {i}" for i in waiting]


@given(st.one_of(BLOCKS, FIELDS))
def test_every_call_has_its_result(messages: list[dict[str, Any]]) -> None:
    """Whatever the history was, the mended one pairs calls and results; mended twice is mended once."""
    made = repair_history(messages)
    assert open_after(made) == []
    assert repair_history(made) == made


@given(st.one_of(BLOCKS, FIELDS))
def test_a_whole_history_stays(messages: list[dict[str, Any]]) -> None:
    """A history with nothing wrong comes back as it was."""
    whole = repair_history(messages)
    assert not open_after(list(whole))
    assert repair_history(whole) == whole


def test_a_lost_result_is_said_to_be_lost() -> None:
    """The stub stands where the result should have been, beside those that are there."""
    made = repair_history([blocks_called(["a", "b"]), blocks_answered(["b"])])
    assert made[1]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": MISSING_RESULT_TEXT,
        "is_error": True,
    }
    assert made[1]["content"][1]["tool_use_id"] == "b"
