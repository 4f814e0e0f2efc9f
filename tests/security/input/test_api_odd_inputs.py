"""Whatever is sent to the service's API, no answer is a fault of ours."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import hypothesis

from tests.security.input.odd_requests import FUZZING, ODD_JSON, requests
from tests.service.conftest import TOKEN

if TYPE_CHECKING:
    from tests.service.conftest import Running


def send(url: str, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Send a request as it is: nothing is normalised on the way."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in {"authorization": f"Bearer {TOKEN}", **headers}.items():
            connection.putheader(name, value.encode("latin-1", "replace"))
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body or None)
        answer = connection.getresponse()
        return answer.status, answer.read(2_000).decode("utf-8", "replace")
    finally:
        connection.close()


def test_every_operation_with_odd_values(service: Running, past: None) -> None:
    """Every operation answers odd paths, queries, headers and bodies with a problem of the sender, never with a fault."""
    asked: set[str] = set()

    @FUZZING
    @hypothesis.given(request=requests())
    def ask(request: tuple[str, str, bytes, dict[str, str]]) -> None:
        status, text = send(service.url, *request)
        assert status < 500, text
        asked.add(request[0])

    ask()
    assert {"GET", "POST", "PUT"} <= asked


def test_odd_bodies(service: Running) -> None:
    """Deep, huge and malformed documents are refused by every route that reads one."""
    headers = {"content-type": "application/json", "if-match": '"0"'}
    for method, path in (
        ("POST", "retry-policy/validate"),
        ("PUT", "retry-policy"),
        ("POST", "tokens"),
        ("PUT", "budgets"),
    ):
        for body in ODD_JSON:
            status, text = send(service.url, method, f"/api/{path}", body.encode("utf-8", "surrogatepass"), headers)
            assert status < 500, (path, body[:100], text)


ODD_REQUESTS: tuple[tuple[str, dict[str, str], int], ...] = (
    ("/assets/%00", {}, 400),
    ("/%00", {}, 400),
    ("/api/sessions/%00", {}, 400),
    ("/api/sessions/%ff", {}, 404),
    ("/" + "x" * 5_000, {}, 307),  # to a page of the dashboard
    ("/" + "x/" * 2_000 + "y.js", {}, 404),
    ("/api/me", {"x-rung-csrf": "é☃", "cookie": "rung=é", "authorization": ""}, 401),
    ("/api/me", {"cookie": 'rung="\\777"; =; a', "authorization": ""}, 401),
    ("/api/me", {"authorization": "Bearer é" + "x" * 9_000}, 401),
    ("/api/export?what=%00", {}, 422),
    ("/api/export?since=1e999", {}, 422),
    ("/api/retry-policy/templates?ladder=%00", {}, 422),
)


def test_odd_paths_and_headers(service: Running) -> None:
    """Paths and headers that no client of ours sends have a plain answer."""
    for path, headers, status in ODD_REQUESTS:
        assert (path[:50], send(service.url, "GET", path, b"", headers)[0]) == (path[:50], status)


def test_versions_that_are_none(service: Running) -> None:
    """An If-Match that is no version of ours does not match, however long it is; without one nothing is replaced."""
    plain = {"content-type": "application/json"}
    for path in ("budgets", "retry-policy", "projects/shop/retry-policy"):
        for version in ('"' + "9" * 5_000 + '"', '"²"', "*", "W/", '"-1"'):
            assert send(service.url, "PUT", f"/api/{path}", b"{}", {**plain, "if-match": version})[0] == 412
        assert send(service.url, "PUT", f"/api/{path}", b"{}", plain)[0] == 428
