"""Claims of finished work, and the result of checking them without a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_TEXT_CHARS: Final = 20_000
_MAX_FILES: Final = 50
# A file is claimed if a sentence says that it was changed; a file that is only mentioned is not.
_CHANGE_VERB: Final = re.compile(
    r"\b(?:created?|wrote|written|added|updated?|modified|changed|edited|fixed|implemented|saved|generated|rewrote|patched)\b",
    re.IGNORECASE,
)
_NEGATION: Final = re.compile(
    r"\b(?:not|never|without|will|would|should|could|unable|cannot|can't|n't)\b", re.IGNORECASE
)
_PATH: Final = re.compile(r"(?<![\w/@:.])(?:[\w.@-]+/)*[\w@-][\w.@-]*\.[A-Za-z]\w{0,9}\b|`([^`\s]+/[^`\s]+)`")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCheck:
    """One checked claim: the claim, whether it holds, and the observation."""

    claim: str
    holds: bool
    seen: str


def claimed_files(text: str) -> tuple[str, ...]:
    """Return the files that a final message claims to have created or changed."""
    files: dict[str, None] = {}
    for sentence in _SENTENCE.split(text[:_MAX_TEXT_CHARS]):
        if _CHANGE_VERB.search(sentence) and not _NEGATION.search(sentence):
            for match in _PATH.finditer(sentence):
                name = (match[1] or match[0]).strip("`'\"")
                if "://" not in name and len(files) < _MAX_FILES:
                    files[name] = None
    return tuple(files)


def unverified(checks: Sequence[ClaimCheck]) -> Finding | None:
    """Return a finding for the claims that do not hold; None if all hold or there are none."""
    broken = [check for check in checks if not check.holds]
    if not broken:
        return None
    return Finding(
        rule="claims",
        kind=Kind.UNVERIFIED,
        text="; ".join(f"{check.claim}: {check.seen}" for check in broken[:_MAX_QUOTED_CHECKS]),
        count=len(broken),
        phase=Phase.RESULT,
    )


_MAX_QUOTED_CHECKS: Final = 5
