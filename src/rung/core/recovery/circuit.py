"""Failures as evidence about a service: which ones count against its circuit, and which open it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.events import HandOver, Repeat
from rung.core.domain.failures import CIRCUIT_OPEN, PROVIDER_KINDS, Kind, Phase, is_passing
from rung.core.policy.breaker import CallVerdict

if TYPE_CHECKING:
    from rung.core.domain.events import Decision
    from rung.core.domain.failures import Failure

# Reading a member of an enum class is slow in Python 3.11, and these are read on every failed call.
_BAD: Final = CallVerdict.BAD
_NEUTRAL: Final = CallVerdict.NEUTRAL
_TOOL: Final = Phase.TOOL


def breaker_verdict(failure: Failure) -> CallVerdict:
    """Return the breaker verdict of a failure.

    A tool error or a fault of the caller is neutral, and so is a limit of one key while others are usable.
    """
    if failure.evidence.spare_keys:
        return _NEUTRAL
    return _BAD if failure.kind in PROVIDER_KINDS and failure.evidence.phase is not _TOOL else _NEUTRAL


def gives_up_service(decision: Decision, failure: Failure) -> bool:
    """Return whether a decision leaves the service of the failed attempt because it is down: a handover, or a wait for another.

    A timeout does not: a slow model is not down. A limit of one key among several does not.
    """
    leaves = isinstance(decision, HandOver) or (
        isinstance(decision, Repeat) and decision.until is not None and not decision.parked
    )
    is_down = is_passing(failure) and failure.kind is not Kind.TIMEOUT and not failure.evidence.spare_keys
    return leaves and is_down


def announced_wait(failure: Failure) -> float | None:
    """Return how long the service asks to wait. The hint of an open circuit is Rung's own: a probe may close it earlier."""
    return None if failure.evidence.code == CIRCUIT_OPEN else failure.retry_after
