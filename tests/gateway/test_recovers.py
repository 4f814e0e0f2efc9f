"""Faults that would fail a client are recovered: it gets one complete answer, and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.behind import ALL_WIRES, ASK, GEMINI_TOOL, IMPATIENT, TIMEOUTS, WHOLE, Behind, ask
from tests.wires.strict import GEMINI_PATHS, PATHS, ErrorEvent, streamed

# One failing request, then good ones: the fault, its parameters, and whether it needs a stream.
ONCE: dict[str, dict[str, Any]] = {
    "rate_limit": {"retry_after": 0.2},
    "server_error": {},
    "bad_gateway": {},
    "unavailable": {},
    "gateway_timeout": {},
    "request_timeout": {},
    "overloaded": {},
    "reset": {},
    "reset_headers": {},
    "slow": {"seconds": 30.0},
    "stall": {"after": 7, "seconds": 30.0},
    "cut": {"after": 7},
    "no_end": {"after": 7},
    "stream_error": {"after": 7},
    "truncated_json": {"after": 7},
    "wrong_type": {},
    "empty": {},
    "max_tokens": {"after": 7},
}
HANGS = ("slow", "stall")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", ALL_WIRES)
@pytest.mark.parametrize("fault", ONCE)
def test_one_fault_is_survived(fault: str, wire: str, stream: bool) -> None:
    """After any single fault, an SDK without retries gets the complete answer in two attempts."""
    rule = {"fault": fault, "request": 1, **ONCE[fault]}
    with Behind([rule], timeouts=IMPATIENT if fault in HANGS else TIMEOUTS) as behind:
        got = ask(behind, wire, stream=stream)
        assert got.text == WHOLE
        assert got.stop in ("end_turn", "stop", "completed")
        assert behind.attempts == (1 if fault == "no_end" and not stream else 2)


@pytest.mark.parametrize("wire", ALL_WIRES)
@pytest.mark.parametrize("fault", ["cut", "no_end", "stream_error", "stall"])
def test_a_stream_broken_twice(fault: str, wire: str) -> None:
    """A stream that is interrupted twice is spliced twice."""
    rule = {"fault": fault, "request": "1-2", "after": 9, **({"seconds": 30.0} if fault == "stall" else {})}
    with Behind([rule], timeouts=IMPATIENT if fault in HANGS else TIMEOUTS) as behind:
        got = ask(behind, wire, stream=True)
        assert got.text == WHOLE
        assert behind.attempts == 3


def is_whole(fault: str, wire: str, stream: bool) -> bool:
    """Whether a fault in a call leaves it whole: Gemini's calls come in one chunk, and only the end is missing."""
    return (
        fault in ("cut", "no_end", "stream_error") if wire == "gemini" and stream else fault == "no_end" and not stream
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", ALL_WIRES)
@pytest.mark.parametrize("fault", ["cut", "no_end", "stream_error", "bad_arguments", "max_tokens"])
def test_a_tool_call_comes_whole_or_not_at_all(fault: str, wire: str, stream: bool) -> None:
    """A stream that is interrupted inside a tool call gives the client one complete call."""
    rule = {"fault": fault, "request": 1, **({"after": 1} if fault != "bad_arguments" else {})}
    with Behind([rule], calls=1) as behind:
        got = ask(behind, wire, stream=stream, tools=True)
        assert len(got.calls) == 1
        assert "at" in got.calls[0]
        assert got.stop in (("stop",) if wire == "gemini" else ("tool_use", "tool_calls", "completed"))
        assert behind.attempts == (1 if is_whole(fault, wire, stream) else 2)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", ALL_WIRES)
@pytest.mark.parametrize("fault", ["model_gone", "wall", "overloaded"])
def test_the_next_model_takes_over(fault: str, wire: str, stream: bool) -> None:
    """When a model is gone or stays overloaded, the next model answers."""
    with Behind([{"fault": fault, "model": "small"}], policy={"models": ["small", "large"]}) as behind:
        assert ask(behind, wire, stream=stream).text == WHOLE
        assert [call.model for call in behind.lab.calls][-1] == "large"
        assert behind.attempts == (2 if fault == "model_gone" else 5)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", ALL_WIRES)
def test_an_overflow_is_made_smaller(wire: str, stream: bool) -> None:
    """A context overflow is retried with a smaller body whose tool calls and results stay paired."""
    long: list[dict[str, Any]] = [{"role": "user", "content": "count to 40 as apple"}]
    for n in range(12):
        long += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"{n} " * 600},
        ]
    more: dict[str, Any] = {"messages": long}
    if wire == "messages":
        blocks: list[dict[str, Any]] = long[:1]
        for n in range(12):
            blocks += [
                {"role": "assistant", "content": [{"type": "tool_use", "id": f"c{n}", "name": "look", "input": {}}]},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"{n} " * 600}],
                },
            ]
        more = {"messages": blocks}
    if wire == "responses":
        items: list[dict[str, Any]] = long[:1]
        for n in range(12):
            items += [
                {"type": "function_call", "call_id": f"c{n}", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": f"c{n}", "output": f"{n} " * 600},
            ]
        more = {"input": items}
    if wire == "gemini":
        contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": ASK[0]["content"]}]}]
        for n in range(12):
            call = {
                "functionCall": {"name": "look", "args": {"at": "x"}},
                "thoughtSignature": "skip_thought_signature_validator",
            }
            seen = {"functionResponse": {"name": "look", "response": {"output": f"{n} " * 600}}}
            contents += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [seen]}]
        more = {"contents": contents}
    with Behind([{"fault": "overflow"}]) as behind:
        assert ask(behind, wire, stream=stream, tools=True, **more).text == WHOLE
        first, second = behind.lab.calls
        assert len(second.body) < len(first.body)


def test_signatures_of_another_model_are_replaced() -> None:
    """A fallback gets no signatures of the first model, which its provider would reject."""
    with Behind(calls=1, policy={"models": ["small", "large"]}) as behind:
        google = behind.google()
        config: Any = {"tools": [GEMINI_TOOL]}
        first = google.models.generate_content(model="small", contents=ASK[0]["content"], config=config)
        assert first.candidates is not None
        said = first.candidates[0].content
        assert said is not None
        assert [part.thought_signature for part in said.parts or () if part.function_call]
        behind.lab.use([{"fault": "overloaded", "model": "small"}])
        seen = {"role": "user", "parts": [{"function_response": {"name": "look", "response": {"output": "seen"}}}]}
        asked: Any = {"role": "user", "parts": [{"text": ASK[0]["content"]}]}
        contents: Any = [asked, said, seen]
        assert google.models.generate_content(model="small", contents=contents, config=config).text
        assert behind.lab.calls[-1].model == "large"


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_an_overflow_by_the_limit_alone_shrinks_the_limit(wire: str) -> None:
    """If only input plus output exceed the window, the output limit is lowered and the history kept."""
    with Behind(window=3_000) as behind:
        assert ask(behind, wire, stream=False).text == WHOLE
        first, second = (call.json for call in behind.lab.calls)
        assert first["messages"] == second["messages"]


@pytest.mark.parametrize("wire", ALL_WIRES)
def test_another_model_goes_on_with_a_broken_answer(wire: str) -> None:
    """When a model fails mid-stream and stays down, the next model continues from the text already sent."""
    rules = [
        {"fault": "cut", "after": 7, "request": 1},
        {"fault": "overloaded", "model": "small", "request": "2-99"},
    ]
    with Behind(rules, policy={"models": ["small", "large"]}) as behind:
        got = ask(behind, wire, stream=True)
        assert got.text == WHOLE
        assert got.stop in ("end_turn", "stop", "completed")
        assert [call.model for call in behind.lab.calls][-1] == "large"


@pytest.mark.parametrize("wire", ALL_WIRES)
def test_an_answer_nobody_goes_on_with_ends_in_an_error(wire: str) -> None:
    """If no model can continue a stream, the client gets an error, not a fabricated end."""
    rules = [{"fault": "cut", "after": 7, "request": 1}, {"fault": "overloaded", "request": "2-99"}]
    with Behind(rules) as behind, behind.http() as client:
        body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK, "stream": True}
        if wire == "gemini":
            body = {"contents": [{"role": "user", "parts": [{"text": ASK[0]["content"]}]}]}
        text = client.post(GEMINI_PATHS[True] if wire == "gemini" else PATHS[wire], json=body).text
        with pytest.raises(ErrorEvent):
            streamed(wire, text)
        assert "apple7" in text
