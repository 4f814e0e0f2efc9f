"""What went wrong: evidence (neutral facts) and failure (what we say the evidence is)."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.frozen_dict import FrozenEmptyDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rung.core.domain.token_counts import TokenCounts


class Kind(StrEnum):
    """The closed set of names a failure can have."""

    # transient: the same call may well succeed in a moment
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    NETWORK = "network"
    STREAM_INTERRUPTED = "stream_interrupted"
    # limits: something is used up
    CONTEXT_LIMIT = "context_limit"
    OUTPUT_LIMIT = "output_limit"
    QUOTA_EXHAUSTED = "quota_exhausted"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    TURNS_EXHAUSTED = "turns_exhausted"
    BUDGET_EXHAUSTED = "budget_exhausted"
    # request: what was asked cannot be done as asked
    INVALID_REQUEST = "invalid_request"
    AUTH_ERROR = "auth_error"
    MISSING_CREDENTIALS = "missing_credentials"
    MODEL_UNAVAILABLE = "model_unavailable"
    NOT_FOUND = "not_found"
    PERMISSION_DENIED = "permission_denied"
    CONFIGURATION = "configuration"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    # result: there is an answer, and it is not good
    MALFORMED_OUTPUT = "malformed_output"
    PARTIAL_OUTPUT = "partial_output"
    GAVE_UP = "gave_up"
    LOW_QUALITY = "low_quality"
    GOAL_MISALIGNED = "goal_misaligned"
    UNVERIFIED = "unverified"
    TEST_FAILURE = "test_failure"
    TOOL_ERROR = "tool_error"
    # behaviour: nobody raised anything, and it is going wrong
    LOOP_DETECTED = "loop_detected"
    STALLED = "stalled"
    CAPABILITY_MISMATCH = "capability_mismatch"
    CONTEXT_WARNING = "context_warning"
    # crew: trouble between agents
    WORKER_DEAD = "worker_dead"
    WORKER_HUNG = "worker_hung"
    CLAIM_BLOCKED = "claim_blocked"
    SCOPE_CONFLICT = "scope_conflict"
    STRATEGIC_AMBIGUITY = "strategic_ambiguity"
    BEYOND_AUTHORITY = "beyond_authority"
    REVIEW_EXHAUSTED = "review_exhausted"
    # other
    SERVICE_DOWN = "service_down"
    HOOK_CRASH = "hook_crash"
    UNKNOWN = "unknown"


def _kinds(names: str) -> tuple[Kind, ...]:
    return tuple(map(Kind, names.split()))


GROUPS: Final[Mapping[str, tuple[Kind, ...]]] = MappingProxyType(
    {
        "transient": _kinds("rate_limit overloaded server_error timeout network stream_interrupted"),
        "limits": _kinds(
            "context_limit output_limit quota_exhausted resource_exhausted turns_exhausted budget_exhausted"
        ),
        "request": _kinds(
            "invalid_request auth_error missing_credentials model_unavailable not_found "
            "permission_denied configuration content_filter refusal"
        ),
        "result": _kinds(
            "malformed_output partial_output gave_up low_quality goal_misaligned unverified test_failure tool_error"
        ),
        "behaviour": _kinds("loop_detected stalled capability_mismatch context_warning"),
        "crew": _kinds(
            "worker_dead worker_hung claim_blocked scope_conflict strategic_ambiguity beyond_authority review_exhausted"
        ),
        "other": _kinds("service_down hook_crash unknown"),
    }
)

TRANSIENT: Final = frozenset(GROUPS["transient"])

# Trouble of the service itself: when it cannot be waited out it is "service down", and only another
# model or provider can help.
PROVIDER_KINDS: Final = frozenset({Kind.RATE_LIMIT, Kind.OVERLOADED, Kind.SERVER_ERROR, Kind.NETWORK, Kind.TIMEOUT})

# Not the work's fault: whoever takes over is given the same request, without a word about it.
INFRASTRUCTURE_KINDS: Final = PROVIDER_KINDS | {
    Kind.SERVICE_DOWN,
    Kind.MODEL_UNAVAILABLE,
    Kind.QUOTA_EXHAUSTED,
    Kind.STREAM_INTERRUPTED,
}


def is_resumable(failure: Failure) -> bool:
    """Did the service fail in the midst of a stream? Then whoever takes over goes on with it, and repeats nothing."""
    evidence = failure.evidence
    streamed = evidence.phase is Phase.STREAM and evidence.output_started
    return failure.kind in INFRASTRUCTURE_KINDS and streamed and not evidence.side_effects


# Repeating these unchanged is useless at best: somebody must change something first.
NEVER_RETRYABLE: Final = frozenset(
    {
        Kind.AUTH_ERROR,
        Kind.MISSING_CREDENTIALS,
        Kind.QUOTA_EXHAUSTED,
        Kind.BUDGET_EXHAUSTED,
        Kind.INVALID_REQUEST,
        Kind.CONTENT_FILTER,
        Kind.REFUSAL,
    }
)

NO_HEADERS: Final[Mapping[str, str]] = FrozenEmptyDict()


class Phase(StrEnum):
    """Where in an attempt the trouble came up."""

    CALL = "call"  # talking to a model, a service or the system
    STREAM = "stream"  # while an answer was arriving
    TOOL = "tool"  # in a tool the agent ran
    RESULT = "result"  # an answer came and was judged
    LIMIT = "limit"  # we ended the attempt: its time was up


class Evidence(NamedTuple):
    """Neutral facts about something that went wrong; every field may be left out.

    `code` holds the provider's own type, code or stop reason; several are separated by spaces.
    `finding` is the kind, where whoever noticed (a detector, a judge, the attempt itself) already
    knows it. `output` is what had been produced; `output_started` and `side_effects` say that a
    replay would be visible. `spent` says that an inner ladder already recovered in vain. `tool` is the
    name of the tool that failed.
    """

    text: str = ""
    status: int | None = None
    code: str = ""
    provider: str = ""
    headers: Mapping[str, str] = NO_HEADERS
    exceptions: tuple[str, ...] = ()
    errno: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    phase: Phase = Phase.CALL
    retry_after: float | None = None
    output: str = ""
    output_started: bool = False
    side_effects: bool = False
    finding: Kind | None = None
    repeats: int = 0
    missing: tuple[str, ...] = ()
    stack: str = ""
    spent: bool = False
    tool: str = ""


class Failure(NamedTuple):
    """What we say the evidence is. `retryable`: the same request may succeed later, unchanged."""

    kind: Kind
    retryable: bool
    rule: str
    message: str = ""
    retry_after: float | None = None
    evidence: Evidence = Evidence()

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits that are equal for the same trouble seen again; made when asked for."""
        return fingerprint(self.kind, self.evidence)

    def headline(self, length: int = 200) -> str:
        """The kind and the first line of the message; the kind alone where there is no message."""
        line = first_line(self.message, length)
        return f"{self.kind}: {line}" if line else self.kind.value

    @property
    def tokens(self) -> TokenCounts | None:
        """How much fits and how much was asked for, where a context limit says both."""
        if self.kind is not Kind.CONTEXT_LIMIT:
            return None
        from rung.core.domain.token_counts import tokens_in

        return tokens_in(self.message)


def first_line(text: str, length: int = 160) -> str:
    """The first line of a text that is not blank, shortened to a length."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= length else line[: length - 1] + "…"


MASKS: Final = (
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+-]+){2,}[\\/]?"), "<path>"),  # first: with all the ids and dates in it
    (re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"\b[a-z]{2,12}[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b", re.IGNORECASE), "<id>"),
    (
        re.compile(
            r"\b\d+(?:\.\d+)?e[+-]\d+\b|\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b",
            re.IGNORECASE,
        ),
        "<n>",
    ),
    # Times of day, and a line with its column, are numbers like any other: 9:15 and 120:5 must look alike.
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)
# Where a mask can find anything at all, by what is quickly seen: most texts have neither paths nor dashes in them.
_PATH, _UUID, _TIME, _ID, _HEX, _NUMBER = MASKS
_DIGIT: Final = re.compile(r"\d")
# Looked for around digits, of which prose has few: an x after one, an exponent before, seven hex digits with it.
_HEXED: Final = re.compile(
    r"\d(?:[xX]|(?<=[eE][+-]\d)|"
    + "|".join(rf"(?<=[0-9a-fA-F]{{{before}}}\d)(?=[0-9a-fA-F]{{{6 - before}}})" for before in range(7))
    + ")"
)
_KEPT: Final = 400


def masked(text: str) -> str:
    """The start of a text with numbers, ids, paths and times masked: what stays when an error comes again.

    Cut after it was masked, or a longer number at the start would move the end.
    """
    text = text.lstrip()
    looked_at = 2 * _KEPT
    while True:
        part = text[:looked_at]
        if len(text) > looked_at:
            part = part.rsplit(None, 1)[0]  # whole words: half an id is not seen to be one
        for pattern, name in _masks_for(part):
            part = pattern.sub(name, part)
        part = " ".join(part.split()).lower()
        if len(part) >= _KEPT or len(text) <= looked_at:
            return part[:_KEPT]
        looked_at *= 2


def _masks_for(text: str) -> Iterator[tuple[re.Pattern[str], str]]:
    if "/" in text or "\\" in text:
        yield _PATH
    dashed = "-" in text
    if dashed:
        yield _UUID
    if _DIGIT.search(text) is None:
        return
    if dashed:
        yield _TIME
    if dashed or "_" in text:
        yield _ID
    if _HEXED.search(text) is not None:
        yield _HEX
    yield _NUMBER


def short_hash(text: str, size: int) -> str:
    """Hex digits for a text: equal for equal texts, on every machine."""
    from hashlib import blake2b  # loads OpenSSL, which a command that hashes nothing should not wait for

    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def fingerprint(kind: Kind, evidence: Evidence) -> str:
    """Twelve hex digits that are equal for the same trouble seen again."""
    exception = evidence.exceptions[0] if evidence.exceptions else ""
    text = evidence.text
    mask = _masked if len(text) <= _KEPT * 2 else masked
    parts = (kind.value, str(evidence.status), evidence.code, exception, mask(text))
    return short_hash("\x1f".join(parts), 6)


_masked: Final = lru_cache(maxsize=512)(masked)  # the same trouble says the same, again and again
