"""What finished work claims, and what free checks make of it, before any judge is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEXT: Final = 20_000
_FILES: Final = 50
# A file is claimed where a text says that something was done to it; one that is only mentioned is not.
_DONE_TO: Final = re.compile(
    r"\b(?:created?|wrote|written|added|updated?|modified|changed|edited|fixed|implemented|saved|generated|rewrote|patched)\b",
    re.IGNORECASE,
)
_NOT_DONE: Final = re.compile(
    r"\b(?:not|never|without|will|would|should|could|unable|cannot|can't|n't)\b", re.IGNORECASE
)
_PATH: Final = re.compile(r"(?<![\w/@:.])(?:[\w.@-]+/)*[\w@-][\w.@-]*\.[A-Za-z]\w{0,9}\b|`([^`\s]+/[^`\s]+)`")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCheck:
    """One claim looked into: what was claimed, whether it holds, and what was seen."""

    claim: str
    holds: bool
    seen: str


def claimed_files(text: str) -> tuple[str, ...]:
    """The files that a closing text says were made or changed."""
    found: dict[str, None] = {}
    for sentence in _SENTENCE.split(text[:_TEXT]):
        if _DONE_TO.search(sentence) and not _NOT_DONE.search(sentence):
            for match in _PATH.finditer(sentence):
                name = (match[1] or match[0]).strip("`'\"")
                if "://" not in name and len(found) < _FILES:
                    found[name] = None
    return tuple(found)


def unverified(checks: Sequence[ClaimCheck]) -> Finding | None:
    """What the checks amount to; None when every claim holds, or there was none to look into."""
    broken = [check for check in checks if not check.holds]
    if not broken:
        return None
    return Finding(
        rule="claims",
        kind=Kind.UNVERIFIED,
        text="; ".join(f"{check.claim}: {check.seen}" for check in broken[:_SHOWN]),
        count=len(broken),
        phase=Phase.RESULT,
    )


_SHOWN: Final = 5
