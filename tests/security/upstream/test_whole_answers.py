"""An answer that comes whole, after the client got the head of a stream, is sent as events or as an error event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.behind import WIRES
from tests.security.upstream.scripted import TEXT, Reply, Rig, answer, text_block, text_item, until, written
from tests.wires.strict import ErrorEvent, streamed

HOLD = 0.1  # seconds until the head is sent
LATE = 0.6


def whole(wire: str, call: bool = False) -> Reply:
    """A whole answer that says `TEXT`, or has an additional call."""
    body: dict[str, Any] = {"id": "x_1", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 4}}
    if wire == "messages":
        thinking = {"type": "thinking", "thinking": "hmm", "signature": "signed"}
        content = [
            thinking,
            text_block(),
            *([{"type": "tool_use", "id": "t", "name": "look", "input": {"at": "x"}}] if call else []),
        ]
        body |= {
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
        }
    elif wire == "chat":
        message: dict[str, Any] = {"role": "assistant", "content": TEXT}
        if call:
            message["tool_calls"] = [
                {"id": "t", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}
            ]
        body |= {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        body["usage"] = {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}
    else:
        item = {"type": "function_call", "id": "f", "call_id": "t", "name": "look", "arguments": '{"at":"x"}'}
        body |= {"object": "response", "status": "completed", "output": [text_item(), *([item] if call else [])]}
        body["usage"]["total_tokens"] = 9
    return Reply(json.dumps(body).encode(), kind=b"application/json", delay=LATE)


@pytest.fixture(scope="module")
def slow() -> Any:
    with Rig(header_hold_seconds=HOLD) as rig:
        yield rig


@pytest.mark.parametrize("call", [False, True], ids=["text", "call"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_late_whole_answer(slow: Rig, wire: str, call: bool) -> None:
    """A stream was asked for and pings were sent: an answer in one piece comes as the events of its wire."""
    slow.upstream.use(whole(wire, call))
    got = streamed(wire, slow.stream(wire))
    assert (got.text, len(got.calls), slow.asked) == (TEXT, int(call), 1)
    assert slow.upstream.requests[0]["stream"] is True


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_goes_on_in_one_piece(slow: Rig, wire: str) -> None:
    """A broken stream whose rest comes in one piece is spliced like any other."""
    slow.upstream.use(Reply(written(until(answer(wire), "two")), "cut"), whole(wire))
    got = streamed(wire, slow.stream(wire))
    assert (got.text, slow.asked) == (TEXT, 2)


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_without_a_body(slow: Rig, wire: str, status: int) -> None:
    """An answer that has no events ends the stream with an error event, not with a broken transfer."""
    slow.upstream.use(Reply(b"", kind=b"text/plain", status=status, delay=LATE))
    with pytest.raises(ErrorEvent):
        streamed(wire, slow.stream(wire))
    assert not any("Exception" in line for line in slow.log_lines)
