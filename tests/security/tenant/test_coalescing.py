"""A request joins another only if everything that identifies its caller is the same."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from functools import partial
from typing import Self

from tests.gateway.behind import Behind
from tests.security.tenant.shared import ALICE, BOB, Shared, asked, key_row
from tests.waiting import wait_until

SLOW = [{"fault": "slow", "seconds": 600}]
RETRY = {"x-stainless-retry-count": "1"}
DIFFERENT = [
    {"api-key": "{}"},
    {"cookie": "session={}"},
    {"x-goog-api-key": "{}"},
    {"ocp-apim-subscription-key": "{}"},
    {"x-auth-token": "{}"},
    {"x-api-key": "dummy", "authorization": "Bearer {}"},
    {"x-api-key": "same", "openai-organization": "{}"},
    {"x-api-key": "same", "openai-project": "{}"},
    {"x-api-key": "same", "anthropic-beta": "{}"},
    {"x-api-key": "same", "idempotency-key": "{}"},
    {"x-api-key": "same", "x-rung-session": "{}"},
    {"x-api-key": "same", "x-some-new-credential": "{}"},
]


def test_different_callers_never_join() -> None:
    """Two requests that differ in any header of their caller are two upstream requests."""
    with Behind(SLOW) as behind, ExitStack() as waiting:
        for count, headers in enumerate(DIFFERENT, 1):
            waiting.enter_context(Waiting(behind, _of(headers, "alice")))
            wait_until(partial(_has_joinable, behind, 2 * count - 1))
            waiting.enter_context(Waiting(behind, _of(headers, "bob") | RETRY))
            wait_until(partial(_has_joinable, behind, 2 * count))
            assert not _joined(behind), headers


def test_two_gateway_keys_never_join() -> None:
    """A request with another gateway key does not get the answer of a request in flight."""
    with Shared(SLOW, keys=[key_row(ALICE), key_row(BOB)]) as behind, Waiting(behind, {"x-api-key": ALICE}):
        wait_until(lambda: len(behind.gateway.in_flight) == 1)
        with Waiting(behind, {"x-api-key": BOB} | RETRY):
            wait_until(lambda: behind.attempts == 2 or _joined(behind))
            assert not _joined(behind)


def test_a_retry_of_the_same_caller_still_joins() -> None:
    """A retry that differs only in its retry count and trace headers joins the request in flight."""
    headers = {"authorization": "Bearer a", "cookie": "a=b", "idempotency-key": "one", "anthropic-beta": "x"}
    with Behind(SLOW) as behind, Waiting(behind, headers | {"traceparent": "00-1"}):
        wait_until(lambda: len(behind.gateway.in_flight) == 1)
        with Waiting(behind, headers | RETRY | {"traceparent": "00-2"}):
            wait_until(lambda: _joined(behind))
            assert behind.attempts == 1


class Waiting:
    """A client that waits for an answer until it leaves."""

    def __init__(self, behind: Behind, headers: dict[str, str]) -> None:
        body = json.dumps(asked()).encode()
        lines = ["POST /v1/messages HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._socket = socket.create_connection(("127.0.0.1", behind.served.port))
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _of(headers: dict[str, str], who: str) -> dict[str, str]:
    return {name: value.format(who) for name, value in headers.items()}


def _has_joinable(behind: Behind, count: int) -> bool:
    """Return whether so many requests can be joined, or one was joined already."""
    return len(behind.gateway.in_flight) == count or bool(_joined(behind))


def _joined(behind: Behind) -> int:
    return behind.gateway.metrics.counts["rung_joined_total", ""]
