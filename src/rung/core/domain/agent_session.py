"""Session of a command-line agent: when the next attempt continues it, and when the work starts afresh. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.events import Change, Decision, HandOver
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, Failure, Kind
from rung.core.domain.ladder import Action

if TYPE_CHECKING:
    from rung.core.domain.request import Request

# What is in the session causes these failures: it would cause them again.
_FAILURES_OF_SESSION: Final = frozenset(
    {Kind.CONTEXT_LIMIT, Kind.CONTEXT_WARNING, Kind.INVALID_REQUEST, Kind.CONTENT_FILTER, Kind.REFUSAL}
)
# Rungs that take another approach: the former one is in the session.
_FRESH_ACTIONS: Final = frozenset({Action.REPLAN, Action.RESPAWN, Action.RESTRUCTURE})
# Failures that come from outside: the session is as good as before, however often they recur.
_OUTSIDE_KINDS: Final = INFRASTRUCTURE_KINDS | {Kind.WORKER_DEAD, Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS}
_MAX_EQUAL_FAILURES: Final = 2


class AgentSession(NamedTuple):
    """Session in which an agent works. `continued`: how many attempts in succession have continued it."""

    program: str
    id: str
    continued: int = 0


def is_from_outside(failure: Failure) -> bool:
    """Whether the work did not cause the failure, nor can it prevent it."""
    return failure.kind in _OUTSIDE_KINDS


def survives_failure(session: AgentSession, failure: Failure, before: Failure | None) -> bool:
    """Whether a session can be continued after this failure; `before` is the failure of the attempt before.

    One that ends twice in the same way, without a cause from outside, is given up.
    """
    if failure.kind in _FAILURES_OF_SESSION:
        return False
    if is_from_outside(failure) or session.continued < _MAX_EQUAL_FAILURES or before is None:
        return True
    return failure.fingerprint != before.fingerprint


def is_fresh_start(decision: Decision | None) -> bool:
    """Whether the decision gives the work to another worker, or to the same one with another approach."""
    return isinstance(decision, HandOver) or (isinstance(decision, Change) and decision.action in _FRESH_ACTIONS)


def survives_decision(decision: Decision, failure: Failure | None, request: Request | None) -> bool:
    """Whether the agent's session is continued after this decision. Another agent has a session of its own.

    Another model, or a new worker, continues the session if the failure came from outside and not from the work.
    """
    if isinstance(decision, Change) and decision.action is Action.RESPAWN:
        return failure is not None and is_from_outside(failure)
    if not isinstance(decision, HandOver):
        return not is_fresh_start(decision)
    if request is None or decision.agent != request.agent:
        return True
    return failure is not None and failure.kind in INFRASTRUCTURE_KINDS
