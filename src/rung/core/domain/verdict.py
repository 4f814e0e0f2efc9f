"""A judge's verdict on finished work, and the evidence it amounts to when the work fails it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

PASS_TOTAL: Final = 70
CONDITIONAL_TOTAL: Final = 60
ENOUGH_EVIDENCE: Final = 15
MUCH_EVIDENCE: Final = 20
_SURER: Final = 0.1
NO_EVIDENCE: Final = 8
ON_GOAL: Final = 15
MOST: Final = 25
DIMENSIONS: Final = ("goal_alignment", "action_completeness", "evidence_of_completion", "final_state_coherence")


class Grade(StrEnum):
    """What the scores amount to."""

    PASS = "pass"  # noqa: S105  # a grade, not a password
    CONDITIONAL = "conditional"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Four scores from 0 to 25, and how sure one may be of them, from 0 to 1: by the judge, or else by the scores."""

    goal_alignment: int
    action_completeness: int
    evidence_of_completion: int
    final_state_coherence: int
    reasons: str = ""
    confidence: float | None = None

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            if not is_whole(getattr(self, name)) or getattr(self, name) > MOST:
                raise ConfigError(f"verdict.{name}", getattr(self, name), "a whole number, 0 to 25")
        if self.confidence is None:
            more = _SURER if self.evidence_of_completion >= MUCH_EVIDENCE else 0.0
            object.__setattr__(self, "confidence", min(1.0, round(self.total / 100 + more, 2)))
        elif not is_number(self.confidence) or self.confidence > 1:
            raise ConfigError("verdict.confidence", self.confidence, "0 to 1")

    @property
    def total(self) -> int:
        """The sum of the four."""
        return sum(getattr(self, name) for name in DIMENSIONS)

    @property
    def grade(self) -> Grade:
        """Without enough evidence nothing passes, whatever the sum."""
        if self.evidence_of_completion >= ENOUGH_EVIDENCE:
            if self.total >= PASS_TOTAL:
                return Grade.PASS
            if self.total >= CONDITIONAL_TOTAL:
                return Grade.CONDITIONAL
        return Grade.FAIL

    @property
    def evidence(self) -> Evidence | None:
        """What a failed verdict is evidence of; the wrong goal weighs more than missing proof."""
        if self.grade is not Grade.FAIL:
            return None
        if self.goal_alignment < ON_GOAL:
            kind = Kind.GOAL_MISALIGNED
        elif self.evidence_of_completion < NO_EVIDENCE:
            kind = Kind.UNVERIFIED
        else:
            kind = Kind.LOW_QUALITY
        scores = ", ".join(f"{name} {getattr(self, name)}" for name in DIMENSIONS)
        text = f"judged {self.total} of 100 ({scores})" + (f": {self.reasons}" if self.reasons else "")
        return Evidence(text=text, finding=kind, phase=Phase.RESULT)


def verdict_from(table: Mapping[str, Any]) -> Verdict:
    """The verdict in a judge's JSON; names as we write them, or as in `goalAlignment`. Further fields are passed over."""
    found: dict[str, Any] = {}
    for name in DIMENSIONS:
        camel = name.split("_")[0] + "".join(word.capitalize() for word in name.split("_")[1:])
        score = table.get(name, table.get(camel))
        found[name] = int(score) if isinstance(score, float) and score.is_integer() else score
    reasons = table.get("reasons") or table.get("reasoning") or ""
    return Verdict(
        **found, reasons=reasons if isinstance(reasons, str) else str(reasons), confidence=table.get("confidence")
    )
