"""Reading evidence off what Python hands us: exceptions, responses, mappings and plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rung.core.errors import AttemptError, Refused, TimeUp
from rung.core.failures import NO_HEADERS, Evidence, Kind, Phase

TEXT_LIMIT: Final = 8_192
CHAIN_LIMIT: Final = 16
_DULL: Final = frozenset({object, BaseException, Exception})


def evidence_of(trouble: object) -> Evidence:
    """The facts in an exception, an HTTP-like mapping, a text, or evidence itself."""
    if isinstance(trouble, Evidence):
        return trouble
    if isinstance(trouble, BaseException):
        return _of_exception(trouble)
    if isinstance(trouble, Mapping):
        return _of_mapping(trouble)
    return Evidence(text=clip(str(trouble)))


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
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
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
            status, headers = _status_of(link), _headers_of(link)
        if errno is None and isinstance(link, OSError):
            errno = link.errno
        code = code or _text_attribute(link, "code") or _text_attribute(link, "type")
    return Evidence(
        text=clip(_text_of(error)),
        status=status,
        code=code,
        headers=headers,
        exceptions=tuple(names),
        errno=errno,
        retry_after=retry_after_of(headers),
    )


def carried_evidence(error: BaseException) -> Evidence | None:
    """Evidence the exception was given by whoever raised it, rather than read off its class."""
    if isinstance(error, AttemptError):
        return error.evidence
    if isinstance(error, Refused):
        return Evidence(text=str(error), code="circuit_open", finding=Kind.SERVICE_DOWN, retry_after=error.retry_after)
    if isinstance(error, TimeUp):
        return Evidence(text=str(error), exceptions=("rung.TimeUp", "TimeoutError"), phase=Phase.LIMIT)
    attached = getattr(error, "__rung_evidence__", None)
    return attached if isinstance(attached, Evidence) else None


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what caused it, outermost first; cycles and endless chains end."""
    chain: list[BaseException] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(chain) < CHAIN_LIMIT:
        seen.add(id(link))
        chain.append(link)
        hidden = None if link.__suppress_context__ else link.__context__
        link = link.__cause__ or hidden
    return chain


def _class_names(cls: type) -> list[str]:
    return [
        base.__name__ if base.__module__ == "builtins" else f"{base.__module__}.{base.__name__}"
        for base in cls.__mro__
        if base not in _DULL
    ] or [cls.__name__]


def _text_of(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # a foreign __str__ may do anything
        return type(error).__name__


def _text_attribute(link: BaseException, name: str) -> str:
    value = getattr(link, name, "")
    return value if isinstance(value, str) else ""


def _status_of(link: BaseException) -> int | None:
    for holder in (link, getattr(link, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 100 <= value <= 599:
                return int(value)
    return None


def _headers_of(link: BaseException) -> Mapping[str, str]:
    for holder in (getattr(link, "response", None), link):
        headers = getattr(holder, "headers", None)
        if hasattr(headers, "items"):
            return {str(name).lower(): str(value) for name, value in headers.items()}
    return NO_HEADERS


def _of_mapping(facts: Mapping[object, object]) -> Evidence:
    """A response-like mapping: status, headers, body or message, exception_type, exit_code."""
    headers = facts.get("headers")
    lowered = {str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, Mapping) else NO_HEADERS
    exception = facts.get("exception_type")
    code = facts.get("code")
    return Evidence(
        text=clip(str(facts.get("body") or facts.get("message") or "")),
        status=_whole(facts.get("status")),
        code=code if isinstance(code, str) else "",
        headers=lowered,
        exceptions=(str(exception),) if exception else (),
        exit_code=_whole(facts.get("exit_code")),
        retry_after=retry_after_of(lowered),
        phase=Phase.TOOL if facts.get("form") == "tool" else Phase.CALL,
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
