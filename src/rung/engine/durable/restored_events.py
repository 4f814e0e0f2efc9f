"""Events of an interrupted durable run, made whole again with the steps of the run and the request of its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.domain import events as ev
from rung.core.domain.errors import RunNotResumable
from rung.core.domain.event_codec import from_json, record_to_json
from rung.core.recovery.request_change import apply_change, describe_change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.request import Request


def changes_of(first: int, events: Sequence[Event], base: Request | None) -> dict[str, Any]:
    """Return the steps that record the changed requests in these events, by key."""
    return {
        f"request.{n}": _change(base, event.request)
        for n, event in enumerate(events, first)
        if isinstance(event, ev.Changed) and base is not None
    }


def restore_events(run: str, events: Sequence[Event], steps: Mapping[str, Any], request: Request | None) -> list[Event]:
    """Return the events with the caller's own request and the changes of the rungs applied to it.

    Raise RunNotResumable if a request cannot be made whole: a resumed run is never given the journal's altered copy.
    """
    whole: list[Event] = []
    for n, event in enumerate(events):
        if isinstance(event, ev.Opened):
            whole.append(event._replace(request=request))
        elif isinstance(event, ev.Changed) and request is not None:
            changed = _changed_request(run, event, steps.get(f"request.{n}"), request)
            whole.append(event._replace(request=changed, digest=changed.digest()))
        else:
            stored = steps.get(f"event.{n}")
            whole.append(event if stored is None else from_json(stored))
    return whole


def _change(base: Request, changed: Request) -> dict[str, Any]:
    try:
        return describe_change(base, changed)
    except TypeError as error:
        return {"unrecorded": f"a rung's request has a value that cannot be recorded: {error}"}


def _changed_request(run: str, event: ev.Changed, change: Mapping[str, Any] | None, request: Request) -> Request:
    if change is None:  # recorded by an older version: its copy is used only if nothing is missing in it
        if _is_altered(record_to_json(event.request)):
            raise RunNotResumable(
                run, "the journal holds a rung's request only with its secrets and long texts removed"
            )
        return event.request
    if "unrecorded" in change:
        raise RunNotResumable(run, change["unrecorded"])
    try:
        return apply_change(request, change)
    except LookupError as error:
        raise RunNotResumable(run, f"it was started with another request: {error.args[0]}") from None


def _is_altered(value: Any) -> bool:
    """Return whether the journal redacted or clipped a text."""
    if isinstance(value, str):
        return "<secret:" in value or " characters left out …\n" in value
    if isinstance(value, dict):
        return any(map(_is_altered, value.values()))
    return isinstance(value, list) and any(map(_is_altered, value))
