"""Failures as evidence about a service: which ones count against its circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import CIRCUIT_OPEN, PROVIDER_KINDS, Kind, Phase, is_passing
from rung.core.policy.breaker import CallVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def opens_circuit(failures: Iterable[Failure]) -> bool:
    """Return whether a call that was handed over after these failures opens its circuit, if nobody succeeds on it.

    A timeout does not: a slow model is not down. A limit of one key among several does not.
    """
    return any(
        is_passing(failure) and failure.kind is not Kind.TIMEOUT and not failure.evidence.spare_keys
        for failure in failures
    )


def announced_wait(failure: Failure) -> float | None:
    """Return how long the service asks to wait. The hint of an open circuit is Rung's own: a probe may close it earlier."""
    return None if failure.evidence.code == CIRCUIT_OPEN else failure.retry_after
