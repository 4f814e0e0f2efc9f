"""Bad input gets a clear error of the wire's own shape; nothing hangs, nothing leaks."""

from __future__ import annotations

import json
import socket
import threading

import httpx
import pytest

from rung.core.errors import ConfigError
from tests.gateway.behind import ASK, Behind

GOOD = {"model": "small", "max_tokens": 500, "messages": ASK}


def test_what_is_not_json() -> None:
    """What cannot be a request is refused here; what only might be one is the provider's to refuse."""
    with Behind() as behind, behind.http() as client:
        for body in (b"", b"nonsense", b"[1, 2]"):
            got = client.post("/v1/messages", content=body)
            assert got.status_code == 400
            assert got.json()["error"]["type"] == "invalid_request_error"
        assert behind.attempts == 0
        got = client.post("/v1/messages", content=b'{"model": "small", ')
        assert got.status_code == 400
        assert got.json()["type"] == "error"


def test_a_body_that_is_too_large() -> None:
    """A body above the limit is refused by its length, or as soon as more has come."""
    with Behind(limits={"body": 10_000}) as behind, behind.http() as client:
        got = client.post("/v1/messages", content=b"{" + b" " * 20_000)
        assert got.status_code == 413
        assert got.json()["error"]["type"] == "request_too_large"
        got = client.post("/v1/chat/completions", content=(b" " * 5_000 for _ in range(10)))
        assert got.status_code == 413
        assert behind.attempts == 0


def test_a_body_that_never_comes() -> None:
    """Who sends half a request and waits is answered and let go."""
    with Behind(limits={"receive": 0.3}) as behind, socket.create_connection(("127.0.0.1", behind.served.port)) as slow:
        slow.settimeout(5)
        slow.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        answer = slow.recv(4_096)
        assert b" 408 " in answer
        assert slow.recv(4_096) == b"" or b"did not come in time" in answer


def test_a_redirect_is_not_followed() -> None:
    """An upstream that sends elsewhere is an error: the client's key goes nowhere else."""
    with Behind([{"fault": "redirect", "to": "http://127.0.0.1:9/v1/messages"}]) as behind, behind.http() as client:
        got = client.post("/v1/messages", json=GOOD, headers={"x-api-key": "secret"})
        assert got.status_code == 502
        assert "location" not in got.headers
        assert behind.attempts == 1


def test_headers_cannot_be_smuggled() -> None:
    """What comes in a body or a header comes out as a header of one line, or not at all."""
    with Behind([{"fault": "model_gone"}]) as behind, behind.http() as client:
        bad = {**GOOD, "model": "a\r\nx-evil: 1"}
        got = client.post("/v1/messages", content=json.dumps(bad))
        assert "x-evil" not in got.headers


def test_more_than_it_takes_at_once() -> None:
    """Beyond its limit of requests at once it says so at once, and that it is worth coming back."""
    with Behind(limits={"concurrency": 1}, delay=0.5) as behind, behind.http() as client:
        first = threading.Thread(target=lambda: httpx.post(f"{behind.url}/v1/messages", json=GOOD))
        first.start()
        while behind.attempts == 0:
            pass
        got = client.post("/v1/messages", json=GOOD)
        first.join()
        assert got.status_code == 529
        assert got.headers["retry-after"] == "1"
        assert behind.attempts == 1


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"host": "0.0.0.0"}, "gateway.host"),
        ({"clocks": {"gap": 0}}, "gateway.clocks.gap"),
        ({"upstreams": {"x": {"wire": "smtp", "url": "http://x"}}}, "gateway.upstreams.x.wire"),
        ({"upstreams": {"x": {"wire": "openai", "url": "ftp://x"}}}, "gateway.upstreams.x.url"),
        ({"keys": [{"hash": "short"}]}, "gateway.keys.hash"),
        ({"nonsense": 1}, "gateway.nonsense"),
        ({"port": 70_000}, "gateway.port"),
        ({"budgets": {"session": -1}}, "gateway.budgets.session"),
        ({"prices": {"m": {"input": "x"}}}, "gateway.prices.m.input"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], key: str) -> None:
    """Settings that are wrong are refused before anything listens, by the name of the key."""
    with pytest.raises(ConfigError) as caught:
        Behind(**settings).settings()
    assert caught.value.key == key
