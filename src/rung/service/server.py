"""Starts the service: one process, one port, and an end within a second, whoever is listening."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    import socket
    from types import FrameType

    from rung.service.routes.stream import EventBroadcaster


class Server(uvicorn.Server):
    """uvicorn, which would wait for open streams for ever: they are ended first."""

    def __init__(self, app: Any, stream: EventBroadcaster, **settings: Any) -> None:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
            **settings,
        )
        super().__init__(config)
        self._stream = stream

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: end the streams, then the rest."""
        self._stream.close()
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # it would raise them again at the end: what is left to tidy up would not be


def serve(app: Any, stream: EventBroadcaster, listening: socket.socket) -> None:
    """Serve until a signal ends it."""
    Server(app, stream).run(sockets=[listening])
