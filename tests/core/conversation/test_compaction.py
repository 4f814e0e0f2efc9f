"""Compaction: least harmful step first, only as far as needed, tool pairs intact."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rung.core.conversation.compaction import (
    DUPLICATE_TEXT,
    OMITTED_TEXT,
    RECENT_MESSAGES,
    compact_messages,
    count_characters,
    summarizable_text,
    with_summary,
)
from rung.wires.overlap import overlap_length

LONG = "x" * 5_000


def test_duplicates_first() -> None:
    """Of equal results the last stays; what is short is not worth it."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "the task"},
        {"role": "tool", "content": LONG},
        {"role": "tool", "content": "short"},
        {"type": "function_call_output", "output": LONG},
        {"role": "user", "content": [{"type": "tool_result", "content": LONG}, {"type": "text", "text": "so"}]},
    ]
    made = compact_messages(messages, 6_000)
    assert [made[1]["content"], made[3]["output"]] == [DUPLICATE_TEXT, DUPLICATE_TEXT]
    assert made[4]["content"][0]["content"] == LONG
    assert compact_messages(messages, 10**9) == messages


def test_every_step() -> None:
    """Results, pictures, turns, and at the very end the latest results, too."""
    old: list[dict[str, Any]] = [
        {"role": "tool", "content": "a" + LONG},
        {"role": "user", "content": [{"type": "image", "source": "…"}, {"type": "text", "text": LONG}]},
        {"role": "user", "content": [{"type": "input_image", "url": "…"}, {"type": "input_text", "text": LONG}, "odd"]},
        {"role": "assistant", "content": LONG},
        {"role": "assistant", "content": None},
    ]
    latest: list[dict[str, Any]] = [
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": [{"type": "text", "text": "b" + LONG}, "odd"]}],
        },
        {"role": "tool", "content": "c" + LONG},
        {"role": "tool", "content": {"an": "object"}},
        *[{"role": "user", "content": "go on"}] * (RECENT_MESSAGES - 3),
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "the task"}, *old, *latest]
    made: list[Any] = compact_messages(messages, 10)
    assert made[0] == messages[0]
    assert made[1]["content"] == OMITTED_TEXT
    assert made[2]["content"][0] == {"type": "text", "text": OMITTED_TEXT}
    assert made[3]["content"][0] == {"type": "input_text", "text": OMITTED_TEXT}
    assert all(count_characters([message]) < 5_000 for message in made)
    assert len(made) == len(messages)


def test_a_summary_in_between() -> None:
    """The task, what came between in a few words, and the latest messages."""
    messages = [{"role": "user", "content": str(number)} for number in range(20)]
    assert '"5"' in summarizable_text(messages)
    made = with_summary(messages, "they talked")
    assert made[0] == messages[0]
    assert "they talked" in str(made[1]["content"])
    assert made[-1] == messages[-1]


@given(st.text("ab ", max_size=30), st.text("ab ", max_size=30))
def test_what_was_said_already(said: str, more: str) -> None:
    """Never more than there is, and what is counted as said really was, apart from spaces before its last word."""
    known = overlap_length(said, more)
    repeated = more[:known]
    assert 0 <= known <= len(more)
    assert said.endswith((repeated, repeated.lstrip())) or said.startswith(more) or more.startswith(said)
