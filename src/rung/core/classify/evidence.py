"""Reading evidence off what Python hands us: exceptions, responses, mappings and plain text.

What is read here is what any object may have (a status, headers, a body, a class, a cause). What only
one package's objects have is read by its adapter, which registers a reader for that package's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from itertools import islice
from json.encoder import encode_basestring as quoted
from typing import Any, Final

from rung.core.classify.error_readers import reader_for
from rung.core.classify.redaction import redacted, redacted_headers
from rung.core.classify.retry_after import wait_in_headers
from rung.core.domain.errors import AttemptError, AttemptTimeout, CircuitOpenError
from rung.core.domain.failures import NO_HEADERS, Evidence, Kind, Phase

TEXT_LIMIT: Final = 65_536  # of a body, however large: its head and its tail
CODE_LIMIT: Final = 200
CHAIN_LIMIT: Final = 16
_TEXTS_LIMIT: Final = 4  # of a chain of causes, how many are quoted
_HEADERS_LIMIT: Final = 100
_DUMP_DEPTH: Final = 24
_DUMP_STRING: Final = 4_096
_BYTES: Final = (bytes, bytearray)
_DULL: Final = frozenset({object, BaseException, Exception})
# Mistakes in a program. One that is made while another error is handled is the trouble, not the other one.
_BUGS: Final = (TypeError, NameError, AttributeError, LookupError, ArithmeticError, AssertionError, SyntaxError)


def evidence_of(trouble: object) -> Evidence:
    """The facts in an exception, an HTTP-like mapping, a text, or evidence itself."""
    if type(trouble) is dict:
        return _of_mapping(trouble)
    if isinstance(trouble, Evidence):
        return trouble
    if isinstance(trouble, str):
        return Evidence(text=clip(trouble))
    if isinstance(trouble, BaseException):
        return _of_exception(trouble)
    if isinstance(trouble, Mapping):
        return _of_mapping(trouble)
    return _read_by_adapter(trouble) or Evidence(text=text_of(trouble))


def without_secrets(evidence: Evidence) -> Evidence:
    """The evidence as it may be kept, shown and told to a model; the same one if there is no secret in it."""
    text = redacted(evidence.text)
    if text is evidence.text and not (evidence.code or evidence.headers or evidence.stack):
        return evidence  # mostly
    stack = redacted(evidence.stack) if evidence.stack else evidence.stack
    code = redacted(evidence.code) if evidence.code else evidence.code
    headers = redacted_headers(evidence.headers) if evidence.headers else evidence.headers
    if text is evidence.text and stack is evidence.stack and code is evidence.code and headers is evidence.headers:
        return evidence
    return evidence._replace(text=text, stack=stack, code=code, headers=headers)


def clip(text: str, limit: int = TEXT_LIMIT) -> str:
    """Head and tail of a text: the first lines say what was done, the last ones what went wrong."""
    if len(text) <= limit:
        return text
    mark = f"\n… {len(text) - limit} characters left out …\n"
    head = (limit - len(mark)) // 2
    if head <= 0:
        return text[:limit]
    return text[:head] + mark + text[-(limit - len(mark) - head) :]


# -- exceptions ---------------------------------------------------------------------------------------


def _of_exception(error: BaseException) -> Evidence:
    carried = carried_evidence(error)
    if carried is not None:
        return carried
    links = _chain(error)
    first = _of_link(error)
    if len(links) == 1:
        return first
    return _merged([first, *(_of_link(link) for link in links[1:])])


def _merged(links: list[Evidence]) -> Evidence:
    """One evidence for a chain of causes: the outermost that knows a fact says it."""
    texts: list[str] = []
    for link in links:
        if link.text and len(texts) < _TEXTS_LIMIT and not any(link.text in text for text in texts):
            texts.append(link.text)
    return Evidence(
        text=clip("\ncaused by: ".join(texts)),
        status=next((link.status for link in links if link.status is not None), None),
        code=" ".join(dict.fromkeys(link.code for link in links if link.code))[:CODE_LIMIT],
        provider=next((link.provider for link in links if link.provider), ""),
        headers=next((link.headers for link in links if link.headers), NO_HEADERS),
        exceptions=tuple(name for link in links for name in link.exceptions),
        errno=next((link.errno for link in links if link.errno is not None), None),
        exit_code=next((link.exit_code for link in links if link.exit_code is not None), None),
        signal=next((link.signal for link in links if link.signal is not None), None),
        phase=next((link.phase for link in links if link.phase is not Phase.CALL), Phase.CALL),
        retry_after=next((link.retry_after for link in links if link.retry_after is not None), None),
        output=next((link.output for link in links if link.output), ""),
        output_started=any(link.output_started for link in links),
        finding=next((link.finding for link in links if link.finding is not None), None),
        stack=next((link.stack for link in links if link.stack), ""),
    )


def _of_link(error: BaseException) -> Evidence:
    """What one exception says, without its causes."""
    return carried_evidence(error) or _read_by_adapter(error) or read_exception(error)


def _read_by_adapter(thing: object) -> Evidence | None:
    for base in type(thing).__mro__:
        try:
            reader = reader_for(base.__module__.partition(".")[0])
            found = None if reader is None else reader(thing)
        except Exception:  # an adapter that breaks must not cost us the failure
            return None
        if found is not None:
            return found
    return None


def read_exception(
    error: BaseException,
    *,
    body: object = None,
    code: str = "",
    provider: str = "",
) -> Evidence:
    """What any exception may say: class, status, headers, errno, and a body where it has one.

    An adapter that knows where its package keeps the body or the code passes them in.
    """
    response = attribute(error, "response")
    headers = headers_of(response, error)
    text = text_of(error) or type(error).__name__
    body = attribute(error, "body") if body is None else body
    if body is not None:
        told = text_of(body)
        if told and told not in text:
            text = clip(f"{text}\n{told}")
    return Evidence(
        text=text,
        status=status_of(error, response),
        code=code or _text_attribute(error, "code") or _text_attribute(error, "type"),
        provider=provider,
        headers=headers,
        exceptions=tuple(_class_names(type(error))),
        errno=whole(attribute(error, "errno")) if isinstance(error, OSError) else None,
        retry_after=wait_in_headers(headers) if headers else None,
    )


def carried_evidence(error: BaseException) -> Evidence | None:
    """Evidence the exception was given by whoever raised it, rather than read off its class."""
    attached = attribute(error, "__rung_evidence__")  # by an inner recovery: it knows more than the attempt did
    if attached is None and isinstance(error, AttemptError):
        attached = attribute(error, "evidence")
    if isinstance(attached, Evidence):
        return attached
    if isinstance(error, CircuitOpenError):
        return Evidence(text=str(error), code="circuit_open", finding=Kind.SERVICE_DOWN, retry_after=error.retry_after)
    if isinstance(error, AttemptTimeout):
        return Evidence(text=str(error), exceptions=("rung.TimeUp", "TimeoutError"), phase=Phase.LIMIT)
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what caused it, outermost first; cycles and endless chains end."""
    chain: list[BaseException] = []
    seen: set[int] = set()
    left: list[BaseException] = [error]
    while left and len(chain) < CHAIN_LIMIT:
        link = left.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        chain.append(link)
        left.extend(_behind(link))
    return chain


def _behind(link: BaseException) -> tuple[BaseException, ...]:
    """What an exception stands for: the members of a group, else its cause, else what was being handled."""
    try:
        if isinstance(link, BaseExceptionGroup):
            return tuple(link.exceptions[:CHAIN_LIMIT])
        if link.__cause__ is not None:
            return (link.__cause__,)
        if link.__context__ is None or link.__suppress_context__ or isinstance(link, _BUGS):
            return ()
        return (link.__context__,)
    except Exception:  # a foreign attribute may do anything
        return ()


_NAMES: Final[dict[type, list[str]]] = {}
_NAMES_LIMIT: Final = 1_000


def _class_names(cls: type) -> list[str]:
    """The names of a class and its bases, the builtin ones bare: what kind of exception it is."""
    names = _NAMES.get(cls)
    if names is None:
        names = [
            base.__name__ if base.__module__ == "builtins" else f"{base.__module__}.{base.__name__}"
            for base in cls.__mro__
            if base not in _DULL
        ] or [cls.__name__]
        if len(_NAMES) >= _NAMES_LIMIT:
            _NAMES.clear()
        _NAMES[cls] = names
    return names


# -- mappings -----------------------------------------------------------------------------------------

_PHASES: Final = {"tool": Phase.TOOL, "output": Phase.RESULT}


def _of_mapping(facts: Mapping[object, object]) -> Evidence:
    """A response-like mapping: status, headers, body or message, exception_type, exit_code."""
    get = facts.get if type(facts) is dict else partial(_item, facts)
    status, code, provider, raised = get("status"), get("code"), get("provider"), get("exception_type")
    exit_code, form, tool, headers = get("exit_code"), get("form"), get("tool"), get("headers")
    kept = NO_HEADERS if headers is None or (type(headers) is dict and not headers) else lowered(headers)
    return Evidence(
        _known_text(get("body")) or _known_text(get("message")),
        status if type(status) is int else whole(status),
        code[:CODE_LIMIT] if isinstance(code, str) else "",
        provider[:CODE_LIMIT] if isinstance(provider, str) else "",
        kept,
        (raised[:CODE_LIMIT],) if isinstance(raised, str) and raised else (),
        exit_code=exit_code if type(exit_code) is int else whole(exit_code),
        phase=_PHASES.get(form, Phase.CALL) if isinstance(form, str) else Phase.CALL,
        retry_after=wait_in_headers(kept) if kept else None,
        tool=tool[:CODE_LIMIT] if isinstance(tool, str) else "",
    )


def _item(facts: Mapping[object, object], name: str) -> object:
    try:
        return facts.get(name)
    except Exception:  # a foreign mapping may do anything
        return None


def _known_text(value: object) -> str:
    if type(value) is str and len(value) <= TEXT_LIMIT:
        return value
    return "" if value is None else text_of(value)


# -- what adapters use too ----------------------------------------------------------------------------


def attribute(holder: object, name: str) -> Any:
    """An attribute; None where there is none, or where reading it breaks."""
    try:
        return getattr(holder, name, None)
    except Exception:  # a foreign property may do anything
        return None


def whole(value: object) -> int | None:
    """An integer that is one, else None."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def text_of(value: object, limit: int = TEXT_LIMIT) -> str:
    """The text of anything, cut to head and tail before it is copied; of what has none, the name of its class."""
    try:
        if isinstance(value, str):
            return clip(value, limit)
        if isinstance(value, _BYTES):
            return _decoded(value, limit)
        if isinstance(value, (Mapping, list, tuple)):
            return _dumped(value, [limit], 0)
        return clip(str(value), limit)
    except Exception:  # a foreign __str__ may do anything
        return type(value).__name__


def _decoded(value: bytes | bytearray, limit: int) -> str:
    if len(value) <= limit:
        return value.decode("utf-8", "replace")
    half = limit // 2
    return clip(value[:half].decode("utf-8", "replace") + "\n…\n" + value[-half:].decode("utf-8", "replace"), limit)


def _dumped(value: object, room: list[int], depth: int) -> str:
    """JSON of a value as far as there is room: of whatever size and depth it is, only so much is looked at."""
    room[0] -= 8
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)[:40]
    if isinstance(value, Mapping) and depth < _DUMP_DEPTH:
        items = []
        for name, item in value.items():
            if room[0] <= 0:
                break
            items.append(f"{quoted(str(name)[:CODE_LIMIT])}: {_dumped(item, room, depth + 1)}")
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple) and depth < _DUMP_DEPTH:
        parts = []
        for item in value:
            if room[0] <= 0:
                break
            parts.append(_dumped(item, room, depth + 1))
        return "[" + ", ".join(parts) + "]"
    text = text_of(value, _DUMP_STRING) if not isinstance(value, Mapping | list | tuple) else "…"
    room[0] -= len(text)
    return quoted(text)


def _text_attribute(link: BaseException, name: str) -> str:
    value = attribute(link, name)
    return value[:CODE_LIMIT] if isinstance(value, str) else ""


def status_of(*holders: object) -> int | None:
    """The HTTP status the first of these has."""
    for holder in holders:
        if holder is None:
            continue
        for name in ("status_code", "status", "code"):
            try:
                value = getattr(holder, name, None)
            except Exception:  # noqa: S112  # as in attribute(), without the cost of a call for each
                continue
            if isinstance(value, int) and 100 <= value <= 599:
                return int(value)
    return None


def headers_of(*holders: object) -> Mapping[str, str]:
    """The harmless headers of the first of these that has any."""
    for holder in holders:
        found = None if holder is None else attribute(holder, "headers")
        headers = NO_HEADERS if found is None else lowered(found)
        if headers:
            return headers
    return NO_HEADERS


# What helps to name a failure or to wait for it; cookies and keys do not, and must not be written down.
_KEPT: Final = re.compile(r"retry|ratelimit|rate-limit|content-type|request-id|^date$|^server$").search


def lowered(headers: Any) -> Mapping[str, str]:
    """Headers with small names, those alone that help to name a failure."""
    try:
        named = ((str(name).lower(), value) for name, value in islice(headers.items(), _HEADERS_LIMIT))
        return {name: str(value)[:200] for name, value in named if _KEPT(name)}
    except Exception:  # no mapping, or one that breaks when it is read
        return NO_HEADERS
