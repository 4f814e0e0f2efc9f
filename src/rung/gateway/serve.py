"""Serving: one uvicorn, signals that drain, a file that is read again when it changes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from rung.core.domain.errors import ConfigError
from rung.gateway.app import GatewayApp
from rung.gateway.gateway import Gateway
from rung.gateway.http.server_protocol import patient_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rung.gateway.detector_port import GatewayDetector
    from rung.gateway.settings import GatewaySettings

_LOOK_EVERY: Final = 1.0
_BACKLOG: Final = 2_048


class RunningGateway:
    """A gateway being served."""

    def __init__(
        self,
        settings: GatewaySettings,
        journal: Any = None,
        tell: Callable[[str], object] = print,
        detectors: Sequence[GatewayDetector] = (),
    ) -> None:
        self.settings = settings
        self.detectors = detectors
        self.journal = journal
        self.tell = tell
        self.port = 0
        self.app: GatewayApp | None = None
        self._server: uvicorn.Server | None = None

    async def run(self, reload: Callable[[], GatewaySettings] | None = None, file: Path | None = None) -> None:
        """Serve until a signal comes; then take no more, finish what is under way, and end."""
        gateway = Gateway(self.settings, self.journal, self.detectors, self.tell)
        self.app = GatewayApp(gateway)
        bound = _bound(self.settings)
        self._server = _Server(_config(self.app, self.settings), self)
        watching = asyncio.create_task(self._watch(reload, file)) if reload is not None and file is not None else None
        try:
            await self._server.serve([bound])
        finally:
            if watching is not None:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching

    def stop(self) -> None:
        """End it as a signal would."""
        if self._server is not None:
            self._server.handle_exit(signal.SIGTERM, None)

    async def _watch(self, reload: Callable[[], GatewaySettings], file: Path) -> None:
        """Read the file again when it has changed; one that is wrong is told of, and the old settings stay."""
        seen = _stamp(file)
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            now = _stamp(file)
            if now == seen:
                continue
            seen = now
            self.read_again(reload)

    def read_again(self, reload: Callable[[], GatewaySettings]) -> bool:
        """Take up changed settings; False when they are wrong."""
        try:
            settings = reload()
        except ConfigError as error:
            self.tell(f"rung gateway: the old settings stay: {error}")
            return False
        if self.app is not None:
            self.app.gateway.reload(settings)
        moved = (settings.host, settings.port) != (self.settings.host, self.settings.port)
        self.tell("rung gateway: settings read again" + "; another host or port needs a restart" * moved)
        return True


class _Server(uvicorn.Server):
    """Says that it drains before it does."""

    def __init__(self, config: uvicorn.Config, served: RunningGateway) -> None:
        super().__init__(config)
        self._served = served

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            self._served.port = server.sockets[0].getsockname()[1]
        if self.started:
            host = self._served.settings.host
            self._served.tell(f"rung gateway: http://{host}:{self._served.port}")

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002  # a signal handler's signature
        """The first signal drains, a second one does not wait; neither is raised again once all is done."""
        if self._served.app is not None:
            self._served.app.draining = True
        self.force_exit = self.should_exit
        self.should_exit = True


def _bound(settings: GatewaySettings) -> socket.socket:
    """The socket it listens on; one that cannot be had is a mistake in the settings."""
    kind = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=kind, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError("gateway.port", settings.port, f"a port that is free on {settings.host} ({error})") from None


def _config(app: GatewayApp, settings: GatewaySettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=patient_for(settings.limits.receive),
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody stands before it whose word about the client would count
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(settings.limits.drain) or None,
    )


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def serve(settings: GatewaySettings, journal: Any = None, **watched: Any) -> None:
    """Serve, in this thread, until a signal comes."""
    import uvloop

    gc.freeze()  # what is there now stays: it need not be looked at again
    uvloop.run(RunningGateway(settings, journal).run(**watched))
