"""A clock that moves when it is told to, and when somebody sleeps on it."""

from __future__ import annotations


class FakeClock:
    """Time for tests: sleeping takes none of yours and all of its own."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.time = now
        self.sleeps: list[float] = []

    def now(self) -> float:
        """The time it was last moved to."""
        return self.time

    def advance(self, seconds: float) -> None:
        """Let time pass, for instance inside an attempt that is meant to take long."""
        self.time += seconds

    def sleep(self, seconds: float) -> None:
        """Move on and remember for how long."""
        self.sleeps.append(seconds)
        self.time += seconds

    async def asleep(self, seconds: float) -> None:
        """The same, awaited."""
        self.sleep(seconds)
