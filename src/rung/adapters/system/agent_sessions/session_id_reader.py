"""Reader of an agent's output that finds the id of its session, as soon as the agent has written it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE_BYTES: Final = 1 << 20


class SessionIdReader:
    """Searches the lines of standard output and standard error until one has an id, which it passes on once."""

    def __init__(self, find: Callable[[str], str], on_session: Callable[[str], object]) -> None:
        self._find = find
        self._on_session = on_session
        self._rests = {"output": b"", "errors": b""}
        self._lock = threading.Lock()
        self._is_done = False

    def read(self, stream: str, chunk: bytes) -> None:
        """Search what the stream has written."""
        if self._is_done:
            return
        *lines, rest = (self._rests[stream] + chunk).split(b"\n")
        self._rests[stream] = rest[-MAX_LINE_BYTES:]
        for line in lines:
            self._search(line)

    def finish(self) -> None:
        """Search what was written without a line break at its end."""
        for rest in self._rests.values():
            self._search(rest)

    def _search(self, line: bytes) -> None:
        session = "" if self._is_done else self._find(line.decode("utf-8", "replace"))
        if not session:
            return
        with self._lock:
            if self._is_done:
                return
            self._is_done = True
        self._on_session(session)
