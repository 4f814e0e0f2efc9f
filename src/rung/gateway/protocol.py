"""The server's side of a connection: who says nothing is let go, and an answer's head goes out with its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

_HEAD: Final = b"HTTP/1.1 "
_CONTINUE: Final = b"HTTP/1.1 100 "


class Together:
    """A transport that holds an answer's head until there is more to send: one call of the system, not two."""

    __slots__ = ("_held", "_transport", "abort", "get_extra_info", "is_closing", "pause_reading", "resume_reading")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""
        self.abort = transport.abort
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def write(self, data: bytes) -> None:
        """Send this, with what was held before it."""
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(_HEAD) and not data.startswith(_CONTINUE):
            self._held = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Send what is held: nothing follows."""
        if self._held:
            self.write(b"")

    def close(self) -> None:
        """Send what is held, and close."""
        self.flush()
        self._transport.close()


class Protocol(HttpToolsProtocol):
    """uvicorn's own, with a limit on how long headers may take: a thousand half requests cost nothing."""

    seconds: float = 30.0  # for the headers of a request, from the connection or from their first byte
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody has connected, and may take a moment."""
        self._together = Together(transport)
        super().connection_made(self._together)  # type: ignore[arg-type]  # all of a transport that it uses
        self._wait()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """It has said what it wants."""
        self._stop()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """An answer is over, perhaps without a body."""
        self._together.flush()
        super().on_response_complete()

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
