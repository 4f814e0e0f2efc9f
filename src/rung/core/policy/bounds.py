"""Bounds of a policy that nobody has trusted: it may save money, never spend more or reach further."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from rung.core.classify.error_types import with_covered
from rung.core.policy.budget import Budget
from rung.core.policy.policy import Confirm

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy

_Number = TypeVar("_Number", int, float)
_STRICTNESS: Final = tuple(Confirm)  # from never to always


def bounded(policy: Policy, limits: Policy) -> Policy:
    """Return the policy with every cap at most that of `limits`, and with its models, agents, prompts and report file.

    The ladder, the waits and lower caps stay. The caps bound what any ladder can spend; the models decide what an
    attempt costs; prompts speak to an agent in the user's name; the report is appended to a file.
    """
    caps, most = policy.budget, limits.budget
    return policy.replace(
        budget=Budget(
            attempts=_least(caps.attempts, most.attempts),
            seconds=_least(caps.seconds, most.seconds),
            dollars=_least(caps.dollars, most.dollars),
        ),
        models=limits.models,
        agents=limits.agents,
        same_account=limits.same_account,
        prompts=limits.prompts,
        report=limits.report,
        retry=with_covered(policy.retry) & with_covered(limits.retry),
        retry_after_cap=min(policy.retry_after_cap, limits.retry_after_cap),
        patience=min(policy.patience, limits.patience),
        park=min(policy.park, limits.park),
        attempt_seconds=_least(policy.attempt_seconds, limits.attempt_seconds),
        retry_budget=policy.retry_budget or limits.retry_budget,
        breaker=policy.breaker or limits.breaker,
        auto_escalate=policy.auto_escalate and limits.auto_escalate,
        escalate_after=_latest(policy.escalate_after, limits.escalate_after),
        confirm=max(policy.confirm, limits.confirm, key=_STRICTNESS.index),
        checkpoints=policy.checkpoints or limits.checkpoints,
        resume_sessions=policy.resume_sessions or limits.resume_sessions,
    )


def _latest(threshold: int | None, limit: int | None) -> int | None:
    """Return the higher of two numbers of retries before an escalation; a file cannot set one where its user sets none."""
    return limit if threshold is None or limit is None else max(threshold, limit)


def _least(one: _Number | None, other: _Number | None) -> _Number | None:
    """Return the lower of two caps; None is no cap."""
    return min((cap for cap in (one, other) if cap is not None), default=None)
