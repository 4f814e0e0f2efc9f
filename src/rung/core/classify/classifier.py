"""Naming a failure: facts first, then one ordered table of rules, first match wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.classify.read_facts import read
from rung.core.classify.rule_index import ClassifyRule, RuleIndex
from rung.core.classify.rules import provider as calls
from rung.core.classify.rules import tools
from rung.core.domain.failures import TRANSIENT, Evidence, Failure, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

# What is surest stands first: what we did ourselves, what the system numbers, how an answer ended; then what
# the words mean, from the particular to the general; then the bare status, the class, the exit code.
RULES: Final[tuple[ClassifyRule, ...]] = (
    *calls.OURS,
    *tools.SYSTEM,
    *tools.TESTS,
    *calls.ENDINGS,
    *calls.LIMITS,
    *calls.ACCESS,
    *calls.TROUBLE,
    *calls.REQUEST,
    *calls.STATUSES,
    *tools.WORDS,
    *calls.CLASSES,
)

_own: tuple[tuple[ClassifyRule, ...], tuple[ClassifyRule, ...]] = ((), ())
_table: RuleIndex | None = None  # made when the first failure is named
FAILURE_CACHE: Final[
    dict[Any, Failure]
] = {}  # what an engine remembers of names already given; other rules, other names
_SEEN: Final[dict[tuple[Any, ...], Failure]] = {}  # the same evidence has the same name: what fails, fails again
_SEEN_LIMIT: Final = 1_024
_SHORT: Final = 4_096  # characters of an evidence that is remembered


def use_rules(before: Iterable[ClassifyRule] = (), after: Iterable[ClassifyRule] = ()) -> None:
    """Put rules of one's own before and after ours, for the whole process; without any, ours alone again."""
    global _own, _table  # one table for a process, as with logging: set once, when it starts
    _own, _table = (tuple(before), tuple(after)), None
    clear_cache()


def clear_cache() -> None:
    """Name everything anew: for who measures, or has other rules."""
    FAILURE_CACHE.clear()
    _SEEN.clear()


def rules() -> tuple[ClassifyRule, ...]:
    """The rules in use, in their order."""
    before, after = _own
    return (*before, *RULES, *after)


def _made() -> RuleIndex:
    global _table  # noqa: PLW0603  # two threads may both make it: the same one
    _table = RuleIndex(rules())
    return _table


def classify(trouble: object) -> Failure:
    """Name what went wrong, from an exception, a response-like mapping, a text or evidence."""
    if type(trouble) is not Evidence:
        if isinstance(trouble, Failure):
            return trouble
        trouble = evidence_of(trouble)
    if len(trouble.text) + len(trouble.output) + len(trouble.stack) > _SHORT:
        return _classify(trouble)
    key = (*trouble[:4], *trouble[5:], *trouble.headers.items()) if trouble.headers else (*trouble[:4], *trouble[5:])
    try:
        known = _SEEN.get(key)
    except TypeError:  # a fact that no type checker saw, and that cannot be looked up
        return _classify(trouble)
    if known is None:
        known = _classify(trouble)
        if len(_SEEN) >= _SEEN_LIMIT:
            _SEEN.clear()
        _SEEN[key] = known
    return known


def _classify(trouble: Evidence) -> Failure:
    evidence = without_secrets(trouble)
    # What an inner ladder has already repeated in vain is not repeated again further out.
    may_repeat = not evidence.spent
    finding = evidence.finding
    if finding is not None:
        retryable = may_repeat and finding in _WORTH_REPEATING
        return Failure(finding, retryable, "finding", evidence.text, evidence.retry_after, evidence)
    facts = read(evidence)
    message = facts.message or evidence.text
    rule = (_table or _made()).first(facts)
    if rule is None:
        return Failure(Kind.UNKNOWN, False, "unknown", message, evidence.retry_after, evidence)
    wait = facts.wait if rule.kind in _WAITED_FOR else evidence.retry_after
    return Failure(rule.kind, rule.retryable and may_repeat, rule.id, message, wait, evidence)


def is_retryable(trouble: object) -> bool:
    """May the same call be made again, unchanged? Fits tenacity's and LangGraph's predicates."""
    return classify(trouble).retryable


# Where whoever noticed it has named it: a blip, a sample that did not parse, a tool that may work now.
_WAITED_FOR: Final = TRANSIENT | {Kind.QUOTA_EXHAUSTED, Kind.SERVICE_DOWN}
_WORTH_REPEATING: Final = TRANSIENT | {Kind.MALFORMED_OUTPUT, Kind.TOOL_ERROR}
