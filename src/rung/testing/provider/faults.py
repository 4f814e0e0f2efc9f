"""Catalogue of faults: effect, parameters, and the failure kind Rung classifies each as."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind
from rung.core.domain.settings_schema import ANY_TEXT, COUNT, FLAG, SECONDS, Type, check_keys, one_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRY_AFTER_FORMS: Final = ("seconds", "ms", "date", "text", "reset")
CUT_ENDINGS: Final = ("reset", "close")
STREAM_ERRORS: Final = ("overloaded", "server_error", "rate_limit", "request_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault that the local provider can inject.

    Attributes:
        name: Name in scripts.
        about: Description.
        kind: Kind of failure that it leads to.
        repeatable: Whether the same request, sent again, may succeed. Default: True.
        takes: Parameters and their defaults.
        needs: What a request must have for it. Default: nothing.
        common: Whether it is one of the common faults. Default: False.
    """

    name: str
    about: str
    kind: Kind
    repeatable: bool = True
    takes: Mapping[str, Any] = field(default_factory=dict)  # parameters and their defaults
    needs: str = ""  # "stream" or "tools": other requests are not affected
    common: bool = False  # used for random faults by default


_RETRY_AFTER: Final[Mapping[str, Any]] = {"retry_after": None, "form": "seconds", "message": None}
_MESSAGE: Final[Mapping[str, Any]] = {"message": None}


def _status(name: str, about: str, kind: Kind, *, repeatable: bool = False, common: bool = False) -> Fault:
    takes = _RETRY_AFTER if repeatable else _MESSAGE
    return Fault(name=name, about=about, kind=kind, repeatable=repeatable, takes=takes, common=common)


_ALL_FAULTS: Final = (
    _status("bad_request", "400, invalid field", Kind.INVALID_REQUEST),
    _status("unauthorized", "401, invalid key", Kind.AUTH_ERROR),
    _status("payment", "402, payment required", Kind.QUOTA_EXHAUSTED),
    _status("forbidden", "403, the key lacks permission", Kind.PERMISSION_DENIED),
    _status("not_found", "404, no such resource", Kind.NOT_FOUND),
    _status("model_gone", "404, no such model", Kind.MODEL_UNAVAILABLE),
    _status("request_timeout", "408, request timed out", Kind.TIMEOUT, repeatable=True),
    _status("too_large", "413, request body too large", Kind.CONTEXT_LIMIT),
    _status("unprocessable", "422, unprocessable request", Kind.INVALID_REQUEST),
    _status("rate_limit", "429, too many requests", Kind.RATE_LIMIT, repeatable=True, common=True),
    _status("quota", "no credit left (400 or 429)", Kind.QUOTA_EXHAUSTED),
    _status("spend_limit", "the account's spend limit is reached (400 or 429)", Kind.QUOTA_EXHAUSTED),
    _status("server_error", "500, internal server error", Kind.SERVER_ERROR, repeatable=True, common=True),
    _status("bad_gateway", "502, HTML page of a proxy", Kind.SERVER_ERROR, repeatable=True, common=True),
    _status("unavailable", "503, plain text of a proxy", Kind.OVERLOADED, repeatable=True, common=True),
    _status("gateway_timeout", "504, gateway timeout", Kind.TIMEOUT, repeatable=True),
    _status("overloaded", "529 (OpenAI: 503), overloaded", Kind.OVERLOADED, repeatable=True, common=True),
    Fault(
        name="status",
        about="any error status, with a matching body",
        kind=Kind.SERVER_ERROR,
        takes={**_RETRY_AFTER, "status": 500},
    ),
    Fault(
        name="wall",
        about="overloaded for `lasts` seconds (600)",
        kind=Kind.OVERLOADED,
        takes=_RETRY_AFTER,
    ),
    Fault(name="redirect", about="307 to another host", kind=Kind.UNKNOWN, repeatable=False, takes={"to": ""}),
    Fault(name="reset", about="connection reset before any response", kind=Kind.NETWORK, common=True),
    Fault(
        name="reset_headers",
        about="connection reset after the headers",
        kind=Kind.NETWORK,
        common=True,
    ),
    Fault(
        name="slow",
        about="no byte for some seconds, then the whole response",
        kind=Kind.TIMEOUT,
        takes={"seconds": 30.0},
    ),
    Fault(
        name="stall",
        about="no data for some seconds after some tokens, then the rest; optionally with pings",
        kind=Kind.TIMEOUT,
        takes={"after": 5, "seconds": 3_600.0, "pings": False},
    ),
    Fault(
        name="cut",
        about="connection interrupted after some tokens",
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
        about="error inside a response of status 200, after some tokens",
        kind=Kind.OVERLOADED,
        takes={"after": 5, "error": "overloaded", "message": None},
        common=True,
    ),
    Fault(
        name="truncated_json",
        about="truncated JSON in a complete transfer",
        kind=Kind.MALFORMED_OUTPUT,
        takes={"after": 5},
        common=True,
    ),
    Fault(name="wrong_type", about="200 with an HTML page", kind=Kind.MALFORMED_OUTPUT),
    Fault(name="empty", about="200 with an empty answer", kind=Kind.PARTIAL_OUTPUT),
    Fault(
        name="max_tokens",
        about="the answer ends at the output limit, after some tokens",
        kind=Kind.OUTPUT_LIMIT,
        takes={"after": 5},
    ),
    Fault(
        name="overflow",
        about="context window exceeded (default window: three quarters of the first request)",
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
        about="a tool call with arguments that are invalid JSON or violate the tool's schema",
        kind=Kind.MALFORMED_OUTPUT,
        needs="tools",
    ),
)
FAULTS: Final[Mapping[str, Fault]] = {fault.name: fault for fault in _ALL_FAULTS}
"""Every fault by its name."""
COMMON_FAULTS: Final = tuple(fault.name for fault in _ALL_FAULTS if fault.common)


_TYPES: Final[Mapping[str, Type]] = {
    "retry_after": SECONDS,
    "form": one_of(RETRY_AFTER_FORMS),
    "message": ANY_TEXT,
    "status": whole(400, 599)._replace(allowed="a status from 400 to 599"),
    "to": ANY_TEXT,
    "seconds": SECONDS,
    "after": whole(-1)._replace(allowed="a number of tokens (no_end: -1 is all)"),
    "pings": FLAG,
    "how": one_of(CUT_ENDINGS),
    "error": one_of(STREAM_ERRORS),
    "window": COUNT._replace(allowed="a number of tokens, 1 or more"),
}


def find_fault(name: object) -> Fault:
    """Return the fault with this name."""
    if not isinstance(name, str) or name not in FAULTS:
        raise ConfigError("fault", name, "one of " + ", ".join(FAULTS))
    return FAULTS[name]


def check_parameters(fault: Fault, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Validate parameters of a fault; return them merged with the defaults."""
    check_keys(parameters, fault.takes)
    return {**fault.takes, **{key: _TYPES[key].read(value, key) for key, value in parameters.items()}}
