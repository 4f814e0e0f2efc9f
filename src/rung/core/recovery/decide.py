"""Decide what to do after a failure: a pure function of incident, failure, policy, time and one random number.

1. If a cap of the incident (attempts, time, dollars) is reached, the incident ends. No rung and no answer exceeds it.
2. If the failure is final (a guard refused the attempt, or a check could not run), the incident ends. So it does if the
   policy disables retrying: one attempt, no other model, no wait.
3. If the failure is about the key of the attempt and another one is usable, the request is sent again with that one, at
   once. It is an attempt like any other, but no try of a rung.
4. If the policy's number of retries before an escalation is reached, another model takes over (`escalate_after`).
5. If the policy learns and the journal knows a rung that fixed this failure before, the first climb starts there,
   provided that the rung applies now and needs no approval. A try that recorded outcomes leave out is skipped, provided
   that the rung it yields to can be taken now, without approval. Learning only skips: it never adds or reorders.
6. The search starts at the failure's entry rung. Retry rungs come first: their tries are counted per action, so they
   are available again after every climb, as long as the current rung has time left.
7. Above them, the search continues at the highest rung used so far, or one further up if that one is exhausted. The
   first rung that applies is taken; the decision lists the skipped ones with their reasons.
8. Just below the end, the work is parked until a limit reopens (`park`), or a failing service is waited for
   (`patience`). The ladder stays where it is: after each wait, a rung that can help is taken again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.error_types import is_listed
from rung.core.domain.events import Ask, Change, Decision, Finish, HandOver, Option, Repeat, Skip, Status
from rung.core.domain.failures import PROVIDER_KINDS, Kind, Phase, is_resumable
from rung.core.domain.ladder import HANDOVER_ACTIONS, Action, Rung
from rung.core.domain.skipped_rungs import EXHAUSTED, describe_skips
from rung.core.policy.tool_settings import policy_for_failure
from rung.core.recovery.handover import (
    STOP_OPTION,
    can_follow_session,
    hand_over,
    is_escalation_due,
    next_model,
    used_by_session,
)
from rung.core.recovery.key_switch import may_switch_key, switch_key
from rung.core.recovery.learned_skips import skip_at
from rung.core.recovery.park import park_until_reopened
from rung.core.recovery.patience import wait_for_service
from rung.core.recovery.replay_safety import UNSAFE_REPLAY, has_visible_effects, repeats_resumption
from rung.core.recovery.silent_route import has_other_route, is_silent, stands_still
from rung.core.recovery.written_answer import ambiguity_options, is_written_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

_ENDING_STATUS: Final[Mapping[Action, Status]] = {
    Action.FORCE_DONE: Status.PARTIAL,
    Action.SURFACE: Status.FAILED,
    Action.ASK: Status.BLOCKED,
}
# Actions that produce the answer again from its beginning.
_REGENERATES_ANSWER: Final = frozenset({Action.RETRY_WITH_CONTEXT, Action.RAISE_LIMIT, Action.COMPACT})
# Actions that change the form of a request, not its instructions.
_MECHANICAL: Final = frozenset({Action.RAISE_LIMIT, Action.RESUME, Action.COMPACT, Action.REPAIR})
_WAITING: Final = {Action.PARK: park_until_reopened, Action.WAIT: wait_for_service}
# Reading a member of an enum class is slow in Python 3.11.
_INVALID_REQUEST: Final = Kind.INVALID_REQUEST


def decide(incident: Incident, failure: Failure, policy: Policy, now: float, jitter: float) -> Decision:
    """Return the decision after this failure. Equal arguments give equal decisions."""
    policy = policy_for_failure(policy, failure)
    ladder = policy.ladder
    reached = exhausted_cap(incident, policy, now)
    if reached:
        return _finish(policy, f"{reached}; last error: {failure.headline()}", ())
    if failure.evidence.final or policy.is_off:
        return _finish(policy, failure.headline(), ())
    if may_switch_key(incident, failure):
        return switch_key(incident, failure, policy)
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
    if floor >= 0 and _is_exhausted(incident, policy, floor, now):
        floor += 1
    if ladder.rungs[-1].action is not Action.FORCE_DONE:  # after a person's answer, the ladder waits again
        floor = ladder.not_past_waiting(floor)
    skipped: list[Skip] = []
    index = ladder.not_past_waiting(entry)
    while index < len(ladder.rungs):
        rung = ladder.rungs[index]
        if rung.is_retry:
            tried = incident.retries.get(index, 0)
            wait = policy.backoff.wait(tried + 1, jitter, failure.retry_after)
            why_not = _why_not_retry(incident, failure, policy, rung, tried, wait, now)
            why_not = why_not or _why_left_out(incident, failure, policy, index, now)
            if not why_not:
                return Repeat(index, wait, failure.kind, tuple(skipped))
            skipped.append((index, why_not))
            index = max(index + 1, floor, _skip_to_service_down(failure, policy, index))
            continue
        if index < floor:
            index = floor
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
    return _finish(policy, _end_reason(incident, policy, failure, skipped), tuple(skipped))


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
        return _finish(policy, reached, ())
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
    if answer == "decline":
        return None
    if is_written_answer(answer):
        return Change(question.rung, Action.RETRY_WITH_CONTEXT, 0.0, "a person answered")
    return _finish(policy, "a person chose to stop", ())


def exhausted_cap(incident: Incident, policy: Policy, now: float) -> str:
    """Return a message about the first cap of the incident that is reached; empty if none is."""
    attempts = policy.budget.attempts
    if attempts is not None and incident.attempts - incident.probes >= attempts:
        return f"the budget of {attempts} attempt{'s' * (attempts != 1)} is spent"
    if incident.deadline is not None and now >= incident.deadline:
        return "the deadline has passed"
    if incident.dollar_cap is not None and incident.dollars >= incident.dollar_cap:
        return f"the budget of ${incident.dollar_cap:.2f} is spent"
    return ""


def seconds_left(incident: Incident, policy: Policy, now: float) -> float | None:
    """Return the time limit of the next attempt: the smallest of its own, its rung's and the incident's.

    A retry rung limits the waits before its retries, not the retried attempts.
    """
    limit = attempt_limit(policy, incident.deadline, now)
    if incident.rung >= 0:
        rung = policy.ladder.rungs[incident.rung]
        limit = remaining_rung_seconds(limit, rung, incident.entered_at[incident.rung], now)
    return None if limit is None else max(0.0, limit)


def attempt_limit(policy: Policy, deadline: float | None, now: float) -> float | None:
    """Return the time limit of an attempt, without those of rungs: the smaller of its own and the incident's."""
    limit = policy.attempt_seconds
    if deadline is None:
        return limit
    left = deadline - now
    return left if limit is None or left < limit else limit


def remaining_rung_seconds(limit: float | None, rung: Rung, since: float, now: float) -> float | None:
    """Return the smaller of a time limit and the time left on a rung."""
    if rung.seconds is None:
        return limit
    left = since + rung.seconds - now
    return left if limit is None or left < limit else limit


def _has_timed_out(rung: Rung, since: float, now: float) -> bool:
    return rung.seconds is not None and now >= since + rung.seconds


def _is_exhausted(incident: Incident, policy: Policy, index: int, now: float) -> bool:
    rung = policy.ladder.rungs[index]
    if rung.spent_with and _is_exhausted(incident, policy, policy.ladder.index(rung.spent_with), now):
        return True
    used = incident.tries_used.get(index, 0)
    if not (rung.action in HANDOVER_ACTIONS and can_follow_session(incident, policy)):
        used += used_by_session(incident, rung)
    timed_out = _has_timed_out(rung, incident.entered_at.get(index, now), now)
    return index in incident.exhausted or used >= rung.tries or timed_out


def _why_not_retry(
    incident: Incident, failure: Failure, policy: Policy, rung: Rung, tried: int, wait: float, now: float
) -> str:
    """Return why the request may not be sent again unchanged; empty if it may."""
    if not failure.retryable:
        return "the failure is not retryable"
    if not is_listed(failure, policy.retry):
        return "the policy does not retry this kind"
    if tried >= rung.tries:
        return f"all {rung.tries} tries are used"
    if failure.retry_after is not None and failure.retry_after > policy.retry_after_cap:
        return f"asked to wait {failure.retry_after:g} s, the cap is {policy.retry_after_cap:g} s"
    if has_visible_effects(incident, failure):
        return UNSAFE_REPLAY
    if is_silent(failure) and _can_hand_over(incident, failure, policy, now):
        return "the provider is silent, and another model or agent is left"
    if rung.seconds is not None and failure.retry_after is None and incident.backed_off + wait > rung.seconds:
        return f"the waits would exceed the rung's {rung.seconds:g} s"
    if incident.rung >= 0 and _has_timed_out(
        policy.ladder.rungs[incident.rung], incident.entered_at[incident.rung] - wait, now
    ):
        return "the wait would exceed the time limit of the current rung"
    if incident.deadline is not None and now + wait >= incident.deadline:
        return "the wait would exceed the deadline"
    if not incident.retry_budget_ok:
        return (
            "the shared retry budget is spent: too many calls of this process are retried (retry_budget=None lifts it)"
        )
    return ""


def _skip_to_service_down(failure: Failure, policy: Policy, index: int) -> int:
    """Return the index to continue at after a retry rung: the entry of `service_down` for provider failures.

    A provider failure that retries do not fix counts as an outage, which no prompt can fix. Tool failures and
    attempts that Rung itself timed out are not the provider's.
    """
    down = policy.ladder.entry.get(Kind.SERVICE_DOWN)
    if _interrupted_mid_stream(failure):
        return index + 1
    is_local = failure.evidence.phase in (Phase.LIMIT, Phase.TOOL)
    if failure.kind not in PROVIDER_KINDS or is_local or down is None:
        return index + 1
    return policy.ladder.not_past_waiting(policy.ladder.index(down))


def _interrupted_mid_stream(failure: Failure) -> bool:
    """Whether the provider failed in the middle of a stream: the client has the beginning, so the rest is resumed."""
    evidence = failure.evidence
    return failure.kind in PROVIDER_KINDS and evidence.phase is Phase.STREAM and evidence.output_started


def _root_failure(incident: Incident, failure: Failure) -> Failure:
    """Return the failure to solve: if the provider rejects a rung's own change, the one that the rung was taken for."""
    active = incident.active_decision
    if failure.kind is not _INVALID_REQUEST or not isinstance(active, Change) or active.action not in _MECHANICAL:
        return failure
    cause = next((earlier for earlier in reversed(incident.failures) if earlier.kind == active.reason), failure)
    return cause._replace(retryable=False)


def _from_hint(incident: Incident, failure: Failure, policy: Policy, now: float) -> Decision | None:
    """Return the decision for the hinted rung; None if it does not apply now.

    A hint never leads to a retry, a question or an end: the ladder reaches those in its own order.
    """
    rung = policy.ladder.rungs[incident.hint]
    if rung.is_retry or rung.action in _ENDING_STATUS:
        return None
    decision = _take_rung(incident, failure, policy, incident.hint, now, [])
    if isinstance(decision, Change | HandOver):
        return decision._replace(reason=f"{failure.kind}: {rung.name} worked last time")
    return None


def _escalate(incident: Incident, failure: Failure, policy: Policy, entry: int, now: float) -> Decision | None:
    """Return the handover to another model, or the question about it, from any rung below; None if there is none."""
    for index, rung in enumerate(policy.ladder.rungs):
        if rung.action not in HANDOVER_ACTIONS or index < max(entry, incident.rung):
            continue
        if _why_not_rung(incident, failure, policy, index, 0.0, now):
            continue
        decision = hand_over(incident, failure, policy, index, [])
        if isinstance(decision, HandOver | Ask) and incident.request is not None:
            return decision if decision.model != incident.request.model else None
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
        return _WAITING[rung.action](incident, failure, policy, index, now, jitter, skipped)
    wait = _wait_on_rung(incident, failure, policy, index, jitter)
    why_not = _why_not_rung(incident, failure, policy, index, wait, now)
    if rung.action in _ENDING_STATUS:
        return _end_of_ladder(incident, failure, policy, index, why_not, tuple(skipped))
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
    if action in HANDOVER_ACTIONS or action in _ENDING_STATUS:
        return 0.0
    if not _interrupted_mid_stream(failure):
        return failure.retry_after or 0.0
    if action is Action.RESUME:
        interruptions = incident.tries_used.get(index, 0)
    else:
        interruptions = sum(map(_interrupted_mid_stream, incident.failures))
    return (
        policy.backoff.wait(interruptions, jitter, failure.retry_after) if interruptions else failure.retry_after or 0.0
    )


def _why_not_rung(incident: Incident, failure: Failure, policy: Policy, index: int, wait: float, now: float) -> str:
    """Return why a rung other than retry cannot be taken; empty if it can."""
    rung = policy.ladder.rungs[index]
    if _is_exhausted(incident, policy, index, now):
        return incident.exhausted.get(index, EXHAUSTED)
    resumes_stream = rung.action is Action.RESUME and _interrupted_mid_stream(failure)
    if rung.applies_to is not None and failure.kind not in rung.applies_to and not resumes_stream:
        return f"does not apply to {failure.kind}"
    if rung.action is Action.RESUME and _is_stuck(incident, failure) and _can_hand_over(incident, failure, policy, now):
        return "the stream makes no progress, and another model or agent can resume it"
    if rung.max_missing_sections is not None and len(failure.evidence.missing) > rung.max_missing_sections:
        return f"more than {rung.max_missing_sections} sections are missing"
    if incident.request is None and rung.action not in (Action.ASK, Action.SURFACE):
        return "the call cannot be changed: it was not given as a request"
    if incident.dollar_cap is not None and incident.dollars + rung.cost > incident.dollar_cap:
        return f"would cost ${rung.cost:.2f}, more than the remaining budget"
    if rung.action in _REGENERATES_ANSWER and has_visible_effects(incident, failure):
        return UNSAFE_REPLAY
    if wait > 0:
        if failure.retry_after is not None and failure.retry_after > policy.retry_after_cap:
            return f"asked to wait {failure.retry_after:g} s, the cap is {policy.retry_after_cap:g} s"
        if rung.seconds is not None and now + wait >= incident.entered_at.get(index, now) + rung.seconds:
            return "the wait would exceed the rung's time limit"
        if incident.deadline is not None and now + wait >= incident.deadline:
            return "the wait would exceed the deadline"
    return ""


def _is_stuck(incident: Incident, failure: Failure) -> bool:
    """Whether a stream broke where resuming it on the same route has little hope."""
    return is_resumable(failure) and (is_silent(failure) or stands_still(incident, failure))


def _can_hand_over(incident: Incident, failure: Failure, policy: Policy, now: float) -> bool:
    """Whether a rung of the ladder can hand the work over now, without asking a person."""
    return any(
        rung.action in HANDOVER_ACTIONS
        and index >= incident.rung
        and not _why_not_rung(incident, failure, policy, index, 0.0, now)
        and has_other_route(incident, failure, policy, index)
        for index, rung in enumerate(policy.ladder.rungs)
    )


def _end_of_ladder(
    incident: Incident, failure: Failure, policy: Policy, index: int, why_not: str, skipped: tuple[Skip, ...]
) -> Decision:
    """Return the decision at the last rung: force-done, a question, or the end."""
    rung = policy.ladder.rungs[index]
    if rung.action is Action.FORCE_DONE:
        if why_not:
            return _finish(policy, _end_reason(incident, policy, failure, skipped), skipped)
        return Change(index, Action.FORCE_DONE, 0.0, _end_reason(incident, policy, failure, skipped), skipped)
    if not incident.terms.attended or why_not:
        return _finish(policy, _end_reason(incident, policy, failure, skipped), skipped)
    question = f"{_attempted(incident, policy)}{failure.headline()} What should be done?"
    if failure.kind is Kind.STRATEGIC_AMBIGUITY and incident.request is not None:
        return Ask(index, question, ambiguity_options(failure), None, "", "", failure.kind, skipped)
    options = [Option("retry", "Retry unchanged"), STOP_OPTION]
    if incident.request is not None:
        model = next_model(incident, failure, policy, rung)
        other = Option("replan", "Try another approach")
        options.insert(1, other if model is None else Option(f"model:{model}", f"Try with {model}"))
    return Ask(index, question, tuple(options), None, "", "", failure.kind, skipped)


def _attempted(incident: Incident, policy: Policy) -> str:
    """Return what was attempted before a person is asked: the number of attempts, and the rungs with their tries."""
    names = []
    for index in incident.path:
        tries = incident.tries_used.get(index, 0)
        names.append(policy.ladder.rungs[index].name + (f" {tries} times" if tries > 1 else ""))
    made = f"{incident.attempts} attempt{'s' * (incident.attempts != 1)}"
    rungs = f" ({', '.join(names)})" if names else ""
    return f"After {made}{rungs}: " if incident.attempts else ""


def _end_reason(incident: Incident, policy: Policy, failure: Failure, skipped: Sequence[Skip]) -> str:
    """Return the error that ends an incident, and why rungs that could have helped were not taken."""
    reasons = {**incident.exhausted, **dict(skipped)}
    skips = describe_skips(sorted(reasons.items()), [rung.name for rung in policy.ladder.rungs])
    return f"{failure.headline()} ({skips})" if skips else failure.headline()


def _finish(policy: Policy, reason: str, skipped: tuple[Skip, ...]) -> Finish:
    last = len(policy.ladder.rungs) - 1
    return Finish(last, _ENDING_STATUS[policy.ladder.rungs[last].action], reason, skipped)
