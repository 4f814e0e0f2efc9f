"""Who is scored: rung, and the table of status and exit codes that engineers write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from bench.corpus.rows import FORMS
from rung.core.domain.failures import Failure, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a classifier says.

    Several kinds where its own name for the trouble covers several of ours: the best of them is counted,
    for every peer alike. rung always says one.
    """

    kinds: tuple[Kind, ...]
    retryable: bool
    retry_after: float | None = None
    rule: str = ""


class Classifier(Protocol):
    """One that is scored. Only `judge` is timed: what is before and after belongs to the benchmark."""

    name: str
    forms: tuple[str, ...]

    def prepare(self, seen: dict[str, Any], /) -> Any:
        """Make what it would have been handed."""
        ...

    def judge(self, trouble: Any, /) -> Any:
        """Let it decide."""
        ...

    def answer(self, verdict: Any, /) -> Answer:
        """Put what it decided into our words."""
        ...


class Rung:
    """The subject: `rung.classify`."""

    name = "rung"
    forms: tuple[str, ...] = FORMS

    def __init__(self) -> None:
        from rung.core.classify.classifier import classify

        self.judge = classify

    def prepare(self, seen: dict[str, Any]) -> dict[str, Any]:
        return seen

    def answer(self, verdict: Failure) -> Answer:
        return Answer(
            kinds=(verdict.kind,), retryable=verdict.retryable, retry_after=verdict.retry_after, rule=verdict.rule
        )


def _may_pass(*kinds: Kind) -> Answer:
    return Answer(kinds=kinds, retryable=True)


def _stays(*kinds: Kind) -> Answer:
    return Answer(kinds=kinds, retryable=False)


STATUSES: Final[Mapping[int, Answer]] = {
    400: _stays(Kind.INVALID_REQUEST, Kind.CONFIGURATION),
    401: _stays(Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS),
    402: _stays(Kind.QUOTA_EXHAUSTED),
    403: _stays(Kind.PERMISSION_DENIED, Kind.AUTH_ERROR),
    404: _stays(Kind.NOT_FOUND, Kind.MODEL_UNAVAILABLE),
    408: _may_pass(Kind.TIMEOUT),
    409: _may_pass(Kind.INVALID_REQUEST),  # a conflict: the SDKs repeat it
    410: _stays(Kind.NOT_FOUND, Kind.MODEL_UNAVAILABLE),
    413: _stays(Kind.CONTEXT_LIMIT),
    422: _stays(Kind.INVALID_REQUEST, Kind.CONFIGURATION),
    429: _may_pass(Kind.RATE_LIMIT),
    500: _may_pass(Kind.SERVER_ERROR),
    502: _may_pass(Kind.SERVER_ERROR),
    503: _may_pass(Kind.OVERLOADED, Kind.SERVICE_DOWN),
    504: _may_pass(Kind.TIMEOUT),
    521: _may_pass(Kind.SERVICE_DOWN, Kind.SERVER_ERROR),  # Cloudflare: the web server is down
    522: _may_pass(Kind.TIMEOUT),
    524: _may_pass(Kind.TIMEOUT),
    529: _may_pass(Kind.OVERLOADED),
}
EXITS: Final[Mapping[int, Answer]] = {
    124: _may_pass(Kind.TIMEOUT),
    126: _stays(Kind.PERMISSION_DENIED),
    127: _stays(Kind.NOT_FOUND),
    137: _stays(Kind.RESOURCE_EXHAUSTED),
    -9: _stays(Kind.RESOURCE_EXHAUSTED),  # 137, as Python says it
}
_OTHER_CLIENT_ERROR: Final = _stays(Kind.INVALID_REQUEST, Kind.CONFIGURATION)
_OTHER_SERVER_ERROR: Final = _may_pass(Kind.SERVER_ERROR)
_FAILED_COMMAND: Final = _stays(Kind.TOOL_ERROR)
_NOTHING_KNOWN: Final = _stays(Kind.UNKNOWN)


def by_status(status: int) -> Answer:
    """What a status alone says."""
    found = STATUSES.get(status)
    if found is not None:
        return found
    if 400 <= status < 500:
        return _OTHER_CLIENT_ERROR
    return _OTHER_SERVER_ERROR if status >= 500 else _NOTHING_KNOWN


class StatusTable:
    """A table of codes, and the Retry-After header: no look at the text."""

    name = "status table"
    forms: tuple[str, ...] = FORMS

    def prepare(self, seen: dict[str, Any]) -> dict[str, Any]:
        return seen

    def judge(self, seen: dict[str, Any]) -> Answer:
        found = self._by_code(seen)
        wait = self._wait(seen.get("headers") or {})
        return found if wait is None else Answer(kinds=found.kinds, retryable=found.retryable, retry_after=wait)

    def answer(self, verdict: Answer) -> Answer:
        return verdict

    @staticmethod
    def _by_code(seen: dict[str, Any]) -> Answer:
        status = seen.get("status")
        if status is not None:
            return by_status(status)
        code = seen.get("exit_code")
        if not code:
            return _NOTHING_KNOWN
        return EXITS.get(code, _FAILED_COMMAND)

    @staticmethod
    def _wait(headers: dict[str, Any]) -> float | None:
        for name, value in headers.items():
            if name.lower() == "retry-after":
                try:
                    return float(value)
                except ValueError:  # a date
                    return None
        return None
