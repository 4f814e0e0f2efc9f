"""Progress of a translated stream that the client's wire cannot show: reasoning of another provider."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.behind import ALL_WIRES, ASK, IMPATIENT, ask
from tests.gateway.scripted import CHUNK, USAGE, chunk
from tests.gateway.test_other_provider import OTHERS
from tests.security.upstream.raw_upstream import Front, RawUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
KEEP_ALIVE = b": rung\n\n"
GAP_SECONDS = 0.4
THOUGHTS = 7  # together longer than each timeout of IMPATIENT
MESSAGE: dict[str, Any] = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "large",
    "content": [],
    "stop_reason": None,
}
STARTED = {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 10, "output_tokens": 1}}}
BLOCKS = ({"type": "text", "text": ""}, {"type": "thinking", "thinking": "", "signature": ""})


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "key-of-the-other-provider")


def event(data: dict[str, Any]) -> bytes:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def chat_answer(*, text_first: bool) -> Iterator[bytes]:
    """Send a completion that thinks for long, before its text or in the middle of it."""
    yield HEAD + event(chunk(role="assistant", content="one " if text_first else ""))
    for _ in range(THOUGHTS):
        time.sleep(GAP_SECONDS)
        yield event(chunk(reasoning_content="hm "))
    yield event(chunk(content="two"))
    yield event(chunk("stop")) + event({**CHUNK, "choices": [], "usage": USAGE}) + b"data: [DONE]\n\n"


def message_answer(*, text_first: bool) -> Iterator[bytes]:
    """Send a message that thinks for long, before its text or in the middle of it."""
    yield HEAD + event(STARTED)
    blocks = [1, 0] if not text_first else [0, 1, 0]
    texts = ["two"] if not text_first else ["one ", "two"]
    for index, kind in enumerate(blocks):
        yield event({"type": "content_block_start", "index": index, "content_block": BLOCKS[kind]})
        for _ in range(THOUGHTS if kind else 1):
            time.sleep(GAP_SECONDS if kind else 0)
            thought, text = {"type": "thinking_delta", "thinking": "hm "}, {"type": "text_delta"}
            delta = thought if kind else {**text, "text": texts.pop(0)}
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})
    yield event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}})
    yield event({"type": "message_stop"})


@contextmanager
def thinking(wire: str, *, text_first: bool) -> Iterator[tuple[Front, RawUpstream]]:
    """Run a gateway whose only upstream is one of another wire that thinks for long."""
    other, answer = ("chat", chat_answer) if wire == "messages" else ("messages", message_answer)
    with RawUpstream(lambda _: answer(text_first=text_first), close=True) as upstream:
        settings = {**OTHERS[other], "url": upstream.url, "key_env": "OTHER_KEY"}
        limits = {**IMPATIENT, "headers": 60.0, "first_token_fallback": 2.0, "idle": 2.0}
        policy = {"models": ["other/large"]}
        with Front(upstreams={"other": settings}, policy=policy, timeouts=limits) as front:
            yield front, upstream


@pytest.mark.parametrize("text_first", [False, True], ids=["before", "between"])
@pytest.mark.parametrize("wire", ALL_WIRES)
def test_reasoning_is_no_silence(wire: str, text_first: bool) -> None:
    """Reasoning that lasts longer than the timeouts is progress, although the client's wire does not show it."""
    with thinking(wire, text_first=text_first) as (front, upstream):
        said = ask(front, wire, stream=True).text.split()
        assert said == (["one", "two"] if text_first else ["two"])
        assert len(upstream.requests) == 1


def test_the_client_sees_that_the_upstream_is_at_work() -> None:
    """Reasoning that is not shown becomes a comment of the stream, for clients and proxies that wait for bytes."""
    body = {"model": "small", "max_tokens": 4_000, "messages": ASK, "stream": True}
    with thinking("messages", text_first=True) as (front, _):
        got = front.http().post("/v1/messages", json=body).content
        assert got.index(b'"one "') < got.index(KEEP_ALIVE) < got.index(b'"two"')
