"""Trouble of the service behind a worker: which failures are one, until when, and how a worker tells of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, Phase, is_passing

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure

EX_TEMPFAIL: Final = 75  # exit code of a worker or its command: the task is fine, try later
_PARKED_UNTIL: Final = re.compile(
    r"parked_until\W{1,5}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d))", re.IGNORECASE
)
_HAND_BACK: Final = re.compile(rf"unavailable \((needs a person|exit code {EX_TEMPFAIL}[^)]*)\): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A failure of the service behind a pool: why, until when if that is known, and whether only a person can end it."""

    reason: str
    until: float | None = None
    needs_person: bool = False


def trouble_of(failure: Failure, at: float) -> Trouble | None:
    """Return the trouble that a worker's failure at this time reports; None if the failure is the task's own."""
    evidence = failure.evidence
    is_temporary = evidence.exit_code == EX_TEMPFAIL
    is_quota = failure.kind is Kind.QUOTA_EXHAUSTED and evidence.phase not in (Phase.LIMIT, Phase.TOOL)
    if not (is_temporary or is_quota or is_passing(failure)):
        return None
    until = parked_until(f"{evidence.text}\n{evidence.output}")
    if until is None and failure.retry_after is not None:
        until = at + failure.retry_after
    is_unnamed = is_temporary and failure.kind is Kind.UNKNOWN
    reason = f"try later (exit code {EX_TEMPFAIL})" if is_unnamed else failure.headline()
    return Trouble(reason=reason, until=until, needs_person=is_quota and until is None and not is_temporary)


def hand_back_text(trouble: Trouble) -> str:
    """Return the reason for which a worker hands its task back."""
    if trouble.needs_person:
        return f"unavailable (needs a person): {trouble.reason}"
    until = "" if trouble.until is None else f"; parked_until {format_time(math.ceil(trouble.until))}"
    return f"unavailable (exit code {EX_TEMPFAIL}{until}): {trouble.reason}"


def parse_hand_back(text: str) -> Trouble | None:
    """Return the trouble for which a worker handed its task back; None if it had another reason."""
    match = _HAND_BACK.search(text)
    if match is None:
        return None
    return Trouble(reason=match[2], until=parked_until(match[1]), needs_person=match[1] == "needs a person")


def parked_until(text: str) -> float | None:
    """Return the time that a text or a JSON contract names as `parked_until` (RFC 3339), the last one if there are several."""
    found = _PARKED_UNTIL.findall(text)
    try:
        return datetime.fromisoformat(found[-1].upper()).timestamp() if found else None
    except ValueError:
        return None


def format_time(at: float) -> str:
    """Return a time as RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
