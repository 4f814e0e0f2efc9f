"""What a detector found, and the evidence it amounts to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure


class LoopStage(StrEnum):
    """How far a loop has gone, and so what it is answered with."""

    REPLAN = "replan"
    EXPLORE = "explore"  # an entirely different tool, method or agent
    FORCE_DONE = "force-done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Trouble that nobody raised.

    `rule` says which detector's rule found it; `count` how often it has now happened; `repeats` the same as
    the ladders count it, which for a weaker sign is less. `news` is true once for each stage of a streak:
    whoever tells the agent tells it then, and only then.
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
        """The facts, for `classify` and the ladders."""
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
        """What the ladders enter with: by a loop's repeats, the rung."""
        from rung.core.classify.classifier import classify  # loads every rule, which who only looks need not wait for

        return classify(self.evidence)
