"""Clamping of event values to what the read models can store; the event itself is stored unchanged."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev

if TYPE_CHECKING:
    from rung.core.domain.request import Request

MAX_TIMESTAMP: Final = 253_402_300_799.0  # the end of the year 9999
MAX_AMOUNT: Final = 1e12  # seconds or dollars: keeps sums far below the limits of a float
MAX_NAME_CHARS: Final = 200  # of an indexed name: an index entry must fit into a page


def clamp(event: ev.Event) -> ev.Event:
    """Return the event with finite, bounded numbers and bounded names; most events are returned unchanged."""
    if not 0.0 <= event.at <= MAX_TIMESTAMP:
        event = _replace(event, at=min(MAX_TIMESTAMP, _clamp_number(event.at, 0.0)))
    if isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded):
        if not (-MAX_AMOUNT <= event.seconds <= MAX_AMOUNT and -MAX_AMOUNT <= event.dollars <= MAX_AMOUNT):
            event = _replace(event, seconds=_clamp_number(event.seconds), dollars=_clamp_number(event.dollars))
    elif isinstance(event, ev.Charged):
        event = event._replace(dollars=min(MAX_AMOUNT, max(0.0, _clamp_number(event.dollars))))
    elif isinstance(event, ev.Opened):
        event = _clamp_opened(event)
    elif isinstance(event, ev.Changed):
        request = _clamp_request(event.request)
        if request is not event.request:
            event = event._replace(request=request)
    elif isinstance(event, ev.Decided) and isinstance(event.decision, ev.HandOver):
        estimate = event.decision.estimate
        if estimate is not None and not -MAX_AMOUNT <= estimate <= MAX_AMOUNT:
            event = event._replace(decision=event.decision._replace(estimate=_clamp_number(estimate)))
    return event


def _clamp_opened(event: ev.Opened) -> ev.Opened:
    terms = event.terms
    if len(terms.project) > MAX_NAME_CHARS or len(terms.session) > MAX_NAME_CHARS:
        event = event._replace(
            terms=terms._replace(project=terms.project[:MAX_NAME_CHARS], session=terms.session[:MAX_NAME_CHARS])
        )
    if event.request is not None:
        request = _clamp_request(event.request)
        if request is not event.request:
            event = event._replace(request=request)
    return event


def _clamp_request(request: Request) -> Request:
    if len(request.model) > MAX_NAME_CHARS or len(request.agent) > MAX_NAME_CHARS:
        return request.replace(model=request.model[:MAX_NAME_CHARS], agent=request.agent[:MAX_NAME_CHARS])
    return request


def _clamp_number(number: float, minimum: float = -MAX_AMOUNT) -> float:
    return max(minimum, min(MAX_AMOUNT, number)) if isfinite(number) else 0.0


def _replace(event: Any, **values: float) -> ev.Event:
    changed: ev.Event = event._replace(**values)
    return changed
