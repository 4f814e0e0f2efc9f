"""State of one agent session between two events: a JSON file and its lock; old sessions are pruned."""

from __future__ import annotations

import os
import time
from zlib import crc32

from rung.hooks import fast_json
from rung.hooks.data_dir import try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Final

VERSION: Final = 2  # of the state; one of an older version is dropped: 1 could hold commands that nobody trusted
LOCK_TIMEOUT_SECONDS: Final = 2.0  # for another hook of the same session
MAX_SESSIONS: Final = 200
MAX_AGE_SECONDS: Final = 14 * 86_400


class SessionState:
    """State of one session, locked while it is in use. `save` writes `table` back."""

    def __init__(self, data_dir: str, agent: str, session: str) -> None:
        # Readable by its beginning, unique by a checksum of the whole name.
        prefix = "".join(letter if letter.isalnum() else "-" for letter in session[:40])
        number = crc32(f"{agent}\n{session}".encode("utf-8", "replace"))
        self.key = f"{agent}-{prefix}-{number:08x}"
        self.folder = os.path.join(data_dir, "sessions")  # noqa: PTH118  # pathlib costs milliseconds
        self._path = os.path.join(self.folder, self.key + ".json")  # noqa: PTH118
        self._lock = -1
        self.table: dict[str, Any] = {}

    def __enter__(self) -> SessionState:
        if not os.path.isdir(self.folder):  # noqa: PTH112
            os.makedirs(os.path.dirname(self.folder), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
            os.makedirs(self.folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        self._lock = os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _acquire_lock(self._lock)
            self.table = self._read()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def _read(self) -> dict[str, Any]:
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123
                table = fast_json.loads(file.read())
        except (OSError, ValueError):  # missing or truncated: start anew
            return {"v": VERSION, "began": time.time()}
        if not isinstance(table, dict) or table.get("v") != VERSION:
            return {"v": VERSION, "began": time.time()}
        return table

    def save(self) -> None:
        """Write the state atomically."""
        new = f"{self._path}.{os.getpid()}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(fast_json.dumps(self.table).encode())
        os.replace(new, self._path)  # noqa: PTH105


def _acquire_lock(handle: int) -> None:
    """Wait for the lock, which another hook of this session may hold."""
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while not try_lock(handle):
        if time.monotonic() > deadline:
            raise BlockingIOError(
                f"session lock timed out: another hook held it for more than {LOCK_TIMEOUT_SECONDS:g} s"
            )
        time.sleep(0.004)


def prune(data_dir: str, now: float) -> None:
    """Delete the state of sessions that are too old or too many."""
    folder = os.path.join(data_dir, "sessions")  # noqa: PTH118
    try:
        files = sorted(((entry.stat().st_mtime, entry.path) for entry in os.scandir(folder)), reverse=True)
    except OSError:
        return
    for number, (changed, path) in enumerate(files):
        if number >= 2 * MAX_SESSIONS or now - changed > MAX_AGE_SECONDS:
            try:
                os.unlink(path)  # noqa: PTH108
            except OSError:
                return
