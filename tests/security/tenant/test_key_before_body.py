"""Nobody without a good key makes the gateway hold a body or a header."""

from __future__ import annotations

import socket
from contextlib import closing
from functools import partial
from itertools import product
from typing import Any

from tests.gateway.behind import Behind
from tests.security.tenant.shared import ALICE, Shared, asked, key_row
from tests.waiting import wait_until

BAD: list[tuple[str, dict[str, Any], int]] = [
    ("rung-wrong", {}, 401),
    (ALICE, {"revoked": True}, 401),
    (ALICE, {"expires": "2020-01-01"}, 401),
    (ALICE, {"dollars": 0.0}, 429),
]


def test_a_bad_key_is_refused_before_its_body() -> None:
    """A request with a bad key is answered while its body is still to come, and its connection is closed."""
    sizes = ("content-length: 50000000", "transfer-encoding: chunked")
    with Shared() as behind:
        for path, size, (key, row, status) in product(("/v1/messages", "/v1/files"), sizes, BAD):
            keys = [key_row(ALICE, **row)]
            assert behind.served.reload_settings(lambda keys=keys: behind.settings(keys=keys))  # type: ignore[misc]
            with closing(_open(behind, f"POST {path} HTTP/1.1", f"x-api-key: {key}", size)) as raw:
                answer = b"".join(iter(partial(raw.recv, 65_536), b""))
                assert answer.startswith(b"HTTP/1.1 %d " % status)
                assert b"connection: close" in answer
        assert behind.lab.requests == []


def test_a_path_of_no_key_is_refused_before_its_body() -> None:
    """A path that the key may not use is refused while the body is still to come."""
    with Shared(keys=[key_row(ALICE, models=["cheap"])]) as behind:
        head = ("POST /v1/files HTTP/1.1", f"x-api-key: {ALICE}", "content-length: 50000000")
        with closing(_open(behind, *head)) as raw:
            assert raw.recv(65_536).startswith(b"HTTP/1.1 403 ")


def test_a_small_refused_body_keeps_its_connection() -> None:
    """A refused request with a small body does not cost the client its connection."""
    with Shared(keys=[key_row(ALICE)]) as behind, behind.http() as client:
        for _ in range(2):
            got = client.post("/v1/messages", json=asked(), headers={"x-api-key": "rung-wrong"})
            assert (got.status_code, got.headers.get("connection")) == (401, None)


def test_requests_that_are_no_model_calls_count() -> None:
    """A forwarded request counts against the concurrency limit, as a model call does."""
    with (
        Shared(limits={"concurrency": 1}) as behind,
        closing(_open(behind, "POST /v1/files HTTP/1.1", "content-length: 100")) as raw,
    ):
        wait_until(lambda: behind.gateway.active_requests == 1)
        assert behind.post("/v1/files", content=b"x").status_code == 529
        raw.sendall(b"x" * 100)
        assert raw.recv(65_536).startswith(b"HTTP/1.1 404 ")


def test_headers_without_end() -> None:
    """Headers above the limit are answered with 431 and the connection is closed."""
    with Behind() as behind:
        for start in (b"GET /" + b"x" * 2_000_000, b"GET / HTTP/1.1\r\nx: " + b"x" * 2_000_000):
            with closing(socket.create_connection(("127.0.0.1", behind.served.port), timeout=60)) as raw:
                try:
                    raw.sendall(start)
                    answer = raw.recv(65_536)
                except ConnectionError:  # the gateway stopped reading
                    continue
                assert answer.startswith(b"HTTP/1.1 431 ")
        with behind.http() as client:
            assert client.get("/healthz", headers={"x-long": "x" * 30_000}).status_code == 200


def _open(behind: Behind, *lines: str) -> socket.socket:
    """Open a connection and send the headers of a request."""
    raw = socket.create_connection(("127.0.0.1", behind.served.port), timeout=60)
    raw.sendall("\r\n".join([lines[0], "host: 127.0.0.1", *lines[1:], "", ""]).encode())
    return raw
