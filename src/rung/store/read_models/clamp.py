"""An event as tables can hold it: the event itself is kept as it is; what is read off it must be countable."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev

if TYPE_CHECKING:
    from rung.core.domain.request import Request

LAST: Final = 253_402_300_799.0  # the end of the year 9999
MOST: Final = 1e12  # seconds or dollars: above it nobody counts, and sums stay far from what a float can hold
NAME: Final = 200  # characters of a name by which is counted: an index takes no more than a page


def fitted(event: ev.Event) -> ev.Event:
    """The event, with numbers that can be added up and names that can be looked up; most are as they came."""
    if not 0.0 <= event.at <= LAST:
        event = _with(event, at=min(LAST, _number(event.at, 0.0)))
    if isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded):
        if not (-MOST <= event.seconds <= MOST and -MOST <= event.dollars <= MOST):
            event = _with(event, seconds=_number(event.seconds), dollars=_number(event.dollars))
    elif isinstance(event, ev.Opened):
        event = _opened(event)
    elif isinstance(event, ev.Changed):
        request = _request(event.request)
        if request is not event.request:
            event = event._replace(request=request)
    elif isinstance(event, ev.Decided) and isinstance(event.decision, ev.HandOver):
        estimate = event.decision.estimate
        if estimate is not None and not -MOST <= estimate <= MOST:
            event = event._replace(decision=event.decision._replace(estimate=_number(estimate)))
    return event


def _opened(event: ev.Opened) -> ev.Opened:
    terms = event.terms
    if len(terms.project) > NAME or len(terms.session) > NAME:
        event = event._replace(terms=terms._replace(project=terms.project[:NAME], session=terms.session[:NAME]))
    if event.request is not None:
        request = _request(event.request)
        if request is not event.request:
            event = event._replace(request=request)
    return event


def _request(request: Request) -> Request:
    if len(request.model) > NAME or len(request.agent) > NAME:
        return request.replace(model=request.model[:NAME], agent=request.agent[:NAME])
    return request


def _number(number: float, least: float = -MOST) -> float:
    return max(least, min(MOST, number)) if isfinite(number) else 0.0


def _with(event: Any, **values: float) -> ev.Event:
    changed: ev.Event = event._replace(**values)
    return changed
