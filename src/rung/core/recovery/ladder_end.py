"""End of the ladder: the last rung's decision, and the reason of an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.events import Ask, Change, Decision, Finish, Option, Skip, Status
from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action
from rung.core.domain.skipped_rungs import describe_skips, is_notable
from rung.core.recovery.handover import STOP_OPTION, describe_rejected, next_model
from rung.core.recovery.limits import why_not_affordable, why_too_expensive
from rung.core.recovery.written_answer import ambiguity_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.ladder import Rung
    from rung.core.policy.policy import Policy

ENDING_STATUS: Final[Mapping[Action, Status]] = {
    Action.FORCE_DONE: Status.PARTIAL,
    Action.SURFACE: Status.FAILED,
    Action.ASK: Status.BLOCKED,
}


def end_of_ladder(
    incident: Incident, failure: Failure, policy: Policy, index: int, why_not: str, skipped: tuple[Skip, ...]
) -> Decision:
    """Return the decision at the last rung: force-done, a question, or the end."""
    rung = policy.ladder.rungs[index]
    if rung.action is Action.FORCE_DONE:
        if why_not:
            skipped = (*skipped, (index, why_not)) if is_notable(why_not) else skipped
            return finish(policy, end_reason(incident, policy, failure, skipped), skipped)
        return Change(index, Action.FORCE_DONE, 0.0, end_reason(incident, policy, failure, skipped), skipped)
    if not incident.terms.attended or why_not:
        return finish(policy, end_reason(incident, policy, failure, skipped), skipped)
    too_expensive = why_not_affordable(incident, policy, incident.request)
    other = _other_model(incident, failure, policy, rung)
    if too_expensive:
        skipped = (*skipped, (index, too_expensive))
        if not other:
            return finish(policy, end_reason(incident, policy, failure, skipped), skipped)
    question = f"{_attempted(incident, policy)}{_as_sentence(failure.headline())} What should be done?"
    if failure.kind is Kind.STRATEGIC_AMBIGUITY and incident.request is not None:
        return Ask(index, question, ambiguity_options(failure), None, "", "", failure.kind, skipped)
    options = [] if too_expensive else [Option("retry", "Retry unchanged")]
    if other:
        options.append(Option(f"model:{other}", f"Try with {other}"))
    elif incident.request is not None:
        options.append(Option("replan", "Try another approach"))
    return Ask(index, question, (*options, STOP_OPTION), None, "", "", failure.kind, skipped)


def _other_model(incident: Incident, failure: Failure, policy: Policy, rung: Rung) -> str:
    """Return the model that a person may choose instead; empty if none is left, or it costs more than is left."""
    name = None if incident.request is None else next_model(incident, failure, policy, rung)
    model = None if name is None else policy.model(name)
    return "" if model is None or why_too_expensive(incident, model.name, model.cost or 0.0) else model.name


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _attempted(incident: Incident, policy: Policy) -> str:
    """Return what was attempted before a person is asked: the number of attempts, and the rungs with their tries."""
    names = []
    for index in incident.path:
        tries = incident.tries_used.get(index, 0)
        names.append(policy.ladder.rungs[index].name + (f" {tries} times" if tries > 1 else ""))
    made = f"{incident.attempts} attempt{'s' * (incident.attempts != 1)}"
    rungs = f" ({', '.join(names)})" if names else ""
    return f"After {made}{rungs}: " if incident.attempts else ""


def end_reason(incident: Incident, policy: Policy, failure: Failure, skipped: Sequence[Skip]) -> str:
    """Return the error that ends an incident, and why rungs that could have helped were not taken."""
    reasons = {**incident.exhausted, **dict(skipped)}
    if incident.rejected:
        reasons |= dict.fromkeys(incident.handover_rungs - {rung for rung, _ in skipped}, describe_rejected(incident))
    skips = describe_skips(sorted(reasons.items()), [rung.name for rung in policy.ladder.rungs])
    return f"{failure.headline()} ({skips})" if skips else failure.headline()


def off_reason(policy: Policy, failure: Failure) -> str:
    """Return the error that ends an incident of a policy without retries, and that its other targets were not asked."""
    has_others = len(policy.models) > 1 or policy.agents
    return f"{failure.headline()} (recovery is off: the policy has no retries)" if has_others else failure.headline()


def finish(policy: Policy, reason: str, skipped: tuple[Skip, ...]) -> Finish:
    """Return the end of the incident, with the status of the ladder's last rung."""
    last = len(policy.ladder.rungs) - 1
    return Finish(last, ENDING_STATUS[policy.ladder.rungs[last].action], reason, skipped)
