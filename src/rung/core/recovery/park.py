"""Parking work until a limit reopens at a known time: when it makes sense, and until when. Pure functions.

A plan's limit ("resets 4:20pm") is not an outage: nothing is sent until it reopens. Then one attempt is made, the probe.
If the limit is still there with a later time, the work is parked again; if it names no later time, with growing waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.classifier import names_reset_time
from rung.core.domain.events import Repeat
from rung.core.domain.failures import Kind, is_limit
from rung.core.domain.incident import SHORT_LIMIT_SECONDS
from rung.core.text.moments import format_span

if TYPE_CHECKING:
    from rung.core.domain.events import Skip
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

MARGIN_SECONDS: Final = 1.0  # clocks differ
MAX_SPREAD_SECONDS: Final = 30.0  # parked work does not start all at once
FIRST_REPEAT_SECONDS: Final = 60.0  # before the next probe of a limit that should have reopened
MAX_REPEAT_SECONDS: Final = 1_800.0


def park_until_reopened(
    incident: Incident, failure: Failure, policy: Policy, rung: int, now: float, jitter: float, skipped: list[Skip]
) -> Repeat | None:
    """Return the decision to park until a limit reopens; None if it does not apply. A reason is added to `skipped`."""
    until = _reopens_at(incident, failure, policy, now)
    if until is None:
        if failure.kind is Kind.QUOTA_EXHAUSTED and is_limit(failure):
            is_past = names_reset_time(failure)
            why_not = (
                "the reset time in the message is past, or not clear" if is_past else "the message names no reset time"
            )
            skipped.append((rung, why_not))
        return None
    left = until - now
    if left > policy.park:
        skipped.append(
            (rung, f"the limit reopens in {format_span(left)}, the longest time parked is {format_span(policy.park)}")
        )
        return None
    if incident.parks >= policy.ladder.rungs[rung].tries:
        skipped.append((rung, f"parked {incident.parks} times already"))
        return None
    wait = left + MARGIN_SECONDS + jitter * min(MAX_SPREAD_SECONDS, left / 10)
    if incident.parent and incident.deadline is not None and now + wait >= incident.deadline:
        skipped.append((rung, "the limit reopens after the deadline of the enclosing recovery"))
        return None
    return Repeat(rung, wait, failure.kind, tuple(skipped), until, parked=True)


def _reopens_at(incident: Incident, failure: Failure, policy: Policy, now: float) -> float | None:
    """Return the earliest time at which a limit of this incident reopens; None if no limit is in the way.

    After a failed handover the limit of the first model counts, too: it may reopen before the other one works.
    """
    here = ("", "") if incident.request is None else (incident.request.model, incident.request.agent)
    times = [at for target, at in incident.limits.items() if target != here and at > now]
    wait = _wait_here(incident, failure, policy) if is_limit(failure) else None
    if wait is not None:
        times.append(incident.limits[here] if wait == failure.retry_after and here in incident.limits else now + wait)
    return min(times, default=None)


def _wait_here(incident: Incident, failure: Failure, policy: Policy) -> float | None:
    """Return the seconds until this limit reopens; None if they are not known, or if the retry rung waits for it.

    A limit that should have reopened is probed again, each time after a longer wait.
    """
    hint = failure.retry_after
    if incident.parks and (hint is None or hint <= SHORT_LIMIT_SECONDS):
        repeat = FIRST_REPEAT_SECONDS * 2.0 ** min(incident.short_parks, 10)
        return max(hint or 0.0, min(repeat, MAX_REPEAT_SECONDS))
    is_retried = failure.kind is not Kind.QUOTA_EXHAUSTED and hint is not None and hint <= policy.retry_after_cap
    return None if is_retried and not incident.parks else hint
