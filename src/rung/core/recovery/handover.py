"""Handover: to which model or agent, when a person must approve it, and why it is not possible. Pure functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.core.domain.dollars import format_dollars
from rung.core.domain.events import Ask, Decision, Finish, HandOver, Option, Skip, Status
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, Kind, is_resumable
from rung.core.domain.ladder import Action, Rung, RungScope
from rung.core.policy.policy import Confirm
from rung.core.recovery.limits import why_too_expensive
from rung.core.recovery.replay_safety import UNSAFE_REPLAY, has_visible_effects

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Model, Policy

_SAME_ACCOUNT: Final = "no other model may be used, and the other agents share the exhausted account"
_UNKNOWN_ACCOUNT: Final = "no other model is known to have another account, as one of another `provider` is"
# Failures of an account: only an agent with another account can help.
_ACCOUNT_KINDS: Final = frozenset({Kind.QUOTA_EXHAUSTED, Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS})
STOP_OPTION: Final = Option("stop", "Stop and keep the results so far")


def hand_over(incident: Incident, failure: Failure, policy: Policy, index: int, skipped: list[Skip]) -> Decision | None:
    """Return the handover of a rung, or the question about it; None, with a reason in `skipped`, if there is none."""
    rung = policy.ladder.rungs[index]
    if (
        failure.kind in INFRASTRUCTURE_KINDS
        and has_visible_effects(incident, failure)
        and not _can_resume_elsewhere(failure, policy)
    ):
        skipped.append((index, UNSAFE_REPLAY))  # the new target would get the unchanged request
        return None
    target = _target(incident, failure, policy, rung)
    if target is None:
        skipped.append((index, _no_target(incident, failure, policy)))
        return None
    model, agent = target
    listed = policy.model(model)
    estimate = listed.cost if listed is not None and listed.cost else None
    price = max(rung.cost, estimate or 0.0)
    if too_expensive := why_too_expensive(incident, model or agent, price):
        skipped.append((index, too_expensive))
        return None
    assert incident.request is not None  # noqa: S101  # checked by the caller
    is_unpriced = incident.dollar_cap is not None and estimate is None and model != incident.request.model
    if is_unpriced and not incident.terms.attended:
        skipped.append((index, f"the price of {model} is unknown, and the budget is in dollars: set its `cost`"))
        return None
    costs_more = policy.costs_more(model, incident.request.model)
    changes_model = model != incident.request.model and target != incident.session_target
    needs_approval = (
        policy.confirm is Confirm.ALWAYS
        or (policy.confirm is Confirm.MORE_EXPENSIVE and costs_more)
        or (changes_model and not may_escalate(incident, policy))
        or is_unpriced
    )
    if not needs_approval:
        return HandOver(index, model, agent, estimate, failure.kind, tuple(skipped))
    what = f"hand over from {incident.request.model or incident.request.agent or 'here'} to {model or agent}"
    if not incident.terms.attended:
        return Finish(
            index, Status.BLOCKED, f"approval to {what} is required, and the run is unattended", tuple(skipped)
        )
    cost = "at an unknown cost" if estimate is None else f"for about {format_dollars(estimate)}"
    options = (Option("approve", f"Continue with {model or agent}"), Option("decline", "Do not use it"), STOP_OPTION)
    question = f"{failure.kind}: {what}, {cost}?"
    return Ask(index, question, options, estimate, model, agent, failure.kind, tuple(skipped))


def _no_target(incident: Incident, failure: Failure, policy: Policy) -> str:
    """Return that nothing is left to hand over to, and why the rejected and the declined targets are out."""
    if failure.kind is Kind.QUOTA_EXHAUSTED and policy.agents:
        return _SAME_ACCOUNT
    if failure.kind in _ACCOUNT_KINDS and any(model.name not in incident.models for model in policy.models):
        return _UNKNOWN_ACCOUNT
    reasons = ("no other model or agent to hand over to", describe_rejected(incident), _describe_declined(incident))
    return "; ".join(filter(None, reasons))


def describe_rejected(incident: Incident) -> str:
    """Return the targets that failed for reasons of their own, with those; empty if there are none."""
    return "; ".join(
        f"{_target_name(incident, model, agent)} failed: {failure.headline()}"
        for (model, agent), failure in incident.rejected.items()
    )


def _describe_declined(incident: Incident) -> str:
    """Return the targets that a person does not want; empty if there are none."""
    names = sorted(_target_name(incident, model, agent) for model, agent in incident.declined)
    return f"a person declined {', '.join(names)}" if names else ""


def _target_name(incident: Incident, model: str, agent: str) -> str:
    """Return the agent of a target if it is another one than the first, else the model."""
    first = incident.first_request
    return agent if first is not None and agent != first.agent else model


def may_escalate(incident: Incident, policy: Policy) -> bool:
    """Whether another model may take over now without a person's approval, as far as it is about escalation."""
    is_early = policy.escalate_after is not None and incident.retries_of_model < policy.escalate_after
    return policy.auto_escalate and not is_early


def is_escalation_due(incident: Incident, policy: Policy) -> bool:
    """Whether another model takes over now, whatever the rungs below could still try."""
    return policy.escalate_after is not None and may_escalate(incident, policy)


def used_by_session(incident: Incident, rung: Rung) -> int:
    """Return the tries of a rung that earlier calls of the session have used."""
    return dict(incident.session_used).get(rung.name, 0) if rung.scope is RungScope.SESSION else 0


def can_follow_session(incident: Incident, policy: Policy) -> bool:
    """Whether the session was handed over to a model or agent that this call knows and has not tried yet."""
    target, request = incident.session_target, incident.request
    if target is None or request is None:
        return False
    model, agent = target
    is_known = model == request.model or policy.model(model) is not None
    is_known = is_known and (agent == request.agent or agent in policy.agents)
    return is_known and (model not in incident.models or agent not in incident.agents)


def _can_resume_elsewhere(failure: Failure, policy: Policy) -> bool:
    """Whether another model can resume the broken answer: the failure is resumable, and the ladder has a resume rung."""
    return is_resumable(failure) and any(rung.action is Action.RESUME for rung in policy.ladder.rungs)


def _target(incident: Incident, failure: Failure, policy: Policy, rung: Rung) -> tuple[str, str] | None:
    """Return the model and agent to hand over to; None if none is left."""
    request = incident.request
    assert request is not None  # noqa: S101  # checked by the caller
    if can_follow_session(incident, policy):
        followed = incident.session_target
        assert followed is not None  # noqa: S101  # checked above
        if failure.kind is not Kind.QUOTA_EXHAUSTED or not policy.costs_more(followed[0], request.model):
            return followed
        if used_by_session(incident, rung) >= rung.tries:
            return None  # a switch of its own would be one more than the session has
    agent = next((name for name in policy.agents if name not in incident.agents), None)
    if failure.kind in _ACCOUNT_KINDS:
        agent = _agent_of_another_account(incident, request, policy)
    by_agent = None if agent is None or rung.action is Action.ESCALATE else (request.model, agent)
    model = next_model(incident, failure, policy, rung)
    by_model = None if model is None else (model, request.agent)
    if by_agent is not None and not may_escalate(incident, policy):
        by_model = None  # what needs no approval comes first
    if failure.kind in _ACCOUNT_KINDS:
        is_known = policy.same_account is not None
        if is_known and by_agent is not None:
            return by_agent
        elsewhere = _model_of_another_account(incident, policy)
        if elsewhere is not None and rung.action is not Action.ESCALATE:
            return elsewhere, request.agent
        if failure.kind is not Kind.QUOTA_EXHAUSTED:
            return None  # another model, or another agent of the same account, has the same key
    if failure.kind is Kind.CAPABILITY_MISMATCH:
        return by_agent or by_model
    return by_model or by_agent


def _agent_of_another_account(incident: Incident, request: Request, policy: Policy) -> str | None:
    """Return the next agent that is not known to share the account. On the same model, agents share it by default."""
    shared = policy.same_account
    if shared is None:
        shared = policy.agents if request.model else ()
    return next((name for name in policy.agents if name not in incident.agents and name not in shared), None)


def _model_of_another_account(incident: Incident, policy: Policy) -> str | None:
    """Return the next model of a provider that is known to have another account: by the policy, else another provider."""
    shared = policy.same_account
    if shared is None:
        failed = {model.provider for model in policy.models if model.name in incident.models}
        if not failed or "" in failed:
            return None
        shared = tuple(failed)
    untried = (model for model in policy.models if model.name not in incident.models)
    return next((model.name for model in untried if model.provider and model.provider not in shared), None)


def next_model(incident: Incident, failure: Failure, policy: Policy, rung: Rung) -> str | None:
    """Return the model to hand over to: the next one above the first, else one below; None if none is left."""
    assert incident.first_request is not None  # noqa: S101  # checked by the caller
    here = incident.first_request.model
    untried = [model.name for model in policy.models if model.name not in incident.models]
    above = [name for name in untried if policy.rank(name) > policy.rank(here)]
    below = [name for name in untried if policy.rank(name) < policy.rank(here)]
    if failure.kind is Kind.QUOTA_EXHAUSTED:  # never move to a more expensive model
        return next((name for name in reversed(untried) if not policy.costs_more(name, here)), None)
    if above:
        return above[0]
    if rung.action is Action.ESCALATE or failure.kind is Kind.CAPABILITY_MISMATCH:
        return None
    return below[-1] if below else None


def with_windows(models: tuple[Model, ...], known: Callable[[str], int | None]) -> tuple[Model, ...]:
    """Return the models with their context windows; `known` gives that of a model for which the policy has none."""
    return tuple(model if model.window else replace(model, window=known(model.name) or 0) for model in models)


def with_enough_room(models: tuple[Model, ...], own: str, tokens: int) -> tuple[Model, ...]:
    """Return the models whose context window has room for a request of this many tokens.

    If that leaves no other model than the own one, all are returned: a request that is compacted for a smaller window is
    better than none.
    """
    fitting = tuple(model for model in models if not model.window or model.window > tokens)
    return fitting if any(model.name != own for model in fitting) else models
