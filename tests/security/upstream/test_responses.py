"""Odd but possible responses and connections of an upstream get a clear answer, and no request is lost to them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.gateway.behind import ASK
from tests.security.upstream.certificates import make_certificates
from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer

if TYPE_CHECKING:
    from pathlib import Path

BODY = {"model": "small", "max_tokens": 100, "messages": ASK}
CHAT = "/v1/chat/completions"


@pytest.mark.parametrize("status", ["600", "999", "099", "000"])
def test_a_status_that_does_not_exist(status: str) -> None:
    """A status outside 100 to 599 is told as a bad gateway, on every path, instead of a closed connection."""
    with RawUpstream(http_answer(b"{}", status=f"{status} Odd"), close=True) as upstream:
        front = Front(openai=upstream.url, policy={"retries": 0})
        with front, front.http() as client:
            for got in (client.get("/v1/files"), client.post(CHAT, json=BODY)):
                assert got.status_code == 502
                assert f"status {int(status)}" in got.json()["error"]["message"]


def test_not_modified() -> None:
    """A conditional GET gets its 304, and the connection is used again; a model call with 304 is an error."""
    answer = b'HTTP/1.1 304 Not Modified\r\netag: "a"\r\ncontent-length: 500\r\n\r\n'
    with RawUpstream(answer) as upstream:
        front = Front(openai=upstream.url, policy={"retries": 0})
        with front, front.http() as client:
            for _ in range(2):
                got = client.get("/v1/files/a", headers={"if-none-match": '"a"'})
                assert (got.status_code, got.headers["etag"], got.content) == (304, '"a"', b"")
            assert upstream.connections == 1
            assert client.post(CHAT, json=BODY).status_code == 502


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_redirects_are_not_followed(status: str) -> None:
    """A redirect is an error on every path: following it would send the key to another host."""
    with RawUpstream(http_answer(b"")) as other:
        answer = http_answer(b"", f"location: {other.url}/", status=status)
        with RawUpstream(answer) as upstream:
            front = Front(openai=upstream.url, policy={"retries": 0})
            with front, front.http() as client:
                assert client.get("/v1/files").status_code == 502
                assert client.post(CHAT, json=BODY).status_code == 502
    assert not other.requests


def test_an_idle_connection_that_the_upstream_closed() -> None:
    """A request that can be repeated is sent again if its idle connection was closed; another one is not."""
    served: list[bytes] = []

    def script(request: bytes) -> bytes:
        """Answer the first request of a connection; close the connection when a second one comes."""
        served.append(request)
        if len(served) % 2:
            return http_answer(b"[]")
        raise ConnectionResetError

    with RawUpstream(script) as upstream, Front(openai=upstream.url) as front, front.http() as client:
        for _ in range(5):
            assert client.get("/v1/files").status_code == 200
        sent = len(upstream.requests)
        assert client.post("/v1/fine_tuning/jobs", json={}).status_code == 502
        assert len(upstream.requests) == sent + 1


def test_a_certificate_that_is_not_trusted(tmp_path: Path) -> None:
    """A certificate error is told as a bad gateway with its reason, not as missing permission; it is not retried."""
    context = make_certificates(tmp_path, "localhost").server_context()
    with RawUpstream(http_answer(b"[]"), tls=context) as upstream:
        front = Front(openai=upstream.url)
        with front, front.http() as client:
            for got in (client.get("/v1/files"), client.post(CHAT, json=BODY)):
                assert got.status_code == 502
                assert "certificate verify failed" in got.json()["error"]["message"]
    assert not upstream.requests


@pytest.mark.parametrize("path", ["/v1/../../tenant-b/x", "/v1/%2e%2e/%2E%2E/tenant-b/x"])
def test_no_path_leaves_the_prefix(path: str) -> None:
    """A path with dot segments does not leave the base path of an upstream."""
    with RawUpstream(http_answer(b"[]")) as upstream, Front(openai=f"{upstream.url}/tenant-a") as front:
        client = socket.create_connection(("127.0.0.1", front.served.port))
        client.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
        client.close()
    assert answer.split()[1] in {b"400", b"403", b"404", b"502"}
    assert not any(b"tenant-b" in request for request in upstream.requests)
