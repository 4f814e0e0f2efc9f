"""Naming a failure: one ordered table of rules over evidence, first match wins."""

from __future__ import annotations

import errno as codes
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.evidence import evidence_of
from rung.core.failures import TRANSIENT, Evidence, Failure, Kind, Phase

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way of recognising a kind: its id, why it holds, and an example that matches it."""

    id: str
    kind: Kind
    why: str
    example: Evidence
    when: Callable[[Evidence], bool]
    retryable: bool = False


def classify(trouble: object) -> Failure:
    """Name what went wrong, from an exception, a response-like mapping, a text or evidence."""
    if type(trouble) is not Evidence:
        if isinstance(trouble, Failure):
            return trouble
        trouble = evidence_of(trouble)
    if trouble.finding is not None:
        return _said(trouble, trouble.finding)
    for rule in RULES:
        if rule.when(trouble):
            return _failure(trouble, rule.kind, rule.id, retryable=rule.retryable)
    return _failure(trouble, Kind.UNKNOWN, "unknown", retryable=False)


def is_retryable(trouble: object) -> bool:
    """May the same call be made again, unchanged? Fits tenacity's and LangGraph's predicates."""
    return classify(trouble).retryable


# Where whoever noticed it has named it: a blip, a sample that did not parse, a tool that may work now.
_WORTH_REPEATING: Final = TRANSIENT | {Kind.MALFORMED_OUTPUT, Kind.TOOL_ERROR}


def _said(evidence: Evidence, kind: Kind) -> Failure:
    return _failure(evidence, kind, "finding", retryable=kind in _WORTH_REPEATING)


def _failure(evidence: Evidence, kind: Kind, rule: str, *, retryable: bool) -> Failure:
    return Failure(
        kind=kind,
        # What an inner ladder has already repeated in vain is not repeated again further out.
        retryable=retryable and not evidence.spent,
        rule=rule,
        message=evidence.text,
        retry_after=evidence.retry_after,
        evidence=evidence,
    )


def _status(*wanted: int) -> Callable[[Evidence], bool]:
    return lambda evidence: evidence.status in wanted


def _raised(*wanted: str) -> Callable[[Evidence], bool]:
    names = frozenset(wanted)
    return lambda evidence: not names.isdisjoint(evidence.exceptions)


def _exit(*wanted: int) -> Callable[[Evidence], bool]:
    return lambda evidence: evidence.exit_code in wanted


def _says(pattern: str) -> Callable[[Evidence], bool]:
    search = re.compile(pattern, re.IGNORECASE).search
    return lambda evidence: search(evidence.text) is not None


def _status_says(statuses: tuple[int, ...], pattern: str) -> Callable[[Evidence], bool]:
    says = _says(pattern)
    return lambda evidence: evidence.status in statuses and says(evidence)


_CONTEXT_WORDS = (
    r"prompt is too long|maximum context length|context[_ ]length[_ ]exceeded|context window|"
    r"exceeds? (?:the )?context limit|too many (?:input )?tokens|input is too long"
)
# Not "billing" alone: a plain rate limit's text may end with the address where one can pay for more.
_QUOTA_WORDS = (
    r"insufficient_quota|exceeded your current quota|credit balance is too low|spend(?:ing)? limit|"
    r"billing[_ ](?:hard[_ ])?limit|billing[_ ]not[_ ]active|plan and billing"
)

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="attempt-time-up",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="We ended the attempt ourselves, because its time was up.",
        example=Evidence(text="attempt ended after 30 s", phase=Phase.LIMIT),
        when=lambda evidence: evidence.phase is Phase.LIMIT,
    ),
    Rule(
        id="context-words",
        kind=Kind.CONTEXT_LIMIT,
        why="The provider says the input does not fit; the same input never will.",
        example=Evidence(status=400, text="prompt is too long: 210000 tokens > 200000 maximum"),
        when=_status_says((400, 413, 422, 500), _CONTEXT_WORDS),
    ),
    Rule(
        id="quota-words",
        kind=Kind.QUOTA_EXHAUSTED,
        why="Money or plan is used up; waiting a little does not bring it back.",
        example=Evidence(status=429, text="You exceeded your current quota", code="insufficient_quota"),
        when=_status_says((400, 402, 403, 429), _QUOTA_WORDS),
    ),
    Rule(
        id="http-402",
        kind=Kind.QUOTA_EXHAUSTED,
        why="402 Payment Required.",
        example=Evidence(status=402, text="Payment Required"),
        when=_status(402),
    ),
    Rule(
        id="no-key",
        kind=Kind.MISSING_CREDENTIALS,
        why="There is no key at all: a person has to give one.",
        example=Evidence(text="No API key provided. Set ANTHROPIC_API_KEY"),
        when=_says(
            r"no api[ _]key (?:was )?(?:provided|found|set)|missing (?:api[ _]key|credentials)|"
            r"could not resolve authentication|api[_ ]key must be set|credentials not found|no credentials"
        ),
    ),
    Rule(
        id="http-401",
        kind=Kind.AUTH_ERROR,
        why="The provider refuses this key; it will refuse it again.",
        example=Evidence(status=401, text="invalid x-api-key"),
        when=_status(401),
    ),
    Rule(
        id="http-403",
        kind=Kind.PERMISSION_DENIED,
        why="Known, and not allowed.",
        example=Evidence(status=403, text="Forbidden"),
        when=_status(403),
    ),
    Rule(
        id="model-words",
        kind=Kind.MODEL_UNAVAILABLE,
        why="This model does not exist for us; another one may.",
        example=Evidence(status=404, text="model: claude-0 not found", code="not_found_error"),
        when=_status_says((400, 404), r"\bmodel\b.{0,80}(?:not found|does not exist|not available|unknown|retired)"),
    ),
    Rule(
        id="http-404",
        kind=Kind.NOT_FOUND,
        why="What was asked for is not there.",
        example=Evidence(status=404, text="Not Found"),
        when=_status(404),
    ),
    Rule(
        id="http-429",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="Too many requests in a short time: wait as told, then repeat.",
        example=Evidence(status=429, text="Too Many Requests"),
        when=_status(429),
    ),
    Rule(
        id="overloaded",
        kind=Kind.OVERLOADED,
        retryable=True,
        why="The service is there and has no room right now.",
        example=Evidence(status=529, text="Overloaded", code="overloaded_error"),
        when=lambda evidence: evidence.status in (503, 529) or evidence.code == "overloaded_error",
    ),
    Rule(
        id="http-timeout",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="Somebody on the way waited long enough.",
        example=Evidence(status=504, text="Gateway Timeout"),
        when=_status(408, 504),
    ),
    Rule(
        id="http-5xx",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="The other side broke; mostly it is a blip.",
        example=Evidence(status=500, text="Internal Server Error"),
        when=lambda evidence: evidence.status is not None and evidence.status >= 500,
    ),
    Rule(
        id="http-4xx",
        kind=Kind.INVALID_REQUEST,
        why="The request itself is wrong; repeating it does not mend it.",
        example=Evidence(status=400, text="max_tokens: must be positive"),
        when=lambda evidence: evidence.status is not None and evidence.status >= 400,
    ),
    Rule(
        id="timed-out",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="A call ran into its time limit.",
        example=Evidence(exceptions=("TimeoutError", "OSError"), text="timed out"),
        when=_raised("TimeoutError", "subprocess.TimeoutExpired"),
    ),
    Rule(
        id="no-route",
        kind=Kind.NETWORK,
        retryable=True,
        why="The connection could not be made or was lost.",
        example=Evidence(exceptions=("ConnectionResetError", "ConnectionError", "OSError"), text="reset by peer"),
        when=_raised("ConnectionError", "socket.gaierror", "ssl.SSLError", "http.client.RemoteDisconnected"),
    ),
    Rule(
        id="no-space",
        kind=Kind.RESOURCE_EXHAUSTED,
        why="Disk, memory or file handles are used up on this machine.",
        example=Evidence(exceptions=("OSError",), errno=codes.ENOSPC, text="No space left on device"),
        when=lambda evidence: (
            evidence.errno in (codes.ENOSPC, codes.ENOMEM, codes.EMFILE, codes.ENFILE, codes.EDQUOT)
            or evidence.exit_code == 137
            or "MemoryError" in evidence.exceptions
        ),
    ),
    Rule(
        id="enoent",
        kind=Kind.NOT_FOUND,
        why="A path or command that is not there; another one may be.",
        example=Evidence(exceptions=("FileNotFoundError", "OSError"), errno=codes.ENOENT, text="No such file"),
        when=lambda evidence: (
            evidence.errno == codes.ENOENT
            or evidence.exit_code == 127
            or not {"FileNotFoundError", "ModuleNotFoundError"}.isdisjoint(evidence.exceptions)
        ),
    ),
    Rule(
        id="eacces",
        kind=Kind.PERMISSION_DENIED,
        why="The system does not let us; another place or right may.",
        example=Evidence(exceptions=("PermissionError", "OSError"), errno=codes.EACCES, text="Permission denied"),
        when=lambda evidence: (
            evidence.errno in (codes.EACCES, codes.EPERM)
            or evidence.exit_code == 126
            or "PermissionError" in evidence.exceptions
        ),
    ),
    Rule(
        id="not-json",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="Output that does not parse; a new sample may.",
        example=Evidence(exceptions=("json.decoder.JSONDecodeError", "ValueError"), text="Expecting value"),
        when=_raised("json.decoder.JSONDecodeError"),
    ),
    Rule(
        id="tool-time-up",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="A command ended by timeout(1).",
        example=Evidence(exit_code=124, text="", phase=Phase.TOOL),
        when=_exit(124),
    ),
    Rule(
        id="output-cut",
        kind=Kind.OUTPUT_LIMIT,
        why="The answer was cut at its length limit; the same limit cuts it again.",
        example=Evidence(code="max_tokens", phase=Phase.RESULT),
        when=lambda evidence: evidence.code in ("max_tokens", "length", "MAX_TOKENS", "max_output_tokens"),
    ),
    Rule(
        id="rate-words",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="The error's own words, where there is no status: at its start, never in quoted text.",
        example=Evidence(text="Error: 429 Too Many Requests"),
        when=_says(r"\A\W*(?:(?:api )?error:?\s*)?(?:429\b|rate[ _]limit|too many requests)"),
    ),
    Rule(
        id="overloaded-words",
        kind=Kind.OVERLOADED,
        retryable=True,
        why="The error's own words, where there is no status.",
        example=Evidence(text="API Error: 529 Overloaded"),
        when=_says(r"\A\W*(?:(?:api )?error:?\s*)?(?:529\b|503\b|overloaded)"),
    ),
    Rule(
        id="context-words-plain",
        kind=Kind.CONTEXT_LIMIT,
        why="A context overflow in an error that carries no status.",
        example=Evidence(text="Error: prompt is too long: 210000 tokens > 200000 maximum"),
        when=_says(r"\A.{0,60}(?:prompt is too long|maximum context length|context_length_exceeded)"),
    ),
    Rule(
        id="network-words",
        kind=Kind.NETWORK,
        retryable=True,
        why="The system's own words for a lost connection.",
        example=Evidence(text="curl: (7) Failed to connect: Connection refused"),
        when=_says(r"connection (?:refused|reset|aborted|timed out)|could not resolve host|ECONNRE|ENOTFOUND"),
    ),
    Rule(
        id="missing-words",
        kind=Kind.NOT_FOUND,
        why="The system's own words for something that is not there.",
        example=Evidence(text="cat: notes.txt: No such file or directory", exit_code=1),
        when=_says(r"no such file or directory|command not found|no module named|ENOENT"),
    ),
    Rule(
        id="denied-words",
        kind=Kind.PERMISSION_DENIED,
        why="The system's own words for something we may not do.",
        example=Evidence(text="sh: ./deploy: Permission denied", exit_code=1),
        when=_says(r"permission denied|operation not permitted|EACCES|EPERM"),
    ),
)
