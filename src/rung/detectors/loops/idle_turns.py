"""Turns without a call, in nearly the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import clip
from rung.core.domain.errors import ConfigError, is_whole
from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.loops import normalize

if TYPE_CHECKING:
    from rung.detectors.finding import LoopStage

_QUOTED: Final = 200
_WORDS: Final = 1_000


class IdleTurnDetector:
    """Counts turns in which an agent only talks, and says what it said before."""

    __slots__ = ("_count", "_told", "_words", "watching")

    def __init__(self, watching: LoopSettings | None = None) -> None:
        self.watching = watching or LoopSettings()
        self.acted()

    def acted(self) -> None:
        """It made a call, or a person spoke."""
        self._count = 0
        self._words: frozenset[int] = frozenset()
        self._told: LoopStage | None = None

    def say(self, text: str) -> Finding | None:
        """Take in a turn without a call."""
        if self.watching.off or "same-words" in self.watching.ignore_rules:
            return None
        words = normalize.words(normalize.clipped(text))
        if not words:
            return None
        both = len(words | self._words)
        if len(words & self._words) >= self.watching.similarity * both:
            self._count += 1
        else:
            self._count, self._told = 1, None
        self._words = words
        stage = self.watching.stage(self._count)
        if stage is None:
            return None
        news, self._told = stage is not self._told, stage
        return Finding(
            rule="same-words",
            kind=Kind.LOOP_DETECTED,
            text=f"{self._count} turns without a call and with nearly the same words: {clip(' '.join(text[:1_000].split()), _QUOTED)}",
            count=self._count,
            repeats=self._count,
            stage=stage,
            is_new_stage=news,
            phase=Phase.RESULT,
        )

    def to_json(self) -> dict[str, Any]:
        """What is remembered: a count, and words as numbers."""
        return {"count": self._count, "told": self._told, "words": sorted(self._words)[:_WORDS]}

    @classmethod
    def from_json(cls, table: Any, watching: LoopSettings | None = None) -> IdleTurnDetector:
        """The watch as it was."""
        if not isinstance(table, Mapping) or not is_whole(table.get("count")):
            raise ConfigError("turns", table, "an object with count, told, words")
        from rung.detectors.finding import LoopStage

        watch = cls(watching)
        watch._count, watch._words = table["count"], frozenset(table["words"])
        watch._told = None if table["told"] is None else LoopStage(table["told"])
        return watch
