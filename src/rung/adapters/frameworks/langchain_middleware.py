"""Recovery in a LangChain agent: `create_agent(model, tools, middleware=[Recovering("call")])`.

Model calls go up the ladder (repeats, then the models given as `models`); a failing tool becomes a message that says what was
wrong and what not to do, and a repeated one is told to plan anew. Interrupts and other signals of LangGraph pass untouched. Give the
chat model `max_retries=0`: one owner of retries.
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
    """One agent's recovery. `models`: chat models by the names that the policy hands over to."""

    def __init__(self, policy: Policy | str = "call", *, models: Mapping[str, Any] | None = None, **ports: Any) -> None:
        super().__init__()
        self.policy = make_policy(policy) if isinstance(policy, str) else policy
        self.models = dict(models or {})
        self.ports = ports
        self.watch = SessionMonitor()

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """A model call."""
        passed: list[GraphBubbleUp] = []

        def attempt(asked: Request) -> Any:
            try:
                return handler(self._with(request, asked))
            except GraphBubbleUp as signal:
                passed.append(signal)
                return None

        outcome = recover_sync(attempt, Request(model=_name(request.model)), policy=self.policy, **self.ports)
        if passed:
            raise passed[-1]
        return outcome.unwrap()

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """The same, awaited."""
        passed: list[GraphBubbleUp] = []

        async def attempt(asked: Request) -> Any:
            try:
                return await handler(self._with(request, asked))
            except GraphBubbleUp as signal:
                passed.append(signal)
                return None

        outcome = await recover(attempt, Request(model=_name(request.model)), policy=self.policy, **self.ports)
        if passed:
            raise passed[-1]
        return outcome.unwrap()

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """A tool's call: its failure is said to the model, not raised."""
        try:
            return self._seen(request, handler(request))
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a tool raises, the model can be told
            return self._told(request, error)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """The same, awaited."""
        try:
            return self._seen(request, await handler(request))
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001  # as above
            return self._told(request, error)

    def _with(self, request: Any, asked: Request) -> Any:
        model = self.models.get(asked.model)
        return request if model is None or asked.model == _name(request.model) else request.override(model=model)

    def _seen(self, request: Any, result: Any) -> Any:
        call = request.tool_call
        failed = getattr(result, "status", "") == "error"
        found = self.watch.check(Step(call["name"], call["args"], str(getattr(result, "content", result)), failed))
        if found is not None and found.is_new_stage and isinstance(result, ToolMessage):
            return result.model_copy(update={"content": f"{result.content}\n\n{_advice(found.failure)}"})
        return result

    def _told(self, request: Any, error: Exception) -> ToolMessage:
        call = request.tool_call
        failure = classify(error)
        found = self.watch.check(Step(call["name"], call["args"], "", str(error) or type(error).__name__))
        text = _advice(found.failure if found is not None and found.is_new_stage else failure)
        return ToolMessage(content=text, tool_call_id=call["id"], name=call["name"], status="error")


def _advice(failure: Failure) -> str:
    """Text for the model on the rung that the session ladder takes for this failure."""
    recovery = ExternalRecovery(session_policy())
    return without_task(recovery.change_request(recovery.failed(failure)))


def _name(model: Any) -> str:
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__)
