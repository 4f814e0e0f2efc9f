"""A provider behind a wall: it refuses every call for the model with 529 (503 on OpenAI's APIs), without a hint."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.clients.provider.server import Provider

if TYPE_CHECKING:
    from bench.clients.provider.script import Asked, Play


class WallLog:
    """Requests of one case, over all of its providers."""

    def __init__(self) -> None:
        self.started: float | None = None
        self.requests: list[float] = []  # seconds since the first one
        self.answered: float | None = None  # first answer to a request about the task
        self.until_answer = 0  # requests until then

    def add(self) -> float:
        """Count a request; return when it came."""
        now = time.monotonic()
        if self.started is None:
            self.started = now
        self.requests.append(now - self.started)
        return self.requests[-1]


class WallProvider(Provider):
    """Refuses for `seconds` from the first request of the case: every model, or only the one that is named."""

    def __init__(self, play: Play, log: WallLog, seconds: float, model: str = "") -> None:
        super().__init__(play=play)
        self.log = log
        self._seconds = seconds
        self._model = model

    def strike(self, asked: Asked) -> str | None:
        """Return the fault of a request about the task."""
        fault = self.strike_other(asked)
        if fault is None and self.log.answered is None:
            self.log.answered = self.log.requests[-1]
            self.log.until_answer = len(self.log.requests)
        return fault

    def strike_other(self, asked: Asked) -> str | None:
        """Return the fault of another request."""
        at = self.log.add()
        return "529" if at < self._seconds and (not self._model or asked.model == self._model) else None

    _strike, _strike_other = strike, strike_other
