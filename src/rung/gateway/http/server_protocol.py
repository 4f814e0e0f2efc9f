"""HTTP protocol of the server: uvicorn's, with a time limit for the headers of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio


class GatewayProtocol(HttpToolsProtocol):
    """Closes a connection whose request headers take too long: a thousand half requests cost nothing."""

    seconds: float = 30.0  # for the headers of a request, from the connection or from their first byte
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """Start the time limit of a further request."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """End the time limit."""
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time limit with the connection."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.seconds, self._let_go)

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _let_go(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()


def patient_for(seconds: float) -> type[GatewayProtocol]:
    """The protocol with this many seconds for headers."""
    return type("Protocol", (GatewayProtocol,), {"seconds": seconds})
