"""Detect an answer that repeats the same text over and over, while it streams (rule `chanting`).

Code and tables are repetitive by nature, so code fences and table rows are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding

UNIT_CHARS: Final = 50  # length of the repeated text
MIN_REPEATS: Final = 10
MAX_MEAN_DISTANCE: Final = 250  # characters from one repetition to the next
WINDOW_CHARS: Final = 5_000
MAX_DISTINCT_GAPS: Final = 5  # different texts between repetitions
_PREFIX_CHARS: Final = 3  # characters that identify a fence or a table row
_FENCES: Final = ("```", "~~~")
_MAX_QUOTED_CHARS: Final = 120


class RepetitionDetector:
    """Detects repetition in one streamed answer; call `restart` for a new answer."""

    __slots__ = ("_fence", "_is_new", "_line_is_known", "_line_prefix", "_skip", "_text", "_unchecked", "off")

    def __init__(self, *, off: bool = False) -> None:
        self.off = off
        self.restart()

    def restart(self) -> None:
        """Reset the state: a new answer starts, or a call was made."""
        self._text = ""
        self._line_prefix = ""  # start of a line, until the line can be identified
        self._fence = ""
        self._line_is_known = False  # the current line is identified
        self._skip = False  # the current line is part of a fence or a table
        self._unchecked = 0
        self._is_new = True

    def stream(self, chunk: str) -> Finding | None:
        """Record a chunk; return a finding if the text repeats too often."""
        if self.off:
            return None
        finding = None
        for start in range(0, len(chunk), WINDOW_CHARS):
            for part in chunk[start : start + WINDOW_CHARS].splitlines(keepends=True):
                latest = self._add_part(part)
                finding = finding or latest
        return finding

    def _add_part(self, part: str) -> Finding | None:
        ends = part[-1:] in "\r\n"
        if not self._line_is_known:
            part = self._line_prefix + part
            if len(part.strip()) < _PREFIX_CHARS and not ends:
                self._line_prefix = part
                return None
            self._line_prefix, self._line_is_known, self._skip = "", True, self._is_skipped_line(part.lstrip())
        finding = None if self._skip else self._append(part)
        if ends:
            self._line_is_known = self._skip = False
        return finding

    def _is_skipped_line(self, start: str) -> bool:
        if self._fence:
            if start.startswith(self._fence):
                self._fence = ""
            return True
        if start[:_PREFIX_CHARS] in _FENCES:
            self._fence = start[:_PREFIX_CHARS]
            return True
        return start[:1] == "|" or len(set(start.strip())) == 1  # a table row or a ruled line

    def _append(self, part: str) -> Finding | None:
        self._text = (self._text + part)[-WINDOW_CHARS:]
        self._unchecked += len(part)
        if self._unchecked < UNIT_CHARS:
            return None
        self._unchecked = 0
        count = _count_repeats(self._text)
        if count < MIN_REPEATS:
            return None
        is_new, self._is_new = self._is_new, False
        quoted = clip(" ".join(self._text[-UNIT_CHARS:].split()), _MAX_QUOTED_CHARS)
        return Finding(
            rule="chanting",
            kind=Kind.LOOP_DETECTED,
            text=f"the answer repeats the same text {count} times: “{quoted}”",
            count=count,
            repeats=max(3, count * 3 // MIN_REPEATS),
            phase=Phase.STREAM,
            is_new_stage=is_new,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON, with secrets redacted."""
        table = {name: getattr(self, f"_{name}") for name in _STATE_FIELDS}
        return {"text": redacted(self._text), **table}

    @classmethod
    def from_json(cls, table: Any, *, off: bool = False) -> RepetitionDetector:
        """Restore a detector from its state."""
        if not isinstance(table, Mapping) or not isinstance(table.get("text"), str):
            raise ConfigError("chanting", table, "an object with text, " + ", ".join(_STATE_FIELDS))
        detector = cls(off=off)
        detector._text = table["text"][-WINDOW_CHARS:]
        for name in _STATE_FIELDS:
            setattr(detector, f"_{name}", table[name])
        return detector


_STATE_FIELDS: Final = ("line_prefix", "line_is_known", "fence", "skip", "unchecked", "is_new")


def _count_repeats(text: str) -> int:
    """Return how often the end of a text occurs in it; 0 if the occurrences are far apart or separated by varied text."""
    end = text[-UNIT_CHARS:]
    if len(end) < UNIT_CHARS or not end.strip():
        return 0
    count = text.count(end)
    if count < MIN_REPEATS:
        return count
    parts = text.split(end)
    gaps = parts[1:-1]
    distance = UNIT_CHARS + sum(map(len, gaps)) / max(1, len(gaps))
    return count if distance <= MAX_MEAN_DISTANCE and len(set(gaps)) <= MAX_DISTINCT_GAPS else 0
