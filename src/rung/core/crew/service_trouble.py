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
# A provider's own words: they count wherever they stand.
_OF_PROVIDER: Final = re.compile(
    r"\bAPI Error\b|\b(?:anthropic|openai|genai|botocore|litellm)\.[\w.]*(?:Error|Exception)\b"
    r"|\b(?:overloaded|rate_limit|api|billing)_error\b|\binsufficient_quota\b"
    r"|\b(?:api\.(?:anthropic|openai)|generativelanguage\.googleapis|aiplatform\.googleapis|bedrock-runtime)\b",
    re.IGNORECASE,
)
# Words about the code, the tests and the machine of a task: what fails there is not the service behind the worker.
_OF_WORK: Final = re.compile(
    r"\bassert|\btests?\b|\btest_\w|\bpytest\b|\bexpected\b|\bTraceback\b|\bmiddleware\b|\b(?:my|our|its) (?:\w+ )?code\b"
    r"|\blocalhost\b|\b127\.0\.0\.1\b|\[::1\]|\w\.(?:py|js|ts|tsx|go|rs|java|rb|c|h|cpp|sh|yml|yaml|toml|ini)\b"
    r"|\b(?:Assertion|Key|Type|Value|Index|Attribute|Name|Import|ModuleNotFound|Syntax|ZeroDivision)Error\b"
    r"|\b(?:npm|yarn|pip|cargo|curl|docker|git|psycopg|postgres\w*|redis|mysql|sqlite|mongo\w*)\b",
    re.IGNORECASE,
)
# Whose quota it is: only that of the worker's account closes a pool until a person comes.
_OF_ACCOUNT: Final = re.compile(
    r"\b(?:credits?|billing|balance|plan|account|subscription|usage|payment|spend|organi[sz]ation|insufficient_quota|tokens?"
    r"|current quota)\b",
    re.IGNORECASE,
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
    if not is_temporary and tells_of_work(_last_line(evidence.text)) and not _OF_PROVIDER.search(evidence.text):
        return None
    until = parked_until(f"{evidence.text}\n{evidence.output}")
    if until is None and failure.retry_after is not None:
        until = at + failure.retry_after
    is_blocked = is_quota and until is None and not is_temporary
    if is_blocked and not _OF_ACCOUNT.search(evidence.text):
        return None
    is_unnamed = is_temporary and failure.kind is Kind.UNKNOWN
    reason = f"try later (exit code {EX_TEMPFAIL})" if is_unnamed else failure.headline()
    return Trouble(reason=reason, until=until, needs_person=is_blocked)


def tells_of_work(text: str) -> bool:
    """Return whether an error speaks of the task's own code, tests or machine, and not of a provider."""
    return _OF_WORK.search(text) is not None and _OF_PROVIDER.search(text) is None


def _last_line(text: str) -> str:
    """Return the last line that is not blank: programs end with their error."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


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
