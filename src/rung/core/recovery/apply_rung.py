"""Apply a rung: build the next request for each action. Pure; a caller can replace any action by its own handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.conversation.compaction import compact_messages, count_characters, target_characters
from rung.core.conversation.repair import repair_history
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, Kind, is_resumable
from rung.core.domain.ladder import Action
from rung.core.policy.prompts import prompt_id, render
from rung.core.recovery.written_answer import is_written_answer

if TYPE_CHECKING:
    from rung.core.domain.events import Change, HandOver
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy

ANSWERED_PROMPT: Final = "ask.answered"
DEFAULT_MAX_OUTPUT_TOKENS: Final = 64_000
# The provider failed, or the request is too long, which a text would make worse.
_NO_FAULT_OF_THE_WORK: Final = INFRASTRUCTURE_KINDS | {Kind.CONTEXT_LIMIT}


def apply_rung(
    decision: Change | HandOver, incident: Incident, failure: Failure, policy: Policy
) -> tuple[Request, str]:
    """Return the request that the decision asks for, and the id of the prompt used (empty: none)."""
    request = incident.request
    assert request is not None  # noqa: S101  # decide returns such a decision only for requests
    if incident.target_rejected and incident.left_for is not None:
        failure = incident.left_for  # the rejected target's own failure tells the next one nothing
    action = policy.ladder.rungs[decision.rung].action
    action = getattr(decision, "action", action)
    if action is Action.RAISE_LIMIT:
        return request.replace(max_tokens=_raised_limit(request, policy)), ""
    if action is Action.COMPACT:
        return compact(request, failure, policy), ""
    if action is Action.REPAIR:
        return request.replace(messages=tuple(repair_history(request.messages))), ""
    model = getattr(decision, "model", request.model)
    agent = getattr(decision, "agent", request.agent)
    if model != request.model or agent != request.agent:
        name = "handover.context"
        request = request.replace(model=model, agent=agent)
        if is_resumable(failure):
            name, action = prompt_id(Action.RESUME, failure), Action.RESUME
        elif failure.kind in _NO_FAULT_OF_THE_WORK:  # the new target gets the request without a text
            return compact(request, failure, policy) if failure.kind is Kind.CONTEXT_LIMIT else request, ""
    else:
        name = _prompt_of(action, request, incident, failure)
    text = render(name, incident, failure, policy.prompts)
    if name != ANSWERED_PROMPT:
        text += _repeat_warning(decision, incident)
    if action is Action.RESPAWN:
        assert incident.first_request is not None  # noqa: S101  # set together with `request`
        request = request.replace(messages=incident.first_request.messages)  # drop the failed conversation
        if failure.kind is Kind.TURNS_EXHAUSTED and request.max_turns is not None:
            request = request.replace(max_turns=request.max_turns * 2)
    if failure.kind in (Kind.CONTEXT_LIMIT, Kind.CONTEXT_WARNING):
        request = compact(request, failure, policy)  # a recovery text alone would make the context longer
    return _with_recovery_text(request, incident, text, failure, includes_task=action is not Action.RESUME), name


def _prompt_of(action: Action, request: Request, incident: Incident, failure: Failure) -> str:
    """Return the id of the prompt: that of the action and the failure, unless a person answered or turns have no limit."""
    if action is Action.RETRY_WITH_CONTEXT and is_written_answer(incident.answer):
        return ANSWERED_PROMPT
    name = prompt_id(action, failure)
    return "respawn.narrower" if name == "respawn.longer" and request.max_turns is None else name


def _repeat_warning(decision: Change | HandOver, incident: Incident) -> str:
    """Return a sentence that tells the model how often this rung was tried before; empty on the first try."""
    tries = incident.tries_used.get(decision.rung, 1) - 1
    if tries < 1:
        return ""
    return f"\n\nThis approach has already been tried {tries} time{'s' * (tries > 1)}. Do not repeat it."


def compact(request: Request, failure: Failure, policy: Policy) -> Request:
    """Return the request with its messages compacted to the size that the failure allows."""
    if not request.messages:
        return request
    target = target_characters(failure, count_characters(request.messages))
    smaller = compact_messages(request.messages, target, elide_text=policy.elide_text)
    return request.replace(messages=tuple(smaller))


def _raised_limit(request: Request, policy: Policy) -> int:
    """Return the largest output limit of the request's model."""
    model = policy.model(request.model)
    limit = model.max_tokens if model is not None else DEFAULT_MAX_OUTPUT_TOKENS
    return max(limit, request.max_tokens or 0)


def _with_recovery_text(
    request: Request, incident: Incident, text: str, failure: Failure, *, includes_task: bool
) -> Request:
    """Return the request with the recovery text as its last message or as its prompt.

    A text that includes the task replaces the prompt. A resume text follows the task and the partial answer.
    """
    if request.messages:
        partial = ({"role": "assistant", "content": failure.evidence.output},)
        quoted = () if includes_task or not failure.evidence.output else partial
        return request.replace(messages=(*request.messages, *quoted, {"role": "user", "content": text}), recovery=text)
    if includes_task:
        return request.replace(prompt=text, recovery=text)
    task = incident.first_request.prompt if incident.first_request is not None else request.prompt
    so_far = f"\n\nYour answer so far:\n{incident.partial_output}" if incident.partial_output else ""
    return request.replace(prompt=f"{task}{so_far}\n\n{text}", recovery=text)
