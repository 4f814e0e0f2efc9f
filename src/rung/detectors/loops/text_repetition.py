"""Chanting: the same words over and over in one answer, noticed while it streams.

Code and tables repeat themselves by right: what stands in a fence or a table is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding

SIZE: Final = 50  # characters that must come again
TIMES: Final = 10
GAP: Final = 250  # characters, on average, from one to the next
KEPT: Final = 5_000
BETWEEN: Final = 5  # different texts, at most, between one and the next
_START: Final = 3  # characters of a line that say what it is
_FENCES: Final = ("```", "~~~")
_QUOTED: Final = 120


class RepetitionDetector:
    """Watches one answer as it streams; a new answer is a new watch, or `restart`."""

    __slots__ = ("_fence", "_known", "_line", "_news", "_skip", "_text", "_unseen", "off")

    def __init__(self, *, off: bool = False) -> None:
        self.off = off
        self.restart()

    def restart(self) -> None:
        """A new answer begins, or a call was made."""
        self._text = ""
        self._line = ""  # the start of a line, until it says what the line is
        self._fence = ""
        self._known = False  # what the line is
        self._skip = False  # the line is part of a fence or a table
        self._unseen = 0
        self._news = True

    def stream(self, chunk: str) -> Finding | None:
        """Take in what came; a finding when it has come too often."""
        if self.off:
            return None
        found = None
        for start in range(0, len(chunk), KEPT):
            for part in chunk[start : start + KEPT].splitlines(keepends=True):
                heard = self._part(part)
                found = found or heard
        return found

    def _part(self, part: str) -> Finding | None:
        ends = part[-1:] in "\r\n"
        if not self._known:
            part = self._line + part
            if len(part.strip()) < _START and not ends:
                self._line = part
                return None
            self._line, self._known, self._skip = "", True, self._skips(part.lstrip())
        found = None if self._skip else self._take(part)
        if ends:
            self._known = self._skip = False
        return found

    def _skips(self, start: str) -> bool:
        if self._fence:
            if start.startswith(self._fence):
                self._fence = ""
            return True
        if start[:_START] in _FENCES:
            self._fence = start[:_START]
            return True
        return start[:1] == "|" or len(set(start.strip())) == 1  # a table's row, a rule

    def _take(self, part: str) -> Finding | None:
        self._text = (self._text + part)[-KEPT:]
        self._unseen += len(part)
        if self._unseen < SIZE:
            return None
        self._unseen = 0
        count = _times(self._text)
        if count < TIMES:
            return None
        news, self._news = self._news, False
        quoted = clip(" ".join(self._text[-SIZE:].split()), _QUOTED)
        return Finding(
            rule="chanting",
            kind=Kind.LOOP_DETECTED,
            text=f"the answer says the same {count} times over: “{quoted}”",
            count=count,
            repeats=max(3, count * 3 // TIMES),
            phase=Phase.STREAM,
            is_new_stage=news,
        )

    def to_json(self) -> dict[str, Any]:
        """What is remembered, secrets cut."""
        table = {name: getattr(self, f"_{name}") for name in _PARTS}
        return {"text": redacted(self._text), **table}

    @classmethod
    def from_json(cls, table: Any, *, off: bool = False) -> RepetitionDetector:
        """The watch as it was."""
        if not isinstance(table, Mapping) or not isinstance(table.get("text"), str):
            raise ConfigError("chanting", table, "an object with text, " + ", ".join(_PARTS))
        watch = cls(off=off)
        watch._text = table["text"][-KEPT:]
        for name in _PARTS:
            setattr(watch, f"_{name}", table[name])
        return watch


_PARTS: Final = ("line", "known", "fence", "skip", "unseen", "news")


def _times(text: str) -> int:
    """How often the end of a text stands in it, where it comes again soon and little else stands between."""
    end = text[-SIZE:]
    if len(end) < SIZE or not end.strip():
        return 0
    count = text.count(end)
    if count < TIMES:
        return count
    parts = text.split(end)
    between = parts[1:-1]
    gap = SIZE + sum(map(len, between)) / max(1, len(between))
    return count if gap <= GAP and len(set(between)) <= BETWEEN else 0
