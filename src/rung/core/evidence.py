"""Reading evidence off what Python hands us: exceptions, responses, mappings and plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from rung.core.errors import AttemptError, Refused, TimeUp
from rung.core.failures import NO_HEADERS, Evidence, Kind, Phase

TEXT_LIMIT: Final = 8_192
CODE_LIMIT: Final = 200
CHAIN_LIMIT: Final = 16
_BYTES: Final = (bytes, bytearray)
_DULL: Final = frozenset({object, BaseException, Exception})


def evidence_of(trouble: object) -> Evidence:
    """The facts in an exception, an HTTP-like mapping, a text, or evidence itself."""
    if isinstance(trouble, Evidence):
        return trouble
    if isinstance(trouble, BaseException):
        return _of_exception(trouble)
    if isinstance(trouble, Mapping):
        return _of_mapping(trouble)
    return Evidence(text=clip(_words(trouble)))


def clip(text: str, limit: int = TEXT_LIMIT) -> str:
    """Head and tail of a text: the first lines say what was done, the last ones what went wrong."""
    if len(text) <= limit:
        return text
    mark = f"\n… {len(text) - limit} characters left out …\n"
    head = (limit - len(mark)) // 2
    if head <= 0:
        return text[:limit]
    return text[:head] + mark + text[-(limit - len(mark) - head) :]


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asked us to wait, from `retry-after-ms` or `retry-after`; None if unsaid."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        said = headers.get(name)
        if said is None:
            continue
        try:
            seconds = float(said) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _of_exception(error: BaseException) -> Evidence:
    carried = carried_evidence(error)
    if carried is not None:
        return carried
    names: list[str] = []
    status: int | None = None
    errno: int | None = None
    code = ""
    headers = NO_HEADERS
    for link in _chain(error):
        names.extend(_class_names(type(link)))
        if status is None:
            response = _read(link, "response")
            status = _status_of(link, response)
            headers = _headers_of(response, link) or headers
        if errno is None and isinstance(link, OSError):
            errno = _whole(_read(link, "errno"))
        code = code or _text_attribute(link, "code") or _text_attribute(link, "type")
    return Evidence(
        text=clip(_words(error) or type(error).__name__),
        status=status,
        code=code,
        headers=headers,
        exceptions=tuple(names),
        errno=errno,
        retry_after=retry_after_of(headers),
    )


def carried_evidence(error: BaseException) -> Evidence | None:
    """Evidence the exception was given by whoever raised it, rather than read off its class."""
    attached = _read(error, "__rung_evidence__")  # by an inner recovery: it knows more than the attempt did
    if attached is None and isinstance(error, AttemptError):
        attached = _read(error, "evidence")
    if isinstance(attached, Evidence):
        return attached
    if isinstance(error, Refused):
        return Evidence(text=str(error), code="circuit_open", finding=Kind.SERVICE_DOWN, retry_after=error.retry_after)
    if isinstance(error, TimeUp):
        return Evidence(text=str(error), exceptions=("rung.TimeUp", "TimeoutError"), phase=Phase.LIMIT)
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what caused it, outermost first; cycles and endless chains end."""
    chain: list[BaseException] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(chain) < CHAIN_LIMIT:
        seen.add(id(link))
        chain.append(link)
        try:
            hidden = None if link.__suppress_context__ else link.__context__
            link = hidden if link.__cause__ is None else link.__cause__
        except Exception:  # a foreign attribute may do anything
            break
    return chain


def _class_names(cls: type) -> list[str]:
    return [
        base.__name__ if base.__module__ == "builtins" else f"{base.__module__}.{base.__name__}"
        for base in cls.__mro__
        if base not in _DULL
    ] or [cls.__name__]


def _words(value: object) -> str:
    """The text of anything; of what has none, the name of its class."""
    try:
        return value.decode("utf-8", "replace") if isinstance(value, _BYTES) else str(value)
    except Exception:  # a foreign __str__ may do anything
        return type(value).__name__


def _read(holder: object, name: str) -> Any:
    """An attribute; None where there is none, or where reading it breaks."""
    try:
        return getattr(holder, name, None)
    except Exception:  # a foreign property may do anything
        return None


def _text_attribute(link: BaseException, name: str) -> str:
    value = _read(link, name)
    return value[:CODE_LIMIT] if isinstance(value, str) else ""


def _status_of(*holders: object) -> int | None:
    for holder in holders:
        if holder is None:
            continue
        for name in ("status_code", "status", "code"):
            try:
                value = getattr(holder, name, None)
            except Exception:  # noqa: S112  # as in _read, without the cost of a call for each
                continue
            if isinstance(value, int) and 100 <= value <= 599:
                return int(value)
    return None


def _headers_of(*holders: object) -> Mapping[str, str]:
    for holder in holders:
        found = None if holder is None else _read(holder, "headers")
        headers = NO_HEADERS if found is None else _lowered(found)
        if headers:
            return headers
    return NO_HEADERS


# What helps to name a failure or to wait for it; cookies and keys do not, and must not be written down.
_KEPT: Final = re.compile(r"retry|ratelimit|rate-limit|content-type|request-id|^date$|^server$").search


def _lowered(headers: Any) -> Mapping[str, str]:
    try:
        named = ((str(name).lower(), value) for name, value in headers.items())
        return {name: str(value)[:200] for name, value in named if _KEPT(name)}
    except Exception:  # no mapping, or one that breaks when it is read
        return NO_HEADERS


def _of_mapping(facts: Mapping[object, object]) -> Evidence:
    """A response-like mapping: status, headers, body or message, exception_type, exit_code."""
    found = {name: _item(facts, name) for name in _FACTS}
    headers = _lowered(found["headers"])
    code = found["code"]
    return Evidence(
        text=clip(_words(found["body"] or found["message"] or "")),
        status=_whole(found["status"]),
        code=code[:CODE_LIMIT] if isinstance(code, str) else "",
        headers=headers,
        exceptions=(_words(found["exception_type"]),) if found["exception_type"] else (),
        exit_code=_whole(found["exit_code"]),
        retry_after=retry_after_of(headers),
        phase=Phase.TOOL if _words(found["form"]) == "tool" else Phase.CALL,
    )


_FACTS: Final = ("status", "code", "headers", "body", "message", "exception_type", "exit_code", "form")


def _item(facts: Mapping[object, object], name: str) -> object:
    try:
        value = facts.get(name)
        bool(value)  # what cannot be asked for its truth is of no use here
    except Exception:  # a foreign mapping may do anything
        return None
    return value


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None
