"""Recovery of LangGraph nodes: `add_node("ask", ask, retry_policy=retry_policy(), error_handler=end_partial)`.

LangGraph's default predicate retries a 401 but not a 429; this one classifies the error. LangGraph counts retries and sets
their intervals itself, so a failing service is not waited for beyond them: call `rung.recover` in the node for that. When the retries are exhausted,
the handler ends the node with a partial outcome in the state, and the graph continues. Give the model's client
`max_retries=0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langgraph.errors import NodeError  # noqa: TC002  # LangGraph reads the annotation
from langgraph.types import Command, RetryPolicy

from rung.core.classify.classifier import classify
from rung.core.domain.events import is_retry
from rung.core.domain.ladder import Action
from rung.core.domain.recommendation import recommendation
from rung.core.policy.parser import policy as make_policy
from rung.engine.external_loop import ExternalRecovery

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy


def retry_policy(policy: Policy | str = "call") -> RetryPolicy:
    """Return a policy's retry rung and backoff as a LangGraph retry policy."""
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    tries = max((rung.tries for rung in chosen.ladder.rungs if rung.action is Action.RETRY), default=0)
    backoff = chosen.backoff
    return RetryPolicy(
        initial_interval=backoff.base,
        backoff_factor=backoff.multiplier,
        max_interval=backoff.cap,
        max_attempts=tries + 1,
        jitter=True,
        retry_on=lambda error: is_retry(ExternalRecovery(chosen).failed(error)),
    )


# LangGraph passes both arguments by name; its types know only handlers that can be called with the state alone.
def end_partial(state: Any, error: NodeError = cast("NodeError", None)) -> Command[Any]:  # noqa: ARG001, B008
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
