"""Detect a context window that fills faster than the work progresses, and one that is full again after compaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding
from rung.detectors.loops.normalize import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextThresholds:
    """Thresholds of the context warnings.

    growth_share    share of the window that may fill without progress
    lead_share      how far usage may be ahead of the completed share of the work, where that is known
    full_share      share at which the context counts as full
    soon_turns      turns after a compaction within which a full context counts as thrashing
    max_thrashes    consecutive occurrences of thrashing that are reported
    """

    growth_share: float = 0.3
    lead_share: float = 0.4
    full_share: float = 0.8
    soon_turns: int = 5
    max_thrashes: int = 3

    def __post_init__(self) -> None:
        for name in ("growth_share", "lead_share", "full_share"):
            if not is_number(getattr(self, name)) or not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"context.{name}", getattr(self, name), "a share, more than 0 and at most 1")
        for name in ("soon_turns", "max_thrashes"):
            if not is_whole(getattr(self, name), 1):
                raise ConfigError(f"context.{name}", getattr(self, name), "a whole number, 1 or more")


class ContextMonitor:
    """Tracks how full the context window is, turn by turn.

    Args:
        thresholds: When to warn. Default: 30 % of the window filled without progress, or full again within 5 turns after a
            compaction.

    Example:
        >>> import rung
        >>> context = rung.detect.ContextMonitor()
        >>> context.turn(20_000, 200_000, mark="tree 1")
        >>> context.turn(90_000, 200_000, mark="tree 1").rule
        'context-filling'
    """

    __slots__ = ("_baseline", "_mark", "_reported", "_thrashes", "_turns_since", "thresholds")

    def __init__(self, thresholds: ContextThresholds | None = None) -> None:
        self.thresholds = thresholds or ContextThresholds()
        self._mark = ""
        self._baseline: float | None = None  # share in use when the work last progressed
        self._turns_since: int | None = None  # turns since the last compaction that is not counted yet
        self._thrashes = 0
        self._reported = False

    def compacted(self, used: int, limit: int) -> None:
        """Record a compaction and the tokens in use after it.

        Args:
            used: Tokens in use after it.
            limit: Tokens that fit.
        """
        self._baseline = _share(used, limit)
        self._turns_since = 0
        self._reported = False

    def turn(self, used: int, limit: int, *, mark: str | None = None, done: float | None = None) -> Finding | None:
        """Record a turn, and return a finding if the context fills faster than the work progresses.

        Args:
            used: Tokens in use.
            limit: Tokens that fit.
            mark: Any text that changes when the work progresses, such as the hash of a tree. Default: unknown.
            done: Completed share of the work, from 0 to 1. Default: unknown.
        """
        share, thresholds = _share(used, limit), self.thresholds
        thrash = self._check_thrashing(share)
        if thrash is not None:
            return thrash
        if self._baseline is None or (mark is not None and digest(mark) != self._mark):
            self._mark = self._mark if mark is None else digest(mark)
            self._baseline, self._reported = share, False
        ahead = done is not None and share - done >= thresholds.lead_share
        if self._reported or not (ahead or share - self._baseline >= thresholds.growth_share):
            return None
        self._reported = True
        progress = (
            f"{done:.0%} of the work is done"
            if done is not None
            else f"{share - self._baseline:.0%} of it used since the work last progressed"
        )
        return _finding("context-filling", f"the context is {share:.0%} full, {progress}", 1)

    def _check_thrashing(self, share: float) -> Finding | None:
        if self._turns_since is None:
            return None
        self._turns_since += 1
        if share >= self.thresholds.full_share:
            self._turns_since = None
            return self._count_thrash()
        if self._turns_since > self.thresholds.soon_turns:
            self._thrashes, self._turns_since = 0, None
        return None

    def full_again(self, turns: int) -> Finding | None:
        """Record that a compaction is due, this many turns after the previous one: for agents that report no token counts.

        Args:
            turns: Turns since the previous compaction.
        """
        if self._turns_since is None:
            self._turns_since = 0
            return None
        if turns <= self.thresholds.soon_turns:
            return self._count_thrash()
        self._thrashes = 0
        return None

    def _count_thrash(self) -> Finding | None:
        """Count one occurrence of thrashing; return a finding when there are too many."""
        self._thrashes += 1
        if self._thrashes < self.thresholds.max_thrashes:
            return None
        text = f"the context was full again right after compaction, {self._thrashes} times in a row"
        return _finding("context-thrash", text, self._thrashes)

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {name: getattr(self, f"_{name}") for name in _STATE_FIELDS}

    @classmethod
    def from_json(cls, table: Any, thresholds: ContextThresholds | None = None) -> ContextMonitor:
        """Restore a monitor from its state.

        Args:
            table: State from `to_json`.
            thresholds: When to warn. Default: as for a new monitor.
        """
        if not isinstance(table, Mapping) or any(name not in table for name in _STATE_FIELDS):
            raise ConfigError("context", table, "an object with " + ", ".join(_STATE_FIELDS))
        monitor = cls(thresholds)
        for name in _STATE_FIELDS:
            setattr(monitor, f"_{name}", table[name])
        return monitor


_STATE_FIELDS: Final = ("mark", "baseline", "turns_since", "thrashes", "reported")


def _share(used: int, limit: int) -> float:
    if not is_whole(used) or not is_whole(limit, 1):
        raise ConfigError("context", (used, limit), "tokens used, 0 or more, and tokens that fit, 1 or more")
    return used / limit


def _finding(rule: str, text: str, count: int) -> Finding:
    return Finding(rule=rule, kind=Kind.CONTEXT_WARNING, text=text, count=count, repeats=count, phase=Phase.CALL)
