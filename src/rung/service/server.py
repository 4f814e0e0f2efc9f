"""HTTP server of the service: uvicorn with a shutdown that does not wait for open event streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    import socket
    from types import FrameType

    from rung.service.routes.stream import EventBroadcaster


class Server(uvicorn.Server):
    """uvicorn server that closes open event streams first; uvicorn alone would wait for them forever."""

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
        """Handle a signal: close the streams, then shut down."""
        self._stream.close()
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # uvicorn re-raises them after shutdown, which would skip the caller's cleanup


def serve(app: Any, stream: EventBroadcaster, listening: socket.socket) -> None:
    """Serve until a signal arrives."""
    Server(app, stream).run(sockets=[listening])
