"""Resident server that answers hooks, so that an event does not start an interpreter.

`rung hooks serve` and `rung serve` run one. A hook starts one in the background when an agent gets a task; that one ends after
an idle timeout. It speaks HTTP (`POST /AGENT` with the event) over a Unix socket in the user's own directory, and answers
nobody but this account. `rung hooks serve --http` also listens on loopback, where both sides prove a secret: see
`resident_client`.
"""

from __future__ import annotations

import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.hooks import loop_check, messages, resident_client, session_ladder, stop_gate  # noqa: F401  # imported up front, so that no event waits for them
from rung.hooks.crash_log import log_crash
from rung.hooks.data_dir import make_private, try_lock
from rung.hooks.handlers import handle_event
from rung.hooks.resident_http import Handler, HttpListener

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_SECONDS: Final = 300.0
_HANDOVER_FILE: Final = "serve.handover"  # while it exists, a server started by a hook ends


class ResidentServer(socketserver.ThreadingTCPServer):
    """Serves until it is shut down, was idle for `idle` seconds, or its socket is gone; with a port, also over HTTP."""

    address_family = getattr(socket, "AF_UNIX", socket.AF_INET)
    daemon_threads = True
    request_queue_size = 128  # hooks of several agents may ask at once

    def __init__(self, data_dir: str | Path, port: int | None = None, idle: float | None = None) -> None:
        self.data_dir = Path(data_dir)
        if not hasattr(socket, "AF_UNIX"):
            raise ConfigError("hooks", sys.platform, "a system with Unix sockets; hooks work without the server")
        make_private(str(self.data_dir))
        self._lock = _acquire_lock(self.data_dir, timeout=0.0 if idle is not None else _HANDOVER_SECONDS)
        self._path = self.data_dir / resident_client.SOCKET_FILE
        self.owner = os.geteuid()
        self._idle_seconds = idle
        self._last_request_at = time.monotonic()
        self._wake = threading.Event()
        self._http: HttpListener | None = None
        try:
            self._path.unlink(missing_ok=True)  # of a server that was killed: this one holds the lock
            super().__init__(str(self._path), Handler)  # type: ignore[arg-type]  # the address of a Unix socket is a path
            self._path.chmod(0o600)
            self._inode = self._path.stat().st_ino
            self._http = None if port is None else HttpListener(self, port)
        except OSError as error:
            self.server_close()
            allowed = f"a directory for a socket: {error.strerror or error}; RUNG_HOOKS names another"
            raise ConfigError("hooks", str(self.data_dir), allowed) from None
        except ConfigError:
            self.server_close()
            raise
        threading.Thread(target=self._drain, daemon=True).start()

    @property
    def port(self) -> int:
        """Return the port it listens on; 0 without HTTP."""
        return 0 if self._http is None else self._http.port

    @property
    def resident(self) -> ResidentServer:
        """Return the server that answers: for the handlers, which both listeners share."""
        return self

    def server_bind(self) -> None:
        """Bind the socket."""
        self.socket.bind(self.server_address)

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002  # the signature of the base class
        """Return whether the other process belongs to the account of this one; others get no answer."""
        try:
            return resident_client.peer_uid(request) == self.owner
        except OSError:  # gone already
            return False

    def _owns_socket(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def service_actions(self) -> None:
        """Shut down after the idle timeout, or when a server of the user takes over."""
        if self._idle_seconds is not None and (
            time.monotonic() - self._last_request_at > self._idle_seconds
            or (self.data_dir / _HANDOVER_FILE).exists()
            or not self._owns_socket()
        ):
            threading.Thread(target=self.shutdown, daemon=True).start()

    def server_close(self) -> None:
        """Close and remove the socket, and release the lock; the base class also calls it if binding fails."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
        super().server_close()
        if hasattr(self, "_inode") and self._owns_socket():
            self._path.unlink(missing_ok=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def answer(self, agent: str, payload: bytes, journal: str = "") -> bytes:
        """Return the response to an event; `{}` on any error, so that the agent is not affected."""
        self._last_request_at = time.monotonic()
        try:
            answer, needs_drain, _ = handle_event(agent, str(self.data_dir), payload, journal)
        except Exception as error:  # noqa: BLE001  # a failing hook must never affect the agent
            log_crash(str(self.data_dir), agent, error)
            return b"{}"
        if needs_drain:
            self._wake.set()
        return answer

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  # the signature of the base class
        """Log an error, unless the agent closed the connection."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            log_crash(str(self.data_dir), "serve", error)

    def _drain(self) -> None:
        """Drain the spool into the journal, in one process at a time."""
        while True:
            self._wake.wait()
            self._wake.clear()
            command = [sys.executable, "-P", "-m", "rung.hooks.spool_drain", str(self.data_dir)]
            subprocess.run(command, check=False, stdin=-3, stdout=-3, stderr=-3)  # noqa: S603  # our own command


class AlreadyRunning(ConfigError):
    """Another server serves this directory."""


_HANDOVER_SECONDS: Final = 3.0  # a server started by a hook gives way to one started by the user


def _acquire_lock(data_dir: Path, timeout: float) -> int:
    """Lock the directory; a server that a hook started is asked to end, and given this long."""
    handle = os.open(data_dir / "serve.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline, handover = time.monotonic() + timeout, data_dir / _HANDOVER_FILE
    try:
        while not try_lock(handle):
            if time.monotonic() >= deadline:
                os.close(handle)
                raise AlreadyRunning("hooks", str(data_dir), "served by one process; another one is running")
            handover.touch(mode=0o600)
            time.sleep(0.1)
    finally:
        if timeout:
            handover.unlink(missing_ok=True)
    return handle


class ResidentThread:
    """Hook server in a thread of the service; does nothing if another process serves the directory."""

    def __init__(self, data_dir: str | Path) -> None:
        self.server: ResidentServer | None = None
        self.started = threading.Event()  # set once it is known whether this thread serves
        self._thread = threading.Thread(target=self._run, args=(data_dir,), daemon=True)
        self._thread.start()

    def _run(self, data_dir: str | Path) -> None:
        try:
            self.server = ResidentServer(data_dir)
        except AlreadyRunning:
            pass
        except Exception as error:  # noqa: BLE001  # the service runs without it
            log_crash(str(data_dir), "serve", error)
        self.started.set()
        if self.server is not None:
            self.server.serve_forever()

    def stop(self) -> None:
        """Stop serving."""
        self.started.wait(2 * _HANDOVER_SECONDS)
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()


def serve(
    data_dir: str | Path,
    port: int | None = None,
    idle: float | None = None,
    ready: Callable[[ResidentServer], None] | None = None,
) -> None:
    """Serve until shutdown; `ready` is called once it listens."""
    with ResidentServer(data_dir, port, idle) as server:
        if ready is not None:
            ready(server)
        server.serve_forever(poll_interval=0.5)


if __name__ == "__main__":
    try:
        serve(sys.argv[1], idle=IDLE_SECONDS)
    except AlreadyRunning:
        sys.exit(0)
    except Exception as error:  # noqa: BLE001  # a background process: only the log can report it
        log_crash(sys.argv[1], "serve", error)
        sys.exit(1)
