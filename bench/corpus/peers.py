"""Classifiers to score: rung, and a typical table of status and exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from bench.corpus.rows import FORMS
from rung.core.domain.failures import Failure, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer of a classifier.

    It has several kinds if the classifier's own category covers several of ours; the best one counts. rung always
    answers with one.
    """

    kinds: tuple[Kind, ...]
    retryable: bool
    retry_after: float | None = None
    rule: str = ""


class Classifier(Protocol):
    """A classifier to score. Only `judge` is timed; `prepare` and `answer` belong to the benchmark."""

    name: str
    forms: tuple[str, ...]

    def prepare(self, seen: dict[str, Any], /) -> Any:
        """Build the input of the classifier."""
        ...

    def judge(self, prepared: Any, /) -> Any:
        """Classify the input."""
        ...

    def answer(self, verdict: Any, /) -> Answer:
        """Convert the result to kinds."""
        ...


class RungClassifier:
    """Classifier under test: `rung.classify`."""

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


def _retryable(*kinds: Kind) -> Answer:
    return Answer(kinds=kinds, retryable=True)


def _permanent(*kinds: Kind) -> Answer:
    return Answer(kinds=kinds, retryable=False)


STATUSES: Final[Mapping[int, Answer]] = {
    400: _permanent(Kind.INVALID_REQUEST, Kind.CONFIGURATION),
    401: _permanent(Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS),
    402: _permanent(Kind.QUOTA_EXHAUSTED),
    403: _permanent(Kind.PERMISSION_DENIED, Kind.AUTH_ERROR),
    404: _permanent(Kind.NOT_FOUND, Kind.MODEL_UNAVAILABLE),
    408: _retryable(Kind.TIMEOUT),
    409: _retryable(Kind.INVALID_REQUEST),  # a conflict: the SDKs retry it
    410: _permanent(Kind.NOT_FOUND, Kind.MODEL_UNAVAILABLE),
    413: _permanent(Kind.CONTEXT_LIMIT),
    422: _permanent(Kind.INVALID_REQUEST, Kind.CONFIGURATION),
    429: _retryable(Kind.RATE_LIMIT),
    500: _retryable(Kind.SERVER_ERROR),
    502: _retryable(Kind.SERVER_ERROR),
    503: _retryable(Kind.OVERLOADED, Kind.SERVICE_DOWN),
    504: _retryable(Kind.TIMEOUT),
    521: _retryable(Kind.SERVICE_DOWN, Kind.SERVER_ERROR),  # Cloudflare: the web server is down
    522: _retryable(Kind.TIMEOUT),
    524: _retryable(Kind.TIMEOUT),
    529: _retryable(Kind.OVERLOADED),
}
EXITS: Final[Mapping[int, Answer]] = {
    124: _retryable(Kind.TIMEOUT),
    126: _permanent(Kind.PERMISSION_DENIED),
    127: _permanent(Kind.NOT_FOUND),
    137: _permanent(Kind.RESOURCE_EXHAUSTED),
    -9: _permanent(Kind.RESOURCE_EXHAUSTED),  # 137 as Python reports it
}
_OTHER_CLIENT_ERROR: Final = _permanent(Kind.INVALID_REQUEST, Kind.CONFIGURATION)
_OTHER_SERVER_ERROR: Final = _retryable(Kind.SERVER_ERROR)
_FAILED_COMMAND: Final = _permanent(Kind.TOOL_ERROR)
_NOTHING_KNOWN: Final = _permanent(Kind.UNKNOWN)


def by_status(status: int) -> Answer:
    """Return the answer for a status code."""
    found = STATUSES.get(status)
    if found is not None:
        return found
    if 400 <= status < 500:
        return _OTHER_CLIENT_ERROR
    return _OTHER_SERVER_ERROR if status >= 500 else _NOTHING_KNOWN


class StatusTable:
    """Table of codes plus the Retry-After header; ignores the text."""

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
