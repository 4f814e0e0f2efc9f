"""Resident server that answers hooks over loopback, so that an event does not start an interpreter.

`rung hooks serve` and `rung serve` run one. A hook starts one in the background when an agent gets a task; that one ends after
an idle timeout. Protocols: a line `TOKEN AGENT LENGTH JOURNAL` followed by the event; or HTTP, for agents that post events:
`POST /AGENT` with the header `x-rung-token`.
"""

from __future__ import annotations

import hmac
import os
import secrets
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
from rung.hooks.data_dir import try_lock
from rung.hooks.handlers import handle_event

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_SECONDS: Final = 300.0
MAX_EVENT_BYTES: Final = 32 * 1024 * 1024  # of one event
_MAX_LINE_BYTES: Final = 8_192
_READ_TIMEOUT_SECONDS: Final = 30.0  # for a complete event
_MAX_HEADERS: Final = 100
TOKEN_FILE: Final = "hook.token"  # noqa: S105  # a file's name


class ResidentServer(socketserver.ThreadingTCPServer):
    """Serves until it is shut down, was idle for `idle` seconds, or its directory is gone."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, data_dir: str | Path, port: int = 0, idle: float | None = None) -> None:
        self.data_dir = Path(data_dir)
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _acquire_lock(self.data_dir, timeout=0.0 if idle is not None else _HANDOVER_SECONDS)
        self.token = load_token(self.data_dir)
        self._idle_seconds = idle
        self._last_request_at = time.monotonic()
        self._wake = threading.Event()
        try:
            super().__init__(("127.0.0.1", port), Handler)
        except OSError as error:  # the base class has closed the socket
            raise ConfigError("port", port, f"a free port: {error.strerror}") from None
        self._write_address_file()
        threading.Thread(target=self._drain, daemon=True).start()

    @property
    def port(self) -> int:
        """Return the port it listens on."""
        return int(self.server_address[1])

    def _write_address_file(self) -> None:
        """Write port and token to the address file, readable by the user only."""
        new = self.data_dir / f"{resident_client.ADDRESS_FILE}.{os.getpid()}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{self.port} {self.token} {resident_client.CODE_DIR}\n")
        new.replace(self.data_dir / resident_client.ADDRESS_FILE)

    def service_actions(self) -> None:
        """Shut down after the idle timeout, or when another server has taken over."""
        is_idle = self._idle_seconds is not None and time.monotonic() - self._last_request_at > self._idle_seconds
        if is_idle or (
            self._idle_seconds is not None
            and resident_client.find_server(str(self.data_dir)) != (self.port, self.token)
        ):
            threading.Thread(target=self.shutdown, daemon=True).start()
        elif (
            self._idle_seconds is None
            and resident_client.find_server(str(self.data_dir)) is None
            and self.data_dir.is_dir()
        ):
            self._write_address_file()  # the file was deleted; a server started by the user keeps running

    def server_close(self) -> None:
        """Close the socket, remove the address file, and release the lock."""
        super().server_close()
        if resident_client.find_server(str(self.data_dir)) == (self.port, self.token):
            (self.data_dir / resident_client.ADDRESS_FILE).unlink(missing_ok=True)
        os.close(self._lock)

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


class Handler(socketserver.StreamRequestHandler):
    """Handler of one connection."""

    timeout = _READ_TIMEOUT_SECONDS
    server: ResidentServer

    def handle(self) -> None:
        """Read an event and write the response."""
        line = self.rfile.readline(_MAX_LINE_BYTES)
        if line.startswith(b"POST "):
            while self._handle_post(line):
                line = self.rfile.readline(_MAX_LINE_BYTES)
            return
        parts = line.decode("utf-8", "surrogateescape").rstrip("\n").split(" ", 3)
        if (
            len(parts) == 4  # noqa: PLR2004  # token, agent, length, journal
            and self._is_authorized(parts[0])
            and parts[2].isdecimal()
            and int(parts[2]) <= MAX_EVENT_BYTES
        ):
            payload = self.rfile.read(int(parts[2]))
            self.wfile.write(self.server.answer(parts[1], payload, parts[3]) + b"\n")

    def _is_authorized(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())

    def _handle_post(self, line: bytes) -> bool:
        """Answer one posted event; true if another request may follow on this connection."""
        headers: dict[str, str] = {}
        for _ in range(_MAX_HEADERS):
            name, _, value = self.rfile.readline(_MAX_LINE_BYTES).decode("latin-1").partition(":")
            if not name.strip():
                break
            headers[name.strip().lower()] = value.strip()
        length = headers.get("content-length", "")
        if not self._is_authorized(headers.get("x-rung-token", "")):
            return self._reply(b"401 Unauthorized", b'{"error": "x-rung-token: must be the token in hook.token"}')
        if not length.isdecimal() or int(length) > MAX_EVENT_BYTES:
            return self._reply(b"411 Length Required", b'{"error": "content-length: required, at most 32 MB"}')
        payload = self.rfile.read(int(length))
        agent = line.split()[1].decode("latin-1").strip("/") if len(line.split()) > 1 else ""
        self._reply(b"200 OK", self.server.answer(agent, payload))
        return headers.get("connection", "").lower() != "close"

    def _reply(self, status: bytes, body: bytes) -> bool:
        """Write a response; always returns false, which closes the connection."""
        head = b"content-type: application/json\r\ncontent-length: "
        self.wfile.write(b"HTTP/1.1 " + status + b"\r\n" + head + str(len(body)).encode() + b"\r\n\r\n" + body)
        self.wfile.flush()
        return False


def load_token(data_dir: Path) -> str:
    """Return the token of this user's hooks; created once, because installed settings contain it."""
    path = data_dir / TOKEN_FILE
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        token = secrets.token_urlsafe(24)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(token)
    return token


class AlreadyRunning(ConfigError):
    """Another server serves this directory."""


_HANDOVER_SECONDS: Final = 3.0  # a server started by a hook gives way to one started by the user


def _acquire_lock(data_dir: Path, timeout: float) -> int:
    handle = os.open(data_dir / "serve.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + timeout
    while not try_lock(handle):
        if time.monotonic() >= deadline:
            os.close(handle)
            raise AlreadyRunning("hooks", str(data_dir), "served by one process; another one is running")
        (data_dir / resident_client.ADDRESS_FILE).unlink(
            missing_ok=True
        )  # a server started by a hook ends without its file
        time.sleep(0.1)
    return handle


class ResidentThread:
    """Hook server in a thread of the service; does nothing if another process serves the directory."""

    def __init__(self, data_dir: str | Path, port: int = resident_client.DEFAULT_PORT) -> None:
        self.server: ResidentServer | None = None
        self.started = threading.Event()  # set once it is known whether this thread serves
        self._thread = threading.Thread(target=self._run, args=(data_dir, port), daemon=True)
        self._thread.start()

    def _run(self, data_dir: str | Path, port: int) -> None:
        for candidate in (port, 0):  # falls back to any free port: commands read the address file
            try:
                self.server = ResidentServer(data_dir, candidate)
            except AlreadyRunning:
                break
            except ConfigError:
                continue
            except Exception as error:  # noqa: BLE001  # the service runs without it
                log_crash(str(data_dir), "serve", error)
            break
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
    port: int = 0,
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
