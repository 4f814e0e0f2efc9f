"""Cross-site and DNS-rebinding attacks from the browser that runs the dashboard."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.browser.conftest import Service
    from tests.browser.stage import Stage


@pytest.fixture(scope="module")
def evil() -> Iterator[str]:
    """A server on this machine under a host name that the browser treats as another site."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title><body></body>")

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


TRY = """async ([url, method, type, body]) => {
  try {
    const answer = await fetch(url, {method, body, headers: type ? {"content-type": type} : {}, credentials: "include",
                                     mode: "MODE"});
    return "MODE" === "no-cors" ? answer.type : `${answer.status} ${await answer.text()}`;
  } catch (error) { return "refused"; }
}"""


def test_another_sites_page(service: Service, stage: Stage, evil: str, browser: Browser) -> None:
    """A page of another site can neither read responses nor change anything with JSON, forms or plain text."""
    context = browser.new_context()
    session = stage.failed("target-1")
    ours = context.new_page()
    ours.goto(service.sign_in)
    expect(ours.locator(".grid-row").first).to_be_visible()
    page = context.new_page()
    page.goto(evil)
    acts = len(service.request("GET", "audit"))
    for mode in ("cors", "no-cors"):
        for path, method, kind, body in (
            ("api/me", "GET", "", None),
            ("api/sessions", "GET", "", None),
            ("api/events", "GET", "", None),
            ("api/sessions/target-1/retry", "POST", "text/plain", "{}"),
            ("api/sessions/target-1/retry", "POST", "application/x-www-form-urlencoded", "mode=plain"),
            (f"api/incidents/{session.id}/cancel", "POST", "", ""),
            ("api/login", "POST", "text/plain", f'{{"token": "{TOKEN}"}}'),
        ):
            said = page.evaluate(TRY.replace("MODE", mode), [service.address + path, method, kind, body])
            assert said in ("refused", "opaque"), (path, said)
    assert len(service.request("GET", "audit")) == acts
    page.set_content(f'<iframe src="{service.address}"></iframe>')
    page.wait_for_timeout(500)
    assert not page.frames[-1].url.startswith("http")  # nothing of ours is shown inside another page
    context.close()


def test_a_name_bent_to_this_machine(service: Service, browser: Browser) -> None:
    """The service rejects requests for a host name that was rebound to its address."""
    context = browser.new_context(extra_http_headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        answer = context.request.get(service.address + "api/me", headers={"Host": "evil.example"})
        assert answer.status == 421
    finally:
        context.close()


def test_a_port_next_door(service: Service, browser: Browser) -> None:
    """A server on another port of this host receives the cookie from the browser and can do nothing with it."""
    received: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context()
    page = context.new_page()
    page.goto(service.sign_in)
    expect(page.locator("nav").first).to_be_visible()
    context.new_page().goto(f"http://127.0.0.1:{server.server_address[1]}/")
    server.shutdown()
    server.server_close()
    assert any("rung=" in cookie for cookie in received), "the browser did not send the cookie to the other port"
    stolen = urllib.request.Request(f"{service.address}api/me", headers={"Cookie": received[0]})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(stolen, timeout=20)
    context.close()


def test_a_link_with_a_token_signs_nobody_in(service: Service, evil: str, browser: Browser) -> None:
    """A page of another site that opens the dashboard with a token, or shows it as an image, signs nobody in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(evil)
    page.evaluate("url => { for (let n = 0; n < 20; n++) new Image().src = url + n }", f"{service.address}?token=x")
    page.evaluate("url => { location.href = url }", service.sign_in)
    expect(page.get_by_label("Token")).to_be_visible()
    assert context.cookies() == []
    page.goto(service.sign_in)
    expect(page.get_by_label("Token")).to_be_hidden()
    assert "token=" not in page.url
    context.close()
