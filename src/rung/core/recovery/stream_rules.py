"""Rules for answers that end early or are invalid: which ones are successes, and how often they are asked for again. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import INFRASTRUCTURE_KINDS, Kind, Phase
from rung.core.domain.ladder import Action, RungScope
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence, Failure
    from rung.core.policy.policy import Policy

# Reasons by which providers report that an answer reached its output limit.
LIMIT_CODES: Final = frozenset({"max_tokens", "length", "max_output_tokens"})
# How often an answer is asked for again because of a mistake of the model. Agents handle such answers themselves: they
# report the mistake, and the model corrects it.
MISTAKE_REPEATS: Final = 2
# The same where the conversation allows an empty answer: after tool results a model may have nothing to add.
ALLOWED_EMPTY_REPEATS: Final = 1
_MISTAKES: Final = frozenset({Kind.MALFORMED_OUTPUT, Kind.PARTIAL_OUTPUT})


def for_streams(policy: Policy) -> Policy:
    """Return the policy with as many resumptions as retries: a broken stream is treated like a failed call.

    A call may fall back although an earlier one of its session did: the session goes back to its first model, and other
    conversations may look like it. This replaces the preset's numbers; a user's own ladder stays as it is.
    """
    rungs = policy.ladder.rungs
    retries = max((rung.tries for rung in rungs if rung.is_retry), default=0)
    if not any(rung.action is Action.RESUME and rung in LADDERS["call"].rungs for rung in rungs):
        return policy
    rungs = tuple(
        replace(rung, scope=RungScope.INCIDENT) if rung.scope is RungScope.SESSION else rung for rung in rungs
    )
    return policy.replace(ladder=replace(policy.ladder, rungs=rungs)).with_tries(Action.RESUME, retries)


def with_accounts(policy: Policy, same_account: tuple[str, ...]) -> Policy:
    """Return the policy where it is known which agents have the first one's account: the others help if its key is refused.

    `same_account` names agents and providers of models.

    A user who says which agents share an account knows better: two keys may belong to one account.
    """
    if policy.same_account is None:
        policy = policy.replace(same_account=same_account)
    shared = policy.same_account or ()
    others = (*policy.agents, *(model.provider for model in policy.models if model.provider))
    fallback = next((rung.name for rung in policy.ladder.rungs if rung.action is Action.FALLBACK), "")
    if not fallback or all(name in shared for name in others):
        return policy
    entry = {**policy.ladder.entry, Kind.AUTH_ERROR: fallback, Kind.MISSING_CREDENTIALS: fallback}
    return policy.replace(ladder=replace(policy.ladder, entry=entry))


def is_mistake(evidence: Evidence) -> bool:
    """Whether an answer is complete, but the model made a mistake: an invalid tool call, or no output."""
    return evidence.finding in _MISTAKES and evidence.phase is Phase.RESULT


def is_repeated_mistake(evidence: Evidence, *, mistakes: int) -> bool:
    """Whether a mistake is passed on, because the answer was asked for again often enough. `mistakes`: earlier ones."""
    return is_mistake(evidence) and mistakes >= MISTAKE_REPEATS


def why_not_resume(
    failure: Failure, *, received: bool, choices: int, has_media: bool, constrained: bool = False
) -> str:
    """Return why an answer cannot be resumed; empty if it can. `received`: a part of it was received."""
    if choices > 1:
        return "several choices cannot be resumed: a continuation continues one text"
    if constrained:
        return "a structured answer cannot be continued: two pieces of JSON do not make one"
    if has_media:
        return "audio and images cannot be resumed"
    if not received and failure.kind in INFRASTRUCTURE_KINDS:
        return "nothing was received that can be resumed"
    return ""


def is_usable_when_broken(*, calls: int, bad_call: bool, ended: bool) -> bool:
    """Whether a stream that broke is a success: its complete tool calls can be run and must not be made twice."""
    return calls > 0 and not bad_call and not ended


def is_cut_at_limit(evidence: Evidence) -> bool:
    """Whether an answer ended at its output limit: it can be resumed."""
    return evidence.code.lower() in LIMIT_CODES


def is_intended(
    evidence: Evidence,
    *,
    calls: int,
    limit: int | None,
    small_limit: int,
    may_be_empty: bool,
    mistakes: int = 0,
    choices: int = 1,
    fixed: bool = False,
) -> bool:
    """Whether an answer that ended early is what the client asked for, or cannot be resumed.

    An output limit up to `small_limit` is deliberate: a probe asks for one token. After complete tool calls a
    resumption would make them again. `fixed`: the client has the beginning of a structured answer. An empty answer is a
    success where the conversation allows one and it was empty before. `mistakes`: earlier ones of this call.
    """
    if evidence.finding is Kind.PARTIAL_OUTPUT:
        return may_be_empty and mistakes >= ALLOWED_EMPTY_REPEATS
    is_small = limit is not None and limit <= small_limit
    return is_cut_at_limit(evidence) and (calls > 0 or is_small or choices > 1 or fixed)


def seen_by_client(
    evidence: Evidence, *, constrained: bool = False, diverged: bool = False, progress: bool | None = None
) -> Evidence:
    """Return the evidence marked as a failure after the client received a part of the answer.

    A constrained (structured) answer is asked for again whole: it is joined only where it repeats that part. One that
    has diverged from it cannot be joined. `progress`: the attempt added to that part.
    """
    phase = Phase.STREAM if evidence.phase is Phase.CALL else evidence.phase
    evidence = evidence._replace(progress=progress)
    if constrained and not diverged:
        return evidence._replace(phase=phase)
    return evidence._replace(output_started=True, phase=phase)
