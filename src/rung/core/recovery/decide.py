"""What to do next: a pure function of the incident, the failure, the policy, the time and one random number.

The arithmetic, in one place. The next rung is the higher of the failure's entry rung and the highest
rung used (one further up when that one is spent); from there the first rung that can help is taken.
Retry is scoped to the action: it is available afresh after every climb, as long as the rung it repeats
has time. Over everything stand the incident's caps, which no rung and no answer can exceed. Where the
policy learns, the first climb begins at the rung that helped with this very failure before, if that one can
be taken now without asking anybody; else as if nothing were remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.events import Ask, Change, Decision, Finish, HandOver, Option, Repeat, Skip, Status
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, PROVIDER_KINDS, Kind, Phase, is_resumable
from rung.core.domain.ladder import HAND_OVERS, Action, Rung, RungScope
from rung.core.policy.policy import Confirm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

_ENDING_STATUS: Final[Mapping[Action, Status]] = {
    Action.FORCE_DONE: Status.PARTIAL,
    Action.SURFACE: Status.FAILED,
    Action.ASK: Status.BLOCKED,
}
_UNSAFE: Final = "a replay is not safe: output or side effects were already seen"
# These say the answer again from its first word.
_FROM_THE_START: Final = frozenset({Action.RETRY_WITH_CONTEXT, Action.RAISE_LIMIT, Action.COMPACT})
# These change a request's form, not what is said to the model.
_MECHANICAL: Final = frozenset({Action.RAISE_LIMIT, Action.RESUME, Action.COMPACT, Action.REPAIR})
# Reading a member off an enum class is slow in Python 3.11.
_INVALID_REQUEST: Final = Kind.INVALID_REQUEST
STOP: Final = Option("stop", "Stop here, with what there is")


def decide(incident: Incident, failure: Failure, policy: Policy, now: float, jitter: float) -> Decision:
    """The decision after this failure. Same arguments, same decision."""
    ladder = policy.ladder
    over = spent_cap(incident, policy, now)
    if over:
        return _finish(policy, over, ())
    failure = _root_failure(incident, failure)
    entry = ladder.entry_index(failure)
    if policy.learn and entry < incident.hint < len(ladder.rungs) and incident.decision is None:
        remembered = _from_hint(incident, failure, policy, now)
        if remembered is not None:
            return remembered
    floor = incident.rung
    if floor >= 0 and _rung_spent(incident, policy, floor, now):
        floor += 1
    skipped: list[Skip] = []
    index = entry
    while index < len(ladder.rungs):
        rung = ladder.rungs[index]
        if rung.is_retry:
            tried = incident.retries.get(index, 0)
            wait = policy.backoff.wait(tried + 1, jitter, failure.retry_after)
            why_not = _cannot_repeat(incident, failure, policy, rung, tried, wait, now)
            if not why_not:
                return Repeat(index, wait, failure.kind, tuple(skipped))
            skipped.append((index, why_not))
            index = max(index + 1, floor, _skip_to_service_down(failure, policy, index))
            continue
        if index < floor:
            index = floor
            continue
        decision = _take_rung(incident, failure, policy, index, now, skipped, jitter)
        if decision is not None:
            return decision
        index += 1
    return _finish(policy, failure.headline(), tuple(skipped))


class FirstRetryCache:
    """Memory of `decide` under one policy: the repeats it decided on after the first failure of an incident.

    Such a decision depends on the kind, the phase and the retryability of the failure alone, as long as nothing else
    is known of it, the retry budget has room and the deadline is further away than the longest wait. It is asked for
    with the longest wait: a shorter one is possible where that is.
    """

    __slots__ = ("_known", "_policy")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: dict[tuple[Kind, bool, Phase, int], Repeat | None] = {}

    def decide(self, incident: Incident, failure: Failure, now: float, jitter: float) -> Decision:
        """The decision after this failure, as `decide` makes it."""
        policy, evidence = self._policy, failure.evidence
        if (
            incident.attempts == 1
            and len(incident.failures) == 1
            and incident.retry_budget_ok
            and incident.dollar_cap is None
            and incident.hint < 0
            and failure.retry_after is None
            and not evidence.output_started
            and not evidence.side_effects
            and not policy.ladder.sizes  # with sizes, the entry rung also depends on the text
        ):
            key = (failure.kind, failure.retryable, evidence.phase, evidence.repeats)
            if key not in self._known:
                first = decide(incident, failure, policy, now, 1.0)
                simple = isinstance(first, Repeat) and not first.skipped
                self._known[key] = first if simple else None  # type: ignore[assignment]  # mypy loses the first test
            repeat = self._known[key]
            if repeat is not None and (incident.deadline is None or now + repeat.wait < incident.deadline):
                return repeat._replace(wait=policy.backoff.wait(1, jitter)) if repeat.wait else repeat
        return decide(incident, failure, policy, now, jitter)


def decision_from_answer(incident: Incident, policy: Policy, now: float) -> Decision | None:
    """What a person's answer amounts to; None when it only closes a way and decide goes on."""
    asked = incident.asked
    assert asked is not None  # noqa: S101  # an answer without a question is a fault of the engine
    answer = incident.answer
    over = spent_cap(incident, policy, now)
    if over:
        return _finish(policy, over, ())
    if answer == "approve":
        return HandOver(asked.rung, asked.model, asked.agent, asked.estimate, "a person agreed")
    if answer.startswith("model:"):
        model = policy.model(answer.removeprefix("model:"))
        name = answer.removeprefix("model:")
        agent = incident.request.agent if incident.request else ""
        return HandOver(asked.rung, name, agent, model.cost if model else None, "a person chose")
    if answer == "retry":
        return Repeat(asked.rung, 0.0, "a person chose")
    if answer == "replan":
        return Change(asked.rung, Action.REPLAN, 0.0, "a person chose")
    if answer == "decline":
        return None
    return _finish(policy, "a person chose to stop", ())


def spent_cap(incident: Incident, policy: Policy, now: float) -> str:
    """Which of the incident's hard caps is reached, in words; empty when none is."""
    attempts = policy.budget.attempts
    if attempts is not None and incident.attempts >= attempts:
        return f"the budget of {attempts} attempt{'s' * (attempts != 1)} is spent"
    if incident.deadline is not None and now >= incident.deadline:
        return "the time is up"
    if incident.dollar_cap is not None and incident.dollars >= incident.dollar_cap:
        return f"the budget of ${incident.dollar_cap:.2f} is spent"
    return ""


def seconds_left(incident: Incident, policy: Policy, now: float) -> float | None:
    """How long the next attempt may take: the least of its own limit, its rung's and the total."""
    least = policy.attempt_seconds
    if incident.deadline is not None:
        left = incident.deadline - now
        least = left if least is None or left < least else least
    rungs = policy.ladder.rungs
    if incident.rung >= 0:
        least = _least(least, rungs[incident.rung], incident.entered_at[incident.rung], now)
    for index in incident.retries:
        if rungs[index].is_retry:
            least = _least(least, rungs[index], incident.retrying_since, now)
    return None if least is None else max(0.0, least)


def _least(least: float | None, rung: Rung, since: float, now: float) -> float | None:
    if rung.seconds is None:
        return least
    left = since + rung.seconds - now
    return left if least is None or left < least else least


def _time_up(rung: Rung, since: float, now: float) -> bool:
    return rung.seconds is not None and now >= since + rung.seconds


def _rung_spent(incident: Incident, policy: Policy, index: int, now: float) -> bool:
    rung = policy.ladder.rungs[index]
    if rung.spent_with and _rung_spent(incident, policy, policy.ladder.index(rung.spent_with), now):
        return True
    used = incident.tries_used.get(index, 0)
    if rung.scope is RungScope.SESSION:
        used += dict(incident.session_used).get(rung.name, 0)
    return index in incident.exhausted or used >= rung.tries or _time_up(rung, incident.entered_at.get(index, now), now)


def _cannot_repeat(
    incident: Incident, failure: Failure, policy: Policy, rung: Rung, tried: int, wait: float, now: float
) -> str:
    """Why the same request may not be made again; empty when it may."""
    if not failure.retryable:
        return "not retryable as it stands"
    if failure.kind not in policy.retry:
        return "the policy does not retry this kind"
    if tried >= rung.tries:
        return f"its {rung.tries} tries are spent"
    if failure.retry_after is not None and failure.retry_after > policy.retry_after_cap:
        return f"asked to wait {failure.retry_after:g} s, the cap is {policy.retry_after_cap:g} s"
    if _has_visible_effects(incident, failure):
        return _UNSAFE
    if rung.seconds is not None and now + wait >= (incident.retrying_since if incident.retries else now) + rung.seconds:
        return "its time is up, or would be after the wait"
    if incident.rung >= 0 and _time_up(
        policy.ladder.rungs[incident.rung], incident.entered_at[incident.rung] - wait, now
    ):
        return "the time of the rung it repeats is up"
    if incident.deadline is not None and now + wait >= incident.deadline:
        return "the wait would outlast the total time"
    if not incident.retry_budget_ok:
        return "the shared retry budget is spent"
    return ""


def _skip_to_service_down(failure: Failure, policy: Policy, index: int) -> int:
    """Service trouble that cannot be waited out is a service that is down: go where that enters.

    Nothing that is said to the model helps there. A tool's trouble, or an attempt that overran its own
    time, is not the service's.
    """
    down = policy.ladder.entry.get(Kind.SERVICE_DOWN)
    if _interrupted_mid_stream(failure):
        return index + 1
    ours = failure.evidence.phase in (Phase.LIMIT, Phase.TOOL)
    if failure.kind not in PROVIDER_KINDS or ours or down is None:
        return index + 1
    return policy.ladder.index(down)


def _interrupted_mid_stream(failure: Failure) -> bool:
    """Service trouble in the midst of an answer: somebody already has the beginning, and what helps is to go on."""
    evidence = failure.evidence
    return failure.kind in PROVIDER_KINDS and evidence.phase is Phase.STREAM and evidence.output_started


def _root_failure(incident: Incident, failure: Failure) -> Failure:
    """What is really wrong: that a rung's own change was turned down leaves the trouble it was made for."""
    made = incident.active_decision
    if failure.kind is not _INVALID_REQUEST or not isinstance(made, Change) or made.action not in _MECHANICAL:
        return failure
    cause = next((former for former in reversed(incident.failures) if former.kind == made.reason), failure)
    return cause._replace(retryable=False)


def _from_hint(incident: Incident, failure: Failure, policy: Policy, now: float) -> Decision | None:
    """What helped the last time. Never a repeat, a question or an end: those are for the ladder to come to."""
    rung = policy.ladder.rungs[incident.hint]
    if rung.is_retry or rung.action in _ENDING_STATUS:
        return None
    decision = _take_rung(incident, failure, policy, incident.hint, now, [])
    if isinstance(decision, Change | HandOver):
        return decision._replace(reason=f"{failure.kind}: {rung.name} worked last time")
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
    why_not = _cannot_help(incident, failure, policy, index, now)
    if rung.action in _ENDING_STATUS:
        return _ending(incident, failure, policy, index, why_not, tuple(skipped))
    if not why_not and rung.action in HAND_OVERS:
        return _hand_over(incident, failure, policy, index, skipped)
    if why_not:
        skipped.append((index, why_not))
        return None
    wait = failure.retry_after or 0.0
    before = incident.tries_used.get(index, 0)
    if (
        before and rung.action is Action.RESUME and _interrupted_mid_stream(failure)
    ):  # a service that breaks again needs time
        wait = policy.backoff.wait(before, jitter, failure.retry_after)
    return Change(index, rung.action, wait, failure.kind, tuple(skipped))


def _cannot_help(incident: Incident, failure: Failure, policy: Policy, index: int, now: float) -> str:
    rung = policy.ladder.rungs[index]
    if _rung_spent(incident, policy, index, now):
        return "spent"
    goes_on = rung.action is Action.RESUME and _interrupted_mid_stream(failure)
    if rung.applies_to is not None and failure.kind not in rung.applies_to and not goes_on:
        return f"does not help with {failure.kind}"
    if rung.max_missing_sections is not None and len(failure.evidence.missing) > rung.max_missing_sections:
        return f"more than {rung.max_missing_sections} sections are missing"
    if incident.request is None and rung.action not in (Action.ASK, Action.SURFACE):
        return "the call cannot be changed: it was not given as a request"
    if incident.dollar_cap is not None and incident.dollars + rung.cost > incident.dollar_cap:
        return f"would cost ${rung.cost:.2f}, more than is left"
    if rung.action in _FROM_THE_START and _has_visible_effects(incident, failure):
        return _UNSAFE
    wait = failure.retry_after
    if wait is not None and rung.action not in HAND_OVERS and rung.action not in _ENDING_STATUS:
        if wait > policy.retry_after_cap:
            return f"asked to wait {wait:g} s, the cap is {policy.retry_after_cap:g} s"
        if rung.seconds is not None and now + wait >= incident.entered_at.get(index, now) + rung.seconds:
            return "its time is up, or would be after the wait"
        if incident.deadline is not None and now + wait >= incident.deadline:
            return "the wait would outlast the total time"
    return ""


def _has_visible_effects(incident: Incident, failure: Failure) -> bool:
    """Would doing the same again be seen twice?"""
    evidence = failure.evidence
    return (evidence.output_started or evidence.side_effects) and not incident.terms.idempotent


def _hand_over(
    incident: Incident, failure: Failure, policy: Policy, index: int, skipped: list[Skip]
) -> Decision | None:
    rung = policy.ladder.rungs[index]
    if (
        failure.kind in INFRASTRUCTURE_KINDS
        and _has_visible_effects(incident, failure)
        and not _can_resume_elsewhere(failure, policy)
    ):
        skipped.append((index, _UNSAFE))  # it would be the same request, elsewhere
        return None
    target = _target(incident, failure, policy, rung)
    if target is None:
        skipped.append((index, "no other model or agent to hand over to"))
        return None
    model, agent = target
    known = policy.model(model)
    estimate = known.cost if known is not None and known.cost else None
    price = max(rung.cost, estimate or 0.0)
    if incident.dollar_cap is not None and incident.dollars + price > incident.dollar_cap:
        skipped.append((index, f"{model or agent} would cost ${price:.2f}, more than is left"))
        return None
    assert incident.request is not None  # noqa: S101  # _cannot_help has seen to it
    dearer = policy.costs_more(model, incident.request.model)
    early = rung.action is Action.ESCALATE and len(incident.failures) < policy.escalate_after
    must_ask = (
        policy.confirm is Confirm.ALWAYS
        or (policy.confirm is Confirm.MORE_EXPENSIVE and dearer)
        or (rung.action is Action.ESCALATE and not policy.auto_escalate)
        or early
    )
    if not must_ask:
        return HandOver(index, model, agent, estimate, failure.kind, tuple(skipped))
    what = f"hand over from {incident.request.model or incident.request.agent or 'here'} to {model or agent}"
    if not incident.terms.attended:
        return Finish(index, Status.BLOCKED, f"leave to {what} is needed, and nobody is there", tuple(skipped))
    price_words = "at an unknown cost" if estimate is None else f"for about ${estimate:.2f}"
    options = (Option("approve", f"Go on with {model or agent}"), Option("decline", "Not that one"), STOP)
    question = f"{failure.kind}: {what}, {price_words}?"
    return Ask(index, question, options, estimate, model, agent, failure.kind, tuple(skipped))


def _can_resume_elsewhere(failure: Failure, policy: Policy) -> bool:
    """Can the other one go on with a broken answer? Where a ladder resumes at all, it can."""
    return is_resumable(failure) and any(rung.action is Action.RESUME for rung in policy.ladder.rungs)


def _target(incident: Incident, failure: Failure, policy: Policy, rung: Rung) -> tuple[str, str] | None:
    """The model and agent to hand over to; None when there is nobody left."""
    request = incident.request
    assert request is not None  # noqa: S101  # _cannot_help has seen to it
    agent = next((name for name in policy.agents if name not in incident.agents), None)
    by_agent = None if agent is None or rung.action is Action.ESCALATE else (request.model, agent)
    model = _next_model(incident, failure, policy, rung)
    by_model = None if model is None else (model, request.agent)
    if failure.kind is Kind.QUOTA_EXHAUSTED:
        return by_model  # another agent on the same model has the same empty purse
    if failure.kind is Kind.CAPABILITY_MISMATCH:
        return by_agent or by_model
    return by_model or by_agent


def _next_model(incident: Incident, failure: Failure, policy: Policy, rung: Rung) -> str | None:
    assert incident.first_request is not None  # noqa: S101  # as in _target
    here = incident.first_request.model
    untried = [model.name for model in policy.models if model.name not in incident.models]
    above = [name for name in untried if policy.rank(name) > policy.rank(here)]
    below = [name for name in untried if policy.rank(name) < policy.rank(here)]
    if failure.kind is Kind.QUOTA_EXHAUSTED:  # money is gone: never to a dearer one
        return next((name for name in reversed(untried) if not policy.costs_more(name, here)), None)
    if above:
        return above[0]
    if rung.action is Action.ESCALATE or failure.kind is Kind.CAPABILITY_MISMATCH:
        return None
    return below[-1] if below else None


def _ending(
    incident: Incident, failure: Failure, policy: Policy, index: int, why_not: str, skipped: tuple[Skip, ...]
) -> Decision:
    rung = policy.ladder.rungs[index]
    if rung.action is Action.FORCE_DONE:
        if why_not:
            return _finish(policy, failure.headline(), skipped)
        return Change(index, Action.FORCE_DONE, 0.0, failure.headline(), skipped)
    if not incident.terms.attended or why_not:
        return _finish(policy, failure.headline(), skipped)
    options = [Option("retry", "Try again as it was"), STOP]
    if incident.request is not None:
        model = _next_model(incident, failure, policy, rung)
        other = Option("replan", "Try another approach")
        options.insert(1, other if model is None else Option(f"model:{model}", f"Try with {model}"))
    question = f"{failure.headline()} What now?"
    return Ask(index, question, tuple(options), None, "", "", failure.kind, skipped)


def _finish(policy: Policy, reason: str, skipped: tuple[Skip, ...]) -> Finish:
    last = len(policy.ladder.rungs) - 1
    return Finish(last, _ENDING_STATUS[policy.ladder.rungs[last].action], reason, skipped)
