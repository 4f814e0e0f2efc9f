"""Extract `Evidence` from exceptions, responses, mappings and plain text.

This module reads the attributes that any object may have (a status, headers, a body, a class, a cause). Attributes
specific to one package are read by its adapter, which registers a reader under the name of that package.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from json.encoder import encode_basestring as quoted
from typing import Final

from rung.core.classify.error_readers import reader_for
from rung.core.classify.redaction import redacted, redacted_headers
from rung.core.classify.response_headers import code_in_headers, diagnostic_headers, headers_of, status_of
from rung.core.classify.retry_after import wait_in_headers
from rung.core.classify.untrusted_objects import attribute, class_name, int_or_none
from rung.core.domain.errors import AttemptError, AttemptStalled, AttemptTimeout, CircuitOpenError, ConfigError
from rung.core.domain.failures import CIRCUIT_OPEN, NO_HEADERS, Evidence, Kind, Phase

TEXT_LIMIT: Final = 65_536  # characters kept of a body: its head and its tail
CODE_LIMIT: Final = 200
CHAIN_LIMIT: Final = 16
TIMEOUT_NAME: Final = "rung.errors.AttemptTimeout"  # of an attempt that the engine interrupted
_MAX_CAUSE_TEXTS: Final = 4  # texts quoted from a chain of causes
_MAX_DUMP_DEPTH: Final = 24
_MAX_DUMP_STRING: Final = 4_096
_BYTE_TYPES: Final = (bytes, bytearray)
_OTHER_ERRNOS: Final = frozenset({"ssl.SSLError", "socket.gaierror", "socket.herror"})
_GENERIC_BASES: Final = frozenset({object, BaseException, Exception})
# Programming errors. One raised while another error is handled is the root cause; the handled error is ignored.
_BUG_TYPES: Final = (TypeError, NameError, AttributeError, LookupError, ArithmeticError, AssertionError, SyntaxError)


def evidence_of(error: object) -> Evidence:
    """Return the evidence in an exception, a response-like mapping, a text, or evidence itself. Never raises."""
    try:
        return _read(error)
    except Exception:  # a third-party class may raise anything anywhere, also for its name or its class
        name = class_name(error)
        return Evidence(text=f"{name} (its attributes cannot be read)", exceptions=(name,))


def _read(error: object) -> Evidence:
    if type(error) is dict:
        return _from_mapping(error)
    if isinstance(error, Evidence):
        return error
    if isinstance(error, str):
        return Evidence(text=clip(error))
    if isinstance(error, BaseException):
        return _from_exception(error)
    if isinstance(error, Mapping):
        return _from_mapping(error)
    return _read_by_adapter(error) or Evidence(text=text_of(error))


def without_secrets(evidence: Evidence) -> Evidence:
    """Return the evidence with its secrets redacted; the same object if it contains none."""
    text = redacted(evidence.text)
    if text is evidence.text and not (evidence.code or evidence.headers or evidence.stack):
        return evidence  # the common case
    stack = redacted(evidence.stack) if evidence.stack else evidence.stack
    code = redacted(evidence.code) if evidence.code else evidence.code
    headers = redacted_headers(evidence.headers) if evidence.headers else evidence.headers
    if text is evidence.text and stack is evidence.stack and code is evidence.code and headers is evidence.headers:
        return evidence
    return evidence._replace(text=text, stack=stack, code=code, headers=headers)


def clip(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return the head and tail of a text: the first lines show the operation, the last ones the error."""
    if len(text) <= limit:
        return text
    mark = f"\n… {len(text) - limit} characters left out …\n"
    head = (limit - len(mark)) // 2
    if head <= 0:
        return text[:limit]
    return text[:head] + mark + text[-(limit - len(mark) - head) :]


def _from_exception(error: BaseException) -> Evidence:
    carried = carried_evidence(error)
    if carried is not None:
        return carried
    links = _cause_chain(error)
    first = _from_link(error)
    if len(links) == 1:
        return first
    return _merge_chain([first, *(_from_link(link) for link in links[1:])])


def _merge_chain(links: list[Evidence]) -> Evidence:
    """Merge the evidence of a chain of causes; each field comes from the outermost link that has it."""
    texts: list[str] = []
    for link in links:
        if link.text and len(texts) < _MAX_CAUSE_TEXTS and not any(link.text in text for text in texts):
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


def _from_link(error: BaseException) -> Evidence:
    """Return the evidence of one exception, without its causes."""
    return carried_evidence(error) or _read_by_adapter(error) or read_exception(error)


def _read_by_adapter(thing: object) -> Evidence | None:
    for base in type(thing).__mro__:
        try:
            reader = reader_for(base.__module__.partition(".")[0])
            evidence = None if reader is None else reader(thing)
        except Exception:  # a crashing adapter must not hide the failure
            return None
        if evidence is not None:
            return evidence
    return None


def read_exception(
    error: BaseException,
    *,
    body: object = None,
    code: str = "",
    provider: str = "",
) -> Evidence:
    """Return the evidence that any exception may have: class, status, headers, errno and body.

    An adapter that knows where its package stores the body or the code passes them in.
    """
    response = attribute(error, "response")
    headers = headers_of(response, error)
    text = text_of(error) or type(error).__name__
    body = attribute(error, "body") if body is None else body
    if body is not None:
        body_text = text_of(body)
        if body_text and body_text not in text:
            text = clip(f"{text}\n{body_text}")
    return Evidence(
        text=text,
        status=status_of(error, response),
        code=code or _text_attribute(error, "code") or _text_attribute(error, "type") or code_in_headers(headers),
        provider=provider,
        headers=headers,
        exceptions=tuple(_class_names(type(error))),
        errno=_errno(error),
        retry_after=wait_in_headers(headers) if headers else None,
    )


def _errno(error: BaseException) -> int | None:
    """Return the operating system's error number; TLS and name resolution put numbers of their own there."""
    if not isinstance(error, OSError) or not _OTHER_ERRNOS.isdisjoint(_class_names(type(error))):
        return None
    return int_or_none(attribute(error, "errno"))


def carried_evidence(error: BaseException) -> Evidence | None:
    """Return the evidence that the raiser attached to the exception, if any."""
    attached = attribute(error, "__rung_evidence__")  # set by an inner recovery, which has more facts than the attempt
    if attached is None and isinstance(error, AttemptError):
        attached = attribute(error, "evidence")
    if isinstance(attached, Evidence):
        return _with_wait(attached) if attached.headers else attached
    if isinstance(error, CircuitOpenError):
        return Evidence(text=str(error), code=CIRCUIT_OPEN, finding=Kind.SERVICE_DOWN, retry_after=error.retry_after)
    if isinstance(error, ConfigError):  # misuse of Rung inside the attempt: no other request can change it
        return Evidence(text=str(error), exceptions=(class_name(error),), finding=Kind.CONFIGURATION, final=True)
    if isinstance(error, AttemptStalled):
        return Evidence(text=str(error), finding=Kind.STALLED, phase=Phase.LIMIT)
    if isinstance(error, AttemptTimeout):
        return Evidence(text=str(error), exceptions=(TIMEOUT_NAME, "TimeoutError"), phase=Phase.LIMIT)
    return None


def _with_wait(evidence: Evidence) -> Evidence:
    """Return the evidence with the headers as those of a response are read: any case, and the wait that they ask for."""
    headers = diagnostic_headers(evidence.headers)
    wait = wait_in_headers(headers) if evidence.retry_after is None else evidence.retry_after
    return evidence._replace(headers=headers, retry_after=wait)


def _cause_chain(error: BaseException) -> list[BaseException]:
    """Return the exception and its causes, outermost first; cycles and overlong chains are cut."""
    chain: list[BaseException] = []
    seen: set[int] = set()
    left: list[BaseException] = [error]
    while left and len(chain) < CHAIN_LIMIT:
        link = left.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        chain.append(link)
        left.extend(_causes_of(link))
    return chain


def _causes_of(link: BaseException) -> tuple[BaseException, ...]:
    """Return the members of an exception group, else the cause, else the context."""
    try:
        if isinstance(link, BaseExceptionGroup):
            return tuple(link.exceptions[:CHAIN_LIMIT])
        if link.__cause__ is not None:
            return (link.__cause__,)
        if link.__context__ is None or link.__suppress_context__ or isinstance(link, _BUG_TYPES):
            return ()
        return (link.__context__,)
    except Exception:  # a third-party attribute may raise anything
        return ()


_CLASS_NAME_CACHE: Final[dict[type, list[str]]] = {}
_CLASS_NAME_CACHE_LIMIT: Final = 1_000


def _class_names(cls: type) -> list[str]:
    """Return the qualified names of a class and its bases; builtins without their module."""
    names = _CLASS_NAME_CACHE.get(cls)
    if names is None:
        names = [
            base.__name__ if base.__module__ == "builtins" else f"{base.__module__}.{base.__name__}"
            for base in cls.__mro__
            if base not in _GENERIC_BASES
        ] or [cls.__name__]
        if len(_CLASS_NAME_CACHE) >= _CLASS_NAME_CACHE_LIMIT:
            _CLASS_NAME_CACHE.clear()
        _CLASS_NAME_CACHE[cls] = names
    return names


_PHASES: Final = {"tool": Phase.TOOL, "output": Phase.RESULT}


def _from_mapping(facts: Mapping[object, object]) -> Evidence:
    """Read a response-like mapping: status, headers, body or message, exception_type, exit_code."""
    get = facts.get if type(facts) is dict else partial(_get_item, facts)
    status, code, provider, raised = get("status"), get("code"), get("provider"), get("exception_type")
    exit_code, form, tool, headers = get("exit_code"), get("form"), get("tool"), get("headers")
    has_headers = headers is not None and not (type(headers) is dict and not headers)
    kept_headers = diagnostic_headers(headers) if has_headers else NO_HEADERS
    return Evidence(
        _field_text(get("body")) or _field_text(get("message")),
        status if type(status) is int else int_or_none(status),
        code[:CODE_LIMIT] if code and isinstance(code, str) else code_in_headers(kept_headers),
        provider[:CODE_LIMIT] if isinstance(provider, str) else "",
        kept_headers,
        (raised[:CODE_LIMIT],) if isinstance(raised, str) and raised else (),
        exit_code=exit_code if type(exit_code) is int else int_or_none(exit_code),
        phase=_PHASES.get(form, Phase.CALL) if isinstance(form, str) else Phase.CALL,
        retry_after=wait_in_headers(kept_headers) if kept_headers else None,
        tool=tool[:CODE_LIMIT] if isinstance(tool, str) else "",
    )


def _get_item(facts: Mapping[object, object], name: str) -> object:
    try:
        return facts.get(name)
    except Exception:  # a third-party mapping may raise anything
        return None


def _field_text(value: object) -> str:
    if type(value) is str and len(value) <= TEXT_LIMIT:
        return value
    return "" if value is None else text_of(value)


def describe_error(error: BaseException) -> str:
    """Return the class and the text of an exception on which nothing can be relied, without secrets."""
    return redacted(f"{class_name(error)}: {text_of(error)}")


def text_of(value: object, limit: int = TEXT_LIMIT) -> str:
    """Return the text of any value, clipped before it is copied; the class name if `str()` raises."""
    try:
        if isinstance(value, str):
            return clip(value, limit)
        if isinstance(value, _BYTE_TYPES):
            return _decode(value, limit)
        if isinstance(value, (Mapping, list, tuple)):
            return _dump_json(value, [limit], 0)
        return clip(str(value), limit)
    except Exception:  # a third-party __str__ may raise anything
        return class_name(value)


def _decode(value: bytes | bytearray, limit: int) -> str:
    if len(value) <= limit:
        return value.decode("utf-8", "replace")
    half = limit // 2
    return clip(value[:half].decode("utf-8", "replace") + "\n…\n" + value[-half:].decode("utf-8", "replace"), limit)


def _dump_json(value: object, budget: list[int], depth: int) -> str:
    """Return a value as JSON, truncated when the shared character budget is used up or it is nested too deep."""
    budget[0] -= 8
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)[:40]
    if isinstance(value, Mapping) and depth < _MAX_DUMP_DEPTH:
        items = []
        for name, item in value.items():
            if budget[0] <= 0:
                break
            items.append(f"{quoted(str(name)[:CODE_LIMIT])}: {_dump_json(item, budget, depth + 1)}")
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple) and depth < _MAX_DUMP_DEPTH:
        parts = []
        for item in value:
            if budget[0] <= 0:
                break
            parts.append(_dump_json(item, budget, depth + 1))
        return "[" + ", ".join(parts) + "]"
    text = text_of(value, _MAX_DUMP_STRING) if not isinstance(value, Mapping | list | tuple) else "…"
    budget[0] -= len(text)
    return quoted(text)


def _text_attribute(link: BaseException, name: str) -> str:
    value = attribute(link, name)
    return value[:CODE_LIMIT] if isinstance(value, str) else ""
