"""Event encoding: an event as JSON, redacted, with long texts clipped to head and tail."""

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

MAX_TEXT_CHARS: Final = 64 * 1024  # of one text in an event
MAX_CACHED_FAILURES: Final = 256  # encoded failures in the cache: the same failure object recurs within an incident
_dump: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class EncodedEvent(NamedTuple):
    """Event as it is stored: redacted, with its name and its JSON. Read models are derived from this event."""

    event: Event
    name: str
    body: str


def encode(event: Event) -> EncodedEvent:
    """Encode an event without secrets.

    The most frequent events are assembled from cached, already redacted parts and numbers.
    """
    if type(event) is AttemptSucceeded:
        at, seconds, dollars, verified = event
        if _are_json_floats(at, seconds, dollars):
            numbers = f'"at":{at!r},"seconds":{seconds!r},"dollars":{dollars!r}'
            body = f'{{"v":{VERSION},"name":"{_SUCCEEDED}",{numbers},"verified":{_BOOLEANS[verified]}}}'
            return EncodedEvent(event, _SUCCEEDED, body)
    elif type(event) is AttemptFailed:
        encoded = _encode_failure(event.failure)
        if encoded is not None and _are_json_floats(event.at, event.seconds, event.dollars):
            return _encode_attempt_failed(event, encoded)
    elif type(event) is Decided and isinstance(event.decision, Repeat) and event.decision[4:] == _NO_WAIT:
        at, (rung, wait, reason, skipped, *_) = event.at, event.decision
        around = _around_wait(rung, reason, skipped)
        if around is not None and _are_json_floats(at, wait):
            body = f'{{"v":{VERSION},"name":"{_DECIDED}","at":{at!r},"decision":{around[0]}{wait!r}{around[1]}}}'
            return EncodedEvent(event, _DECIDED, body)
    return _encode_any(event)


_NO_WAIT: Final = (None, False, False)  # `until`, `parked` and `other_key` of a retry
_SUCCEEDED: Final = json_name(AttemptSucceeded)
_FAILED: Final = json_name(AttemptFailed)
_DECIDED: Final = json_name(Decided)
_REPEAT: Final = json_name(Repeat)
_BOOLEANS: Final = ("false", "true")


def _are_json_floats(*numbers: float) -> bool:
    """Return whether `repr` of all these numbers is their JSON."""
    return {float}.issuperset(map(type, numbers)) and all(map(isfinite, numbers))


@lru_cache(maxsize=512)
def _around_wait(rung: int, reason: str, skipped: tuple[Skip, ...]) -> tuple[str, str] | None:
    """Return the JSON of a repeat decision before and after its wait; None when it needs redaction or clipping."""
    head = _dump({"name": _REPEAT, "rung": rung})
    rest = dict(zip(Repeat._fields[4:], _NO_WAIT, strict=True))
    tail = _dump({"reason": reason, "skipped": [list(each) for each in skipped], **rest})
    around = f'{head[:-1]},"wait":', f",{tail[1:]}"
    whole = "0.0".join(around)
    return around if len(whole) <= MAX_TEXT_CHARS and _redact(whole) == whole else None


class _EncodedFailure(NamedTuple):
    """Cached encoding of a failure: the original, its redacted copy, and the JSON of that copy."""

    original: Failure
    redacted: Failure
    body: str


_FAILURES: Final[dict[int, _EncodedFailure]] = {}  # by the id of the failure object


def _encode_failure(failure: Failure) -> _EncodedFailure | None:
    """Encode a failure, from the cache when possible; None when it is too long or redaction breaks its JSON."""
    cached = _FAILURES.get(id(failure))
    if cached is not None and cached.original is failure:
        return cached
    plain = _dump(record_to_json(failure))
    if len(plain) > MAX_TEXT_CHARS:
        return None
    body = _redact(plain)
    try:
        redacted_failure = failure if body == plain else record_from_json(Failure, json.loads(body))
    except ValueError:
        return None
    if len(_FAILURES) >= MAX_CACHED_FAILURES:
        _FAILURES.clear()
    encoded = _FAILURES[id(failure)] = _EncodedFailure(failure, redacted_failure, body)
    return encoded


def _encode_attempt_failed(event: AttemptFailed, failure: _EncodedFailure) -> EncodedEvent:
    """Encode a failed attempt around its encoded failure; all other fields are numbers."""
    at, _, seconds, dollars, may_retry, made = event
    body = (
        f'{{"v":{VERSION},"name":"{_FAILED}","at":{at!r},"failure":{failure.body},"seconds":{seconds!r},'
        f'"dollars":{dollars!r},"may_retry":{_BOOLEANS[may_retry]},"made":{_BOOLEANS[made]}}}'
    )
    if failure.redacted is not failure.original:
        event = event._replace(failure=failure.redacted)
    return EncodedEvent(event, _FAILED, body)


def _encode_any(event: Event) -> EncodedEvent:
    """Encode an event of any type through the codec."""
    table = to_json(event)
    plain = _dump(table)
    body = _redact(_dump(_clip_texts(table)) if len(plain) > MAX_TEXT_CHARS else plain)
    if body != plain:
        try:
            event = from_json(json.loads(body))
        except ValueError:  # a redaction spanned two texts and broke the JSON: redact each text by itself
            body = _dump(_redact_texts(json.loads(plain)))
            body = _redact(body) if _is_event(_redact(body)) else body
            event = from_json(json.loads(body))
    return EncodedEvent(event, table["name"], body)


def _redact(body: str) -> str:
    body = redacted(body)
    return body if body.isascii() else body.encode("utf-8", "replace").decode()  # a lone surrogate is not UTF-8


def _is_event(body: str) -> bool:
    try:
        from_json(json.loads(body))
    except ValueError:
        return False
    return True


def _redact_texts(value: Any) -> Any:
    """Redact and clip each text in a JSON value."""
    if isinstance(value, str):
        return _redact(clip(value, MAX_TEXT_CHARS))
    if isinstance(value, dict):
        return {name: _redact_texts(item) for name, item in value.items()}
    return [_redact_texts(item) for item in value] if isinstance(value, list) else value


def _clip_texts(value: Any) -> Any:
    """Clip each long text in a JSON value to its head and tail."""
    if isinstance(value, str):
        return clip(value, MAX_TEXT_CHARS)
    if isinstance(value, dict):
        return {name: _clip_texts(item) for name, item in value.items()}
    return [_clip_texts(item) for item in value] if isinstance(value, list) else value
