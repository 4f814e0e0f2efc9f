"""Worst case of a policy: the most attempts, seconds, dollars and waits that one incident can take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rung.core.domain.ladder import HANDOVER_ACTIONS, WAITING_ACTIONS, Action, Rung, RungScope

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """Upper bounds of one incident under a policy; None: unbounded. 0 dollars: no costs are known, or nothing is tried again."""

    attempts: int | None
    seconds: float | None
    dollars: float | None


def worst_case(policy: Policy) -> WorstCase:
    """Return the most attempts, seconds and dollars that the ladder and its budgets allow, without the time parked."""
    if policy.is_off:
        limits = (policy.budget.seconds, policy.attempt_seconds)
        return WorstCase(attempts=1, seconds=min((s for s in limits if s is not None), default=None), dollars=0.0)
    retries = sum(rung.tries for rung in policy.ladder.rungs if rung.scope is RungScope.ACTION)
    climbs = [rung for rung in policy.ladder.rungs if rung.scope is not RungScope.ACTION and rung.tries]
    climbs = [rung for rung in climbs if rung.action not in WAITING_ACTIONS]  # their repeats are not attempts
    attempts_by_rung = {rung.name: _max_attempts(rung, policy, retries) for rung in climbs}
    attempts = 1 + retries + sum(attempts_by_rung.values())
    dollars = sum(rung.cost * attempts_by_rung[rung.name] for rung in climbs)
    if any(rung.action in HANDOVER_ACTIONS for rung in climbs):
        dollars += sum(model.cost for model in policy.models) * (1 + retries)
    return WorstCase(
        attempts=attempts if policy.budget.attempts is None else min(attempts, policy.budget.attempts),
        seconds=min((s for s in (policy.budget.seconds, _max_seconds(policy)) if s is not None), default=None),
        # Without costs in the policy, only its limit is known.
        dollars=dollars if policy.budget.dollars is None else min(dollars or math.inf, policy.budget.dollars),
    )


def _max_attempts(rung: Rung, policy: Policy, retries: int) -> int:
    """Return the most attempts on a rung, with the retries after it: each model has its own."""
    if rung.action in HANDOVER_ACTIONS:
        return min(rung.tries, len(policy.models) + len(policy.agents)) * (1 + retries)
    return rung.tries + retries


def _max_seconds(policy: Policy) -> float | None:
    """Return the most seconds of the first attempt, of the retries before the first climb, and of the rungs above.

    None if one of them has no limit.
    """
    rungs = [rung for rung in policy.ladder.rungs if rung.action not in (Action.PARK, Action.ASK, Action.SURFACE)]
    climbs = [rung.seconds for rung in rungs if not rung.is_retry]
    if policy.attempt_seconds is None or None in climbs:
        return None
    retries = [rung for rung in rungs if rung.is_retry]
    last_probe = any(rung.action is Action.WAIT for rung in rungs)  # it may start when the patience ends
    attempts = policy.attempt_seconds * (1 + last_probe + sum(rung.tries for rung in retries))
    waits = sum(_longest_wait(policy, retry) for rung in retries for retry in range(1, rung.tries + 1))
    return attempts + waits + sum(limit for limit in climbs if limit is not None)


def longest_wait(policy: Policy) -> float:
    """Return the most seconds that one incident waits: before retries and for a failing service, without time parked."""
    retries = [rung for rung in policy.ladder.rungs if rung.is_retry]
    waits = sum(_longest_wait(policy, retry) for rung in retries for retry in range(1, rung.tries + 1))
    if any(rung.action is Action.WAIT for rung in policy.ladder.rungs):
        waits += policy.patience
    return waits if policy.budget.seconds is None else min(waits, policy.budget.seconds)


def _longest_wait(policy: Policy, retry: int) -> float:
    """Return the longest wait before the n-th retry, with or without a server's hint."""
    return max(policy.backoff.wait(retry, 1.0, hint) for hint in (None, policy.retry_after_cap))
