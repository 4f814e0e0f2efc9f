"""Fake clock that moves only when it is advanced or slept on."""

from __future__ import annotations


class FakeClock:
    """Clock for tests: sleeping returns at once and advances the fake time.

    Args:
        now: Time at the start, in UTC seconds. Default: 1,000,000.

    Attributes:
        sleeps: Seconds of each wait.

    Example:
        >>> import rung
        >>> clock = rung.testing.FakeClock()
        >>> clock.sleep(60)
        >>> clock.now(), clock.sleeps
        (1000060.0, [60])
    """

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.time = now
        self.sleeps: list[float] = []

    def now(self) -> float:
        """Return the current fake time."""
        return self.time

    def advance(self, seconds: float) -> None:
        """Advance the time, for example inside an attempt that simulates a long call.

        Args:
            seconds: Seconds.
        """
        self.time += seconds

    def sleep(self, seconds: float) -> None:
        """Advance the time and record the duration in `sleeps`.

        Args:
            seconds: Seconds.
        """
        self.sleeps.append(seconds)
        self.time += seconds

    async def asleep(self, seconds: float) -> None:
        """Advance the time like `sleep`, as a coroutine.

        Args:
            seconds: Seconds.
        """
        self.sleep(seconds)
