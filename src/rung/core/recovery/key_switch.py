"""Another key of the same upstream and model: it is the same request, so it is sent again at once. Pure functions."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from rung.core.domain.events import Repeat
from rung.core.recovery.replay_safety import has_visible_effects

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy


def may_switch_key(incident: Incident, failure: Failure) -> bool:
    """Whether the request may be sent again with another key: one is usable, and nothing was seen of this attempt.

    Each key has one turn. When the first one fails a second time, the ladder decides, which waits.
    """
    if not failure.evidence.spare_keys or has_visible_effects(incident, failure):
        return False
    in_turn = takewhile(lambda each: each.evidence.spare_keys > 0, reversed(incident.failures))
    return sum(each.evidence.key == failure.evidence.key for each in in_turn) <= 1


def switch_key(incident: Incident, failure: Failure, policy: Policy) -> Repeat:
    """Return the repeat with another key. It is listed under the retry rung, and uses none of its tries."""
    retry = (index for index, rung in enumerate(policy.ladder.rungs) if rung.is_retry)
    return Repeat(next(retry, max(0, incident.rung)), 0.0, failure.kind, other_key=True)
