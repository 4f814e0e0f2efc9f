"""A client cannot choose the address by which the service knows it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from socket import create_server
from typing import TYPE_CHECKING

import httpx
import pytest

from rung.service.app import make_app
from rung.service.auth import MAX_FAILED_LOGINS
from rung.service.server import Server
from rung.wiring.request_origin import LOOPBACK_HOSTS
from tests.service.conftest import SOON, TOKEN, eventually
from tests.service.test_up import RUNG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.service.conftest import Running


def _wrong_token(url: str, forwarded_for: str) -> int:
    headers = {"authorization": "Bearer wrong", "x-forwarded-for": forwarded_for}
    return httpx.get(f"{url}/api/me", headers=headers).status_code


@contextmanager
def behind_proxy(service: Running) -> Iterator[str]:
    """Serve the same app with 127.0.0.1 as its trusted proxy; yield its URL."""
    listening = create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = Server(make_app(service.context, hosts=LOOPBACK_HOSTS), service.context.stream, ["127.0.0.1"])
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    eventually(lambda: server.started)
    yield url
    server.should_exit = True
    thread.join(SOON)


def test_forwarded_addresses_are_not_believed(service: Running) -> None:
    """Wrong tokens with ever new X-Forwarded-For headers are counted for the connection's own address."""
    for n in range(MAX_FAILED_LOGINS):
        assert _wrong_token(service.url, f"192.0.2.{n}") == 401
    assert _wrong_token(service.url, "192.0.2.200") == 429


def test_a_configured_proxy_is_believed(service: Running) -> None:
    """Behind a proxy named at the start, clients are counted apart, and a cookie over HTTPS is Secure."""
    with behind_proxy(service) as url:
        for _ in range(MAX_FAILED_LOGINS):
            assert _wrong_token(url, "192.0.2.1") == 401
        assert _wrong_token(url, "192.0.2.1") == 429
        assert _wrong_token(url, "192.0.2.2") == 401
        answer = httpx.post(f"{url}/api/login", json={"token": TOKEN}, headers={"x-forwarded-proto": "https"})
        assert "secure" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize("given", ["*", "proxy.example", "10.0.0.1/8", "300.1.1.1"])
def test_proxies_that_cannot_be_trusted(tmp_path: Path, given: str) -> None:
    """A proxy is named by its address or network; anything else is refused at the start."""
    import subprocess

    done = subprocess.run(
        [*RUNG, "serve", "--trusted-proxy", given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, "--trusted-proxy" in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def test_a_websocket_is_no_way_in(service: Running) -> None:
    """A WebSocket handshake, which browsers send cross-site with cookies, is an ordinary request without a token."""
    handshake = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "x",
    }
    assert service.client().get("/api/me", headers=handshake).status_code == 401
