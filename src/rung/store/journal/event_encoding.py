"""An event as it is kept: JSON, long texts cut to head and tail, and no secrets in it."""

from __future__ import annotations

import json
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.event_codec import from_json, json_name, record_from_json, record_to_json, to_json
from rung.core.domain.events import VERSION, AttemptFailed, AttemptSucceeded, Decided, Repeat
from rung.core.domain.failures import Failure

if TYPE_CHECKING:
    from rung.core.domain.events import Event, Skip

TEXT: Final = 64 * 1024  # of one text in an event
FAILURES: Final = 256  # whose JSON is remembered: the same trouble comes again and again, as the same object
_tersely: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class EncodedEvent(NamedTuple):
    """The event as it is kept: that one is read off. Its name, and its JSON."""

    event: Event
    name: str
    body: str


def kept(event: Event) -> EncodedEvent:
    """The event without secrets. The commonest are put together of parts that were looked at before, and numbers."""
    if type(event) is AttemptSucceeded:
        at, seconds, dollars = event
        if _countable(at, seconds, dollars):
            body = f'{{"v":{VERSION},"name":"{_SUCCEEDED}","at":{at!r},"seconds":{seconds!r},"dollars":{dollars!r}}}'
            return EncodedEvent(event, _SUCCEEDED, body)
    elif type(event) is AttemptFailed:
        known = _of_failure(event.failure)
        if known is not None and _countable(event.at, event.seconds, event.dollars):
            return _failed(event, known)
    elif type(event) is Decided and isinstance(event.decision, Repeat):
        at, (rung, wait, reason, skipped) = event.at, event.decision
        around = _around_wait(rung, reason, skipped)
        if around is not None and _countable(at, wait):
            body = f'{{"v":{VERSION},"name":"{_DECIDED}","at":{at!r},"decision":{around[0]}{wait!r}{around[1]}}}'
            return EncodedEvent(event, _DECIDED, body)
    return _kept(event)


_SUCCEEDED: Final = json_name(AttemptSucceeded)
_FAILED: Final = json_name(AttemptFailed)
_DECIDED: Final = json_name(Decided)
_REPEAT: Final = json_name(Repeat)
_TRUTH: Final = ("false", "true")


def _countable(*numbers: float) -> bool:
    """Are these what JSON writes as Python does?"""
    return {float}.issuperset(map(type, numbers)) and all(map(isfinite, numbers))


@lru_cache(maxsize=512)
def _around_wait(rung: int, reason: str, skipped: tuple[Skip, ...]) -> tuple[str, str] | None:
    """The JSON of a repeat before and after its wait; None when there is a secret in it, or a lot."""
    head = _tersely({"name": _REPEAT, "rung": rung})
    tail = _tersely({"reason": reason, "skipped": [list(each) for each in skipped]})
    around = f'{head[:-1]},"wait":', f",{tail[1:]}"
    whole = "0.0".join(around)
    return around if len(whole) <= TEXT and _clean(whole) == whole else None


class _EncodedFailure(NamedTuple):
    """One that was written before: without its secrets, and as JSON."""

    given: Failure
    clean: Failure
    body: str


_FAILURES: Final[dict[int, _EncodedFailure]] = {}


def _of_failure(failure: Failure) -> _EncodedFailure | None:
    known = _FAILURES.get(id(failure))
    if known is not None and known.given is failure:
        return known
    plain = _tersely(record_to_json(failure))
    if len(plain) > TEXT:
        return None
    body = _clean(plain)
    try:
        clean = failure if body == plain else record_from_json(Failure, json.loads(body))
    except ValueError:
        return None
    if len(_FAILURES) >= FAILURES:
        _FAILURES.clear()
    known = _FAILURES[id(failure)] = _EncodedFailure(failure, clean, body)
    return known


def _failed(event: AttemptFailed, known: _EncodedFailure) -> EncodedEvent:
    """The same as of any other event: around the failure there are only numbers."""
    at, _, seconds, dollars, may_retry, made = event
    body = (
        f'{{"v":{VERSION},"name":"{_FAILED}","at":{at!r},"failure":{known.body},"seconds":{seconds!r},'
        f'"dollars":{dollars!r},"may_retry":{_TRUTH[may_retry]},"made":{_TRUTH[made]}}}'
    )
    if known.clean is not known.given:
        event = event._replace(failure=known.clean)
    return EncodedEvent(event, _FAILED, body)


def _kept(event: Event) -> EncodedEvent:
    table = to_json(event)
    plain = _tersely(table)
    body = _clean(_tersely(_cut(table)) if len(plain) > TEXT else plain)
    if body != plain:
        try:
            event = from_json(json.loads(body))
        except ValueError:  # what was cut out began in one text and ended in another: each text by itself, then
            body = _tersely(_without_secrets(json.loads(plain)))
            body = _clean(body) if _is_event(_clean(body)) else body
            event = from_json(json.loads(body))
    return EncodedEvent(event, table["name"], body)


def _clean(body: str) -> str:
    body = redacted(body)
    return body if body.isascii() else body.encode("utf-8", "replace").decode()  # a lone surrogate is no UTF-8


def _is_event(body: str) -> bool:
    try:
        from_json(json.loads(body))
    except ValueError:
        return False
    return True


def _without_secrets(value: Any) -> Any:
    """The value with the secrets cut out of each of its texts, and each text cut to its head and tail."""
    if isinstance(value, str):
        return _clean(clip(value, TEXT))
    if isinstance(value, dict):
        return {name: _without_secrets(item) for name, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _cut(value: Any) -> Any:
    """The value with every long text cut to its head and tail."""
    if isinstance(value, str):
        return clip(value, TEXT)
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value
