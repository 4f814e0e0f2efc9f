"""How each action makes a new request. Pure; the caller may bring its own for any action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.conversation.compaction import compacted, goal_for, size
from rung.core.conversation.repair import mended
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, Kind, is_resumable
from rung.core.domain.ladder import Action
from rung.core.policy.prompts import prompt_id, render

if TYPE_CHECKING:
    from rung.core.domain.events import Change, HandOver
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy

DEFAULT_OUTPUT: Final = 64_000


def change(decision: Change | HandOver, incident: Incident, failure: Failure, policy: Policy) -> tuple[Request, str]:
    """The new request a decision asks for, and the id of the prompt used (empty: none)."""
    request = incident.request
    assert request is not None  # noqa: S101  # decide changes nothing that is not a request
    action = policy.ladder.rungs[decision.rung].action
    action = getattr(decision, "action", action)
    if action is Action.RAISE_LIMIT:
        return request.replace(max_tokens=_more(request, policy)), ""
    if action is Action.COMPACT:
        return compact(request, failure), ""
    if action is Action.REPAIR:
        return request.replace(messages=tuple(mended(request.messages))), ""
    model = getattr(decision, "model", request.model)
    agent = getattr(decision, "agent", request.agent)
    if model != request.model or agent != request.agent:
        name = "handover.context"
        request = request.replace(model=model, agent=agent)
        if is_resumable(failure):
            name, action = prompt_id(Action.RESUME, failure), Action.RESUME
        elif failure.kind in INFRASTRUCTURE_KINDS:
            return request, ""  # the service failed, not the work: the same request, elsewhere
    else:
        name = prompt_id(action, failure)
    text = render(name, incident, failure, policy.prompts) + _not_again(decision, incident)
    if action is Action.RESPAWN:
        assert incident.first_request is not None  # noqa: S101  # there is a request, so there was a first one
        turns = None if request.max_turns is None else request.max_turns * 2
        request = request.replace(messages=incident.first_request.messages, max_turns=turns)  # a fresh start
    if failure.kind in (Kind.CONTEXT_LIMIT, Kind.CONTEXT_WARNING):
        request = compact(request, failure)  # words alone would only make it longer
    return _say(request, incident, text, failure, whole=action is not Action.RESUME), name


def _not_again(decision: Change | HandOver, incident: Incident) -> str:
    """On a second try of one rung: say what the first ones were, so that this one differs."""
    before = incident.tries_used.get(decision.rung, 1) - 1
    if before < 1:
        return ""
    return f"\n\nThis way has already been tried {before} time{'s' * (before > 1)}. Do not do the same again."


def compact(request: Request, failure: Failure) -> Request:
    """A smaller request: its messages compacted as far as the failure asks for."""
    if not request.messages:
        return request
    goal = goal_for(failure, size(request.messages))
    return request.replace(messages=tuple(compacted(request.messages, goal)))


def _more(request: Request, policy: Policy) -> int:
    known = policy.model(request.model)
    most = known.max_tokens if known is not None else DEFAULT_OUTPUT
    return max(most, request.max_tokens or 0)


def _say(request: Request, incident: Incident, text: str, failure: Failure, *, whole: bool) -> Request:
    """Put the recovery text where the attempt will read it: a further message, or the prompt itself."""
    if request.messages:
        partial = ({"role": "assistant", "content": failure.evidence.output},)
        kept = () if whole or not failure.evidence.output else partial
        return request.replace(messages=(*request.messages, *kept, {"role": "user", "content": text}), recovery=text)
    if whole:
        return request.replace(prompt=text, recovery=text)
    task = incident.first_request.prompt if incident.first_request is not None else request.prompt
    so_far = f"\n\nYour answer so far:\n{incident.partial_output}" if incident.partial_output else ""
    return request.replace(prompt=f"{task}{so_far}\n\n{text}", recovery=text)
