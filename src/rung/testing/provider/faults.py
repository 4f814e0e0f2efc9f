"""The faults there are: what each does, what it may be told, and what Rung calls it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind
from rung.core.domain.settings_schema import ANY_TEXT, COUNT, FLAG, SECONDS, Type, check_keys, one_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMS: Final = ("seconds", "ms", "date", "text", "reset")
HOWS: Final = ("reset", "close")
INSIDE: Final = ("overloaded", "server_error", "rate_limit", "request_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way to fail. `repeatable`: the same request, sent again, may well succeed."""

    name: str
    about: str
    kind: Kind
    repeatable: bool = True
    takes: Mapping[str, Any] = field(default_factory=dict)  # what it may be told, and what it assumes
    needs: str = ""  # "stream", "tools": requests without are let be
    common: bool = False  # among those that strike by chance, unless others are named


_WAIT: Final[Mapping[str, Any]] = {"retry_after": None, "form": "seconds", "message": None}
_SAID: Final[Mapping[str, Any]] = {"message": None}


def _status(name: str, about: str, kind: Kind, *, repeatable: bool = False, common: bool = False) -> Fault:
    takes = _WAIT if repeatable else _SAID
    return Fault(name=name, about=about, kind=kind, repeatable=repeatable, takes=takes, common=common)


_ALL: Final = (
    _status("bad_request", "400, a field is wrong", Kind.INVALID_REQUEST),
    _status("unauthorized", "401, the key is wrong", Kind.AUTH_ERROR),
    _status("payment", "402, payment is due", Kind.QUOTA_EXHAUSTED),
    _status("forbidden", "403, this key may not do this", Kind.PERMISSION_DENIED),
    _status("not_found", "404, there is no such thing", Kind.NOT_FOUND),
    _status("model_gone", "404, there is no such model", Kind.MODEL_UNAVAILABLE),
    _status("request_timeout", "408, the request took too long", Kind.TIMEOUT, repeatable=True),
    _status("too_large", "413, the body is too large", Kind.CONTEXT_LIMIT),
    _status("unprocessable", "422, understood and refused", Kind.INVALID_REQUEST),
    _status("rate_limit", "429, too many requests", Kind.RATE_LIMIT, repeatable=True, common=True),
    _status("quota", "the account is empty (400 or 429)", Kind.QUOTA_EXHAUSTED),
    _status("spend_limit", "the account's own limit is reached (400 or 429)", Kind.QUOTA_EXHAUSTED),
    _status("server_error", "500, the provider's fault", Kind.SERVER_ERROR, repeatable=True, common=True),
    _status("bad_gateway", "502, an HTML page of the proxy", Kind.SERVER_ERROR, repeatable=True, common=True),
    _status("unavailable", "503, plain text of the proxy", Kind.OVERLOADED, repeatable=True, common=True),
    _status("gateway_timeout", "504, nothing came back in time", Kind.TIMEOUT, repeatable=True),
    _status("overloaded", "529 (OpenAI: 503), too much load", Kind.OVERLOADED, repeatable=True, common=True),
    Fault(
        name="status",
        about="any status there is, with the body that goes with it",
        kind=Kind.SERVER_ERROR,
        takes={**_WAIT, "status": 500},
    ),
    Fault(
        name="wall",
        about="overloaded for as long as it `lasts` (600 s)",
        kind=Kind.OVERLOADED,
        takes=_WAIT,
    ),
    Fault(name="redirect", about="307 to another host", kind=Kind.UNKNOWN, repeatable=False, takes={"to": ""}),
    Fault(name="reset", about="the connection is reset before any answer", kind=Kind.NETWORK, common=True),
    Fault(
        name="reset_headers",
        about="the connection is reset after the headers",
        kind=Kind.NETWORK,
        common=True,
    ),
    Fault(name="slow", about="nothing for some seconds, then all of it", kind=Kind.TIMEOUT, takes={"seconds": 30.0}),
    Fault(
        name="stall",
        about="silence for some seconds after some tokens, then the rest; pings if wanted",
        kind=Kind.TIMEOUT,
        takes={"after": 5, "seconds": 3_600.0, "pings": False},
    ),
    Fault(
        name="cut",
        about="the connection breaks after some tokens",
        kind=Kind.STREAM_INTERRUPTED,
        takes={"after": 5, "how": "close"},
        common=True,
    ),
    Fault(
        name="no_end",
        about="the stream ends cleanly after some tokens (all of them: -1), without its terminal event",
        kind=Kind.STREAM_INTERRUPTED,
        takes={"after": 5},
        needs="stream",
        common=True,
    ),
    Fault(
        name="stream_error",
        about="an error inside an answer of status 200, after some tokens",
        kind=Kind.OVERLOADED,
        takes={"after": 5, "error": "overloaded", "message": None},
        common=True,
    ),
    Fault(
        name="truncated_json",
        about="the JSON breaks off, the transfer does not",
        kind=Kind.MALFORMED_OUTPUT,
        takes={"after": 5},
        common=True,
    ),
    Fault(name="wrong_type", about="200 with a page of HTML", kind=Kind.MALFORMED_OUTPUT),
    Fault(name="empty", about="200 with an answer that says nothing", kind=Kind.PARTIAL_OUTPUT),
    Fault(
        name="max_tokens",
        about="the answer is cut off after some tokens, as at its limit",
        kind=Kind.OUTPUT_LIMIT,
        takes={"after": 5},
    ),
    Fault(
        name="overflow",
        about="more tokens than the window holds (three quarters of the first request's, unless told)",
        kind=Kind.CONTEXT_LIMIT,
        repeatable=False,
        takes={"window": None},
    ),
    Fault(
        name="refusal",
        about="the model refuses, after some tokens",
        kind=Kind.REFUSAL,
        repeatable=False,
        takes={"after": 0, "message": "I can't help with that request."},
    ),
    Fault(name="loop", about="the same tool call again", kind=Kind.LOOP_DETECTED, needs="tools"),
    Fault(
        name="bad_arguments",
        about="a tool call whose arguments are no JSON, or not what the tool takes",
        kind=Kind.MALFORMED_OUTPUT,
        needs="tools",
    ),
)
FAULTS: Final[Mapping[str, Fault]] = {fault.name: fault for fault in _ALL}
"""Every fault by its name."""
COMMON: Final = tuple(fault.name for fault in _ALL if fault.common)


_TYPES: Final[Mapping[str, Type]] = {
    "retry_after": SECONDS,
    "form": one_of(FORMS),
    "message": ANY_TEXT,
    "status": whole(400, 599)._replace(allowed="a status from 400 to 599"),
    "to": ANY_TEXT,
    "seconds": SECONDS,
    "after": whole(-1)._replace(allowed="a number of tokens (no_end: -1 is all)"),
    "pings": FLAG,
    "how": one_of(HOWS),
    "error": one_of(INSIDE),
    "window": COUNT._replace(allowed="a number of tokens, 1 or more"),
}


def named(name: object) -> Fault:
    """The fault of this name."""
    if not isinstance(name, str) or name not in FAULTS:
        raise ConfigError("fault", name, "one of " + ", ".join(FAULTS))
    return FAULTS[name]


def told(fault: Fault, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a fault, checked, over its defaults."""
    check_keys(given, fault.takes)
    return {**fault.takes, **{key: _TYPES[key].read(value, key) for key, value in given.items()}}
