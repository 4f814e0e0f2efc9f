"""An administrator's webhook cannot be used to reach this machine or a cloud's metadata service."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.error import HTTPError

import pytest

from rung.adapters.system.webhook import check_webhook, post_webhook
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.service.conftest import Running


@contextmanager
def listening(location: str = "") -> Iterator[tuple[int, list[bytes]]]:
    """Serve on loopback: record bodies, and redirect to a location if one is given."""
    bodies: list[bytes] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(302 if location else 204)
            if location:
                self.send_header("location", location)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], bodies
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:9/hook",
        "http://127.1.2.3/hook",
        "http://localhost:9/hook",
        "http://0.0.0.0/hook",
        "http://[::1]/hook",
        "http://[::ffff:127.0.0.1]/hook",
        "http://[fe80::1]/hook",
        "http://[fd00:ec2::254]/hook",
        "http://100.100.100.200/",
        "http://[",
        "http://hooks.example:99999/",
        "http://user:password@hooks.example/",
        "file:///etc/passwd",
    ],
)
def test_addresses_that_are_refused(service: Running, url: str) -> None:
    """Loopback, link-local and metadata addresses are refused when the webhook is set, as is what is no URL."""
    answer = service.admin.put("/api/notifications", json={"webhook": url})
    assert (answer.status_code, answer.json()["field"]) == (422, "webhook")


def test_other_machines_are_allowed(service: Running) -> None:
    """Public names and addresses of a company's own network can be set."""
    for url in ("https://hooks.slack.example/services/T0/B0", "http://10.1.2.3:8065/hooks/x", ""):
        assert service.admin.put("/api/notifications", json={"webhook": url}).status_code == 200


@pytest.mark.parametrize("name", ["127.1", "2130706433", "0x7f.0.0.1"])
def test_a_name_of_this_machine_is_refused_when_it_is_resolved(name: str) -> None:
    """A name that resolves to loopback gets no request: the address of the connection is checked, not the name."""
    with listening() as (port, bodies):
        with pytest.raises(ConfigError, match=r"\(127\.0\.0\.1\)"):
            post_webhook(f"http://{name}:{port}/hook", b"{}")
        assert bodies == []


def test_an_allowed_host() -> None:
    """A host named at the start gets the request, on this machine too."""
    with listening() as (port, bodies):
        post_webhook(f"http://127.0.0.1:{port}/hook", b"{}", {"127.0.0.1"})
        assert bodies == [b"{}"]
        assert check_webhook("http://LOCALHOST/hook", {"localhost"}) == "localhost"


def test_redirects_are_not_followed() -> None:
    """An answer that points elsewhere is an error; the other address gets no request."""
    with listening() as (inner, reached), listening(f"http://127.0.0.1:{inner}/") as (port, _):
        with pytest.raises(HTTPError, match="302"):
            post_webhook(f"http://127.0.0.1:{port}/hook", b"{}", {"127.0.0.1"})
        assert reached == []
