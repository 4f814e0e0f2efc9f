"""Routes that are not asked again while another one is left: silent providers, and streams that break. Pure functions.

Each attempt at a silent provider costs its whole timeout, and a stream that breaks at the same place again does not get
past it. One that breaks again and again, each time further on, pays for the prompt each time. Another model or agent can
answer at once, or resume the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.events import HandOver
from rung.core.domain.failures import Kind, Phase, is_resumable
from rung.core.recovery.handover import hand_over

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

# A stream that breaks after so many seconds without content has stalled: it would have timed out later.
SILENT_SECONDS: Final = 10.0
# After so many breaks of one stream, each further on, another route resumes it.
MAX_BREAKS: Final = 5


def is_silent(failure: Failure) -> bool:
    """Whether a call failed because its provider sent nothing.

    A timeout alone does not say so: a task, an agent or a tool may run for long. The provider's SDK or the gateway do.
    """
    evidence = failure.evidence
    if evidence.status is not None or evidence.phase not in (Phase.CALL, Phase.STREAM):
        return False
    if failure.kind is Kind.TIMEOUT:
        return evidence.silence > 0 or bool(evidence.provider)
    return evidence.silence >= SILENT_SECONDS


def stands_still(incident: Incident, failure: Failure) -> bool:
    """Whether a resumed stream broke without adding to the answer. A refused resumption (a status) says nothing of it."""
    evidence = failure.evidence
    return incident.resuming and evidence.progress is False and evidence.status is None


def breaks_again(incident: Incident) -> bool:
    """Whether the stream of the current route broke in its last attempts, as often as a route is allowed."""
    last = incident.failures[-MAX_BREAKS:]
    return incident.retries_of_model + 1 >= MAX_BREAKS and all(map(is_resumable, last))


def has_other_route(incident: Incident, failure: Failure, policy: Policy, rung: int) -> bool:
    """Whether this handover rung has a model or agent to hand over to, without asking a person."""
    return incident.request is not None and isinstance(hand_over(incident, failure, policy, rung, []), HandOver)
