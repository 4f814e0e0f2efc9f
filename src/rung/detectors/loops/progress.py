"""Detect a lack of progress: many calls over a long time without a change that an external probe can see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.domain.errors import ConfigError, is_whole
from rung.core.domain.failures import Kind
from rung.detectors.finding import Finding
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.loops.normalize import digest


class ProgressDetector:
    """Counts calls since the probe's result (the hash of a tree, passing tests, changed files) last changed."""

    __slots__ = ("_calls", "_changed_at", "_marker", "_reported_periods", "settings")

    def __init__(self, settings: LoopSettings | None = None) -> None:
        self.settings = settings or LoopSettings()
        self._marker = ""
        self._changed_at: float | None = None
        self._calls = 0
        self._reported_periods = 0

    def check(self, mark: str | None, at: float | None) -> Finding | None:
        """Record a call: the probe's result after it (None if it did not run), and the time."""
        settings = self.settings
        if settings.off or "no-progress" in settings.ignore_rules:
            return None
        if mark is None and not self._marker:
            return None  # no probe
        if mark is not None and digest(mark) != self._marker:
            self._marker, self._changed_at, self._calls, self._reported_periods = digest(mark), at, 0, 0
            return None
        self._calls += 1
        if self._changed_at is None or at is None:
            return None
        waited = at - self._changed_at
        periods = min(
            self._calls // settings.progress_calls,
            int(waited / settings.progress_seconds) if settings.progress_seconds else self._calls,
            len(_STAGES),
        )
        if periods < 1:
            return None
        is_new, self._reported_periods = periods > self._reported_periods, max(periods, self._reported_periods)
        repeats = getattr(settings, _STAGES[periods - 1])
        return Finding(
            rule="no-progress",
            kind=Kind.LOOP_DETECTED,
            text=f"{self._calls} calls in {waited:.0f} s without an external change: no file, no test, no record",
            count=self._calls,
            repeats=repeats,
            stage=settings.stage(repeats),
            is_new_stage=is_new,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "mark": self._marker,
            "since": self._changed_at,
            "calls": self._calls,
            "reported_periods": self._reported_periods,
        }

    @classmethod
    def from_json(cls, table: Any, settings: LoopSettings | None = None) -> ProgressDetector:
        """Restore a detector from its state."""
        if not isinstance(table, Mapping) or not is_whole(table.get("calls")):
            raise ConfigError("progress", table, "an object with mark, since, calls, reported_periods")
        detector = cls(settings)
        detector._marker, detector._changed_at = table["mark"], table["since"]
        detector._calls, detector._reported_periods = table["calls"], table["reported_periods"]
        return detector


_STAGES: Final = ("replan", "explore", "force_done")  # by number of periods without progress
