"""Recovery in a Pydantic AI agent: `Agent(model, capabilities=[PydanticAIRecovery("call")])`.

A failed model request is retried, or sent to another of `models`, as the ladder decides. A tool error is returned to the
model as a retry that tells it what was wrong and what to avoid. With `partial=True` a run that still fails returns a
result whose output says PARTIAL, the reason, and the tool results so far. Give the provider's client `max_retries=0`:
retries need one owner.

In a workflow of a durable engine (Temporal, DBOS, Prefect), waits and times are the engine's, chance follows from the run's
id, and nothing depends on this process: a replay decides the same. Events then go to no journal, since a replay would write
them again: the engine's history has them.
"""

from __future__ import annotations

from copy import copy
from random import Random
from typing import TYPE_CHECKING, Any

from pydantic_ai._agent_graph import _agent_graph_sleep  # the engine's sleep; a public name does not exist
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, RetryModelRequest, UserError
from pydantic_ai.run import AgentRunResult

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import clip
from rung.core.domain.events import HandOver, Repeat
from rung.core.domain.failures import Evidence, Phase
from rung.core.domain.request import Request
from rung.core.policy.prompts import without_task
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.session_policy import session_policy
from rung.detectors.step import Step
from rung.engine.external_loop import ExternalRecovery
from rung.engine.loop.recovery_log import FailureLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.policy.policy import Policy
    from rung.engine.external_loop import EventSink

_MAX_TRACKED_RUNS = 1_000


class _WorkflowRecovery(ExternalRecovery):
    """Recovery in the workflow of a durable engine: a replay sees the same time and chance."""

    def __init__(self, policy: Policy | str, name: str, at: float, request: Request | None = None) -> None:
        self.at = at
        chance = Random(name).random  # noqa: S311  # spreads waits; protects nothing
        super().__init__(
            policy, request=request, incident_id=name, retry_budget=None, now=lambda: self.at, jitter=chance
        )


def _name(ctx: Any) -> str:
    return f"{ctx.run_id}/{ctx.run_step}"


async def _engine_time(ctx: Any) -> float | None:
    """Return the time in the workflow of a durable engine, the same on a replay; None outside of a workflow."""
    root = ctx.root_capability
    if root is None:
        return None
    clock = root.get_run_clock()
    at = (
        clock() if clock is not None else await root.get_run_start_time(str(ctx.run_id))
    )  # records the time of the call
    return None if at is None else float(at.timestamp())


class PydanticAIRecovery(AbstractCapability[Any]):
    """Recovery of one agent. `models` maps the model names of the policy's fallback rungs to models."""

    def __init__(
        self,
        policy: Policy | str = "call",
        *,
        models: Mapping[str, Any] | None = None,
        journal: EventSink | None = None,
        partial: bool = False,
    ) -> None:
        self.policy, self.models, self.journal, self.partial = policy, dict(models or {}), journal, partial
        self._recoveries: dict[tuple[str, int], ExternalRecovery] = {}
        self._monitors: dict[str, SessionMonitor] = {}
        self._tool_results: dict[str, list[str]] = {}

    async def for_run(self, ctx: Any) -> PydanticAIRecovery:  # noqa: ARG002  # signature of the framework
        """Return a capability with the state of one run: a replay in the same process starts afresh."""
        fresh = copy(self)
        fresh._recoveries, fresh._monitors, fresh._tool_results = {}, {}, {}  # noqa: SLF001  # of this class
        return fresh

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
        """Retry the request, switch to another model, or raise the error."""
        key = (str(ctx.run_id), int(ctx.run_step))
        if len(self._recoveries) >= _MAX_TRACKED_RUNS:
            self._recoveries.clear()
        at = await _engine_time(ctx)
        recovery = self._recoveries.get(key)
        if recovery is None:
            request = Request(model=str(getattr(request_context.model, "model_name", "")))
            recovery = self._recoveries[key] = (
                ExternalRecovery(
                    self.policy, request=request, journal=self.journal, listeners=(FailureLog("pydantic_ai"),)
                )
                if at is None
                else _WorkflowRecovery(self.policy, _name(ctx), at, request)
            )
        if isinstance(recovery, _WorkflowRecovery) and at is not None:
            recovery.at = at
        decision = recovery.failed(error)
        if isinstance(decision, Repeat):
            await _agent_graph_sleep(decision.wait)
            raise RetryModelRequest from error
        if isinstance(decision, HandOver) and decision.model in self.models:
            raise RetryModelRequest(model=self.models[decision.model]) from error
        raise error

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:  # noqa: ARG002  # signature of the framework
        """Close the incident of a request that succeeded in the end."""
        recovery = self._recoveries.pop((str(ctx.run_id), int(ctx.run_step)), None)
        if recovery is not None:
            recovery.succeeded()
        return response

    async def on_tool_execute_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Exception) -> Any:  # noqa: ARG002  # signature of the framework
        """Tell the model what was wrong with a tool call and what to avoid."""
        if isinstance(error, ModelRetry):
            raise error
        if len(self._monitors) >= _MAX_TRACKED_RUNS:
            self._monitors.clear()
        monitor = self._monitors.setdefault(str(ctx.run_id), SessionMonitor())
        finding = monitor.check(Step(call.tool_name, args, "", str(error) or type(error).__name__))
        looping = finding is not None and finding.is_new_stage
        failure = finding.failure if finding is not None and looping else classify(_evidence(error, call.tool_name))
        at, policy = await _engine_time(ctx), session_policy()
        recovery = ExternalRecovery(policy) if at is None else _WorkflowRecovery(policy, _name(ctx), at)
        raise ModelRetry(without_task(recovery.change_request(recovery.failed(failure)))) from error

    async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:  # noqa: ARG002  # signature of the framework
        """Keep a tool result for a partial outcome."""
        if self.partial:
            if len(self._tool_results) >= _MAX_TRACKED_RUNS:
                self._tool_results.clear()
            results = self._tool_results.setdefault(str(ctx.run_id), [])
            results.append(clip(str(result), _MAX_TEXT_CHARACTERS))
            del results[:-_MAX_TOOL_RESULTS]
        return result

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> AgentRunResult[Any]:
        """Return a partial result if that is enabled and the output type is text, else raise the error."""
        failure = classify(error) if isinstance(error, Exception) else None
        if not self.partial or failure is None or isinstance(error, UserError) or not _returns_text(ctx):
            raise error
        results = self._tool_results.pop(str(ctx.run_id), [])
        summary = f"PARTIAL: {failure.kind}: {clip(failure.evidence.text, _MAX_TEXT_CHARACTERS)}"
        output = "\n".join([summary, *(f"- found: {text}" for text in results)])
        return AgentRunResult(output=output)


def _returns_text(ctx: Any) -> bool:
    """Return whether the output type of the run is text. Other types cannot be filled with a partial result."""
    agent = getattr(ctx, "agent", None)
    return getattr(agent, "output_type", str) is str


_MAX_TEXT_CHARACTERS = 500
_MAX_TOOL_RESULTS = 10


def _evidence(error: Exception, tool: str) -> Evidence:
    return classify(error).evidence._replace(tool=tool, phase=Phase.TOOL)
