"""Fields: what an error's JSON says of itself, found where it stands.

Errors arrive wrapped: a provider's JSON inside a gateway's JSON inside an SDK's sentence inside a log line,
as JSON, as a Python repr, escaped, cut off. So where a text is no JSON its fields are found without parsing what
is around them: nothing that is nested, broken or endless can do more than be looked at once.
"""

from __future__ import annotations

from itertools import islice
from json import JSONDecoder
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.lazy_regex import Pattern
from rung.core.classify.status_text import http_status

if TYPE_CHECKING:
    from rung.core.classify.facts import Facts

MESSAGE: Final = 2_000

# Where errors say what they are. Of the rest of a body (inputs, prompts, generations) nothing is believed.
_CODE, _WORDS, _RESULT, _FLAG, _STATUS, _NAME = range(6)
_ROLES: Final = {
    **dict.fromkeys(
        (
            "type", "code", "status", "reason", "error_code", "errorCode", "error_type", "errorType", "__type", "subtype", "Code",
            "quotaId", "stop_reason", "finish_reason", "finishReason", "stopReason", "blockReason", "terminal_reason",
        ),
        _CODE,
    ),
    **dict.fromkeys(
        (
            "message", "error", "detail", "msg", "raw", "description", "error_message", "errorMessage", "error_description",
            "title", "Message",
        ),
        _WORDS,
    ),
    "result": _RESULT,
    "param": _STATUS,  # where a gateway puts the status of the one behind it
    **dict.fromkeys(("statusCode", "status_code", "httpStatusCode", "http_status"), _STATUS),
    "name": _NAME,
    "is_error": _FLAG,
}  # fmt: skip
# Searched for from quote to quote: a text has fewer of them than letters.
_FIELD: Final = Pattern(r"[\"'](\w{3,20})(\\*[\"'])\s?:\s*")
_FIELDS_LIMIT: Final = 200
_DEPTH: Final = 50
_STATUS_FIELDS: Final = frozenset({"code", "status", "statusCode", "status_code", "httpStatusCode", "http_status"})
_CLASSES: Final = ("Exception", "Error")  # so is named what was raised; a tool or a person is not
_FAILED: Final = 300  # a status below it is not that of the failure inside
_CODE_LIMIT: Final = 80
_QUOTES: Final = ("'", '"')
_decode: Final = JSONDecoder().raw_decode


def has_fields(text: str) -> bool:
    """Is there anything like a field in it?"""
    return ('"' in text and '":' in text) or ("'" in text and "':" in text)  # a single sign is found ten times faster


def messages(facts: Facts, text: str) -> list[str]:
    """The messages in a text that has fields, innermost only; its codes and status go to the facts."""
    if text[0] == "{":
        try:
            body, end = _decode(text)
        except (ValueError, RecursionError):
            return dig(facts, text)  # cut off, not quite JSON, or made to hurt
        if end < len(text) and not text[end:].isspace():
            return dig(facts, text)
        found: list[str] = []
        _walk(facts, body, found, 0)
        if body.get("is_error") is True and isinstance(body.get("result"), str):
            return [body["result"]]
        return found
    return dig(facts, text)


def _walk(facts: Facts, value: dict[str, Any], found: list[str], depth: int) -> None:
    for name, item in value.items():
        if type(item) is dict:
            if depth < _DEPTH:
                _walk(facts, item, found, depth + 1)
        elif type(item) is list:
            for part in item:
                if type(part) is dict and depth < _DEPTH:
                    _walk(facts, part, found, depth + 1)
        elif item and name in _ROLES:
            if type(item) is str:
                _take(facts, name, item, found)
            elif type(item) is int and name in _STATUS_FIELDS and (facts.status is None or facts.status < _FAILED):
                facts.status = http_status(str(item)) or facts.status


def _take(facts: Facts, name: str, text: str, found: list[str]) -> None:
    """What a field that holds a text says: a code, a status, or a message, which may hold fields of its own."""
    role = _ROLES[name]
    if role is _WORDS:
        if len(found) < _FIELDS_LIMIT:
            inner = dig(facts, text) if '":' in text or "':" in text else None
            found.extend(inner or (text[:MESSAGE],))
    elif role is _CODE:
        _take_code(facts, name, text)
    elif role is _STATUS:
        facts.status = facts.status or http_status(text)
    elif role is _NAME and text.endswith(_CLASSES):
        facts.names.add(text)


def _take_code(facts: Facts, name: str, value: str) -> None:
    if name == "blockReason":
        facts.codes.add("content_filter")  # whatever the reason: it was blocked
    if len(value) <= _CODE_LIMIT:
        facts.codes.add(value.lower())
        if facts.status is None and name in _STATUS_FIELDS:
            facts.status = http_status(value)


def dig(facts: Facts, text: str) -> list[str]:
    """The same, where the text is no JSON but holds some, in whatever wrapping."""
    found: list[tuple[int, str]] = []  # where a message ends, and the message
    failed = False
    result = ""
    for field in islice(_FIELD.finditer(text), _FIELDS_LIMIT):
        name, closing = field.groups()
        role = _ROLES.get(name)
        if role is None or not text.startswith(closing, field.start(1) - len(closing)):
            continue
        begin = field.end()
        opening = text[begin : begin + len(closing)]
        if opening[-1:] not in _QUOTES:
            if role is _FLAG:
                failed = failed or opening[:1] == "t"
            elif name in _STATUS_FIELDS and (facts.status is None or facts.status < _FAILED):
                facts.status = http_status(text[begin : begin + 4]) or facts.status
            continue
        begin += len(opening)
        value, end = _string(text, begin, opening)
        if role is _WORDS:
            while found and found[-1][0] > begin:
                found.pop()  # it only quotes this one
            if value:
                found.append((end, value))
        elif role is _RESULT:
            result = result or value
        else:
            _take(facts, name, value, [])
    return [result] if failed and result else [message for _, message in found]


def _string(text: str, begin: int, opening: str) -> tuple[str, int]:
    """The string that starts here: up to the same quote with as many backslashes before it, or the end."""
    at = begin
    limit = min(len(text), begin + MESSAGE)
    while True:
        at = text.find(opening, at, limit)
        if at < 0:
            return text[begin:limit].replace("\\n", "\n"), limit
        if text[at - 1] != "\\" or at == begin:
            value = text[begin:at]
            return (value.replace("\\n", "\n").replace("\\", "") if "\\" in value else value), at
        at += 1
