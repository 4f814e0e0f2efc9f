"""Message about an address at which no server can listen: what listens there, and what to type."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rung.core.domain.errors import AddressUnavailable

_TIMEOUT_SECONDS: Final = 0.7
_MAX_BODY_BYTES: Final = 4_096
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104  # a client connects to loopback

_BY_HEADER: Final = {"service": "a running `rung serve`", "hooks": "a running `rung hooks serve`"}


def describe_unavailable(error: AddressUnavailable, option: str = "--port") -> str:
    """Return one line for the user; `option` is the one that chooses the port."""
    if not error.is_taken:
        return str(error)
    found = listening_program(error.host, error.port)
    return f"port {error.port} on {error.host} is taken by {found}; choose another with {option} N ({option} 0 picks a free one)"


def listening_program(host: str, port: int) -> str:
    """Return what answers at an address of this machine, in words: a server of Rung, or another program."""
    connection = http.client.HTTPConnection(_ANY_ADDRESS.get(host, host), port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        body = response.read(_MAX_BODY_BYTES)
    except (OSError, http.client.HTTPException):
        return "another program"
    finally:
        connection.close()
    return _named_by_header(response) or _named_by_body(body)


def _named_by_header(response: http.client.HTTPResponse) -> str:
    return _BY_HEADER.get(response.getheader("x-rung-server", ""), "")


def _named_by_body(body: bytes) -> str:
    if b"rung mcp --print-token" in body:
        return "a running `rung mcp --http`"
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict) and {"status", "running"} <= document.keys():
        return "a running gateway (`rung gateway status` shows it)"
    return "a running `rung lab`" if document == {"lab": "ready"} else "another program"
