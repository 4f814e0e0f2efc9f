"""Findings of the detectors, and their conversion to evidence and failures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure


class LoopStage(StrEnum):
    """Escalation stage of a loop; it determines the message to the agent."""

    REPLAN = "replan"
    EXPLORE = "explore"  # an entirely different tool, method or agent
    FORCE_DONE = "force-done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem that raised no error.

    Attributes:
        rule: The detector's rule that matched.
        kind: Kind of the failure that it is.
        text: Description for a person.
        count: Number of occurrences.
        repeats: The count that ladders use; it is lower than `count` for weaker rules.
        at: Position of the step; None if it is not about one step.
        tool: Name of the tool.
        stage: Escalation stage of a loop: replan, explore or force-done.
        is_new_stage: True once for each stage of a streak: the agent is told only then.
        phase: When it happened.
        missing: Parts that the answer lacks.
        output: The answer.
    """

    rule: str
    kind: Kind
    text: str
    count: int = 0
    repeats: int = 0
    at: int | None = None
    tool: str = ""
    stage: LoopStage | None = None
    is_new_stage: bool = True
    phase: Phase = Phase.TOOL
    missing: tuple[str, ...] = ()
    output: str = ""

    @property
    def evidence(self) -> Evidence:
        """The finding as evidence for `classify`."""
        return Evidence(
            text=self.text,
            code=self.rule,
            finding=self.kind,
            repeats=self.repeats,
            phase=self.phase,
            missing=self.missing,
            output=self.output,
        )

    @property
    def failure(self) -> Failure:
        """The finding as a failure for the ladders."""
        from rung.core.classify.classifier import (
            classify,  # lazy: it loads every rule, which detection alone does not need
        )

        return classify(self.evidence)
