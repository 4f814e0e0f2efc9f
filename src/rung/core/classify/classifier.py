"""Classify an error into a `Failure`: read its facts, then take the first matching rule of one ordered table.

Where no rule is sure, the model in `learned` is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.classify import learned
from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.classify.failure_cache import FAILURE_CACHE
from rung.core.classify.read_facts import read_facts
from rung.core.classify.reset_times import names_reset, reset_wait
from rung.core.classify.retry_after import wait_in_headers
from rung.core.classify.rule_index import ClassifyRule, RuleIndex
from rung.core.classify.rules import (
    access,
    answers,
    availability,
    fallbacks,
    limits,
    reopening,
    requests,
    statements,
    stop_reasons,
    tool_calls,
    tools,
    translated,
    zhipu,
)
from rung.core.domain.failures import TRANSIENT, Evidence, Failure, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

# The most reliable rules come first: the engine's own time-outs, errno values, stop reasons. Text rules follow, from
# specific to general. The bare HTTP status, the exception class and the exit code come last.
RULES: Final[tuple[ClassifyRule, ...]] = (
    *stop_reasons.ENGINE,
    *tools.SYSTEM,
    *tools.TESTS,
    *tool_calls.TOOL_CALLS,
    *stop_reasons.STOP_REASONS,
    *answers.ANSWERS,
    *zhipu.NUMBERED,
    *limits.LIMITS,
    *access.ACCESS,
    *availability.AVAILABILITY,
    *requests.REQUEST,
    *reopening.REOPENING,
    *statements.STATEMENTS,
    *fallbacks.CODES,
    *fallbacks.HTTP_STATUSES,
    *translated.TRANSLATED,
    *tools.TOOL_OUTPUT,
    *statements.TOOL_STATEMENTS,
    *tools.TOOL_FALLBACK,
    *fallbacks.EXCEPTION_CLASSES,
)

_user_rules: tuple[tuple[ClassifyRule, ...], tuple[ClassifyRule, ...]] = ((), ())
_index: RuleIndex | None = None  # built when the first error is classified
_EVIDENCE_CACHE: Final[dict[tuple[Any, ...], Failure]] = {}  # equal evidence has equal failures
_EVIDENCE_CACHE_LIMIT: Final = 1_024
_MAX_CACHED_CHARS: Final = 4_096  # larger evidence is not cached


def use_rules(before: Iterable[ClassifyRule] = (), after: Iterable[ClassifyRule] = ()) -> None:
    """Set your own classification rules for the whole process. Without arguments, remove them.

    Args:
        before: Rules that are tried before the built-in ones. Default: none.
        after: Rules that are tried after the built-in ones. Default: none.

    Example:
        >>> import rung
        >>> example = rung.Evidence(text="the farm is busy")
        >>> rule = rung.rules.ClassifyRule(
        ...     id="busy", kind=rung.Kind.OVERLOADED, why="our proxy", example=example, contains=("farm is busy",)
        ... )
        >>> rung.rules.use_rules(before=[rule])
        >>> rung.classify("the farm is busy").kind.value
        'overloaded'
        >>> rung.rules.use_rules()
    """
    global _user_rules, _index  # process-wide, as in `logging`: set once at start-up
    _user_rules, _index = (tuple(before), tuple(after)), None
    clear_cache()


def clear_cache() -> None:
    """Clear both caches: needed after a change of rules, and in benchmarks."""
    FAILURE_CACHE.clear()
    _EVIDENCE_CACHE.clear()


def rules() -> tuple[ClassifyRule, ...]:
    """Return the active rules in order of precedence."""
    before, after = _user_rules
    return (*before, *RULES, *after)


def _build_index() -> RuleIndex:
    global _index  # noqa: PLW0603  # a race is harmless: both threads build equal indexes
    _index = RuleIndex(rules())
    return _index


def classify(error: object, now: float | None = None, zone: tzinfo | None = None) -> Failure:
    """Classify an error: return its kind, whether the same call may be repeated, and how long to wait.

    Args:
        error: An exception of any SDK, also wrapped; a mapping with `status`, `headers` and `body`; a text; or evidence.
        now: UTC seconds. With it, a time at which a limit reopens becomes a wait: a date in a header also without a `Date`
            header, a timestamp in a body, a time in a sentence ("resets 3pm"). Default: such times are not read.
        zone: Time zone of times in a text that name none. Default: UTC.

    Returns:
        The failure. An error that no rule recognises has the kind `unknown`.

    Example:
        >>> import rung
        >>> failure = rung.classify({"status": 429, "headers": {"retry-after": "20"}, "body": "slow down"})
        >>> failure.kind.value, failure.retryable, failure.retry_after
        ('rate_limit', True, 20.0)
    """
    failure = _classify_cached(error)
    if now is None or failure.retry_after is not None or failure.kind not in _WAIT_KINDS:
        return failure
    evidence = failure.evidence
    wait = wait_in_headers(evidence.headers, now) if evidence.headers else None
    if wait is None and names_reset_time(failure):
        wait = reset_wait(evidence.text, now, zone)
    return failure if wait is None else failure._replace(retry_after=wait)


def names_reset_time(failure: Failure) -> bool:
    """Return whether the wait may be a time in the text: then it depends on when the error is classified."""
    return failure.retry_after is None and failure.kind in _LIMIT_KINDS and names_reset(failure.evidence.text)


def _classify_cached(error: object) -> Failure:
    if type(error) is not Evidence:
        if issubclass(type(error), Failure):  # not isinstance: a hostile `__class__` may raise
            return error  # type: ignore[return-value]  # it is one
        error = evidence_of(error)
    if len(error.text) + len(error.output) + len(error.stack) > _MAX_CACHED_CHARS:
        return _classify(error)
    key = (*error[:4], *error[5:], *error.headers.items()) if error.headers else (*error[:4], *error[5:])
    try:
        failure = _EVIDENCE_CACHE.get(key)
    except TypeError:  # an unhashable value in the evidence
        return _classify(error)
    if failure is None:
        failure = _classify(error)
        if len(_EVIDENCE_CACHE) >= _EVIDENCE_CACHE_LIMIT:
            _EVIDENCE_CACHE.clear()
        _EVIDENCE_CACHE[key] = failure
    return failure


def _classify(error: Evidence) -> Failure:
    evidence = without_secrets(error)
    # An outer ladder does not repeat what an inner ladder has already retried to exhaustion.
    may_repeat = not evidence.spent
    finding = evidence.finding
    if finding is not None:
        retryable = may_repeat and finding in _RETRYABLE_FINDINGS
        return Failure(finding, retryable, "finding", evidence.text, evidence.retry_after, evidence)
    facts = read_facts(evidence)
    message = facts.message or evidence.text
    rule = (_index or _build_index()).first_match(facts)
    if rule is None or not rule.sure:
        least = learned.MIN_CONFIDENCE if rule is None else learned.MIN_CONFIDENCE_AGAINST_RULE
        second = learned.opinion(facts, least)
        if second is not None and (rule is None or second.kind is not rule.kind):
            wait = facts.wait if second.kind in _WAIT_KINDS else evidence.retry_after
            return Failure(second.kind, second.retryable and may_repeat, learned.RULE, message, wait, evidence)
    if rule is None:
        return Failure(Kind.UNKNOWN, False, "unknown", message, evidence.retry_after, evidence)
    wait = facts.wait if rule.kind in _WAIT_KINDS else evidence.retry_after
    return Failure(rule.kind, rule.retryable and may_repeat, rule.id, message, wait, evidence)


def is_retryable(error: object) -> bool:
    """Return whether the same call may be repeated unchanged. Fits the predicates of tenacity, LangGraph and LangChain.

    Args:
        error: Whatever `rung.classify` takes: an exception, a mapping with `status` and `body`, a text.

    Returns:
        True for failures that pass, such as overload, a rate limit or a reset connection.

    Example:
        >>> import rung
        >>> rung.is_retryable(ConnectionResetError("reset by peer"))
        True
        >>> rung.is_retryable({"status": 401, "body": "invalid x-api-key"})
        False
    """
    return classify(error).retryable


# Kinds for which a wait that the error requests is meaningful.
_WAIT_KINDS: Final = TRANSIENT | {Kind.QUOTA_EXHAUSTED, Kind.SERVICE_DOWN}
# Kinds whose text may name the time at which the limit reopens.
_LIMIT_KINDS: Final = frozenset({Kind.RATE_LIMIT, Kind.QUOTA_EXHAUSTED})
# Kinds reported by a caller or detector (`finding`) that a retry may fix.
_RETRYABLE_FINDINGS: Final = TRANSIENT | {Kind.MALFORMED_OUTPUT, Kind.TOOL_ERROR}
