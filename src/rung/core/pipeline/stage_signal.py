"""The signal: the first line of a stage's output, with its status, some facts and a reference to the full result."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.domain.frozen_dict import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_SIGNAL_CHARS: Final = 2_000  # a longer line is prose
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


class StageEnding(StrEnum):
    """Status that a stage reports about itself."""

    PASS = "PASS"  # noqa: S105  # no password
    FAIL = "FAIL"
    PARTIAL = "PARTIAL"
    BLOCKED = "BLOCKED"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSignal:
    """A signal line: `STATUS|key:value|…|ref:path`."""

    status: StageEnding
    facts: Mapping[str, str] = field(default_factory=lambda: _NO_FACTS)
    ref: str = ""

    def line(self) -> str:
        """Return the signal line. Bars and line breaks in values would break it and become spaces."""
        pairs = [*self.facts.items(), *((("ref", self.ref),) if self.ref else ())]
        return "|".join([self.status, *(f"{key}:{_single_line(value)}" for key, value in pairs)])


_NO_FACTS: Final[Mapping[str, str]] = FrozenDict()


def parse_signal(output: str) -> StageSignal | None:
    """Return the signal in the first line that is not blank; None if that line is not a signal.

    Case, spaces, and backticks or asterisks around the line are ignored. A part that is not `key:value` makes the
    line prose.
    """
    line = output.lstrip()[: MAX_SIGNAL_CHARS + 1].split("\n", 1)[0].strip().strip("`*").strip()
    status, *parts = (part.strip() for part in line.split("|"))
    if len(line) > MAX_SIGNAL_CHARS or status.upper() not in tuple(StageEnding):
        return None
    facts: dict[str, str] = {}
    for part in filter(None, parts):
        key, colon, value = part.partition(":")
        if not colon or not _KEY.fullmatch(key.strip()):
            return None
        facts[key.strip()] = value.strip()
    ref = facts.pop("ref", "")
    return StageSignal(status=StageEnding(status.upper()), facts=facts, ref=ref)


def strip_signal(output: str) -> str:
    """Return the output without its signal line."""
    if parse_signal(output) is None:
        return output
    return output.lstrip().partition("\n")[2]


def _single_line(value: str) -> str:
    return " ".join(value.replace("|", " ").split())
