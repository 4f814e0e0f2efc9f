"""Compaction: least harmful step first, only as far as needed, tool pairs intact."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rung.core.conversation.compaction import (
    DUPLICATE_TEXT,
    OMITTED_TEXT,
    compact_messages,
    count_characters,
    summarizable_text,
    with_summary,
)
from rung.core.conversation.kept_messages import RECENT_MESSAGES
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
        {"role": "user", "content": "the request"},
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
    made: list[Any] = compact_messages(messages, 10, elide_turns=False)
    assert made[0] == messages[0]
    assert made[1]["content"] == OMITTED_TEXT
    assert made[2]["content"][0] == {"type": "text", "text": OMITTED_TEXT}
    assert made[3]["content"][0] == {"type": "input_text", "text": OMITTED_TEXT}
    assert all(count_characters([message]) < 5_000 for message in made)
    assert len(made) == len(messages)


@given(st.integers(0, 12), st.integers(0, 4_000), st.booleans())
def test_old_turns_are_left_out_with_a_marker(calls: int, target: int, chat: bool) -> None:
    """System prompt, task and latest turns stay; what is left out is told; no result loses its call."""
    head = [{"role": "system", "content": "a prompt"}, {"role": "user", "content": "the task " + LONG}]
    turns: list[dict[str, Any]] = []
    for number in range(calls):
        if chat:
            turns.append({"role": "assistant", "tool_calls": [{"id": f"c{number}"}]})
            turns.append({"role": "tool", "tool_call_id": f"c{number}", "content": "done"})
        else:
            turns += [{"type": "reasoning", "id": f"r{number}"}, {"type": "function_call", "call_id": f"c{number}"}]
            turns.append({"type": "function_call_output", "call_id": f"c{number}", "output": "done"})
    made: list[Any] = compact_messages([*head, *turns], target)
    assert made[:2] == head
    latest = turns[-RECENT_MESSAGES:]
    assert made[len(made) - len(latest) :] == latest
    for at, message in enumerate(made):
        if "tool_call_id" in message or message.get("type") == "function_call_output":
            call = message.get("tool_call_id") or message["call_id"]
            assert call in str(made[at - 1])
        if message.get("type") == "function_call":
            assert made[at - 1]["type"] == "reasoning"
    assert (len(made) < len(turns) + 2) == ("earlier messages left out" in str(made[2:]))


def items(calls: int, *, reasoning: bool) -> list[dict[str, Any]]:
    """Return the items of tool calls as Codex sends them, with results of 500 characters."""
    turns: list[dict[str, Any]] = []
    for number in range(calls):
        turns += [{"type": "reasoning", "id": f"r{number}"}] * reasoning
        turns.append({"type": "custom_tool_call", "call_id": f"c{number}"})
        turns.append({"type": "custom_tool_call_output", "call_id": f"c{number}", "output": f"{number} " + "x" * 500})
    return turns


def test_the_task_may_be_several_messages() -> None:
    """Everything that the user wrote before the model's first turn stays: Codex sends the environment before the prompt."""
    head = [{"role": "developer", "content": "a prompt"}]
    head += [{"role": "user", "content": text} for text in ("<environment_context>", "the task")]
    made = compact_messages([*head, *items(9, reasoning=True)], 100)
    assert made[:3] == head
    assert "21 earlier messages" in str(made[3])


def test_calls_without_reasoning_are_left_out() -> None:
    """A conversation of calls and results alone becomes shorter, and its parallel calls stay together."""
    head = [{"role": "user", "content": "the task"}]
    calls = [{"type": "function_call", "call_id": name} for name in "ab"]
    results = [{"type": "function_call_output", "call_id": name, "output": "done"} for name in "ab"]
    latest = [*calls, *results, *items(2, reasoning=False)]
    made = compact_messages([*head, *items(9, reasoning=False), *latest], 100)
    assert [each.get("call_id") for each in made] == [None, None, "a", "b", "a", "b", "c0", "c0", "c1", "c1"]
    assert "18 earlier messages" in str(made[1])


def test_results_of_custom_tools_are_left_out_first() -> None:
    """The old result of a custom tool is replaced like that of a function."""
    made = compact_messages([{"role": "user", "content": "the task"}, *items(5, reasoning=False)], 2_500)
    assert [each["output"] == OMITTED_TEXT for each in made if "output" in each] == [True, True, False, False, False]


def test_the_last_request_of_the_user_stays() -> None:
    """What the user asked for last stays, although the model has worked on it for long; earlier requests do not."""
    asked = [{"role": "user", "content": text} for text in ("the task", "a question", "another task")]
    work = [{"role": "assistant", "content": str(number)} for number in range(9)]
    made = compact_messages([asked[0], work[0], asked[1], work[1], asked[2], *work], 100)
    assert [made[0], *made[2:]] == [asked[0], asked[2], *work[-RECENT_MESSAGES:]]
    assert "6 earlier messages" in str(made[1])
    assert with_summary([asked[0], *work, asked[2], *work], "so")[2:] == [asked[2], *work[-RECENT_MESSAGES:]]


def test_a_long_text_is_cut_in_its_middle_if_that_is_allowed() -> None:
    """Where nothing else helps, the longest text of the user loses its middle; the system prompt never does."""
    system = {"role": "system", "content": LONG * 4}
    blocks = [{"type": "text", "text": "first " + LONG * 3 + " last"}, {"type": "image", "source": "…"}]
    messages: list[dict[str, Any]] = [system, {"role": "user", "content": blocks}, {"role": "user", "content": "now"}]
    assert compact_messages(messages, 25_000) == messages
    made: list[Any] = compact_messages(messages, 25_000, elide_text=True)
    assert made[0] == system
    assert made[2] == messages[2]
    text = made[1]["content"][0]["text"]
    assert text.startswith("first ")
    assert text.endswith(" last")
    assert "characters left out" in text
    assert count_characters(made) <= 25_100


def test_a_summary_keeps_system_prompt_and_task() -> None:
    """A summary stands after the system prompt and the task."""
    head = [{"role": "system", "content": "a prompt"}, {"role": "user", "content": "the task"}]
    turns = [{"role": "user", "content": str(number)} for number in range(20)]
    made = with_summary([*head, *turns], "they talked")
    assert made[:2] == head
    assert "they talked" in str(made[2]["content"])
    assert made[3:] == turns[-RECENT_MESSAGES:]
    assert "the task" not in summarizable_text([*head, *turns])


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
