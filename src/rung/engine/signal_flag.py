"""Flag that a signal handler may set, and a wake-up that it may send.

`threading.Event` takes a lock to be set. A handler runs between any two steps of the main thread, also while the main
thread, or another handler, holds that lock: it would wait for itself.
"""

from __future__ import annotations

import os
import select
import weakref


class SignalFlag:
    """Event without locks: once set, it stays set. Any number of threads can wait for it."""

    def __init__(self) -> None:
        self._is_set = False
        self._reader, self._writer = os.pipe()  # readable as soon as the flag is set
        weakref.finalize(self, os.close, self._reader)
        weakref.finalize(self, os.close, self._writer)

    def set(self) -> None:
        """Set the flag and wake all waiting threads."""
        if not self._is_set:
            self._is_set = True
            os.write(self._writer, b"\0")

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until the flag is set, at most for so many seconds. Return whether it is set."""
        if not self._is_set:
            poll = select.poll()
            poll.register(self._reader, select.POLLIN)
            poll.poll(max(0.0, seconds) * 1_000)
        return self._is_set


class SignalWakeup:
    """Wakes a thread that waits, or its next wait if it does not."""

    def __init__(self) -> None:
        self._flag = SignalFlag()

    def wake(self) -> None:
        """End the current or the next wait."""
        self._flag.set()

    def wait(self, seconds: float) -> None:
        """Wait until somebody wakes this thread, at most for so many seconds."""
        if self._flag.wait(seconds):
            self._flag = SignalFlag()
