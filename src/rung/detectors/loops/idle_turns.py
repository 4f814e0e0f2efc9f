"""Detect consecutive turns without a call and with nearly the same text."""

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

_MAX_QUOTED_CHARS: Final = 200
_MAX_STORED_WORDS: Final = 1_000


class IdleTurnDetector:
    """Counts consecutive turns in which the agent makes no call and repeats its text."""

    __slots__ = ("_count", "_reported_stage", "_words", "settings")

    def __init__(self, settings: LoopSettings | None = None) -> None:
        self.settings = settings or LoopSettings()
        self.reset()

    def reset(self) -> None:
        """End the streak: the agent made a call, or the user sent a message."""
        self._count = 0
        self._words: frozenset[int] = frozenset()
        self._reported_stage: LoopStage | None = None

    def check(self, text: str) -> Finding | None:
        """Record a turn without a call; return a finding if its text repeats too often."""
        if self.settings.off or "same-words" in self.settings.ignore_rules:
            return None
        words = normalize.word_hashes(normalize.clipped(text))
        if not words:
            return None
        union = len(words | self._words)
        if len(words & self._words) >= self.settings.similarity * union:
            self._count += 1
        else:
            self._count, self._reported_stage = 1, None
        self._words = words
        stage = self.settings.stage(self._count)
        if stage is None:
            return None
        is_new, self._reported_stage = stage is not self._reported_stage, stage
        return Finding(
            rule="same-words",
            kind=Kind.LOOP_DETECTED,
            text=f"{self._count} turns without a call and with nearly the same text: {clip(' '.join(text[:1_000].split()), _MAX_QUOTED_CHARS)}",
            count=self._count,
            repeats=self._count,
            stage=stage,
            is_new_stage=is_new,
            phase=Phase.RESULT,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON: a count, and hashes of words."""
        return {
            "count": self._count,
            "reported_stage": self._reported_stage,
            "words": sorted(self._words)[:_MAX_STORED_WORDS],
        }

    @classmethod
    def from_json(cls, table: Any, settings: LoopSettings | None = None) -> IdleTurnDetector:
        """Restore a detector from its state."""
        if not isinstance(table, Mapping) or not is_whole(table.get("count")):
            raise ConfigError("turns", table, "an object with count, reported_stage, words")
        from rung.detectors.finding import LoopStage

        detector = cls(settings)
        detector._count, detector._words = table["count"], frozenset(table["words"])
        detector._reported_stage = None if table["reported_stage"] is None else LoopStage(table["reported_stage"])
        return detector
