"""Recovery of LangGraph's nodes: `add_node("ask", ask, retry_policy=retry_policy(), error_handler=end_partial)`.

LangGraph's own predicate repeats a 401 and not a 429; ours asks what went wrong. When the tries are spent, the handler ends the node
with a partial outcome in the state instead of losing the whole graph. Give the model's client `max_retries=0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.errors import NodeError  # noqa: TC002  # LangGraph reads the annotation
from langgraph.types import Command, RetryPolicy

from rung.core.classify.classifier import classify
from rung.core.domain.events import Repeat
from rung.core.domain.ladder import Action
from rung.core.domain.outcome import recommendation
from rung.core.policy.parser import policy as make_policy
from rung.engine.external_loop import ExternalRecovery

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy


def retry_policy(policy: Policy | str = "call") -> RetryPolicy:
    """A policy's retry rung and backoff, as LangGraph takes them."""
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    tries = max((rung.tries for rung in chosen.ladder.rungs if rung.action is Action.RETRY), default=0)
    backoff = chosen.backoff
    return RetryPolicy(
        initial_interval=backoff.base,
        backoff_factor=backoff.multiplier,
        max_interval=backoff.cap,
        max_attempts=tries + 1,
        jitter=True,
        retry_on=lambda error: isinstance(ExternalRecovery(chosen).failed(error), Repeat),
    )


def end_partial(state: Any, error: NodeError) -> Command[Any]:  # noqa: ARG001  # LangGraph passes arguments by these names
    """End the node with an outcome under `outcome` in the state."""
    failure = classify(error.error)
    outcome = {
        "status": "partial",
        "failedAt": error.node,
        "failureReason": failure.message or str(error.error),
        "errorType": failure.kind.value,
        "recommendation": recommendation(failure),
    }
    return Command(update={"outcome": outcome})
