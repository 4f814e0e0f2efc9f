"""Clients that do not send, do not read or leave are let go, with everything they hold."""

from __future__ import annotations

import itertools
import json
import socket
from typing import TYPE_CHECKING

import pytest

from tests.gateway.behind import ASK
from tests.security.upstream.raw_upstream import Front, RawUpstream
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENT = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': 'x' * 20_000}}]})}\n\n".encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PATHS = ["/v1/chat/completions", "/v1/files/a/content"]


class Endless:
    """An upstream whose answers have no end; counts those that are being sent."""

    def __init__(self) -> None:
        self.open = 0

    def __call__(self, _: bytes) -> Iterator[bytes]:
        self.open += 1
        try:
            yield HEAD
            yield from itertools.repeat(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
        finally:
            self.open -= 1


def connect(front: Front) -> socket.socket:
    """Return a connection with a small receive buffer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", front.served.port))
    return client


def ask(client: socket.socket, path: str) -> None:
    """Send a request and read the first bytes of the response."""
    body = json.dumps({"model": "small", "stream": True, "messages": ASK})
    client.sendall(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
    assert client.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("path", PATHS)
def test_a_client_that_never_reads(path: str) -> None:
    """A client that leaves its response unread is disconnected, and its slot and upstream connection are freed."""
    endless = Endless()
    with RawUpstream(endless) as upstream, Front(openai=upstream.url, limits={"stall": 0.2, "answer": 2**40}) as front:
        client = connect(front)
        ask(client, path)
        wait_until(lambda: not endless.open and not front.gateway.active_requests)
        client.close()


@pytest.mark.parametrize("path", PATHS)
def test_a_client_that_leaves(path: str) -> None:
    """The upstream connection of a client that leaves is closed, on passed-on paths too."""
    endless = Endless()
    with RawUpstream(endless) as upstream, Front(openai=upstream.url, limits={"answer": 2**40}) as front:
        client = connect(front)
        ask(client, path)
        client.close()
        wait_until(lambda: not endless.open and not front.gateway.active_requests)


def test_a_client_that_sends_no_headers() -> None:
    """Request headers have the time limit of the settings."""
    with Front(limits={"receive": 0.2}) as front:
        client = connect(front)
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: ")
        assert client.recv(10) == b""
        client.close()
