"""Patience with a running attempt: how long it may show no sign of progress, by the history of similar attempts.

The history is looked up only once an attempt has been silent for the shortest time that can count, and in a thread of
its own: short attempts cost nothing, and a slow store delays no time limit.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.policy.stalls import StallLimits

POLL_SECONDS: Final = 1.0  # while the history is looked up
_NEVER: Final = float("inf")


class Patience:
    """Deadline of a running attempt that moves with each sign of progress. Times are of the monotonic clock."""

    __slots__ = ("_is_asked", "_limits", "_look_up", "last_sign", "seconds")

    def __init__(self, limits: StallLimits, look_up: Callable[[], Sequence[float]]) -> None:
        self._limits = limits
        self._look_up = look_up
        self._is_asked = False
        self.last_sign = monotonic()
        self.seconds: float | None = None  # of silence that are too much; None: not known yet

    def note_progress(self) -> None:
        """Note that the attempt has shown that it is at work."""
        self.last_sign = monotonic()

    def deadline(self) -> float:
        """Return the time at which the attempt is stalled if it shows no progress, as far as is known now."""
        if self.seconds is not None:
            return self.last_sign + self.seconds
        earliest = self.last_sign + self._limits.min_seconds
        now = monotonic()
        if now < earliest:
            return earliest
        if not self._is_asked:
            self._is_asked = True
            threading.Thread(target=self._ask, name="rung-history", daemon=True).start()
        return now + POLL_SECONDS

    def is_over(self) -> bool:
        """Whether the attempt is stalled."""
        return self.seconds is not None and monotonic() >= self.last_sign + self.seconds

    def _ask(self) -> None:
        try:
            limit = self._limits.limit(self._look_up())
        except Exception:  # without a history there is no limit
            limit = None
        self.seconds = _NEVER if limit is None else limit
