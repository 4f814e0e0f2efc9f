"""Why a session changed its model, in the three words of an escalation record; the decision's own reason is finer."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from rung.core.domain.failures import Kind

_BY_A_PERSON: Final = "a person "  # begins the reasons of decisions that follow from a person's answer


class EscalationReason(StrEnum):
    """Reason of a model change: a closed set."""

    MANUAL = "manual"
    AUTO_AFTER_RETRIES = "auto_after_retries"
    CONTEXT_LIMIT = "context_limit"


def escalation_reason(cause: str) -> EscalationReason:
    """Return the reason of a handover from that of its decision: a kind, with more words or without, or a person's answer."""
    if cause.startswith(_BY_A_PERSON):
        return EscalationReason.MANUAL
    kind = cause.partition(":")[0]
    return EscalationReason.CONTEXT_LIMIT if kind == Kind.CONTEXT_LIMIT else EscalationReason.AUTO_AFTER_RETRIES
