"""Verdict of a judge on finished work, and the evidence of a failed one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_PASS_TOTAL: Final = 70
MIN_CONDITIONAL_TOTAL: Final = 60
MIN_EVIDENCE: Final = 15
STRONG_EVIDENCE: Final = 20
_CONFIDENCE_BONUS: Final = 0.1
UNVERIFIED_BELOW: Final = 8
MIN_GOAL_ALIGNMENT: Final = 15
MAX_SCORE: Final = 25
DIMENSIONS: Final = ("goal_alignment", "action_completeness", "evidence_of_completion", "final_state_coherence")


class Grade(StrEnum):
    """Grade of a verdict."""

    PASS = "pass"  # noqa: S105  # a grade, not a password
    CONDITIONAL = "conditional"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict of a judge about finished work: four scores.

    Attributes:
        goal_alignment: Whether the right thing was done, from 0 to 25.
        action_completeness: Whether all of it was done, from 0 to 25.
        evidence_of_completion: Whether that was shown, from 0 to 25.
        final_state_coherence: Whether the result is consistent, from 0 to 25.
        reasons: Why. Default: empty.
        confidence: From 0 to 1. Default: derived from the scores.

    Raises:
        ConfigError: A score or the confidence is out of range.
    """

    goal_alignment: int
    action_completeness: int
    evidence_of_completion: int
    final_state_coherence: int
    reasons: str = ""
    confidence: float | None = None

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            if not is_whole(getattr(self, name)) or getattr(self, name) > MAX_SCORE:
                raise ConfigError(f"verdict.{name}", getattr(self, name), "a whole number, 0 to 25")
        if self.confidence is None:
            bonus = _CONFIDENCE_BONUS if self.evidence_of_completion >= STRONG_EVIDENCE else 0.0
            object.__setattr__(self, "confidence", min(1.0, round(self.total / 100 + bonus, 2)))
        elif not is_number(self.confidence) or self.confidence > 1:
            raise ConfigError("verdict.confidence", self.confidence, "0 to 1")

    @property
    def total(self) -> int:
        """Sum of the four scores."""
        return sum(getattr(self, name) for name in DIMENSIONS)

    @property
    def grade(self) -> Grade:
        """Grade by the total; without enough evidence of completion the grade is FAIL."""
        if self.evidence_of_completion >= MIN_EVIDENCE:
            if self.total >= MIN_PASS_TOTAL:
                return Grade.PASS
            if self.total >= MIN_CONDITIONAL_TOTAL:
                return Grade.CONDITIONAL
        return Grade.FAIL

    @property
    def evidence(self) -> Evidence | None:
        """Evidence of a failed verdict, None otherwise; a wrong goal takes precedence over missing evidence."""
        if self.grade is not Grade.FAIL:
            return None
        if self.goal_alignment < MIN_GOAL_ALIGNMENT:
            kind = Kind.GOAL_MISALIGNED
        elif self.evidence_of_completion < UNVERIFIED_BELOW:
            kind = Kind.UNVERIFIED
        else:
            kind = Kind.LOW_QUALITY
        scores = ", ".join(f"{name} {getattr(self, name)}" for name in DIMENSIONS)
        text = f"judged {self.total} of 100 ({scores})" + (f": {self.reasons}" if self.reasons else "")
        return Evidence(text=text, finding=kind, phase=Phase.RESULT)


def parse_verdict(table: Mapping[str, Any]) -> Verdict:
    """Parse a judge's JSON object; keys are in snake case or camel case, and unknown fields are ignored."""
    scores: dict[str, Any] = {}
    for name in DIMENSIONS:
        camel = name.split("_")[0] + "".join(word.capitalize() for word in name.split("_")[1:])
        score = table.get(name, table.get(camel))
        scores[name] = int(score) if isinstance(score, float) and score.is_integer() else score
    reasons = table.get("reasons") or table.get("reasoning") or ""
    return Verdict(
        **scores, reasons=reasons if isinstance(reasons, str) else str(reasons), confidence=table.get("confidence")
    )
