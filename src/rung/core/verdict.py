"""A judge's verdict on finished work, and the evidence it amounts to when the work fails it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rung.core.errors import ConfigError
from rung.core.failures import Evidence, Kind, Phase

PASS_TOTAL: Final = 70
CONDITIONAL_TOTAL: Final = 60
ENOUGH_EVIDENCE: Final = 15
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
    """Four scores from 0 to 25."""

    goal_alignment: int
    action_completeness: int
    evidence_of_completion: int
    final_state_coherence: int
    reasons: str = ""

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            if not 0 <= getattr(self, name) <= MOST:
                raise ConfigError(f"verdict.{name}", getattr(self, name), "0 to 25")

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
