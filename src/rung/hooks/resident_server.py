"""A process that answers hooks over loopback, so that an event costs no interpreter's start.

`rung hooks serve` runs one, and so does `rung serve`. A hook also starts one of its own when an agent is given a task, which ends
when it has not been asked for some minutes. Two ways to ask: a line `SECRET AGENT LENGTH JOURNAL` and the event; or HTTP, for
agents that post their events themselves: `POST /AGENT` with the header `x-rung-token`.
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
from rung.hooks import loop_check, messages, resident_client, session_ladder, stop_gate  # noqa: F401  # loaded now, so that no event waits for them
from rung.hooks.crash_log import crashed
from rung.hooks.data_dir import try_lock
from rung.hooks.handlers import answered

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE: Final = 300.0  # seconds
LIMIT: Final = 32 * 1024 * 1024  # bytes of an event
_LINE: Final = 8_192
_PATIENCE: Final = 30.0  # seconds for an event to arrive whole
_HEADERS: Final = 100
TOKEN: Final = "hook.token"  # noqa: S105  # a file's name


class ResidentServer(socketserver.ThreadingTCPServer):
    """Answers until it is told to stop, is not asked for `idle` seconds, or its directory is gone."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, place: str | Path, port: int = 0, idle: float | None = None) -> None:
        self.place = Path(place)
        self.place.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _lock(self.place, patience=0.0 if idle is not None else _HANDOVER)
        self.token = token_of(self.place)
        self._idle = idle
        self._asked = time.monotonic()
        self._wake = threading.Event()
        try:
            super().__init__(("127.0.0.1", port), Handler)
        except OSError as error:  # everything is let go of already
            raise ConfigError("port", port, f"one that is free: {error.strerror}") from None
        self._say()
        threading.Thread(target=self._drain, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def _say(self) -> None:
        """Where it is reached, for the user alone."""
        new = self.place / f"{resident_client.FILE}.{os.getpid()}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{self.port} {self.token} {resident_client.HOME}\n")
        new.replace(self.place / resident_client.FILE)

    def service_actions(self) -> None:
        """Between two requests: is it still needed?"""
        forgotten = self._idle is not None and time.monotonic() - self._asked > self._idle
        if forgotten or (
            self._idle is not None and resident_client.reached(str(self.place)) != (self.port, self.token)
        ):
            threading.Thread(target=self.shutdown, daemon=True).start()
        elif self._idle is None and resident_client.reached(str(self.place)) is None and self.place.is_dir():
            self._say()  # somebody took it away; this one was started by a person, and stays

    def server_close(self) -> None:
        """Let go of everything."""
        super().server_close()
        if resident_client.reached(str(self.place)) == (self.port, self.token):
            (self.place / resident_client.FILE).unlink(missing_ok=True)
        os.close(self._lock)

    def answer(self, agent: str, told: bytes, journal: str = "") -> bytes:
        """The answer to an event; whatever goes wrong, the agent goes on."""
        self._asked = time.monotonic()
        try:
            answer, wake, _ = answered(agent, str(self.place), told, journal)
        except Exception as error:  # noqa: BLE001  # as in every hook of ours
            crashed(str(self.place), agent, error)
            return b"{}"
        if wake:
            self._wake.set()
        return answer

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  # the signature is given
        """An agent that hangs up is no news; anything else is a line in the log."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            crashed(str(self.place), "serve", error)

    def _drain(self) -> None:
        """Take what was noted to the journal, one process at a time."""
        while True:
            self._wake.wait()
            self._wake.clear()
            command = [sys.executable, "-m", "rung.hooks.spool_drain", str(self.place)]
            subprocess.run(command, check=False, stdin=-3, stdout=-3, stderr=-3)  # noqa: S603  # our own


class Handler(socketserver.StreamRequestHandler):
    """One connection."""

    timeout = _PATIENCE
    server: ResidentServer

    def handle(self) -> None:
        """Read an event and answer it."""
        first = self.rfile.readline(_LINE)
        if first.startswith(b"POST "):
            while self._http(first):
                first = self.rfile.readline(_LINE)
            return
        parts = first.decode("utf-8", "surrogateescape").rstrip("\n").split(" ", 3)
        if len(parts) == 4 and self._knows(parts[0]) and parts[2].isdecimal() and int(parts[2]) <= LIMIT:  # noqa: PLR2004
            told = self.rfile.read(int(parts[2]))
            self.wfile.write(self.server.answer(parts[1], told, parts[3]) + b"\n")

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())

    def _http(self, first: bytes) -> bool:
        """One posted event; true when another may follow on this connection."""
        headers: dict[str, str] = {}
        for _ in range(_HEADERS):
            name, _, value = self.rfile.readline(_LINE).decode("latin-1").partition(":")
            if not name.strip():
                break
            headers[name.strip().lower()] = value.strip()
        length = headers.get("content-length", "")
        if not self._knows(headers.get("x-rung-token", "")):
            return self._reply(b"401 Unauthorized", b'{"error": "x-rung-token: the secret in hook.token is needed"}')
        if not length.isdecimal() or int(length) > LIMIT:
            return self._reply(b"411 Length Required", b'{"error": "content-length: needed, and at most 32 MB"}')
        told = self.rfile.read(int(length))
        agent = first.split()[1].decode("latin-1").strip("/") if len(first.split()) > 1 else ""
        self._reply(b"200 OK", self.server.answer(agent, told))
        return headers.get("connection", "").lower() != "close"

    def _reply(self, status: bytes, body: bytes) -> bool:
        """Write an answer; false: the connection is over."""
        kind = b"content-type: application/json\r\ncontent-length: "
        self.wfile.write(b"HTTP/1.1 " + status + b"\r\n" + kind + str(len(body)).encode() + b"\r\n\r\n" + body)
        self.wfile.flush()
        return False


def token_of(place: Path) -> str:
    """The secret of this user's hooks; made once, so that settings which name it stay true."""
    path = place / TOKEN
    try:
        found = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        found = ""
    if not found:
        found = secrets.token_urlsafe(24)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(found)
    return found


class AlreadyRunning(ConfigError):
    """Another process answers for this directory."""


_HANDOVER: Final = 3.0  # seconds: one that a hook started makes room for one that a person started


def _lock(place: Path, patience: float) -> int:
    handle = os.open(place / "serve.lock", os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + patience
    while not try_lock(handle):
        if time.monotonic() >= until:
            os.close(handle)
            raise AlreadyRunning("hooks", str(place), "one process that answers them; there is one already")
        (place / resident_client.FILE).unlink(missing_ok=True)  # one that a hook started looks for it, and ends without
        time.sleep(0.1)
    return handle


class ResidentThread:
    """Answers from a thread of a service that runs anyway; where another process does already, it does nothing."""

    def __init__(self, place: str | Path, port: int = resident_client.PORT) -> None:
        self.server: ResidentServer | None = None
        self.begun = threading.Event()  # it is known whether it answers
        self._thread = threading.Thread(target=self._run, args=(place, port), daemon=True)
        self._thread.start()

    def _run(self, place: str | Path, port: int) -> None:
        for wanted in (port, 0):  # where the port is taken, any other: commands find it by its file
            try:
                self.server = ResidentServer(place, wanted)
            except AlreadyRunning:
                break
            except ConfigError:
                continue
            except Exception as error:  # noqa: BLE001  # the service is there without it
                crashed(str(place), "serve", error)
            break
        self.begun.set()
        if self.server is not None:
            self.server.serve_forever()

    def stop(self) -> None:
        """Answer no more."""
        self.begun.wait(2 * _HANDOVER)
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()


def serve(
    place: str | Path, port: int = 0, idle: float | None = None, ready: Callable[[ResidentServer], None] | None = None
) -> None:
    """Answer until it is over."""
    with ResidentServer(place, port, idle) as server:
        if ready is not None:
            ready(server)
        server.serve_forever(poll_interval=0.5)


if __name__ == "__main__":
    try:
        serve(sys.argv[1], idle=IDLE)
    except AlreadyRunning:
        sys.exit(0)
    except Exception as error:  # noqa: BLE001  # nobody is there to be told but the log
        crashed(sys.argv[1], "serve", error)
        sys.exit(1)
