"""Server protocol: uvicorn's httptools protocol with limits for clients that do not send, do not stop or do not read."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

MAX_HEADER_BYTES: Final = 65_536  # of one request; checked after each read
DRAIN_IDLE_SECONDS: Final = 2  # for a request after the last response that did not announce the end
RESET_EXTENSION: Final = "rung.reset"  # ASGI extension: resets the connection of a request
_LINGER_ZERO: Final = struct.pack("ii", 1, 0)  # closing sends a reset
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class GatewayProtocol(HttpToolsProtocol):
    """Closes connections whose request headers time out (slowloris) or have no end, or whose responses stay unread."""

    header_timeout: float = 30.0  # seconds, from the connection or from the first byte of a request
    stall_timeout: float = 60.0  # seconds, from the moment the write buffer is full until the client has drained it
    is_draining = False  # of all connections: each response says that it is the last one
    _timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None
    _header_bytes = 0  # received since the last complete headers

    def connection_made(self, transport: Any) -> None:
        """Start the header timeout of the first request."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, unless the headers are too large."""
        if self._timer is None:
            super().data_received(data)
            return
        self._header_bytes += len(data)
        super().data_received(data)
        if self._timer is not None and self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start the header timeout of a further request."""
        super().on_message_begin()
        self.scope["extensions"] = {RESET_EXTENSION: self._reset}  # type: ignore[dict-item]  # an extension of ours
        self._start_timer()

    def on_headers_complete(self) -> None:
        """Stop the header timeout."""
        self._stop_timer()
        self._header_bytes = 0
        super().on_headers_complete()
        if self.is_draining:
            self.end_with_response()

    def end_with_response(self) -> None:
        """Close the connection after the response under way, or after the next one if this one's headers are sent.

        A client that was not told would send its next request into a connection that is being closed.
        """
        self.timeout_keep_alive = DRAIN_IDLE_SECONDS
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Close an idle connection at once; let the others end with a response that says so."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.end_with_response()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeouts with the connection."""
        self._stop_timer()
        self._stop_stall_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timeout for a client that does not read."""
        super().pause_writing()
        self._stop_stall_timer()
        self._stall_timer = self.loop.call_later(self.stall_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timeout: the client has read enough."""
        self._stop_stall_timer()
        super().resume_writing()

    def _reset(self) -> None:
        """Reset the connection: a client tells a reset from a response that ends too early."""
        if not self.transport.is_closing():
            with socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno())) as same:
                same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
            self.transport.abort()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.header_timeout, self._close_stalled)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _close_stalled(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


def protocol_with_timeouts(header_timeout: float, stall_timeout: float) -> type[GatewayProtocol]:
    """Return the protocol class with these timeouts, in seconds."""
    return type("Protocol", (GatewayProtocol,), {"header_timeout": header_timeout, "stall_timeout": stall_timeout})


def close_after_response(protocol: Any, connections: Iterable[Any]) -> None:
    """Let each connection end with its next response: clients go elsewhere without seeing a connection break."""
    protocol.is_draining = True
    for connection in tuple(connections):
        connection.end_with_response()
