"""Recorded events of a session's incidents as steps, for the search of its root cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain import events as ev
from rung.core.domain.failures import Phase
from rung.core.recovery.session_step import SessionStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.core.domain.request import Request

SESSION_LADDER: Final = "session"  # of an agent behind hooks: its failures are tool calls, not whole attempts


def steps_of_incidents(incidents: Iterable[Sequence[ev.Event]]) -> list[SessionStep]:
    """Return the attempts and failed calls of incidents, given in the order in which they were opened.

    They are numbered from 1 through the whole session; `where` names the incident.
    """
    found: list[SessionStep] = []
    for events in incidents:
        _add_incident(found, events)
    return found


def _add_incident(found: list[SessionStep], events: Sequence[ev.Event]) -> None:
    request: Request | None = None
    origin, identity, is_tool_session = None, "", False
    for event in events:
        if isinstance(event, ev.Opened):
            request, identity, is_tool_session = event.request, event.id, event.terms.ladder == SESSION_LADDER
        elif isinstance(event, ev.Changed):
            request = event.request
        elif isinstance(event, ev.AttemptFailed):
            found.append(_failed(event, len(found) + 1, request, origin, identity, is_tool=is_tool_session))
        elif isinstance(event, ev.AttemptSucceeded) and not is_tool_session:
            found.append(
                SessionStep(
                    number=len(found) + 1,
                    action=_ATTEMPT,
                    call=_call(request),
                    is_attempt=True,
                    origin=origin,
                    where=identity,
                )
            )
        elif isinstance(event, ev.Decided) and isinstance(event.decision, ev.HandOver) and found:
            origin = found[-1].number


_ATTEMPT: Final = "attempt"


def _failed(
    event: ev.AttemptFailed, number: int, request: Request | None, origin: int | None, identity: str, *, is_tool: bool
) -> SessionStep:
    failure = event.failure
    evidence = failure.evidence
    is_attempt = not is_tool or (not evidence.tool and evidence.phase is not Phase.RESULT)
    return SessionStep(
        number=number,
        action=_ATTEMPT if is_attempt else evidence.tool or failure.rule,
        call=_call(request) if is_attempt else "",
        text=failure.message or evidence.text,
        failed=True,
        kind=failure.kind,
        is_attempt=is_attempt,
        origin=origin if is_attempt else None,
        where=identity,
    )


def _call(request: Request | None) -> str:
    return "" if request is None else f"{request.model} {request.agent}".strip()
