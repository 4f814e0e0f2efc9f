"""The result of a pipeline run, as text, as signals and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.events import Status
from rung.core.pipeline.stage_signal import StageEnding, StageSignal, parse_signal

if TYPE_CHECKING:
    from rung.core.domain.outcome import Outcome
    from rung.core.pipeline.spec import Pipeline

NOT_STARTED: Final = "not started"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """Status of a pipeline run, outcome and output path of each stage, and the path of the report if it stopped."""

    status: Status
    outcomes: dict[str, Outcome[str]]
    paths: dict[str, str]
    pipeline: Pipeline
    report: str = ""

    def state(self, stage: str) -> str:
        """Return the status of a stage, or `not started`."""
        return self.outcomes[stage].status.value if stage in self.outcomes else NOT_STARTED

    def signal_line(self, stage: str) -> str:
        """Return the signal line of a stage."""
        if stage not in self.outcomes:
            return StageSignal(status=StageEnding.BLOCKED, facts={"reason": NOT_STARTED}).line()
        return signal_of(self.outcomes[stage], self.paths.get(stage, "")).line()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the result."""
        stages = {
            stage.id: {
                "status": self.state(stage.id),
                "signal": self.signal_line(stage.id),
                "path": self.paths.get(stage.id, ""),
                **({} if self._passed(stage.id) else {"failure": self._failure(stage.id)}),
            }
            for stage in self.pipeline.stages
        }
        return {
            "pipeline": self.pipeline.name,
            "status": self.status.value,
            "report": self.report,
            "restructured": list(self.pipeline.restructured),
            "stages": stages,
        }

    def _passed(self, stage: str) -> bool:
        return stage in self.outcomes and self.outcomes[stage].ok

    def _failure(self, stage: str) -> dict[str, Any] | None:
        return self.outcomes[stage].pipeline_failure() if stage in self.outcomes else None


def signal_of(outcome: Outcome[str], path: str) -> StageSignal:
    """Return the signal that a passed stage wrote itself, or else one made from its outcome."""
    facts: dict[str, str] = {}
    if outcome.ok:
        signal = parse_signal(outcome.value or "")
        if signal is not None:
            return StageSignal(status=StageEnding.PASS, facts=signal.facts, ref=signal.ref or path)
        return StageSignal(status=StageEnding.PASS, ref=path)
    if outcome.failure is not None:
        facts = {"kind": outcome.failure.kind.value}
    status = {Status.BLOCKED: StageEnding.BLOCKED, Status.PARTIAL: StageEnding.PARTIAL}.get(
        outcome.status, StageEnding.FAIL
    )
    return StageSignal(status=status, facts={**facts, "attempts": str(outcome.attempts)}, ref=path)
