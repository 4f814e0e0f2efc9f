"""Extract codes, statuses and messages from the JSON in an error's text.

Errors arrive wrapped: a provider's JSON inside a gateway's JSON inside an SDK's sentence inside a log line, as JSON,
as a Python repr, escaped or truncated. A text that is not valid JSON is scanned for fields without parsing the
surrounding structure, in a single pass, so nested, broken or very long input cannot take more than linear time.
"""

from __future__ import annotations

from itertools import islice
from json import JSONDecoder
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.facts import snake_case
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.status_text import http_status

if TYPE_CHECKING:
    from rung.core.classify.facts import Facts

MAX_MESSAGE_CHARS: Final = 2_000

# Fields that describe the error. All other fields (inputs, prompts, generations) are ignored.
_CODE, _MESSAGE, _RESULT, _FLAG, _STATUS, _NAME = range(6)
_FIELD_ROLES: Final = {
    **dict.fromkeys(
        (
            "type", "code", "status", "reason", "error_code", "errorCode", "error_type", "errorType", "__type", "subtype", "Code",
            "quotaId", "stop_reason", "finish_reason", "finishReason", "stopReason", "blockReason", "terminal_reason", ":exception-type",
        ),
        _CODE,
    ),
    **dict.fromkeys(
        (
            "message", "error", "detail", "msg", "raw", "description", "error_message", "errorMessage", "error_description",
            "title", "Message", "status_msg", "error_msg", "errmsg", "errMsg", "err_msg", "errorMsg", "statusMessage", "status_message",
            "Error", "Detail", "details", "errors", "warnings", "faultstring", "errorDetail", "error_detail", "errorDescription",
        ),
        _MESSAGE,
    ),
    "result": _RESULT,
    "param": _STATUS,  # some gateways put the upstream's status here
    **dict.fromkeys(("statusCode", "status_code", "httpStatusCode", "http_status"), _STATUS),
    "name": _NAME,
    "is_error": _FLAG,
}  # fmt: skip
# Starts with a quote: a text has fewer quotes than letters, so the search is fast.
_FIELD: Final = LazyPattern(r"[\"'](:?[\w-]{3,20})(\\*[\"'])\s?:\s*")
_MAX_FIELDS: Final = 200
_MAX_DEPTH: Final = 50
_STATUS_FIELDS: Final = frozenset({"code", "status", "statusCode", "status_code", "httpStatusCode", "http_status"})
_EXCEPTION_SUFFIXES: Final = ("Exception", "Error")  # `name` is an exception class only with such a suffix
_MIN_FAILURE_STATUS: Final = 300  # a lower status belongs to the wrapper, not to the failure
RELAYING_STATUSES: Final = frozenset(
    {500, 502, 503}
)  # of gateways, also where the service behind them rejects the request
_MAX_CODE_CHARS: Final = 80
_QUOTES: Final = ("'", '"')
_LIST_OF_TEXTS: Final = ('["', "['", '[\\"')
_CODE_PARTS: Final = LazyPattern("[.:]")
_decode: Final = JSONDecoder().raw_decode


def has_fields(text: str) -> bool:
    """Return whether the text contains anything that looks like a JSON field."""
    return ('"' in text and '":' in text) or (
        "'" in text and "':" in text
    )  # a one-character search is ten times faster


def extract_messages(facts: Facts, text: str) -> list[str]:
    """Return the innermost messages in a text with fields; add its codes and status to the facts."""
    if text[0] == "{":
        try:
            body, end = _decode(text)
        except (ValueError, RecursionError):
            return scan_fields(facts, text)  # truncated, not quite JSON, or hostile
        if end < len(text) and not text[end:].isspace():
            return scan_fields(facts, text)
        messages: list[str] = []
        _walk_object(facts, body, messages, 0)
        if body.get("is_error") is True and isinstance(body.get("result"), str):
            return [body["result"]]
        return messages
    return scan_fields(facts, text)


def _walk_object(facts: Facts, value: dict[str, Any], messages: list[str], depth: int) -> None:
    for name, item in value.items():
        if type(item) is dict:
            if depth < _MAX_DEPTH:
                _walk_object(facts, item, messages, depth + 1)
        elif type(item) is list:
            for part in item:
                if type(part) is dict and depth < _MAX_DEPTH:
                    _walk_object(facts, part, messages, depth + 1)
                elif type(part) is str and _FIELD_ROLES.get(name) is _MESSAGE:
                    _read_field(facts, name, part, messages)
        elif item and name in _FIELD_ROLES:
            if type(item) is str:
                _read_field(facts, name, item, messages)
            elif (
                type(item) is int
                and name in _STATUS_FIELDS
                and (facts.status is None or facts.status < _MIN_FAILURE_STATUS)
            ):
                facts.status = http_status(str(item)) or facts.status


def _read_field(facts: Facts, name: str, text: str, messages: list[str]) -> None:
    """Read a string field: a code, a status, or a message, which may contain JSON of its own."""
    role = _FIELD_ROLES[name]
    if role is _MESSAGE:
        if len(messages) < _MAX_FIELDS:
            inner = _scan_inner(facts, text) if '":' in text or "':" in text else None
            messages.extend(inner or (text[:MAX_MESSAGE_CHARS],))
    elif role is _CODE:
        _read_code(facts, name, text)
    elif role is _STATUS:
        facts.status = facts.status or http_status(text)
    elif role is _NAME and text.endswith(_EXCEPTION_SUFFIXES):
        facts.exception_names.add(text)


def _scan_inner(facts: Facts, text: str) -> list[str]:
    """Return the messages in a message: those of a service behind this one, whose status then counts."""
    outer = facts.status
    if outer in RELAYING_STATUSES:
        facts.status = None
    messages = scan_fields(facts, text)
    facts.status = facts.status or outer
    return messages


def _read_code(facts: Facts, name: str, value: str) -> None:
    if name == "blockReason":
        facts.codes.add("content_filter")  # any block reason means that the content was blocked
    if len(value) <= _MAX_CODE_CHARS:
        code = value.lower()
        facts.codes.add(code)
        if code != value:
            facts.codes.add(snake_case(value))  # "ModelNotOpen" says that the model is not open
        if ("." in code or ":" in code) and " " not in code:
            facts.codes.update(_CODE_PARTS.split(code))  # "Throttling.RateQuota" is a kind of throttling
        if name == "__type":
            facts.codes.add(value.rpartition("#")[2].lower())  # AWS names the service before the code
        if facts.status is None and name in _STATUS_FIELDS:
            facts.status = http_status(value)


def scan_fields(facts: Facts, text: str) -> list[str]:
    """Return the innermost messages in a text that contains JSON in any wrapping; add codes and status to the facts."""
    messages: list[tuple[int, str]] = []  # end position and text
    failed = False
    result = ""
    for field in islice(_FIELD.finditer(text), _MAX_FIELDS):
        name, closing = field.groups()
        role = _FIELD_ROLES.get(name)
        if role is None or not text.startswith(closing, field.start(1) - len(closing)):
            continue
        begin = field.end()
        if role is _MESSAGE and text.startswith(_LIST_OF_TEXTS, begin):
            begin += 1
        opening = text[begin : begin + len(closing)]
        if opening[:1] in _QUOTES:
            opening = opening[0]  # a repr escapes only the quotes of one kind: {\'message\': "no"}
        if opening[-1:] not in _QUOTES:
            if role is _FLAG:
                failed = failed or opening[:1] == "t"
            elif name in _STATUS_FIELDS and (facts.status is None or facts.status < _MIN_FAILURE_STATUS):
                facts.status = http_status(text[begin : begin + 4]) or facts.status
            continue
        begin += len(opening)
        value, end = _read_string(text, begin, opening)
        if role is _MESSAGE:
            while messages and messages[-1][0] > begin:
                messages.pop()  # the outer message only wraps this one
            if value:
                messages.append((end, value))
        elif role is _RESULT:
            result = result or value
        else:
            _read_field(facts, name, value, [])
    return [result] if failed and result else [message for _, message in messages]


def _read_string(text: str, begin: int, opening: str) -> tuple[str, int]:
    """Return the string that starts at `begin` and its end: up to the matching quote with equal escaping, or the limit."""
    at = begin
    limit = min(len(text), begin + MAX_MESSAGE_CHARS)
    while True:
        at = text.find(opening, at, limit)
        if at < 0:
            return text[begin:limit].replace("\\n", "\n"), limit
        if text[at - 1] != "\\" or at == begin:
            value = text[begin:at]
            return (value.replace("\\n", "\n").replace("\\", "") if "\\" in value else value), at
        at += 1
