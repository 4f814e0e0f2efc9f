"""A spliced answer is one answer: one text block or message item, streamed or not, as the real SDKs collect it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.behind import ALL_WIRES, ASK, IMPATIENT, TIMEOUTS, WHOLE, Behind, gemini
from tests.wires.strict import PATHS, events_of

FAULTS: dict[str, dict[str, Any]] = {
    "cut": {"after": 7},
    "cut by a reset": {"fault": "cut", "after": 7, "how": "reset"},
    "stall": {"after": 7, "seconds": 30.0},
    "stream_error": {"after": 7},
    "no_end": {"after": 7},
    "no_end of all": {"fault": "no_end", "after": -1},
    "truncated_json": {"after": 7},
    "max_tokens": {"after": 7},
    "max_tokens twice": {"fault": "max_tokens", "after": 9, "request": "1-2"},
}


def texts(behind: Behind, wire: str, *, stream: bool) -> list[str]:
    """The texts of an answer by block or item, as an SDK collects them."""
    if wire == "gemini":
        return [gemini(behind.google(), stream=stream).text]  # chunks have no blocks
    if wire == "messages":
        claude, asked = behind.claude(), {"model": "small", "max_tokens": 4_000, "messages": ASK}
        if not stream:
            content = claude.messages.create(**asked).content
        else:
            with claude.messages.stream(**asked) as events:
                content = events.get_final_message().content
        return [block.text for block in content if block.type == "text"]
    gpt = behind.gpt()
    if wire == "responses":
        told: Any = {"model": "small", "max_output_tokens": 4_000, "input": ASK[0]["content"]}
        if not stream:
            output = gpt.responses.create(**told).output
        else:
            with gpt.responses.stream(**told) as events_:
                output = events_.get_final_response().output
        return [
            part.text
            for item in output
            if item.type == "message"
            for part in item.content
            if part.type == "output_text"
        ]
    wanted: Any = {"model": "small", "max_completion_tokens": 4_000, "messages": ASK}
    if not stream:
        return [choice.message.content or "" for choice in gpt.chat.completions.create(**wanted).choices]
    with gpt.chat.completions.stream(**wanted) as chunks:
        return [choice.message.content or "" for choice in chunks.get_final_completion().choices]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", ALL_WIRES)
def test_one_text_is_one_block(wire: str, stream: bool) -> None:
    """After any break or limit the text goes on in the block or item that is open: an SDK collects one text."""
    with Behind(timeouts=IMPATIENT) as quick, Behind(timeouts=TIMEOUTS) as patient:
        for name, told in FAULTS.items():
            behind = quick if name == "stall" else patient
            behind.lab.use([{"fault": name, "request": 1, **told}])
            assert texts(behind, wire, stream=stream) == [WHOLE], name


@pytest.mark.parametrize("wire", ["messages", "responses"])
def test_one_start_and_one_stop(wire: str) -> None:
    """On the wire, a spliced text has one start and one end, one index and one item id."""
    start, stop, delta = {
        "messages": ("content_block_start", "content_block_stop", "content_block_delta"),
        "responses": ("response.output_item.added", "response.output_item.done", "response.output_text.delta"),
    }[wire]
    with Behind() as behind, behind.http() as client:
        for name in ("cut", "max_tokens", "stream_error"):
            behind.lab.use([{"fault": name, "request": "1-2", "after": 9}])
            body = {"model": "small", "max_tokens": 4_000, "messages": ASK, "input": ASK, "stream": True}
            events = events_of(client.post(PATHS[wire], json=body).text)
            names = [name for name, _ in events]
            assert (names.count(start), names.count(stop)) == (1, 1), name
            assert names.index(start) < names.index(delta) < names.index(stop)
            assert delta not in names[names.index(stop) :]
            ids = {data.partition('"item_id":"')[2].partition('"')[0] for name, data in events if name == delta}
            assert len(ids) == 1
