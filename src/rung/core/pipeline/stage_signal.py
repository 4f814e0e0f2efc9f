"""The first line of an agent's output: how it ended, a few facts, and where the rest is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rung.core.domain.frozen_dict import FrozenEmptyDict

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST: Final = 2_000  # characters; a longer line is prose
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


class StageEnding(StrEnum):
    """How a stage says it ended."""

    PASS = "PASS"  # noqa: S105  # no password
    FAIL = "FAIL"
    PARTIAL = "PARTIAL"
    BLOCKED = "BLOCKED"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSignal:
    """`STATUS|key:value|…|ref:path`."""

    status: StageEnding
    facts: Mapping[str, str] = field(default_factory=lambda: _NO_FACTS)
    ref: str = ""

    def line(self) -> str:
        """The line; a bar or a line's end in a value would break it, so there they become blanks."""
        pairs = [*self.facts.items(), *((("ref", self.ref),) if self.ref else ())]
        return "|".join([self.status, *(f"{key}:{_flat(value)}" for key, value in pairs)])


_NO_FACTS: Final[Mapping[str, str]] = FrozenEmptyDict()


def parse(output: str) -> StageSignal | None:
    """The signal in the first line that says anything; None where that is none.

    Case, blanks, and the back-ticks or stars of a model that likes them are forgiven; a part that is not
    `key:value` makes it prose.
    """
    first = output.lstrip()[: LONGEST + 1].split("\n", 1)[0].strip().strip("`*").strip()
    status, *parts = (part.strip() for part in first.split("|"))
    if len(first) > LONGEST or status.upper() not in tuple(StageEnding):
        return None
    facts: dict[str, str] = {}
    for part in filter(None, parts):
        key, colon, value = part.partition(":")
        if not colon or not _KEY.fullmatch(key.strip()):
            return None
        facts[key.strip()] = value.strip()
    ref = facts.pop("ref", "")
    return StageSignal(status=StageEnding(status.upper()), facts=facts, ref=ref)


def without_signal(output: str) -> str:
    """The output without the line of its signal; all of it where there is none."""
    if parse(output) is None:
        return output
    return output.lstrip().partition("\n")[2]


def _flat(value: str) -> str:
    return " ".join(value.replace("|", " ").split())
