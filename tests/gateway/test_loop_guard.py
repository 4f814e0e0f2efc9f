"""Loop guard: real SDKs drive an agent whose model repeats the same tool call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rung
from rung.core.domain.errors import ConfigError
from rung.detectors.loop_settings import LoopSettings
from rung.gateway.conversation_steps import MAX_STEPS, ConversationStep, recent_steps
from rung.gateway.detector_port import RequestView
from rung.gateway.loop_guard import LoopGuard
from tests.gateway.behind import ASK, CHAT_TOOL, RESPONSES_TOOL, TOOL, WIRES, Behind

if TYPE_CHECKING:
    from collections.abc import Callable

LOOP = [{"fault": "loop"}]
FAILED = "ls: cannot access 'it': No such file or directory"
Turn = tuple[str, list[Any]]  # the warning in its header, and the conversation after it


def messages_turn(client: Any, told: list[Any], outcome: str) -> Turn:
    raw = client.messages.with_raw_response.create(model="small", max_tokens=500, tools=[TOOL], messages=told or ASK)
    message = raw.parse()
    call = next(block for block in message.content if block.type == "tool_use")
    made = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": outcome, "is_error": True}
    said = [{"role": "assistant", "content": [made]}, {"role": "user", "content": [result]}]
    return raw.headers.get("x-rung-warning", ""), [*(told or ASK), *said]


def chat_turn(client: Any, told: list[Any], outcome: str) -> Turn:
    raw = client.chat.completions.with_raw_response.create(
        model="small", max_completion_tokens=500, tools=[CHAT_TOOL], messages=told or ASK
    )
    message: Any = raw.parse().choices[0].message
    call = message.tool_calls[0]
    made = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.function.name, "arguments": call.function.arguments},
    }
    said = [
        {"role": "assistant", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": call.id, "content": outcome},
    ]
    return raw.headers.get("x-rung-warning", ""), [*(told or ASK), *said]


def responses_turn(client: Any, told: list[Any], outcome: str) -> Turn:
    raw = client.responses.with_raw_response.create(
        model="small", max_output_tokens=500, tools=[RESPONSES_TOOL], input=told or ASK
    )
    call: Any = next(item for item in raw.parse().output if item.type == "function_call")
    made = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
    said = [made, {"type": "function_call_output", "call_id": call.call_id, "output": outcome}]
    return raw.headers.get("x-rung-warning", ""), [*(told or ASK), *said]


TURNS: dict[str, Callable[[Any, list[Any], str], Turn]] = {
    "messages": messages_turn,
    "chat": chat_turn,
    "responses": responses_turn,
}


def client_of(behind: Behind, wire: str) -> Any:
    return behind.claude() if wire == "messages" else behind.gpt()


def drive(
    behind: Behind, wire: str, turns: int, outcome: Callable[[int], str] = lambda _: FAILED
) -> tuple[list[str], list[Any]]:
    told: list[Any] = []
    warnings = []
    client = client_of(behind, wire)
    for number in range(turns):
        warning, told = TURNS[wire](client, told, outcome(number))
        warnings.append(warning)
    return warnings, told


def nudges(behind: Behind) -> list[str]:
    """Return the messages that the guard sent to the model, by request number."""
    found = []
    for call in behind.lab.calls:
        last = json.dumps((call.json.get("messages") or call.json.get("input"))[-1])
        found.append("STOP" if "STOP and make" in last else "STILL" if "STILL THE SAME" in last else "")
    return found


@pytest.mark.parametrize("wire", WIRES)
def test_off_costs_and_says_nothing(wire: str) -> None:
    """The loop guard is off by default."""
    with Behind(LOOP) as behind:
        warnings, _ = drive(behind, wire, 6)
        assert behind.gateway.detectors == ()
    assert warnings == [""] * 6
    assert nudges(behind) == [""] * 6


@pytest.mark.parametrize("wire", WIRES)
def test_a_warning(wire: str) -> None:
    """With `warn`, the header is set from the third repetition on, and the model gets no message."""
    with Behind(LOOP, loop_guard="warn") as behind:
        warnings, _ = drive(behind, wire, 6)
    assert [bool(text) for text in warnings] == [False, False, False, True, True, True]
    assert warnings[3].startswith("repeated-block: look was called 3 times with the same outcome")
    assert nudges(behind) == [""] * 6


@pytest.mark.parametrize("wire", WIRES)
def test_a_nudge(wire: str) -> None:
    """With `nudge`, the model gets one message each at three and five repetitions, and nothing is stopped."""
    with Behind(LOOP, loop_guard="nudge") as behind:
        warnings, _ = drive(behind, wire, 10)
    assert nudges(behind) == ["", "", "", "STOP", "", "STILL", "", "", "", ""]
    assert all(warnings[3:])


@pytest.mark.parametrize("wire", WIRES)
def test_a_stop(wire: str) -> None:
    """With `stop`, the request is not sent at eight repetitions, and the client gets the reason."""
    with Behind(LOOP, loop_guard="stop") as behind:
        _, told = drive(behind, wire, 8)
        with pytest.raises(
            (anthropic.APIStatusError, openai.APIStatusError), match="8 times with the same outcome"
        ) as error:
            TURNS[wire](client_of(behind, wire), told, FAILED)
        refused: Any = error.value
        assert refused.response.headers["x-should-retry"] == "false"
        assert behind.attempts == 8


@pytest.mark.parametrize("wire", WIRES)
def test_work_passes(wire: str) -> None:
    """The same call with a new result each time is not a loop."""
    with Behind(LOOP, loop_guard="stop") as behind:
        warnings, _ = drive(behind, wire, 10, lambda n: f"page {n}: " + chr(97 + n) * 40)
    assert warnings == [""] * 10
    assert nudges(behind) == [""] * 10


def test_thresholds_are_the_files_and_read_again() -> None:
    """`[loops]` sets the thresholds; reloaded settings apply to the next request."""
    with Behind(LOOP, loop_guard="warn", loops={"replan": 4}) as behind:
        warnings, told = drive(behind, "messages", 5)
        assert [bool(text) for text in warnings] == [False, False, False, False, True]
        behind.gateway.reload(behind.settings(loop_guard="off"))
        assert TURNS["messages"](behind.claude(), told, FAILED)[0] == ""


def test_a_mode_that_there_is_not() -> None:
    """The error names the key and the allowed values."""
    with pytest.raises(ConfigError, match=r"gateway\.loop_guard.*off, warn, nudge, stop"):
        Behind(loop_guard="loud").settings(anthropic="http://127.0.0.1:1", openai="http://127.0.0.1:1")


def test_a_person_ends_the_streak() -> None:
    """Steps before the last user message do not count."""
    step = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {"at": "x"}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "no"}]}],
        },
    ]
    told = [*ASK, *step * 3, {"role": "user", "content": "go on"}, *step]
    assert recent_steps("messages", {"messages": told}) == ([ConversationStep("look", {"at": "x"}, "no", False)], 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "tool_calls", "id", "name", "function", "output"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("wire", WIRES)
@given(said=st.lists(JSON, max_size=6) | JSON)
@settings(max_examples=60, deadline=None)
def test_any_body_can_be_read(wire: str, said: Any) -> None:
    """Any body can be read without an exception, in bounded size."""
    found, new = recent_steps(wire, {"messages": said, "input": said})
    assert len(found) <= 4 * MAX_STEPS
    assert new >= 0


def test_calls_made_at_once_are_told_once() -> None:
    """With two parallel calls per turn, each stage is reported once when it is passed."""
    told: list[Any] = [*ASK]
    heard = []
    guard = LoopGuard("nudge", LoopSettings())
    for turn in range(4):
        calls = [{"type": "tool_use", "id": f"{turn}{n}", "name": "look", "input": {"at": "x"}} for n in range(2)]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": FAILED} for call in calls]
        told += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
        notice = guard.on_request(RequestView("s", "", "messages", "m", {"messages": told}, rung.policy("call")))
        heard.append("" if notice is None else notice.nudge[:5])
    assert heard == ["", "STOP ", "STILL", "THE E"]
