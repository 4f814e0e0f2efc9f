"""Recovery in a Pydantic AI agent: `Agent(model, capabilities=[Recovering("call")])`.

A failed model request is repeated, or goes to the next of `models`, as the ladder says; a failed tool is told to the model as a
retry, with what was wrong and what not to do. With `partial=True` a run that fails all the same ends with what there is: a result
whose output says PARTIAL, why, and what the tools had found. Give the provider's client `max_retries=0`: one owner of retries.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.policy.policy import Policy

_RUNS = 1_000


class PydanticAIRecovery(AbstractCapability[Any]):
    """One agent's recovery. `models`: models by the names that the policy hands over to."""

    def __init__(
        self,
        policy: Policy | str = "call",
        *,
        models: Mapping[str, Any] | None = None,
        journal: Any = None,
        partial: bool = False,
    ) -> None:
        self.policy, self.models, self.journal, self.partial = policy, dict(models or {}), journal, partial
        self._recoveries: dict[tuple[str, int], ExternalRecovery] = {}
        self._watches: dict[str, SessionMonitor] = {}
        self._found: dict[str, list[str]] = {}

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
        """The same request again, another model, or the error."""
        key = (str(ctx.run_id), int(ctx.run_step))
        if len(self._recoveries) >= _RUNS:
            self._recoveries.clear()
        recovery = self._recoveries.get(key)
        if recovery is None:
            name = str(getattr(request_context.model, "model_name", ""))
            recovery = self._recoveries[key] = ExternalRecovery(
                self.policy, request=Request(model=name), journal=self.journal
            )
        decision = recovery.failed(error)
        if isinstance(decision, Repeat):
            await asyncio.sleep(decision.wait)
            raise RetryModelRequest from error
        if isinstance(decision, HandOver) and decision.model in self.models:
            raise RetryModelRequest(model=self.models[decision.model]) from error
        raise error

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:  # noqa: ARG002  # theirs
        """Close the incident of a request that succeeded in the end."""
        recovery = self._recoveries.pop((str(ctx.run_id), int(ctx.run_step)), None)
        if recovery is not None:
            recovery.succeeded()
        return response

    async def on_tool_execute_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Exception) -> Any:  # noqa: ARG002  # theirs
        """A tool failed: the model hears what was wrong and what not to do."""
        if isinstance(error, ModelRetry):
            raise error
        if len(self._watches) >= _RUNS:
            self._watches.clear()
        watch = self._watches.setdefault(str(ctx.run_id), SessionMonitor())
        found = watch.check(Step(call.tool_name, args, "", str(error) or type(error).__name__))
        looping = found is not None and found.is_new_stage
        failure = found.failure if found is not None and looping else classify(_evidence(error, call.tool_name))
        recovery = ExternalRecovery(session_policy())
        raise ModelRetry(without_task(recovery.change_request(recovery.failed(failure)))) from error

    async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:  # noqa: ARG002  # theirs
        """Remember what a tool found, for a run that ends early."""
        if self.partial:
            if len(self._found) >= _RUNS:
                self._found.clear()
            found = self._found.setdefault(str(ctx.run_id), [])
            found.append(clip(str(result), _ROOM))
            del found[:-_SHOWN]
        return result

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> AgentRunResult[Any]:
        """The run is over: a partial result where that is wanted and the output is text, else the error."""
        failure = classify(error) if isinstance(error, Exception) else None
        if not self.partial or failure is None or isinstance(error, UserError) or not _is_text(ctx):
            raise error
        found = self._found.pop(str(ctx.run_id), [])
        said = f"PARTIAL: {failure.kind}: {clip(failure.evidence.text, _ROOM)}"
        output = "\n".join([said, *(f"- found: {text}" for text in found)])
        return AgentRunResult(output=output)


def _is_text(ctx: Any) -> bool:
    """Does the run promise a text? Anything else cannot be made up."""
    agent = getattr(ctx, "agent", None)
    return getattr(agent, "output_type", str) is str


_ROOM = 500
_SHOWN = 10


def _evidence(error: Exception, tool: str) -> Evidence:
    return classify(error).evidence._replace(tool=tool, phase=Phase.TOOL)
