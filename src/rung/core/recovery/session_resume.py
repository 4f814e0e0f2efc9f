"""Going on in an agent's own session: which one the next attempt continues, and what the agent is told. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.domain.agent_session import is_fresh_start, is_from_outside
from rung.core.domain.events import Repeat
from rung.core.policy.prompts import render, without_task
from rung.core.text.quoted_data import quote_data

if TYPE_CHECKING:
    from rung.core.domain.agent_session import AgentSession
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy

CONTINUE_PROMPT: Final = "session.continue"
LOST_PROMPT: Final = "session.lost"
_MAX_CHANGES_CHARACTERS: Final = 1_500


def session_to_continue(incident: Incident, policy: Policy) -> AgentSession | None:
    """Return the session that the next attempt continues; None if it starts afresh."""
    request = incident.request
    if request is None or incident.failure is None or not policy.resume_sessions:
        return None
    return incident.agent_sessions.get(request.agent)


def continuation_prompt(incident: Incident, policy: Policy) -> str:
    """Return the text for an agent that continues its session: why it stopped, and a rung's text that it has not seen."""
    request, failure = incident.request, incident.failure
    assert request is not None  # noqa: S101  # a session is continued only after a failure of a request
    assert failure is not None  # noqa: S101
    told = "" if incident.session_told else without_task(request.recovery)
    if is_from_outside(failure):
        told = ""  # a rung's text would advise against what the work did not do
    if told and not isinstance(incident.decision, Repeat):
        return told  # the rung's text describes the failure
    text = render(CONTINUE_PROMPT, incident, failure, policy.prompts)
    return f"{text}\n\n{told}" if told else text


def handed_over_request(request: Request, incident: Incident, policy: Policy, changes: str) -> Request:
    """Return the request of an agent that starts afresh after a failure, with what is known of the work so far.

    `changes` describes the files that differ now. If nothing is known, the request is unchanged.
    """
    failure, first = incident.failure, incident.first_request
    if failure is None or first is None or not (changes or incident.steps or failure.evidence.output):
        return request
    parts = []
    if not (is_fresh_start(incident.decision) and request.recovery):  # the text of such a rung says what was done
        parts.append(render(LOST_PROMPT, incident, failure, policy.prompts))
        if is_from_outside(failure):
            request = request.replace(prompt=first.prompt, recovery="")  # a rung's text would advise against nothing
    if changes:
        parts.append(f"Files that differ now:\n{quote_data(clip(changes, _MAX_CHANGES_CHARACTERS), 'changed files')}")
    if not parts:
        return request
    task = request.prompt if request.recovery or not request.prompt else f"The task:\n{request.prompt}"
    text = "\n\n".join(part for part in (*parts, request.recovery) if part)
    return request.replace(prompt="\n\n".join(part for part in (*parts, task) if part), recovery=text)
