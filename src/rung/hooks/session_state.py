"""What is remembered of one agent's session between two events: a file, a lock, and a bound."""

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

VERSION: Final = 1
PATIENCE: Final = 2.0  # seconds for another hook of the same session
KEPT: Final = 200  # sessions
KEPT_SECONDS: Final = 14 * 86_400


class SessionState:
    """One session's memory, held while it is looked at; what is in `table` at the end is kept."""

    def __init__(self, place: str, agent: str, session: str) -> None:
        # Told apart by two numbers of the whole name, readable by its beginning.
        plain = "".join(letter if letter.isalnum() else "-" for letter in session[:40])
        number = crc32(f"{agent}\n{session}".encode("utf-8", "replace"))
        self.key = f"{agent}-{plain}-{number:08x}"
        self.folder = os.path.join(place, "sessions")  # noqa: PTH118  # pathlib costs milliseconds
        self._path = os.path.join(self.folder, self.key + ".json")  # noqa: PTH118
        self._lock = -1
        self.table: dict[str, Any] = {}
        self.kept = False

    def __enter__(self) -> SessionState:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        self._lock = os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _hold(self._lock)
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
        except (OSError, ValueError):  # none yet, or one that was cut: a new beginning
            return {"v": VERSION, "began": time.time()}
        if not isinstance(table, dict) or table.get("v") != VERSION:
            return {"v": VERSION, "began": time.time()}
        return table

    def keep(self) -> None:
        """Write it down, whole or not at all."""
        new = f"{self._path}.{os.getpid()}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(fast_json.dumps(self.table).encode())
        os.replace(new, self._path)  # noqa: PTH105
        self.kept = True


def _hold(handle: int) -> None:
    """Wait for the lock, not for long: another hook of this session is at work."""
    until = time.monotonic() + PATIENCE
    while not try_lock(handle):
        if time.monotonic() > until:
            raise BlockingIOError(f"another hook of this session took longer than {PATIENCE:g} s")
        time.sleep(0.004)


def prune(place: str, now: float) -> None:
    """Forget sessions that are long over, and the oldest of too many."""
    folder = os.path.join(place, "sessions")  # noqa: PTH118
    try:
        found = sorted(((entry.stat().st_mtime, entry.path) for entry in os.scandir(folder)), reverse=True)
    except OSError:
        return
    for number, (changed, path) in enumerate(found):
        if number >= 2 * KEPT or now - changed > KEPT_SECONDS:
            try:
                os.unlink(path)  # noqa: PTH108
            except OSError:
                return
