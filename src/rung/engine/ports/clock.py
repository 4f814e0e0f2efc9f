"""Port to the clock, and the system clock."""

from __future__ import annotations

import time
from typing import Final, Protocol

# Offset from the monotonic clock to UTC, taken once: a UTC clock that never runs backwards.
EPOCH: Final = time.time() - time.monotonic()
MAX_SLEEP_SLICE_SECONDS: Final = 30.0


class Clock(Protocol):
    """Source of time, and the only way to wait."""

    def now(self) -> float:
        """Return UTC seconds. The value never decreases."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block for `seconds`. Ctrl-C must end the wait at once.

        Args:
            seconds: Seconds to wait.
        """
        ...

    async def asleep(self, seconds: float) -> None:
        """Wait for `seconds` without blocking the event loop. A cancellation must end the wait at once.

        Args:
            seconds: Seconds to wait.
        """
        ...


class SystemClock:
    """System clock. Long waits are cut into slices, so that a suspended machine wakes on time."""

    def now(self) -> float:
        """Return UTC seconds. The value never decreases."""
        return EPOCH + time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`, in slices."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, MAX_SLEEP_SLICE_SECONDS))

    async def asleep(self, seconds: float) -> None:
        """Wait for `seconds`, in slices, without blocking the event loop."""
        import asyncio

        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:  # noqa: ASYNC110  # time is what is waited for
            await asyncio.sleep(min(left, MAX_SLEEP_SLICE_SECONDS))


SYSTEM_CLOCK: Final = SystemClock()
