"""The clocks of one attempt, on one timer: what is due is moved on by writing a number, not by a new timer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind, Phase

if TYPE_CHECKING:
    from types import TracebackType

HEADERS, FIRST, GAP, BODY = range(4)
_WAITED_FOR: Final = ("the headers", "the first content", "the next piece", "the body")


class PhaseTimer:
    """Ends the attempt of the running task when what is waited for has not come in time."""

    __slots__ = ("_handle", "_loop", "_task", "due", "expired", "phase", "seconds", "writing")

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        self._loop = loop
        self._task = task
        self._handle: asyncio.TimerHandle | None = None
        self.due = 0.0
        self.seconds = 0.0
        self.phase = HEADERS
        self.expired = False
        self.writing = False  # it is the client who is slow

    def wait_for(self, phase: int, seconds: float) -> None:
        """From now on this is waited for."""
        self.phase, self.seconds = phase, seconds
        now = self._loop.time()
        sooner = self._handle is None or now + seconds < self.due
        self.due = now + seconds
        if sooner:
            if self._handle is not None:
                self._handle.cancel()
            self._handle = self._loop.call_later(seconds, self._look)

    def came(self) -> None:
        """A piece has come."""
        self.due = self._loop.time() + self.seconds

    def _look(self) -> None:
        left = self.due - self._loop.time()
        if self.writing and left <= 0:
            left = self.seconds
        if left > 0:
            self._handle = self._loop.call_later(left, self._look)
            return
        self.expired = True
        self._task.cancel()

    def __enter__(self) -> PhaseTimer:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._handle is not None:
            self._handle.cancel()
        # Whose cancellation it was is told by the number: a client that left has cancelled, too.
        if self.expired and isinstance(error, asyncio.CancelledError) and self._task.uncancel() <= 0:
            raise AttemptError(
                f"{_WAITED_FOR[self.phase]} did not come within {self.seconds:g} s",
                finding=Kind.TIMEOUT,
                phase=Phase.CALL if self.phase == HEADERS else Phase.STREAM,
            ) from None
