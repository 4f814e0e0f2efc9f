"""Feeds bytes to the reader of upstream responses, as a socket would, without one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain.errors import AttemptError
from rung.gateway.http.connection import UpstreamConnection
from rung.gateway.http.port import read_body

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.gateway.http.response import HttpResponse

LIMIT = 2**20


class ReadResponse(NamedTuple):
    """What the reader made of the bytes."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class _Transport:
    """The methods of a transport that a connection calls; closed once aborted."""

    def __init__(self) -> None:
        self.closed = False
        self.paused = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        assert data

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0


async def read_response(pieces: Iterable[bytes], *, is_head_request: bool = False) -> ReadResponse | None:
    """Return the response in the pieces, after which the upstream closes; None if the reader refuses them."""
    idle: list[Any] = []
    closed: list[Any] = []
    connection, transport = UpstreamConnection(idle.append, closed.append), _Transport()
    connection.connection_made(transport)
    reading = asyncio.create_task(_read(connection, is_head_request=is_head_request))
    await asyncio.sleep(0)
    for piece in pieces:
        if transport.closed or idle:
            break
        if piece:
            connection.data_received(piece)
        await asyncio.sleep(0)  # let the reader take it
    connection.connection_lost(None)
    result = await reading
    assert len(idle) <= 1
    assert closed == [connection]
    return result


async def _read(connection: UpstreamConnection, *, is_head_request: bool) -> ReadResponse | None:
    response: HttpResponse | None = None
    try:
        response = await connection.send_request(b"GET / HTTP/1.1\r\n\r\n", b"", is_head_request=is_head_request)
        return ReadResponse(response.status, response.raw_headers, await read_body(response, LIMIT))
    except AttemptError:
        return None
    finally:
        if response is not None:
            response.close()
