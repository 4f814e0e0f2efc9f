"""Runs the gateway on uvicorn: graceful drain on signals, settings reload when the file changes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import time
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from rung.core.domain.errors import ConfigError
from rung.gateway.app import GatewayApp
from rung.gateway.gateway import Gateway
from rung.gateway.http.server_protocol import close_after_response, protocol_with_timeouts
from rung.store.fleet.executors import ExecutorRole
from rung.wiring.fleet_heartbeat import FleetHeartbeat, beside
from rung.wiring.listening_socket import BACKLOG, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rung.gateway.detector_port import GatewayDetector
    from rung.gateway.settings import GatewaySettings
    from rung.store.journal.journal import Journal

_POLL_SECONDS: Final = 1.0


class RunningGateway:
    """A gateway server and its lifecycle."""

    def __init__(
        self,
        settings: GatewaySettings,
        journal: Journal | None = None,
        log: Callable[[str], object] = print,
        detectors: Sequence[GatewayDetector] = (),
    ) -> None:
        self.settings = settings
        self.detectors = detectors
        self.journal = journal
        self.log = log
        self.port = 0
        self._reload_error = ""
        self.app: GatewayApp | None = None
        self.heartbeat: FleetHeartbeat | None = None
        self._server: _GatewayServer | None = None

    async def run(self, reload: Callable[[], GatewaySettings] | None = None, file: Path | None = None) -> None:
        """Serve until a signal arrives, then drain: report not ready, and finish the requests in flight."""
        gateway = Gateway(self.settings, self.journal, self.detectors, self.log)
        self.app = GatewayApp(gateway)
        listener = listen("gateway.port", self.settings.host, self.settings.port)
        self._server = _GatewayServer(_uvicorn_config(self.app, self.settings), self)
        watcher = (
            asyncio.create_task(self._watch_file(reload, file)) if reload is not None and file is not None else None
        )
        try:
            await self._server.serve([listener])
        finally:
            if self.heartbeat is not None:
                await asyncio.to_thread(self.heartbeat.stop)
            if watcher is not None:
                watcher.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watcher

    def stop(self) -> None:
        """Drain and stop, as on SIGINT: there is no load balancer that has to notice."""
        if self._server is not None:
            self._server.handle_exit(signal.SIGINT, None)

    def begin_heartbeat(self, on_drain: Callable[[], object]) -> None:
        """Join the fleet that shares the journal, if there is one."""
        loop, app = asyncio.get_running_loop(), self.app
        assert app is not None  # noqa: S101  # it is being served

        def ordered() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: so has the gateway
                loop.call_soon_threadsafe(on_drain)

        self.heartbeat = beside(
            self.journal,
            ExecutorRole.GATEWAY,
            detail=lambda: {"requests": app.gateway.active_requests},
            on_drain=ordered,
            warn=lambda text: self.log(f"rung gateway: {text}"),
        )
        if self.heartbeat is not None:
            self.heartbeat.start()

    async def _watch_file(self, reload: Callable[[], GatewaySettings], file: Path) -> None:
        """Reload the settings whenever the file changes; while that fails, keep the old ones and try again.

        A file that is not trusted is loaded once it is, which does not change it.
        """
        last_version, loaded = _file_version(file), True
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            version = _file_version(file)
            if version == last_version and loaded:
                continue
            last_version = version
            loaded = self.reload_settings(reload)

    def reload_settings(self, reload: Callable[[], GatewaySettings]) -> bool:
        """Apply changed settings; return False if they are invalid."""
        try:
            settings = reload()
            if self.app is not None:
                self.app.gateway.reload(settings)
        except ConfigError as error:
            if str(error) != self._reload_error:
                self.log(f"rung gateway: settings not reloaded: {error}")
            self._reload_error = str(error)
            return False
        self._reload_error = ""
        needs_restart = (settings.host, settings.port) != (self.settings.host, self.settings.port)
        self.log("rung gateway: settings reloaded" + "; restart to change host or port" * needs_restart)
        self.log_warnings()
        return True

    @property
    def journal_line(self) -> str:
        """Where calls are recorded, in words."""
        return "no journal is written" if self.journal is None else f"journal: {self.journal.backend.url}"

    def log_warnings(self) -> None:
        """Log what the settings promise and cannot keep."""
        if self.app is not None:
            gateway = self.app.gateway
            for warning in gateway.upstream_table.warnings(gateway.policy("").models):
                self.log(f"rung gateway: warning: {warning}")


class _GatewayServer(uvicorn.Server):
    """uvicorn server that marks the application as draining when a signal arrives."""

    def __init__(self, config: uvicorn.Config, running: RunningGateway) -> None:
        super().__init__(config)
        self._running = running
        self._is_signalled = False
        self._exit_at: float | None = None

    async def on_tick(self, counter: int) -> bool:
        """Stop listening when a load balancer has had the time to notice that this gateway is not ready."""
        self.should_exit |= self._exit_at is not None and time.monotonic() >= self._exit_at
        return await super().on_tick(counter)

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            self._running.port = server.sockets[0].getsockname()[1]
        if self.started:
            host = self._running.settings.host
            self._running.log(f"rung gateway: http://{host}:{self._running.port}")
            self._running.log(f"rung gateway: {self._running.journal_line}")
            self._running.log_warnings()
            self._running.begin_heartbeat(self.drain)

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002  # a signal handler's signature
        """Drain on the first signal, exit at once on the second; do not re-raise either. Ctrl-C has no delay."""
        self.force_exit, self._is_signalled = self._is_signalled, True
        self.drain()
        self.should_exit |= self.force_exit or sig == signal.SIGINT

    def drain(self) -> None:
        """Exit after the shutdown delay, when the requests in flight have ended. An order of the fleet is no signal: one may follow."""
        if self._running.app is not None:
            self._running.app.draining = True
        if self._running.heartbeat is not None:
            self._running.heartbeat.drain()
        close_after_response(self.config.http_protocol_class, self.server_state.connections)
        if self._exit_at is None:
            self._exit_at = time.monotonic() + self._running.settings.limits.shutdown_delay


def _uvicorn_config(app: GatewayApp, settings: GatewaySettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=protocol_with_timeouts(settings.limits.receive, settings.limits.stall),
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # no trusted proxy sits in front, so X-Forwarded-* is ignored
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(settings.limits.drain) or None,
    )


def _file_version(file: Path) -> tuple[int, int]:
    try:
        stat = file.stat()
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)


def serve(settings: GatewaySettings, journal: Journal | None = None, **reload_options: Any) -> None:
    """Serve in this thread until a signal arrives."""
    import uvloop

    gc.freeze()  # loaded modules live forever; keep them out of garbage collection
    uvloop.run(RunningGateway(settings, journal).run(**reload_options))
