"""Timeouts of one attempt's phases on a single timer: progress moves a deadline instead of creating a timer."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind, Phase

if TYPE_CHECKING:
    from types import TracebackType

HEADERS, FIRST_TOKEN, IDLE, BODY = range(4)
_PHASE_NAMES: Final = ("upstream response headers", "first token", "stream idle", "request body")


class PhaseTimer:
    """Cancels the running task when its current phase times out, and raises AttemptError."""

    __slots__ = ("_ends", "_handle", "_limit", "_loop", "_task", "deadline", "expired", "phase", "seconds", "writing")

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], limit: float | None = None) -> None:
        self._loop = loop
        self._task = task
        self._limit = limit  # seconds of all phases together
        self._ends = inf if limit is None else loop.time() + limit
        self._handle: asyncio.TimerHandle | None = None
        self.deadline = 0.0
        self.seconds = 0.0
        self.phase = HEADERS
        self.expired = False
        self.writing = False  # blocked on the client, which does not count against the upstream

    def start_phase(self, phase: int, seconds: float) -> None:
        """Start a phase with its timeout."""
        self.phase, self.seconds = phase, seconds
        now = self._loop.time()
        before, self.deadline = self.deadline, min(now + seconds, self._ends)
        if self._handle is None or self.deadline < before:
            if self._handle is not None:
                self._handle.cancel()
            self._handle = self._loop.call_later(self.deadline - now, self._check)

    def restart(self) -> None:
        """Restart the timeout of the current phase after progress."""
        self.deadline = min(self._loop.time() + self.seconds, self._ends)

    def complete(self, seconds: float) -> None:
        """Give the rest of a response that is complete this time; the limit of the attempt has been met."""
        self._ends = inf
        self.start_phase(IDLE, seconds)

    def _check(self) -> None:
        remaining = self.deadline - self._loop.time()
        if self.writing and remaining <= 0:
            remaining = self.seconds if self._limit is None else min(self.seconds, self._limit)
        if remaining > 0:
            self._handle = self._loop.call_later(remaining, self._check)
            return
        self.expired = True
        self._task.cancel()

    def __enter__(self) -> PhaseTimer:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._handle is not None:
            self._handle.cancel()
        # If somebody else cancelled the task as well (the client disconnected), the count stays above zero.
        if self.expired and isinstance(error, asyncio.CancelledError) and self._task.uncancel() <= 0:
            is_limit = self.deadline >= self._ends
            name, seconds = ("attempt", self._limit) if is_limit else (_PHASE_NAMES[self.phase], self.seconds)
            raise AttemptError(
                f"{name} timed out after {seconds:g} s",
                finding=Kind.TIMEOUT,
                phase=Phase.CALL if self.phase == HEADERS else Phase.STREAM,
            ) from None
