"""What every attempt used is counted once: in the client's usage after a splice, and in the gateway's accounts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.behind import WIRES
from tests.security.upstream.scripted import (
    WORDS,
    Reply,
    Rig,
    answer,
    chat,
    messages,
    responses,
    text_block,
    text_item,
    until,
    written,
)
from tests.wires.strict import events_of, streamed

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = {"messages": ("input_tokens", "output_tokens"), "responses": ("input_tokens", "output_tokens")}
KEYS["chat"] = ("prompt_tokens", "completion_tokens")
AT_LIMIT: dict[str, Callable[[], list[tuple[str, Any]]]] = {
    "messages": lambda: messages(text_block("one two"), stop="max_tokens"),
    "chat": lambda: chat(*({"content": word} for word in WORDS[:2]), stop="length"),
    "responses": lambda: responses(text_item("one two"), status="incomplete"),
}


def usage_of(wire: str, text: str) -> tuple[int, int]:
    """The usage that a client adds up to: the last value of each count."""
    found: dict[str, int] = {}
    for _, data in events_of(text):
        parsed = json.loads(data) if data != "[DONE]" else {}
        for place in (parsed, parsed.get("message") or {}, parsed.get("response") or {}):
            found |= {key: value for key, value in (place.get("usage") or {}).items() if isinstance(value, int)}
    if wire != "messages":
        assert found["total_tokens"] == found[KEYS[wire][0]] + found[KEYS[wire][1]]
    return found[KEYS[wire][0]], found[KEYS[wire][1]]


@pytest.mark.parametrize("wire", WIRES)
def test_two_reported_attempts(rig: Rig, wire: str) -> None:
    """A response that is resumed after its output limit tells the input and output tokens of both attempts."""
    rig.upstream.use(Reply(written(AT_LIMIT[wire]())), Reply(written(answer(wire, inputs=1_500))))
    text = rig.stream(wire)
    assert streamed(wire, text).text == "".join(WORDS)
    assert (usage_of(wire, text), rig.asked) == ((2_500, 80), 2)


def test_a_delta_with_input_tokens(rig: Rig) -> None:
    """Where the last event of a message repeats its input tokens, those of earlier attempts are still counted."""
    last = messages(text_block(), inputs=1_500)
    last[-2][1]["usage"] |= {"input_tokens": 1_500, "cache_read_input_tokens": None}
    rig.upstream.use(Reply(written(AT_LIMIT["messages"]())), Reply(written(last)))
    assert usage_of("messages", rig.stream("messages")) == (2_500, 80)


@pytest.mark.parametrize("wire", WIRES)
def test_an_attempt_that_broke(rig: Rig, wire: str) -> None:
    """The input of an attempt that broke before it told its usage is counted, too: told, or as that of the next one."""
    rig.upstream.use(Reply(written(until(answer(wire), "two")), "cut"), Reply(written(answer(wire))))
    inputs, outputs = usage_of(wire, rig.stream(wire))
    assert 1_990 <= inputs <= 2_000
    assert 40 < outputs <= 45


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_rejected_answers_are_accounted(stream: bool) -> None:
    """The gateway's accounts have the tokens of answers that were rejected and asked for again."""
    call = {"type": "tool_use", "id": "t_1", "name": "look", "input": {}}
    tools = [{"name": "look", "input_schema": {"type": "object", "required": ["at"]}}]
    whole: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [call],
        "stop_reason": "tool_use",
    }
    whole["usage"] = {"input_tokens": 1_000, "output_tokens": 40}
    reply = Reply(json.dumps(whole).encode(), kind=b"application/json")
    if stream:
        reply = Reply(written(messages(call, stop="tool_use")))
    with Rig(reply) as rig:
        rig.stream("messages", tools=tools, stream=stream)
        metrics = rig.http().get("/metrics").text
        assert rig.asked == 3
        assert 'rung_tokens_total{direction="in"} 3000' in metrics
        assert 'rung_tokens_total{direction="out"} 120' in metrics
