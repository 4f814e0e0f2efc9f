"""The gateway's own key, echoed by an upstream, reaches neither the client nor the log nor the journal."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.gateway.http.port import read_body
from rung.gateway.upstream.secret_filter import FilteredResponse
from rung.wiring.journals import journal
from tests.gateway.behind import ASK
from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.security.upstream.raw_upstream import Script

KEY = "Zq7-held-by-the-gateway"  # of no shape that a pattern knows
BODY = {"model": "small", "max_tokens": 100, "messages": ASK}


def _stream(_: bytes) -> list[bytes]:
    """Return a stream whose text holds the key, cut inside it."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    events = "".join(
        f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}, 'finish_reason': stop}]})}\n\n"
        for text, stop in ((f"your key is {KEY}, well", None), ("", "stop"))
    )
    data = (events + "data: [DONE]\n\n").encode()
    at = data.index(KEY.encode()) + 5
    return [head, *(b"%x\r\n%b\r\n" % (len(part), part) for part in (data[:at], data[at:])), b"0\r\n\r\n"]


def _message(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


ECHOES: dict[str, Script | bytes] = {
    "error body": http_answer(f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode(), status="400 Bad Request"),
    "error header": http_answer(b"{}", f"x-debug: got {KEY}", status="400 Bad Request"),
    "answer": http_answer(_message(f"it is {KEY}"), "content-type: application/json"),
    "compressed": http_answer(gzip.compress(_message(KEY)), "content-type: application/json", "content-encoding: gzip"),
    "cookie": http_answer(_message("fine"), "content-type: application/json", "set-cookie: account=gateways"),
    "stream": _stream,
    "not HTTP": http_answer(b"", f"content-encoding: {KEY}"),
    "status line": http_answer(_message("fine"), status=f"200 {KEY}"),
}


@pytest.mark.parametrize("echo", list(ECHOES))
def test_an_echoed_key(echo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever part of a response the upstream echoes the key, on every path, nobody sees it."""
    monkeypatch.setenv("HELD_KEY", KEY)
    place = tmp_path / "journal.db"
    with RawUpstream(ECHOES[echo], close=True) as upstream:
        held = {"x": {"wire": "openai", "url": upstream.url, "key_env": "HELD_KEY"}}
        front = Front(upstreams=held, policy={"retries": 0}, journal=journal(str(place)))
        with front, front.http() as client:
            seen = [
                client.post("/v1/chat/completions", json={**BODY, "stream": echo == "stream"}),
                client.get("/v1/files"),
                client.get("/v1/models"),
            ]
        log = "\n".join(front.log_lines)
    assert sum(KEY.encode() in request for request in upstream.requests) >= 1
    for answer in seen:
        assert KEY not in answer.text + repr(answer.headers)
        assert "set-cookie" not in answer.headers
    assert KEY not in log
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


class _Chunks:
    """A response with these chunks."""

    status = 200

    def __init__(self, chunks: list[bytes]) -> None:
        self.raw_headers: list[tuple[bytes, bytes]] = []
        self._left = [chunk for chunk in chunks if chunk]

    @property
    def ended(self) -> bool:
        return not self._left

    async def read_chunk(self) -> bytes:
        return self._left.pop(0) if self._left else b""

    def close(self) -> None:
        """Do nothing."""


@given(st.lists(st.sampled_from([b"sk-", b"s", b"k", b"-", b"abab", b"ab", b"abc", b"x", b"sk-ababc!"])))
def test_any_chunks_give_the_same_text(chunks: list[bytes]) -> None:
    """However a body is cut, the result is the whole body with the key replaced."""
    key = b"sk-ababc"
    got = asyncio.run(read_body(FilteredResponse(_Chunks(chunks), key), 2**20))
    assert got == b"".join(chunks).replace(key, b"<secret:upstream-key>")
