"""The server's side of a connection, with one thing more: who does not say what it wants is let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio


class Protocol(HttpToolsProtocol):
    """uvicorn's own, with a limit on how long headers may take: a thousand half requests cost nothing."""

    seconds: float = 30.0  # for the headers of a request, from the connection or from their first byte
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody has connected, and may take a moment."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """It has said what it wants."""
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
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


def patient_for(seconds: float) -> type[Protocol]:
    """The same with so many seconds."""
    return type("Protocol", (Protocol,), {"seconds": seconds})
