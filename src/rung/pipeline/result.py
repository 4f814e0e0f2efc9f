"""How a pipeline ended: for people, for programs, and for the stages that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.events import Status
from rung.core.pipeline.stage_signal import StageEnding, StageSignal, parse

if TYPE_CHECKING:
    from rung.core.domain.outcome import Outcome
    from rung.core.pipeline.spec import Pipeline

NOT_STARTED: Final = "not started"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """How a pipeline ended: what each stage came to, where its output is, and the report of one that stopped."""

    status: Status
    outcomes: dict[str, Outcome[str]]
    paths: dict[str, str]
    pipeline: Pipeline
    report: str = ""

    def state(self, stage: str) -> str:
        """How this stage ended, or that it never began."""
        return self.outcomes[stage].status.value if stage in self.outcomes else NOT_STARTED

    def line(self, stage: str) -> str:
        """The signal of a stage, as the next one and people read it."""
        if stage not in self.outcomes:
            return StageSignal(status=StageEnding.BLOCKED, facts={"reason": NOT_STARTED}).line()
        return signal_of(self.outcomes[stage], self.paths.get(stage, "")).line()

    def contract(self) -> dict[str, Any]:
        """The same for programs."""
        stages = {
            stage.id: {
                "status": self.state(stage.id),
                "signal": self.line(stage.id),
                "path": self.paths.get(stage.id, ""),
                **({} if self._went_well(stage.id) else {"failure": self._failure(stage.id)}),
            }
            for stage in self.pipeline.stages
        }
        return {"pipeline": self.pipeline.name, "status": self.status.value, "report": self.report, "stages": stages}

    def _went_well(self, stage: str) -> bool:
        return stage in self.outcomes and self.outcomes[stage].ok

    def _failure(self, stage: str) -> dict[str, Any] | None:
        return self.outcomes[stage].pipeline_failure() if stage in self.outcomes else None


def signal_of(outcome: Outcome[str], path: str) -> StageSignal:
    """A stage's own signal, where it passed with one; else what its outcome amounts to."""
    facts: dict[str, str] = {}
    if outcome.ok:
        own = parse(outcome.value or "")
        if own is not None:
            return StageSignal(status=StageEnding.PASS, facts=own.facts, ref=own.ref or path)
        return StageSignal(status=StageEnding.PASS, ref=path)
    if outcome.failure is not None:
        facts = {"kind": outcome.failure.kind.value}
    ended = {Status.BLOCKED: StageEnding.BLOCKED, Status.PARTIAL: StageEnding.PARTIAL}.get(
        outcome.status, StageEnding.FAIL
    )
    return StageSignal(status=ended, facts={**facts, "attempts": str(outcome.attempts)}, ref=path)
