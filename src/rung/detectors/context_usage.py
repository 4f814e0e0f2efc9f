"""Context: a window that fills faster than the work gets on, and one that is full again right after compaction."""

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
    """When a context is a worry.

    share      of the window that may fill without any progress
    ahead      by how much of the window it may be ahead of the work, where that is known
    full       share at which a context counts as full
    soon       turns after a compaction within which it should not be full again
    thrashes   times in a row it may be full again so soon
    """

    share: float = 0.3
    ahead: float = 0.4
    full: float = 0.8
    soon: int = 5
    thrashes: int = 3

    def __post_init__(self) -> None:
        for name in ("share", "ahead", "full"):
            if not is_number(getattr(self, name)) or not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"filling.{name}", getattr(self, name), "a share, more than 0 and at most 1")
        for name in ("soon", "thrashes"):
            if not is_whole(getattr(self, name), 1):
                raise ConfigError(f"filling.{name}", getattr(self, name), "a whole number, 1 or more")


class ContextMonitor:
    """Told after each turn how full the context is; a mark changes when the work gets on."""

    __slots__ = ("_base", "_mark", "_since", "_thrashes", "_told", "filling")

    def __init__(self, filling: ContextThresholds | None = None) -> None:
        self.filling = filling or ContextThresholds()
        self._mark = ""
        self._base: float | None = None  # how full it was when the work last got on
        self._since: int | None = None  # turns since a compaction; None: there was none, or it has been counted
        self._thrashes = 0
        self._told = False

    def compacted(self, used: int, limit: int) -> None:
        """The context was made smaller: so much is left of it."""
        self._base = _share(used, limit)
        self._since = 0
        self._told = False

    def turn(self, used: int, limit: int, *, mark: str | None = None, done: float | None = None) -> Finding | None:
        """Take in a turn: tokens in the context, tokens that fit, the mark, and how much of the work is done (0 to 1)."""
        share, filling = _share(used, limit), self.filling
        thrash = self._thrash(share)
        if thrash is not None:
            return thrash
        if self._base is None or (mark is not None and digest(mark) != self._mark):
            self._mark = self._mark if mark is None else digest(mark)
            self._base, self._told = share, False
        ahead = done is not None and share - done >= filling.ahead
        if self._told or not (ahead or share - self._base >= filling.share):
            return None
        self._told = True
        got_on = (
            f"{done:.0%} of the work is done"
            if done is not None
            else f"{share - self._base:.0%} of it since the work last got on"
        )
        return _finding("context-filling", f"the context is {share:.0%} full, {got_on}", 1)

    def _thrash(self, share: float) -> Finding | None:
        if self._since is None:
            return None
        self._since += 1
        if share >= self.filling.full:
            self._since = None
            return self._count()
        if self._since > self.filling.soon:
            self._thrashes, self._since = 0, None
        return None

    def full_again(self, turns: int) -> Finding | None:
        """Take in a compaction that is due, so many turns after the one before: for agents that tell no tokens."""
        if self._since is None:
            self._since = 0
            return None
        if turns <= self.filling.soon:
            return self._count()
        self._thrashes = 0
        return None

    def _count(self) -> Finding | None:
        """Count one more context that was full too soon."""
        self._thrashes += 1
        if self._thrashes < self.filling.thrashes:
            return None
        text = f"the context was full again right after compaction, {self._thrashes} times in a row"
        return _finding("context-thrash", text, self._thrashes)

    def to_json(self) -> dict[str, Any]:
        """All that is remembered."""
        return {name: getattr(self, f"_{name}") for name in _PARTS}

    @classmethod
    def from_json(cls, table: Any, filling: ContextThresholds | None = None) -> ContextMonitor:
        """The watch as it was."""
        if not isinstance(table, Mapping) or any(name not in table for name in _PARTS):
            raise ConfigError("context", table, "an object with " + ", ".join(_PARTS))
        watch = cls(filling)
        for name in _PARTS:
            setattr(watch, f"_{name}", table[name])
        return watch


_PARTS: Final = ("mark", "base", "since", "thrashes", "told")


def _share(used: int, limit: int) -> float:
    if not is_whole(used) or not is_whole(limit, 1):
        raise ConfigError("context", (used, limit), "tokens used, 0 or more, and tokens that fit, 1 or more")
    return used / limit


def _finding(rule: str, text: str, count: int) -> Finding:
    return Finding(rule=rule, kind=Kind.CONTEXT_WARNING, text=text, count=count, repeats=count, phase=Phase.CALL)
