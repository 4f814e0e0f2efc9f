"""Rules for answers that end early: which ones are successes, and how often a broken stream is resumed. Pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, Phase
from rung.core.domain.ladder import Action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.failures import Evidence
    from rung.core.policy.policy import Policy

# Reasons by which providers report that an answer reached its output limit.
LIMIT_CODES: Final = frozenset({"max_tokens", "length", "max_output_tokens"})
# Tries of rungs, by ladder, where answers are streamed. Resuming is cheap and giving up loses the whole answer: at
# 30 % of calls failing, six resumptions would still lose one stream in some thousands.
STREAM_TRIES: Final[Mapping[str, Mapping[Action, int]]] = MappingProxyType(
    {"call": MappingProxyType({Action.RESUME: 10})}
)


def for_streams(policy: Policy) -> Policy:
    """Return the policy with the number of tries that streamed answers need (`STREAM_TRIES`)."""
    for action, tries in STREAM_TRIES.get(policy.ladder.name, {}).items():
        policy = policy.with_tries(action, tries)
    return policy


def is_usable_when_broken(*, calls: int, bad_call: bool, ended: bool) -> bool:
    """Whether a stream that broke is a success: its complete tool calls can be run and must not be made twice."""
    return calls > 0 and not bad_call and not ended


def is_cut_at_limit(evidence: Evidence) -> bool:
    """Whether an answer ended at its output limit: it can be resumed."""
    return evidence.code in LIMIT_CODES


def is_intended(evidence: Evidence, *, calls: int, limit: int | None, small_limit: int, may_be_empty: bool) -> bool:
    """Whether an answer that ended early is what the client asked for, or cannot be resumed.

    An output limit up to `small_limit` is deliberate: a probe asks for one token. After complete tool calls a
    resumption would make them again. An empty answer is a success where the conversation allows one.
    """
    if evidence.finding is Kind.PARTIAL_OUTPUT:
        return may_be_empty
    return is_cut_at_limit(evidence) and (calls > 0 or (limit is not None and limit <= small_limit))


def seen_by_client(evidence: Evidence) -> Evidence:
    """Return the evidence marked as a failure after the client received a part of the answer."""
    phase = Phase.STREAM if evidence.phase is Phase.CALL else evidence.phase
    return evidence._replace(output_started=True, phase=phase)
