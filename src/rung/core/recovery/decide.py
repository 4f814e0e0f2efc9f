"""Decide what to do after a failure: a pure function of incident, failure, policy, time and one random number.

1. If a cap of the incident (attempts, time, dollars) is reached, the incident ends. No rung and no answer exceeds it.
2. If the failure is final (a guard refused the attempt, or a check could not run), the incident ends. So it does if the
   policy disables retrying: one attempt, no other model, no wait.
3. If the failure is about the key of the attempt and another one is usable, the request is sent again with that one, at
   once. It is an attempt like any other, but no try of a rung.
4. If a model or agent handed over to finds the request too long, it gets it compacted, once. The first one keeps its own.
5. If the policy's number of retries before an escalation is reached, another model or agent takes over
   (`escalate_after`).
6. If the policy learns and the journal knows a rung that fixed this failure before, the first climb starts there,
   provided that the rung applies now and needs no approval. A try that recorded outcomes leave out is skipped, provided
   that the rung it yields to can be taken now, without approval. Learning only skips: it never adds or reorders.
7. The search starts at the failure's entry rung. Retry rungs come first: their tries are counted per action, so they
   are available again after every climb, as long as the current rung has time left. A retry does not use the last
   attempts of the incident's cap if a model or agent that the policy lists follows: each keeps one. Nor does the
   resumption of a stream.
8. Above them, the search continues at the highest rung used so far, or one further up if that one is exhausted. The
   first rung that applies is taken; the decision lists the skipped ones with their reasons. After a handover, the rungs
   below that mend the form of a request are looked at again: the new target's own stream may break, too.
9. A model or agent handed over to that fails for a reason of its own (an unknown name, a refused key, an empty account,
   a context window that the compacted request exceeds) is not asked again. The failure to solve is that of the first model, as if there were no such target.
10. Just below the end, the work is parked until a limit reopens (`park`), or a failing service is waited for
   (`patience`). The ladder stays where it is: after each wait, a rung that can help is taken again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.events import Ask, Change, Decision, Finish, HandOver, Repeat, Skip
from rung.core.domain.failures import PROVIDER_KINDS, Kind, Phase
from rung.core.domain.ladder import HANDOVER_ACTIONS, MECHANICAL_ACTIONS, Action
from rung.core.policy.tool_settings import policy_for_failure
from rung.core.recovery.handover import hand_over, is_escalation_due
from rung.core.recovery.key_switch import may_switch_key, switch_key
from rung.core.recovery.ladder_end import ENDING_STATUS, end_of_ladder, end_reason, finish, off_reason
from rung.core.recovery.learned_skips import skip_at
from rung.core.recovery.limits import exhausted_cap, why_not_affordable, why_not_chosen
from rung.core.recovery.park import park_until_reopened
from rung.core.recovery.patience import wait_for_service
from rung.core.recovery.replay_safety import UNSAFE_REPLAY, has_visible_effects, repeats_resumption
from rung.core.recovery.reserved_attempts import why_reserved
from rung.core.recovery.rung_conditions import (
    can_hand_over,
    interrupted_mid_stream,
    is_exhausted,
    why_not_retry,
    why_not_rung,
)
from rung.core.recovery.target_compaction import compact_for_target
from rung.core.recovery.written_answer import is_written_answer

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

_WAITING: Final = {Action.PARK: park_until_reopened, Action.WAIT: wait_for_service}
# Reading a member of an enum class is slow in Python 3.11.
_INVALID_REQUEST: Final = Kind.INVALID_REQUEST


def decide(incident: Incident, failure: Failure, policy: Policy, now: float, jitter: float) -> Decision:
    """Return the decision after this failure. Equal arguments give equal decisions."""
    policy = policy_for_failure(policy, failure)
    ladder = policy.ladder
    reached = exhausted_cap(incident, policy, now)
    if reached:
        return finish(policy, f"{reached}; last error: {failure.headline()}", ())
    if failure.evidence.final:
        return finish(policy, failure.headline(), ())
    if policy.is_off:
        return finish(policy, off_reason(policy, failure), ())
    if may_switch_key(incident, failure):
        return switch_key(incident, failure, policy)
    compaction = compact_for_target(incident, failure, policy)
    if compaction is not None:
        return compaction
    failure = _root_failure(incident, failure)
    entry = ladder.entry_index(failure)
    decision = None
    if is_escalation_due(incident, policy):
        decision = _escalate(incident, failure, policy, entry, now)
    if (
        decision is None
        and policy.learn.enabled
        and entry < incident.hint < len(ladder.rungs)
        and incident.decision is None
    ):
        decision = _from_hint(incident, failure, policy, now)
    return decision or _search(incident, failure, policy, entry, now, jitter)


def _search(incident: Incident, failure: Failure, policy: Policy, entry: int, now: float, jitter: float) -> Decision:
    """Return the decision of the first rung from the failure's entry on that applies."""
    ladder = policy.ladder
    floor = incident.rung
    if floor >= 0 and is_exhausted(incident, policy, floor, now):
        floor += 1
    if ladder.rungs[-1].action is not Action.FORCE_DONE:  # after a person's answer, the ladder waits again
        floor = ladder.not_past_waiting(floor)
    skipped: list[Skip] = []
    index = ladder.not_past_waiting(entry)
    is_handed_over = incident.rung >= 0 and ladder.rungs[incident.rung].action in HANDOVER_ACTIONS
    while index < len(ladder.rungs):
        rung = ladder.rungs[index]
        if index < floor and not rung.is_retry and not (is_handed_over and rung.action in MECHANICAL_ACTIONS):
            index = index + 1 if is_handed_over else floor
            continue
        if rung.is_retry:
            tried = incident.retries.get(index, 0)
            wait = policy.backoff.wait(tried + 1, jitter, failure.retry_after)
            why_not = why_not_retry(incident, failure, policy, rung, tried, wait, now)
            why_not = why_not or _why_kept(incident, failure, policy, index, now)
            why_not = why_not or _why_left_out(incident, failure, policy, index, now)
            if not why_not:
                return Repeat(index, wait, failure.kind, tuple(skipped))
            skipped.append((index, why_not))
            index = max(index + 1, _skip_to_service_down(failure, policy, index))
            continue
        left_out = _why_left_out(incident, failure, policy, index, now)
        if left_out:
            skipped.append((index, left_out))
            index += 1
            continue
        decision = _take_rung(incident, failure, policy, index, now, skipped, jitter)
        if isinstance(decision, Finish) and rung.action in HANDOVER_ACTIONS:
            skipped.append((index, decision.reason))
            return _wait_without_approval(incident, failure, policy, now, skipped, jitter) or decision
        if decision is not None:
            return decision
        index += 1
    return finish(policy, end_reason(incident, policy, failure, skipped), tuple(skipped))


def _why_left_out(incident: Incident, failure: Failure, policy: Policy, index: int, now: float) -> str:
    """Return why recorded outcomes leave out the next try of a rung; empty if they do not.

    The rung that it yields to must be possible now, without approval: otherwise the ladder keeps its own order.
    """
    if not incident.learned or not policy.learn.enabled:
        return ""
    skip = skip_at(incident, failure, policy, index)
    if skip is None:
        return ""
    instead = _take_rung(incident, failure, policy, skip.instead, now, [])
    return skip.reason if isinstance(instead, Change | HandOver) else ""


def decision_from_answer(incident: Incident, policy: Policy, now: float) -> Decision | None:
    """Return the decision that a person's answer stands for; None after "decline": then `decide` continues."""
    question = incident.last_question
    assert question is not None  # noqa: S101  # an answer without a question is a bug of the engine
    answer = incident.answer
    reached = exhausted_cap(incident, policy, now)
    if reached:
        return finish(policy, reached, ())
    chosen = _chosen(incident, policy, question, answer)
    too_expensive = "" if chosen is None else why_not_chosen(incident, policy, chosen)
    if too_expensive:
        return finish(policy, f"a person chose {answer!r}, but {too_expensive}", ())
    if chosen is not None or answer == "decline":
        return chosen
    return finish(policy, "a person chose to stop", ())


def _chosen(incident: Incident, policy: Policy, question: Ask, answer: str) -> Decision | None:
    """Return the decision for the attempt that an answer asks for; None if it asks for none."""
    if answer == "approve":
        return HandOver(question.rung, question.model, question.agent, question.estimate, "a person approved")
    if answer.startswith("model:"):
        model = policy.model(answer.removeprefix("model:"))
        name = answer.removeprefix("model:")
        agent = incident.request.agent if incident.request else ""
        return HandOver(question.rung, name, agent, model.cost if model else None, "a person chose")
    if answer == "retry":
        return Repeat(question.rung, 0.0, "a person chose")
    if answer == "replan":
        return Change(question.rung, Action.REPLAN, 0.0, "a person chose")
    if is_written_answer(answer):
        return Change(question.rung, Action.RETRY_WITH_CONTEXT, 0.0, "a person answered")
    return None


def _why_kept(incident: Incident, failure: Failure, policy: Policy, index: int, now: float) -> str:
    """Return that the attempt of a retry is kept for a fallback, which follows the retries; empty if it is not."""
    following = _skip_to_service_down(failure, policy, index)
    if policy.budget.attempts is None or following >= len(policy.ladder.rungs):
        return ""
    why_kept = why_reserved(incident, policy, following)
    return why_kept if why_kept and can_hand_over(incident, failure, policy, now) else ""


def _skip_to_service_down(failure: Failure, policy: Policy, index: int) -> int:
    """Return the index to continue at after a retry rung: the entry of `service_down` for provider failures.

    A provider failure that retries do not fix counts as an outage, which no prompt can fix. Tool failures and
    attempts that Rung itself timed out are not the provider's.
    """
    down = policy.ladder.entry.get(Kind.SERVICE_DOWN)
    if interrupted_mid_stream(failure):
        return index + 1
    is_local = failure.evidence.phase in (Phase.LIMIT, Phase.TOOL)
    if failure.kind not in PROVIDER_KINDS or is_local or down is None:
        return index + 1
    return policy.ladder.not_past_waiting(policy.ladder.index(down))


def _root_failure(incident: Incident, failure: Failure) -> Failure:
    """Return the failure to solve.

    If the provider rejects a rung's own change, it is the one that the rung was taken for. If the work was handed over to
    a model or agent that fails for a reason of its own, it is the one that the first was left for.
    """
    if incident.target_rejected and failure == incident.failure and incident.left_for is not None:
        return incident.left_for
    active = incident.active_decision
    if (
        failure.kind is not _INVALID_REQUEST
        or not isinstance(active, Change)
        or active.action not in MECHANICAL_ACTIONS
    ):
        return failure
    cause = next((earlier for earlier in reversed(incident.failures) if earlier.kind == active.reason), failure)
    return cause._replace(retryable=False)


def _from_hint(incident: Incident, failure: Failure, policy: Policy, now: float) -> Decision | None:
    """Return the decision for the hinted rung; None if it does not apply now.

    A hint never leads to a retry, a question or an end: the ladder reaches those in its own order.
    """
    rung = policy.ladder.rungs[incident.hint]
    if rung.is_retry or rung.action in ENDING_STATUS:
        return None
    decision = _take_rung(incident, failure, policy, incident.hint, now, [])
    if isinstance(decision, Change | HandOver):
        return decision._replace(reason=f"{failure.kind}: {rung.name} worked last time")
    return None


def _escalate(incident: Incident, failure: Failure, policy: Policy, entry: int, now: float) -> Decision | None:
    """Return the handover to another model or agent, or the question about it, from any rung below; None if there is none."""
    for index, rung in enumerate(policy.ladder.rungs):
        if rung.action not in HANDOVER_ACTIONS or index < max(entry, incident.rung):
            continue
        if why_not_rung(incident, failure, policy, index, 0.0, now):
            continue
        decision = hand_over(incident, failure, policy, index, [])
        if isinstance(decision, HandOver | Ask) and incident.request is not None:
            here = (incident.request.model, incident.request.agent)
            return decision if (decision.model, decision.agent) != here else None
    return None


def _wait_without_approval(
    incident: Incident, failure: Failure, policy: Policy, now: float, skipped: list[Skip], jitter: float
) -> Decision | None:
    """Return the decision to wait for the service or the limit, where nobody can approve a handover."""
    for index, rung in enumerate(policy.ladder.rungs):
        if rung.action in _WAITING:
            decision = _take_rung(incident, failure, policy, index, now, skipped, jitter)
            if decision is not None:
                return decision
    return None


def _take_rung(
    incident: Incident,
    failure: Failure,
    policy: Policy,
    index: int,
    now: float,
    skipped: list[Skip],
    jitter: float = 0.0,
) -> Decision | None:
    rung = policy.ladder.rungs[index]
    if rung.action in _WAITING:
        if has_visible_effects(incident, failure) and not repeats_resumption(incident, failure):
            skipped.append((index, UNSAFE_REPLAY))
            return None
        too_expensive = why_not_affordable(incident, policy, incident.first_request)  # the first model is waited for
        if too_expensive:
            skipped.append((index, too_expensive))
            return None
        return _WAITING[rung.action](incident, failure, policy, index, now, jitter, skipped)
    wait = _wait_on_rung(incident, failure, policy, index, jitter)
    why_not = why_not_rung(incident, failure, policy, index, wait, now)
    if rung.action in ENDING_STATUS:
        return end_of_ladder(incident, failure, policy, index, why_not, tuple(skipped))
    if not why_not and rung.action in HANDOVER_ACTIONS:
        return hand_over(incident, failure, policy, index, skipped)
    if why_not:
        skipped.append((index, why_not))
        return None
    return Change(index, rung.action, wait, failure.kind, tuple(skipped))


def _wait_on_rung(incident: Incident, failure: Failure, policy: Policy, index: int, jitter: float) -> float:
    """Return the seconds to wait before a changed request.

    A provider that fails in the middle of a stream needs time, as before a retry. Only the first resumption is made at
    once: its client is reading the stream.
    """
    action = policy.ladder.rungs[index].action
    if action in HANDOVER_ACTIONS or action in ENDING_STATUS:
        return 0.0
    if not interrupted_mid_stream(failure):
        return failure.retry_after or 0.0
    if action is Action.RESUME:
        interruptions = incident.tries_used.get(index, 0)
    else:
        interruptions = sum(map(interrupted_mid_stream, incident.failures))
    return (
        policy.backoff.wait(interruptions, jitter, failure.retry_after) if interruptions else failure.retry_after or 0.0
    )
