"""How long a client waits for an answer, by what its headers say: a call waits for a failing service as long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# SDKs of OpenAI, Anthropic and others made with Stainless, and Google's.
_TIMEOUT_HEADERS: Final = (b"x-stainless-timeout", b"x-stainless-read-timeout", b"x-server-timeout")
_JAVASCRIPT_SECONDS: Final = 300.0  # fetch of Node waits no longer for the headers, whatever timeout the SDK has
_MAX_MARGIN_SECONDS: Final = 15.0
_MARGIN_SHARE: Final = 0.1
_NUMBER: Final = re.compile(rb"[0-9]{1,9}(\.[0-9]{1,9})?")


def client_timeout(headers: Mapping[bytes, bytes], default: float) -> float:
    """Return how long the sender of these headers waits for an answer; `default` if they do not say it."""
    named = [seconds for name in _TIMEOUT_HEADERS if (seconds := _seconds(headers.get(name, b""))) > 0]
    seconds = min(named, default=default)
    return min(seconds, _JAVASCRIPT_SECONDS) if headers.get(b"x-stainless-lang", b"") == b"js" else seconds


def answer_within(headers: Mapping[bytes, bytes], default: float) -> float:
    """Return the seconds within which a client gets an answer, which is some time before it leaves."""
    timeout = client_timeout(headers, default)
    return timeout - _margin(timeout)


def headers_within(headers: Mapping[bytes, bytes], default: float) -> float:
    """Return the seconds within which a stream has headers: after an error at the end of `answer_within`, which has a status."""
    timeout = client_timeout(headers, default)
    return timeout - _margin(timeout) / 3.0


def _margin(timeout: float) -> float:
    return min(_MAX_MARGIN_SECONDS, _MARGIN_SHARE * timeout)


def _seconds(value: bytes) -> float:
    return float(value) if _NUMBER.fullmatch(value) else 0.0
