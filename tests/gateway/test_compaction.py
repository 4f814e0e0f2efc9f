"""Compaction of the bodies that agents send: much system prompt, many tools, and a history that must become smaller."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from tests.gateway.behind import CHAT_TOOL, RESPONSES_TOOL, TOOL, WHOLE, WIRES, Behind, ask

PROMPT = "You are a careful agent. " * 400  # 10 kB, as agents send it
TASK = "<system-reminder>Today is Monday.</system-reminder>\ncount to 40 as apple"


def talk(wire: str, results: int, size: int) -> dict[str, Any]:
    """A conversation as agents write it: prompt, tools with long descriptions, and tool results of this size."""
    tools: Any = {"messages": TOOL, "chat": CHAT_TOOL, "responses": RESPONSES_TOOL}[wire]
    described = json.loads(json.dumps(tools).replace("Look.", "Look closely. " * 400))
    turns: list[dict[str, Any]] = []
    for n in range(results):
        found, call = f"{n} " + "line of a file\n" * (size // 15), f"c{n}"
        if wire == "messages":
            turns.append(
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": call, "name": "look", "input": {"at": "x"}}],
                }
            )
            turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": found}]})
        elif wire == "chat":
            function = {"name": "look", "arguments": "{}"}
            turns.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": call, "type": "function", "function": function}],
                }
            )
            turns.append({"role": "tool", "tool_call_id": call, "content": found})
        else:
            turns.append({"type": "function_call", "call_id": call, "name": "look", "arguments": "{}"})
            turns.append({"type": "function_call_output", "call_id": call, "output": found})
    task = {"role": "user", "content": TASK}
    if wire == "messages":
        marked = [{"type": "text", "text": PROMPT, "cache_control": {"type": "ephemeral"}}]
        return {"system": marked, "messages": [task, *turns], "tools": [described]}
    if wire == "chat":
        return {"messages": [{"role": "system", "content": PROMPT}, task, *turns], "tools": [described]}
    return {"instructions": PROMPT, "input": [task, *turns], "tools": [described]}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("results", "size", "window"), [(3, 12_000, 8_000), (40, 4_000, 12_000), (300, 300, 12_000)])
def test_a_body_with_a_long_prompt_becomes_small_enough(wire: str, results: int, size: int, window: int) -> None:
    """The prompt, the tools and the last turns stay; the rest is made so small that the next request fits."""
    told = talk(wire, results, size)
    if wire == "responses":
        window = 12_000 if results == 3 else 24_000  # its error tells no numbers: the body is halved
    with Behind(window=window) as behind:
        assert ask(behind, wire, stream=True, **told).text == WHOLE
        first, second = (call.json for call in behind.lab.calls)
    key = "input" if wire == "responses" else "messages"
    assert len(json.dumps(second)) < len(json.dumps(first))
    assert second["tools"] == first["tools"]
    assert second.get("system") == first.get("system")
    assert second.get("instructions") == first.get("instructions")
    heads = 2 if wire == "chat" else 1
    assert second[key][:heads] == first[key][:heads]


def test_a_long_text_is_refused_or_cut() -> None:
    """A text that is too long is the provider's error, or loses its middle where the policy allows it, and that is told."""
    told = [{"role": "user", "content": "first words. " + "filling " * 6_000 + " count to 40 as apple"}]
    body = {"model": "small", "max_tokens": 500, "messages": told}
    with Behind(window=6_000) as behind, pytest.raises(anthropic.BadRequestError):
        ask(behind, "messages", stream=False, messages=told)
    with Behind(window=6_000, policy={"elide_text": True}) as behind, behind.http() as client:
        got = client.post("/v1/messages", json=body)
        assert got.json()["content"][0]["text"] == WHOLE
        assert got.headers["x-rung-elided"]
        assert "characters" in got.headers["x-rung-compacted"]
        sent = behind.lab.calls[-1].json["messages"][0]["content"]
        assert sent.startswith("first words.")
        assert "characters left out" in sent
