"""Waiting for a failing service: how long, and when it makes sense. Pure functions.

Retries are counted, patience is timed. When no other model, provider or agent can take the work, an outage is waited
out: the request is sent again now and then until the service answers or the patience of the policy ends.

A wait costs its caller the time between the end of an outage and the next request, in the middle half of it. With waits of
at most 14 s that is below 6 s, and in 90 s of outage a call sends about 13 requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.error_types import is_listed
from rung.core.domain.events import Repeat
from rung.core.domain.failures import Kind, is_passing
from rung.core.policy.backoff import Backoff
from rung.core.recovery.circuit import announced_wait

if TYPE_CHECKING:
    from rung.core.domain.events import Skip
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

MAX_WAIT_SECONDS: Final = 14.0
# Of a wait; the rest is random. It spreads waiting calls, and no end of an outage falls into the same place of all waits.
_SHORTEST_SHARE: Final = 0.6
# Of the cap of the retries, if that is longer: a policy of long waits sends few requests here, too.
_CAP_SHARE: Final = 0.4
# Of a policy whose retries follow at once, or at a constant distance.
DEFAULT_BASE_SECONDS: Final = 0.5
MIN_MULTIPLIER: Final = 1.5


def wait_for_service(
    incident: Incident, failure: Failure, policy: Policy, rung: int, now: float, jitter: float, skipped: list[Skip]
) -> Repeat | None:
    """Return the decision to wait for a failing service; None if it does not apply. A reason is added to `skipped`."""
    if not is_passing(failure):
        return None
    if failure.kind is not Kind.SERVICE_DOWN and not is_listed(failure, policy.retry):
        skipped.append((rung, "the policy does not retry this kind"))
        return None
    until = incident.patient_until
    if until is None:  # an inner recovery has waited, too: this one has the time since it began
        until = (incident.opened_at if failure.evidence.spent else now) + policy.patience
    hint = announced_wait(failure)
    if hint is not None and now + hint > until:
        skipped.append((rung, f"asked to wait {hint:g} s, the patience ends in {max(0.0, until - now):g} s"))
        return None
    if now >= until:
        skipped.append((rung, f"the patience of {policy.patience:g} s is spent"))
        return None
    wait = min(next_wait(incident, failure, policy, jitter), until - now)
    if incident.deadline is not None and now + wait >= incident.deadline:
        skipped.append((rung, "the wait would exceed the deadline"))
        return None
    return Repeat(rung, wait, failure.kind, tuple(skipped), until)


def next_wait(incident: Incident, failure: Failure, policy: Policy, jitter: float) -> float:
    """Return the seconds of the next wait, unless the patience ends before."""
    return _seconds(incident.waits + 1, policy, jitter, announced_wait(failure))


def max_waits(policy: Policy) -> int:
    """Return how many waits the patience of a policy has room for, for loops that need a number."""
    number, waited = 0, 0.0
    while waited < policy.patience:
        number += 1
        waited += _seconds(number, policy, 0.0, None)
    return number


def _seconds(number: int, policy: Policy, jitter: float, hint: float | None) -> float:
    """Return the n-th wait, a random one below its ceiling: waiting calls spread, and send few requests.

    Waits go on where the backoff of the retries ends.
    """
    retries = sum(rung.tries for rung in policy.ladder.rungs if rung.is_retry)
    given = policy.backoff
    backoff = Backoff(
        base=given.base or DEFAULT_BASE_SECONDS,
        multiplier=max(given.multiplier, MIN_MULTIPLIER),
        cap=max(MAX_WAIT_SECONDS, _CAP_SHARE * given.cap),
    )
    if hint is not None and hint >= DEFAULT_BASE_SECONDS:  # a shorter one, such as 0, was followed by the retries
        return backoff.wait(number, jitter, hint)
    return backoff.ceiling(retries + number) * (_SHORTEST_SHARE + (1 - _SHORTEST_SHARE) * jitter)
