"""HTTP server of the service: uvicorn with a shutdown that does not wait for open event streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import uvicorn

from rung.store.fleet.executors import ExecutorRole
from rung.wiring.fleet_heartbeat import beside

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from types import FrameType

    from rung.service.routes.stream import EventBroadcaster
    from rung.store.journal.journal import Journal


class Server(uvicorn.Server):
    """uvicorn server that closes open event streams first; uvicorn alone would wait for them forever."""

    def __init__(self, app: Any, stream: EventBroadcaster, trusted_proxies: Sequence[str] = ()) -> None:
        config = uvicorn.Config(
            app,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=bool(trusted_proxies),  # uvicorn's default believes X-Forwarded-For of any local process
            forwarded_allow_ips=list(trusted_proxies),
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
        )
        super().__init__(config)
        self._stream = stream
        self._is_signalled = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # a signal handler's signature
        """Close the streams, then shut down; do not re-raise the signal, which would skip the caller's cleanup."""
        self.force_exit, self._is_signalled = self._is_signalled, True
        self.drain()

    def drain(self) -> None:
        """Close the streams, then shut down, as an operator ordered. A signal may follow without cutting requests off."""
        self._stream.close()
        self.should_exit = True


def serve(
    app: Any,
    stream: EventBroadcaster,
    listening: socket.socket,
    trusted_proxies: Sequence[str] = (),
    *,
    journal: Journal | None = None,
) -> None:
    """Serve until a signal arrives, or the fleet that shares the journal orders this process to drain."""
    server = Server(app, stream, trusted_proxies)
    heartbeat = beside(
        journal, ExecutorRole.SERVICE, detail=lambda: {"listeners": stream.listeners}, on_drain=server.drain
    )
    if heartbeat is None:
        server.run(sockets=[listening])
        return
    with heartbeat:
        server.run(sockets=[listening])
