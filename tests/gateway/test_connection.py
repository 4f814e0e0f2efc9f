"""Upstream connections against servers that speak HTTP correctly, incorrectly, and not at all."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from rung.core.classify.classifier import classify
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.pool import ConnectionPool
from rung.gateway.http.port import read_body
from rung.gateway.settings import settings_from
from rung.gateway.upstream.settings import UpstreamSettings

if TYPE_CHECKING:
    from pathlib import Path

HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
HEADERS = [(b"x-api-key", b"k")]
LIMIT = 2**30
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Place:
    """A server that replays scripted bytes for each request on each connection."""

    def __init__(self, *answers: bytes, close: bool = False) -> None:
        self.answers = answers
        self.close = close
        self.connections = 0
        self.asked: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while head := await _head(reader):
            self.asked.append(head)
            for answer in self.answers:
                writer.write(answer)
                await writer.drain()
                await asyncio.sleep(0.01)
            if self.close or not self.answers:
                break
        writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length: ")), b"content-length: 0")
    return head + await reader.readexactly(int(length[16:]))


def run(
    place: Handler,
    work: Callable[[ConnectionPool, UpstreamSettings], Awaitable[Any]],
    tls: ssl.SSLContext | None = None,
) -> Any:
    """Run a coroutine with a pool for this server."""

    async def inside() -> Any:
        serving: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            try:
                await place(reader, writer)
            except ConnectionError:
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        there = UpstreamSettings(name="there", wire="openai", url=f"{'https' if tls else 'http'}://127.0.0.1:{port}")
        pool = ConnectionPool(settings_from({"timeouts": {"connect": 1.0}}))
        try:
            return await asyncio.wait_for(work(pool, there), 120)
        finally:
            await pool.close()
            server.close()
            await asyncio.wait(serving or [asyncio.create_task(asyncio.sleep(0))], timeout=60)
            await asyncio.sleep(0)

    return uvloop.run(inside())


async def ask(
    pool: ConnectionPool, there: UpstreamSettings, body: bytes = b"{}", method: str = "POST", target: str = "/v1/x"
) -> Any:
    response = await pool.send(there, method, target, HEADERS, body)
    try:
        return response.status, await read_body(response, LIMIT)
    finally:
        response.close()


def kind_of(place: Handler) -> Kind:
    """Return the error of a request to this server."""

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> Kind:
        with pytest.raises(AttemptError) as caught:
            await ask(pool, there)
        return classify(caught.value.evidence).kind

    found: Kind = run(place, work)
    return found


def test_a_connection_is_used_again() -> None:
    """Sequential requests share one connection; concurrent requests use two."""
    place = Place(HELLO)

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        for _ in range(5):
            assert await ask(pool, there) == (200, b"hello")
        assert place.connections == 1
        await asyncio.gather(ask(pool, there), ask(pool, there))
        assert place.connections == 2

    run(place, work)
    assert place.asked[0].startswith(b"POST /v1/x HTTP/1.1\r\nhost: 127.0.0.1:")
    assert place.asked[0].endswith(b"\r\nx-api-key: k\r\ncontent-length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    "answers",
    [
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r",
            b"\n3\r\nllo\r\n",
            b"0\r\nx-trailer: 1\r\n\r\n",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", HELLO),
        tuple(HELLO[at : at + 1] for at in range(len(HELLO))),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 25\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"hello"),),
    ],
)
def test_an_answer_in_every_form(answers: tuple[bytes, ...]) -> None:
    """Any framing, chunking or compression gives the same response, and the connection is reused."""
    place = Place(*answers)

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        for _ in range(2):
            response = await pool.send(there, "POST", "/", HEADERS, b"")
            assert await read_body(response, LIMIT) == b"hello"
            assert b"link" not in dict(response.raw_headers)
            response.close()
        assert place.connections == 1

    run(place, work)


@pytest.mark.parametrize(
    ("answers", "connections"),
    [
        ((b"HTTP/1.1 200 OK\r\n\r\n", b"hello"), 2),  # ends when the connection closes
        ((b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",), 2),
        ((b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",), 2),
        ((HELLO + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",), 2),  # the second response is unsolicited
    ],
)
def test_a_connection_that_is_not_used_again(answers: tuple[bytes, ...], connections: int) -> None:
    """A connection that the upstream closes, or sends extra data on, is not reused."""
    place = Place(*answers, close=True)

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        for _ in range(2):
            assert await ask(pool, there) == (200, b"hello")

    run(place, work)
    assert place.connections == connections


def test_what_comes_unasked_ends_a_connection() -> None:
    """Data that arrives before a request is discarded with its connection."""
    place = Place(HELLO, b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        assert await ask(pool, there) == (200, b"hello")
        await asyncio.sleep(0.1)
        assert await ask(pool, there) == (200, b"hello")

    run(place, work)
    assert place.connections == 2


def test_head_has_no_body() -> None:
    """The response to HEAD has a content-length and no body."""

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        assert await ask(pool, there, b"", "HEAD") == (200, b"")

    place = Place(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n")
    run(place, work)
    assert b"content-length" not in place.asked[0]


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ((), Kind.NETWORK),
        ((b"HTTP/1.1 20",), Kind.NETWORK),
        ((b"SSH-2.0-OpenSSH_9.6\r\n",), Kind.NETWORK),
        ((b"HTTP/1.1 200 OK\r\nx: " + b"y" * 600_000 + b"\r\n\r\n",), Kind.NETWORK),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",), Kind.STREAM_INTERRUPTED),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",), Kind.STREAM_INTERRUPTED),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",), Kind.STREAM_INTERRUPTED),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-encoding: gzip\r\n\r\nabc",), Kind.STREAM_INTERRUPTED),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-encoding: br\r\n\r\nabc",), Kind.SERVER_ERROR),
        ((b"HTTP/1.1 302 Found\r\nlocation: http://x/\r\ncontent-length: 0\r\n\r\n",), Kind.CONFIGURATION),
    ],
)
def test_what_is_no_answer(answers: tuple[bytes, ...], kind: Kind) -> None:
    """Each transport error becomes a failure with the right kind."""
    assert kind_of(Place(*answers, close=True)) is kind


def test_nobody_there() -> None:
    """A refused connection is an error that names the upstream."""

    async def work(pool: ConnectionPool, _: UpstreamSettings) -> None:
        nowhere = UpstreamSettings(name="nowhere", wire="openai", url="http://127.0.0.1:9")
        with pytest.raises(AttemptError, match="cannot connect to upstream nowhere") as caught:
            await ask(pool, nowhere)
        assert classify(caught.value.evidence).kind is Kind.NETWORK

    run(Place(), work)


def test_a_slow_reader_slows_the_upstream() -> None:
    """Unread data is buffered up to a limit, and all of it arrives in the end."""
    size = 64 * 2**20
    sent = 0

    async def place(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await _head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        while sent < size:
            writer.write(b"x" * 2**16)
            await writer.drain()
            sent += 2**16
        writer.close()

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        response = await pool.send(there, "GET", "/", HEADERS, b"")
        await asyncio.sleep(0.5)
        assert sent < size // 2
        assert len(await read_body(response, LIMIT)) == size
        response.close()

    run(place, work)


def test_who_leaves_is_not_waited_for() -> None:
    """Closing an unfinished response closes its connection at once."""
    left = asyncio.Event()

    async def place(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
        await reader.read()
        writer.close()
        left.set()

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        response = await pool.send(there, "GET", "/", HEADERS, b"")
        assert await response.read_chunk() == b"hello"
        response.close()
        await asyncio.wait_for(left.wait(), 1)

    run(place, work)


def test_nothing_is_smuggled() -> None:
    """A line break in a header or a space in a path is rejected before a byte is sent."""
    place = Place(HELLO)

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> None:
        for headers, target in (
            ([(b"a", b"b\r\nx-evil: 1")], "/"),
            ([(b"a", b"b\nx-evil: 1")], "/"),
            (HEADERS, "/ HTTP/1.1\r\nx-evil: 1\r\n\r\n"),
            (HEADERS, "/a b"),
        ):
            with pytest.raises(AttemptError, match="line break"):
                await pool.send(there, "POST", target, headers, b"{}")

    run(place, work)
    assert not place.asked


def test_tls_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrusted certificate is rejected; a trusted one is accepted for its own host name."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(tmp_path / "key"),
        "-out",
        str(tmp_path / "cert"),
    ]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> tuple[int, bytes]:
        port = there.url.rpartition(":")[2]
        with pytest.raises(AttemptError, match=r"(?i)certificate"):  # the name is not in it
            await ask(pool, UpstreamSettings(name="there", wire="openai", url=f"https://127.0.0.1:{port}"))
        named = UpstreamSettings(name="there", wire="openai", url=f"https://localhost:{port}")
        await ask(pool, named)
        found: tuple[int, bytes] = await ask(pool, named)
        return found

    place = Place(HELLO)
    with pytest.raises(AttemptError, match=r"(?i)certificate"):
        run(place, ask, context)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
    assert run(place, work, context) == (200, b"hello")
    assert place.connections == 1
