"""Failures: kinds, the evidence of an error (neutral facts), and its classification; also fingerprints."""

from __future__ import annotations

from enum import StrEnum
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from rung.core.domain.frozen_dict import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.token_counts import TokenCounts


_Choice = TypeVar("_Choice", bound=StrEnum)


class Kind(StrEnum):
    """Kind of a failure: a closed set."""

    # transient: the same call may succeed in a moment
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    NETWORK = "network"
    STREAM_INTERRUPTED = "stream_interrupted"
    # limits: a limit or quota is exhausted
    CONTEXT_LIMIT = "context_limit"
    OUTPUT_LIMIT = "output_limit"
    QUOTA_EXHAUSTED = "quota_exhausted"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    TURNS_EXHAUSTED = "turns_exhausted"
    BUDGET_EXHAUSTED = "budget_exhausted"
    # request: the request cannot be served as it is
    INVALID_REQUEST = "invalid_request"
    AUTH_ERROR = "auth_error"
    MISSING_CREDENTIALS = "missing_credentials"
    MODEL_UNAVAILABLE = "model_unavailable"
    NOT_FOUND = "not_found"
    PERMISSION_DENIED = "permission_denied"
    CONFIGURATION = "configuration"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    # result: there is an answer, but it is not good enough
    MALFORMED_OUTPUT = "malformed_output"
    PARTIAL_OUTPUT = "partial_output"
    GAVE_UP = "gave_up"
    LOW_QUALITY = "low_quality"
    GOAL_MISALIGNED = "goal_misaligned"
    UNVERIFIED = "unverified"
    TEST_FAILURE = "test_failure"
    TOOL_ERROR = "tool_error"
    ARCHITECTURAL_BLOCKER = "architectural_blocker"
    # behaviour: no error was raised, but the agent makes no progress
    LOOP_DETECTED = "loop_detected"
    STALLED = "stalled"
    CAPABILITY_MISMATCH = "capability_mismatch"
    CONTEXT_WARNING = "context_warning"
    # crew: problems between cooperating agents
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
            "malformed_output partial_output gave_up low_quality goal_misaligned unverified test_failure tool_error "
            "architectural_blocker"
        ),
        "behaviour": _kinds("loop_detected stalled capability_mismatch context_warning"),
        "crew": _kinds(
            "worker_dead worker_hung claim_blocked scope_conflict strategic_ambiguity beyond_authority review_exhausted"
        ),
        "other": _kinds("service_down hook_crash unknown"),
    }
)

TRANSIENT: Final = frozenset(GROUPS["transient"])

# Failures of the provider: when retries do not fix them they count as `service_down`, and only another model or
# provider can help.
PROVIDER_KINDS: Final = frozenset({Kind.RATE_LIMIT, Kind.OVERLOADED, Kind.SERVER_ERROR, Kind.NETWORK, Kind.TIMEOUT})

# Code of the evidence of an attempt that an open circuit rejected.
CIRCUIT_OPEN: Final = "circuit_open"

# Failures that pass by themselves while nothing changes but the time.
PASSING_KINDS: Final = PROVIDER_KINDS | {Kind.SERVICE_DOWN, Kind.STREAM_INTERRUPTED}

# Failures by a limit or a load that may name the time at which it reopens.
LIMIT_KINDS: Final = frozenset(
    {Kind.RATE_LIMIT, Kind.QUOTA_EXHAUSTED, Kind.OVERLOADED, Kind.SERVER_ERROR, Kind.SERVICE_DOWN}
)

# Failures that the work did not cause: a handover sends the unchanged request, without a text about the failure.
INFRASTRUCTURE_KINDS: Final = PROVIDER_KINDS | {
    Kind.SERVICE_DOWN,
    Kind.MODEL_UNAVAILABLE,
    Kind.QUOTA_EXHAUSTED,
    Kind.STREAM_INTERRUPTED,
}


def is_limit(failure: Failure) -> bool:
    """Whether a provider's limit or load caused the failure: not the work, and not a limit of Rung itself."""
    return failure.kind in LIMIT_KINDS and failure.evidence.phase not in (Phase.LIMIT, Phase.TOOL)


def is_resumable(failure: Failure) -> bool:
    """Whether the provider failed in the middle of a stream, so that another model can resume the answer."""
    evidence = failure.evidence
    streamed = evidence.phase is Phase.STREAM and evidence.output_started
    return failure.kind in INFRASTRUCTURE_KINDS and streamed and not evidence.side_effects


def is_passing(failure: Failure) -> bool:
    """Whether the failure is one of a service that comes back: not of the work, and not a limit of Rung itself."""
    return failure.kind in PASSING_KINDS and failure.evidence.phase not in (Phase.LIMIT, Phase.TOOL)


# Failures that a model, provider or agent has for a reason of its own: its name, key, account or settings.
_TARGET_KINDS: Final = frozenset(
    {
        Kind.MODEL_UNAVAILABLE,
        Kind.AUTH_ERROR,
        Kind.MISSING_CREDENTIALS,
        Kind.QUOTA_EXHAUSTED,
        Kind.PERMISSION_DENIED,
        Kind.INVALID_REQUEST,
        Kind.NOT_FOUND,
        Kind.CONFIGURATION,
    }
)


def rejects_target(failure: Failure) -> bool:
    """Whether the model or agent that the work was handed over to cannot serve it: not a limit that reopens, nor the work."""
    reopens = is_limit(failure) and failure.retry_after is not None
    return failure.kind in _TARGET_KINDS and failure.evidence.phase in (Phase.CALL, Phase.STREAM) and not reopens


# Retrying these unchanged cannot succeed: the request, the account or the settings must change first.
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

PROCESS_DEATH_RULE: Final = "cut-off"  # of an attempt whose process died: it says nothing about the request
NO_HEADERS: Final[Mapping[str, str]] = FrozenDict()


class Phase(StrEnum):
    """Phase of an attempt in which it failed."""

    CALL = "call"  # during a call to a model, a service or the system
    STREAM = "stream"  # while an answer was arriving
    TOOL = "tool"  # in a tool that the agent ran
    RESULT = "result"  # a complete answer was checked and rejected
    LIMIT = "limit"  # Rung interrupted the attempt at its time limit


class Evidence(NamedTuple):
    """Neutral facts about an error. Every field is optional.

    Attributes:
        text: Message. Default: empty.
        status: HTTP status.
        code: The provider's own error type, code or stop reason; several are separated by spaces.
        provider: Name of the provider.
        headers: Response headers, by lower-case name.
        exceptions: Names of the exception's classes, the outermost first.
        errno: Error number of the operating system.
        exit_code: Exit code of a command.
        signal: Signal that ended a command.
        phase: When it happened: call, stream, tool, result or limit. Default: call.
        retry_after: Seconds to wait, as the server says.
        output: Output produced before the failure.
        output_started: Whether output has reached somebody, so that a replay would be visible.
        side_effects: Whether the attempt had side effects, so that a replay would be visible.
        finding: The kind or its name, if the source of the evidence (a detector, a judge, the attempt) already knows it.
        repeats: How often a loop has repeated.
        missing: Parts that the result lacks.
        stack: Stack of the exception.
        spent: Whether an inner ladder already tried to recover and failed.
        tool: Name of the tool that failed.
        step: Name of the step of the work that failed.
        final: Whether nothing may be tried again: a guard refused the attempt, or a check could not run.
        silence: Seconds without content before the failure of a streamed call.
        progress: Whether the attempt added to the streamed answer; None if that is not known.
        key: Name of the key that the attempt was made with.
        spare_keys: Number of other keys of the same upstream that are usable now and untried.
        line: Number of the line of the text that says what failed, from 1. Default: 0, the first line that is not blank.
        prompt_unread: Whether the attempt read nothing of its prompt: it would not read another one either.

    Example:
        >>> import rung
        >>> rung.classify(rung.Evidence(status=503, text="try later")).kind.value
        'overloaded'
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
    step: str = ""
    final: bool = False
    silence: float = 0.0
    progress: bool | None = None
    key: str = ""
    spare_keys: int = 0
    line: int = 0
    prompt_unread: bool = False


_new_evidence: Final = Evidence.__new__


@wraps(_new_evidence)
def _new_checked_evidence(cls: type[Evidence], /, *values: Any, **fields: Any) -> Evidence:
    """Make evidence from a caller that may not be type-checked: names become choices, and a wrong name is an error here."""
    made = _new_evidence(cls, *values, **fields)
    if made.finding is not None and type(made.finding) is not Kind:
        made = made._replace(finding=_choice(Kind, "finding", made.finding))
    return made if type(made.phase) is Phase else made._replace(phase=_choice(Phase, "phase", made.phase))


def _choice(choices: type[_Choice], key: str, value: str) -> _Choice:
    try:
        return choices(value)
    except ValueError:
        from rung.core.domain.errors import ConfigError

        raise ConfigError(key, value, "one of " + ", ".join(choices)) from None


Evidence.__new__ = _new_checked_evidence  # type: ignore[method-assign, assignment]  # a NamedTuple's body may not define it


class Failure(NamedTuple):
    """A classified error: what `rung.classify` returns.

    Attributes:
        kind: Kind of the failure.
        retryable: Whether the unchanged request may succeed later.
        rule: Id of the rule that matched.
        message: Text of the error, without secrets.
        retry_after: Seconds to wait; None if nobody said.
        evidence: The facts.
    """

    kind: Kind
    retryable: bool
    rule: str
    message: str = ""
    retry_after: float | None = None
    evidence: Evidence = Evidence()

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits, equal for recurrences of the same error; computed on each access."""
        return fingerprint(self.kind, self.evidence)

    def headline(self, length: int = 200) -> str:
        """Return the kind and the line of the message that says what failed; the kind alone if there is no message.

        Args:
            length: Most characters of the message. Default: 200.
        """
        line = error_line(self, length)
        return f"{self.kind}: {line}" if line else self.kind.value

    @property
    def tokens(self) -> TokenCounts | None:
        """Token limit and requested tokens, if a context limit error states both."""
        if self.kind is not Kind.CONTEXT_LIMIT:
            return None
        from rung.core.domain.token_counts import parse_token_counts

        return parse_token_counts(self.message)


def first_line(text: str, length: int = 160) -> str:
    """Return the first line that is not blank, shortened to a length."""
    return _shortened(next((line.strip() for line in text.splitlines() if line.strip()), ""), length)


def error_line(failure: Failure, length: int = 160) -> str:
    """Return the line of the error that says what failed, by its evidence; else the first line of the message."""
    number = failure.evidence.line
    lines = failure.evidence.text.splitlines() if number > 0 else []
    named = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return _shortened(named, length) if named else first_line(failure.message, length)


def _shortened(line: str, length: int) -> str:
    return line if len(line) <= length else line[: length - 1] + "…"


def short_hash(text: str, size: int) -> str:
    """Return a hash of the text as hex digits, stable across machines; `size` is in bytes."""
    from hashlib import blake2b  # loads OpenSSL: imported late, as many commands hash nothing

    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def fingerprint(kind: Kind, evidence: Evidence) -> str:
    """Return twelve hex digits, equal for recurrences of the same error."""
    from rung.core.domain.masks import cached_mask  # lazy: a successful call compiles no pattern

    exception = evidence.exceptions[0] if evidence.exceptions else ""
    parts = (kind.value, str(evidence.status), evidence.code, exception, cached_mask(evidence.text))
    return short_hash("\x1f".join(parts), 6)
