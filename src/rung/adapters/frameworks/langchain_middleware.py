"""Recovery in a LangChain agent: `create_agent(model, tools, middleware=[LangChainRecoveryMiddleware("call")])`.

Model calls go through the ladder (retry, then the models given as `models`). A tool error becomes a message that tells the
model what was wrong and what to avoid; after repeated errors it asks for a new plan. Interrupts and other control-flow
exceptions of LangGraph propagate. Give the chat model `max_retries=0`: retries need one owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp

from rung.core.classify.classifier import classify
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.core.policy.prompts import without_task
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.session_policy import session_policy
from rung.detectors.step import Step
from rung.engine.external_loop import ExternalRecovery
from rung.engine.recover import recover, recover_sync

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy


class LangChainRecoveryMiddleware(AgentMiddleware[Any, Any]):
    """Recovery of one agent. `models` maps the model names of the policy's fallback rungs to chat models."""

    def __init__(self, policy: Policy | str = "call", *, models: Mapping[str, Any] | None = None, **ports: Any) -> None:
        super().__init__()
        self.policy = make_policy(policy) if isinstance(policy, str) else policy
        self.models = dict(models or {})
        self.ports = ports
        self.monitor = SessionMonitor()

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Run a model call with recovery."""
        signals: list[GraphBubbleUp] = []

        def attempt(attempted: Request) -> Any:
            try:
                return handler(self._with_model(request, attempted))
            except GraphBubbleUp as signal:
                signals.append(signal)
                return None

        outcome = recover_sync(attempt, Request(model=_name(request.model)), policy=self.policy, **self.ports)
        if signals:
            raise signals[-1]
        return outcome.unwrap()

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Run a model call with recovery, awaiting."""
        signals: list[GraphBubbleUp] = []

        async def attempt(attempted: Request) -> Any:
            try:
                return await handler(self._with_model(request, attempted))
            except GraphBubbleUp as signal:
                signals.append(signal)
                return None

        outcome = await recover(attempt, Request(model=_name(request.model)), policy=self.policy, **self.ports)
        if signals:
            raise signals[-1]
        return outcome.unwrap()

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run a tool call. An error is returned to the model as a message, not raised."""
        try:
            return self._check_result(request, handler(request))
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001  # any error of a tool is reported to the model
            return self._error_message(request, error)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run a tool call, awaiting. An error is returned to the model as a message, not raised."""
        try:
            return self._check_result(request, await handler(request))
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001  # any error of a tool is reported to the model
            return self._error_message(request, error)

    def _with_model(self, request: Any, attempted: Request) -> Any:
        model = self.models.get(attempted.model)
        return request if model is None or attempted.model == _name(request.model) else request.override(model=model)

    def _check_result(self, request: Any, result: Any) -> Any:
        call = request.tool_call
        failed = getattr(result, "status", "") == "error"
        finding = self.monitor.check(Step(call["name"], call["args"], str(getattr(result, "content", result)), failed))
        if finding is not None and finding.is_new_stage and isinstance(result, ToolMessage):
            return result.model_copy(update={"content": f"{result.content}\n\n{_advice(finding.failure)}"})
        return result

    def _error_message(self, request: Any, error: Exception) -> ToolMessage:
        call = request.tool_call
        failure = classify(error)
        finding = self.monitor.check(Step(call["name"], call["args"], "", str(error) or type(error).__name__))
        text = _advice(finding.failure if finding is not None and finding.is_new_stage else failure)
        return ToolMessage(content=text, tool_call_id=call["id"], name=call["name"], status="error")


def _advice(failure: Failure) -> str:
    """Return the text for the model on the rung that the session ladder takes for this failure."""
    recovery = ExternalRecovery(session_policy())
    return without_task(recovery.change_request(recovery.failed(failure)))


def _name(model: Any) -> str:
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__)
