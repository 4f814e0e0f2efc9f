"""Thinking that reaches the client has the signature of its provider, or the mark of what broke off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.security.upstream.scripted import Reply, messages, responses, text_block, text_item, until, written
from tests.wires.strict import events_of, streamed

if TYPE_CHECKING:
    from tests.security.upstream.scripted import Rig

THINKING = {"type": "thinking", "thinking": "hmm", "signature": "signed"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "signed"}


def blocks(text: str) -> list[dict[str, Any]]:
    """The blocks of a message, as a client collects them."""
    found: list[dict[str, Any]] = []
    for name, data in events_of(text):
        parsed = json.loads(data)
        if name == "content_block_start":
            found.append(dict(parsed["content_block"]))
        for key, value in parsed.get("delta", {}).items() if name == "content_block_delta" else ():
            if key != "type":
                found[-1][key] = found[-1].get(key, "") + value
    return found


@pytest.mark.parametrize("size", [10, 600_000], ids=["short", "long"])
@pytest.mark.parametrize("leading", [False, True], ids=["first", "between texts"])
def test_thinking_that_is_cut(rig: Rig, leading: bool, size: int) -> None:
    """A stream cut inside of thinking leaves no block without a signature; what broke off is marked as such."""
    thinking = {**THINKING, "thinking": "x" * size}
    begun = [text_block("one")] if leading else []
    cut = until(messages(*begun, thinking, text_block()), "x" * size)
    rig.upstream.use(Reply(written(cut), "cut"), Reply(written(messages(THINKING, text_block()))))
    text = rig.stream("messages")
    got = streamed("messages", text)
    assert got.text == "one two three four"
    signatures = [block["signature"] for block in blocks(text) if block["type"] == "thinking"]
    assert signatures == ["rung_incomplete"] + ["signed"] * (not leading)
    assert rig.asked == 2


def test_whole_thinking_between_texts(rig: Rig) -> None:
    """Complete thinking after text reaches the client in its place, with its signature."""
    rig.upstream.use(Reply(written(messages(text_block("one"), THINKING, text_block(" two")))))
    assert [block["type"] for block in blocks(rig.stream("messages"))] == ["text", "thinking", "text"]
    assert rig.asked == 1


def test_reasoning_that_is_cut(rig: Rig) -> None:
    """A Responses stream cut inside of reasoning leaves no item open and none incomplete."""
    events = responses(text_item("one"), REASONING, text_item())
    at = next(at for at, (_, data) in enumerate(events) if data.get("item", {}).get("type") == "reasoning")
    rig.upstream.use(Reply(written(events[: at + 1]), "cut"), Reply(written(responses(REASONING, text_item()))))
    got = streamed("responses", rig.stream("responses"))
    assert (got.text, rig.asked) == ("one two three four", 2)
