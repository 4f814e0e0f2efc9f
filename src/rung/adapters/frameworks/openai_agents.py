"""Recovery in the OpenAI Agents SDK: a retry policy for `ModelSettings`, and error handlers that return partial results.

By default the runner does not retry; with these settings it retries as the ladder decides, and waits for a failing service
as long as the policy's `patience`. Turn the client's retries off
(`AsyncOpenAI(max_retries=0)`). A run that ends at its turn limit, with a refusal or with malformed output returns a
partial result instead of raising.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from agents.retry import ModelRetrySettings, RetryDecision

from rung.core.domain.events import Repeat
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.policy.parser import policy as make_policy
from rung.core.recovery.patience import max_waits
from rung.engine.external_loop import ExternalRecovery
from rung.engine.loop.recovery_log import FailureLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents import RunErrorHandlers
    from agents.retry import RetryPolicyContext

    from rung.core.policy.policy import Policy
    from rung.engine.external_loop import EventSink

_KINDS: Final = {
    "max_turns": Kind.TURNS_EXHAUSTED,
    "model_refusal": Kind.REFUSAL,
    "invalid_final_output": Kind.MALFORMED_OUTPUT,
}


def retry_settings(policy: Policy | str = "call", *, journal: EventSink | None = None) -> ModelRetrySettings:
    """Return settings for `ModelSettings(retry=…)`: the tries of the retry rung and the waits, each decided by the ladder."""
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    tries = max((rung.tries for rung in chosen.ladder.rungs if rung.action is Action.RETRY), default=0)
    return ModelRetrySettings(max_retries=tries + max_waits(chosen), policy=_ladder_policy(chosen, journal))


def _ladder_policy(policy: Policy, journal: EventSink | None) -> Callable[[RetryPolicyContext], RetryDecision]:
    """Return a function that applies the ladder after each failed attempt. The SDK copies settings, but not functions."""
    recoveries: dict[int, ExternalRecovery] = {}  # by task: one for each model call, created at its first failure

    def decide_retry(context: RetryPolicyContext) -> RetryDecision:
        task = id(asyncio.current_task())
        if context.attempt <= 1 and task in recoveries:
            recoveries.pop(task).succeeded()  # a new call: the last retry of the previous one succeeded
        if task not in recoveries:
            recoveries[task] = ExternalRecovery(policy, journal=journal, listeners=(FailureLog("openai_agents"),))
        decision = recoveries[task].failed(context.error)
        if isinstance(decision, Repeat) and not context.response_started:
            return RetryDecision(retry=True, delay=decision.wait, reason=str(decision.reason))
        del recoveries[task]
        return RetryDecision(retry=False, reason=str(decision.reason))

    return decide_retry


def error_handlers(policy: Policy | str = "task", *, journal: EventSink | None = None) -> RunErrorHandlers[Any]:
    """Return handlers for `Runner.run(error_handlers=…)`: the run ends with a result marked as partial."""
    handlers = {name: _handler(kind, policy, journal) for name, kind in _KINDS.items()}
    return cast("RunErrorHandlers[Any]", handlers)


def _handler(kind: Kind, policy: Policy | str, journal: EventSink | None) -> Callable[[Any], Any]:
    def handle(given: Any) -> dict[str, Any]:
        recovery = ExternalRecovery(policy, journal=journal)
        recovery.failed(Evidence(text=str(given.error), finding=kind, phase=Phase.RESULT))
        done = [str(getattr(item, "output", "")) for item in given.run_data.new_items if getattr(item, "output", None)]
        output = f"PARTIAL ({kind}): {given.error}\n" + "\n".join(f"- {item[:500]}" for item in done[-5:])
        return {"final_output": output.strip(), "include_in_history": False}

    return handle
