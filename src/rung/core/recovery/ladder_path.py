"""Rungs of a ladder that a failure of a kind can climb, from its entry to the last one that makes an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.error_types import with_covered
from rung.core.domain.failures import NEVER_RETRYABLE, PROVIDER_KINDS, Kind
from rung.core.domain.ladder import ENDING_ACTIONS, WAITING_ACTIONS, Rung

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy


def ladder_path(policy: Policy, kind: Kind) -> tuple[int, ...]:
    """Return the indexes of the rungs that can answer a failure of this kind, in order, without waits and the end.

    After its retries, a failure of the provider goes on at the entry of `service_down`: no prompt fixes an outage.
    """
    ladder = policy.ladder
    first = ladder.index(ladder.entry.get(kind, ladder.default_entry))
    after_retry = 0
    if kind in PROVIDER_KINDS and Kind.SERVICE_DOWN in ladder.entry:
        after_retry = ladder.index(ladder.entry[Kind.SERVICE_DOWN])
    return tuple(
        index
        for index, rung in enumerate(ladder.rungs)
        if index >= first and _makes_attempt(rung, policy, kind) and (rung.is_retry or index >= after_retry)
    )


def _makes_attempt(rung: Rung, policy: Policy, kind: Kind) -> bool:
    """Whether the rung answers a failure of this kind with an attempt."""
    if not rung.tries or rung.action in ENDING_ACTIONS or rung.action in WAITING_ACTIONS:
        return False
    if rung.is_retry:
        return kind in with_covered(policy.retry) and kind not in NEVER_RETRYABLE
    return rung.applies_to is None or kind in rung.applies_to
