"""A model's mistake stays the model's to correct: it is asked again twice at most, then its own answer is passed on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.recovery.stream_rules import MISTAKE_REPEATS
from tests.gateway.behind import WHOLE, WIRES, Behind, ask

if TYPE_CHECKING:
    from collections.abc import Mapping

# A tool whose schema requires what the scripted model never gives.
TURN: Mapping[str, Any] = {"turns": [{"text": "I will look.", "tool": "look", "input": {"elsewhere": "x"}}]}
ALONE: Mapping[str, Any] = {"turns": [{"tool": "look", "input": {"elsewhere": "x"}}]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("script", [TURN, ALONE], ids=["after text", "alone"])
def test_a_call_that_always_lacks_an_argument(script: Mapping[str, Any], wire: str, stream: bool) -> None:
    """A call that lacks an argument each time reaches the client once, as the model made it, after two repeats."""
    with Behind(dict(script)) as behind:
        got = ask(behind, wire, stream=stream, tools=True)
        assert [json.loads(call.replace("'", '"')) for call in got.calls] == [{"elsewhere": "x"}]
        assert got.stop in ("tool_use", "tool_calls", "completed")
        assert got.text in ("", "I will look.")
        assert behind.attempts == 1 + MISTAKE_REPEATS


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_no_retries_left(wire: str, stream: bool) -> None:
    """Where the policy allows no repeat, the model's own call is passed on at once."""
    with Behind(dict(TURN), policy={"retries": 0}) as behind:
        got = ask(behind, wire, stream=stream, tools=True)
        assert len(got.calls) == 1
        assert got.text == "I will look."
        assert behind.attempts == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("tool", "attempts"), [("look", 1), ("other", 1 + MISTAKE_REPEATS)])
def test_the_settings_of_the_called_tool(wire: str, stream: bool, tool: str, attempts: int) -> None:
    """An invalid call is asked for again as its tool's settings say: not at all, or as any other."""
    with Behind(dict(TURN), tools={tool: {"retries": 0}}) as behind:
        got = ask(behind, wire, stream=stream, tools=True)
        assert len(got.calls) == 1
        assert behind.attempts == attempts


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_is_always_empty(wire: str, stream: bool) -> None:
    """An answer that is empty each time is passed on after two repeats."""
    with Behind([{"fault": "empty"}]) as behind:
        got = ask(behind, wire, stream=stream)
        assert (got.text, got.calls) == ("", [])
        assert behind.attempts == 1 + MISTAKE_REPEATS


AFTER_RESULTS: Mapping[str, Mapping[str, Any]] = {
    "messages": {
        "messages": [
            {"role": "user", "content": "count to 40 as apple"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "x"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]},
        ]
    },
    "chat": {
        "messages": [
            {"role": "user", "content": "count to 40 as apple"},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "seen"},
        ]
    },
    "responses": {
        "input": [
            {"role": "user", "content": "count to 40 as apple"},
            {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"at":"x"}'},
            {"type": "function_call_output", "call_id": "t1", "output": "seen"},
        ]
    },
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_an_empty_answer_after_tool_results(wire: str, stream: bool) -> None:
    """After tool results an empty answer is asked for once more; one that is empty again is the model's own end."""
    with Behind([{"fault": "empty", "request": "1"}]) as behind:
        got = ask(behind, wire, stream=stream, tools=True, **AFTER_RESULTS[wire])
        assert (got.text, behind.attempts) == (WHOLE, 2)
    with Behind([{"fault": "empty"}]) as behind:
        got = ask(behind, wire, stream=stream, tools=True, **AFTER_RESULTS[wire])
        assert (got.text, got.calls, behind.attempts) == ("", [], 2)


def test_a_mistake_that_is_corrected() -> None:
    """A model that corrects its call when asked again gives the client the right call only."""
    rules = [{"fault": "bad_arguments", "request": "1-2"}]
    with Behind(rules, calls=1) as behind:
        got = ask(behind, "messages", stream=True, tools=True)
        assert len(got.calls) == 1
        assert "at" in got.calls[0]
        assert behind.attempts == 3
