"""No outside progress: calls for a long time, and nothing that a probe can see has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.domain.errors import ConfigError, is_whole
from rung.core.domain.failures import Kind
from rung.detectors.finding import Finding
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.loops.normalize import digest


class ProgressDetector:
    """Counts calls since the mark last changed; the mark is a tree's hash, tests passing, files touched."""

    __slots__ = ("_calls", "_mark", "_since", "_told", "watching")

    def __init__(self, watching: LoopSettings | None = None) -> None:
        self.watching = watching or LoopSettings()
        self._mark = ""
        self._since: float | None = None
        self._calls = 0
        self._told = 0

    def see(self, mark: str | None, at: float | None) -> Finding | None:
        """Take in a call: what the probe saw after it (None: it did not look), and when."""
        watching = self.watching
        if watching.off or "no-progress" in watching.ignore_rules:
            return None
        if mark is None and not self._mark:
            return None  # no probe
        if mark is not None and digest(mark) != self._mark:
            self._mark, self._since, self._calls, self._told = digest(mark), at, 0, 0
            return None
        self._calls += 1
        if self._since is None or at is None:
            return None
        waited = at - self._since
        periods = min(
            self._calls // watching.progress_calls,
            int(waited / watching.progress_seconds) if watching.progress_seconds else self._calls,
            len(_STAGES),
        )
        if periods < 1:
            return None
        news, self._told = periods > self._told, max(periods, self._told)
        repeats = getattr(watching, _STAGES[periods - 1])
        return Finding(
            rule="no-progress",
            kind=Kind.LOOP_DETECTED,
            text=f"{self._calls} calls in {waited:.0f} s, and nothing outside has changed: no file, no test, no record",
            count=self._calls,
            repeats=repeats,
            stage=watching.stage(repeats),
            is_new_stage=news,
        )

    def to_json(self) -> dict[str, Any]:
        """What is remembered."""
        return {"mark": self._mark, "since": self._since, "calls": self._calls, "told": self._told}

    @classmethod
    def from_json(cls, table: Any, watching: LoopSettings | None = None) -> ProgressDetector:
        """The watch as it was."""
        if not isinstance(table, Mapping) or not is_whole(table.get("calls")):
            raise ConfigError("progress", table, "an object with mark, since, calls, told")
        watch = cls(watching)
        watch._mark, watch._since = table["mark"], table["since"]
        watch._calls, watch._told = table["calls"], table["told"]
        return watch


_STAGES: Final = ("replan", "explore", "force_done")  # one for each time that all of it passed again
