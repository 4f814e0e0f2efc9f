"""Fixtures: the service as `rung up` starts it, and a real Chromium."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.stage import MODELS, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser, BrowserContext, Page

ROOT = Path(__file__).parent.parent.parent
FINDER = runpy.run_path(str(ROOT / "scripts" / "find_chromium.py"))
TOKEN = "a-token-for-tests-only"
TIMEOUT_MS = 60_000  # only a page that is broken takes so long, however busy the machine is


@dataclass
class Service:
    """A running `rung serve` process."""

    process: subprocess.Popen[str]
    address: str
    journal: Path | None = None

    def url(self, place: str = "") -> str:
        """Return the URL of a page for a signed-in browser."""
        return f"{self.address}#{place}"

    @property
    def sign_in(self) -> str:
        """Return the URL with the token, as printed by `rung up`."""
        return f"{self.address}?token={TOKEN}"

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """Send an API request without a browser and return the decoded response."""
        api_request = urllib.request.Request(
            f"{self.address}api/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **(headers or {})},
            method=method,
        )
        with urllib.request.urlopen(api_request, timeout=20) as response:
            return json.loads(response.read())

    def end(self) -> int:
        """Interrupt the process, also while pages are connected, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)


@contextmanager
def up(
    *arguments: str,
    journal: Path | None = None,
    command: Sequence[str] = ("rung", "serve"),
    folder: Path | None = None,
) -> Iterator[Service]:
    """Start the service and stop it afterwards. The command is a module and its arguments."""
    journal_option = [] if journal is None else ["--journal", str(journal)]
    port = [] if "--port" in arguments else ["--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", *command, *port, "--token", TOKEN, *journal_option, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    output = []
    for line in process.stdout:
        output.append(line)
        if match := re.search(r"(http://\S+/)\?token=", line):
            service = Service(process, match[1], journal)
            break
    else:
        raise AssertionError(f"rung serve did not start: {''.join(output)}")
    try:
        yield service
    finally:
        service.end()
        process.stdout.close()


@pytest.fixture(scope="session")
def demo() -> Iterator[Service]:
    """The service with the demo."""
    with up(command=["examples.demo_world"]) as service:
        yield service


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Scripted agents that write to the journal of the running service."""
    with Stage(tmp_path_factory.mktemp("stage") / "journal.db") as stage:
        yield stage


@pytest.fixture(scope="module")
def service(stage: Stage) -> Iterator[Service]:
    """The service over the journal of the scripted agents."""
    with up(journal=stage.place) as service:
        service.request("PUT", "retry-policy", {"settings": {"ladder": "model", "models": MODELS}}, {"If-Match": '"0"'})
        yield service


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; tests are skipped without one, except in continuous integration."""
    chromium = FINDER["find"]()
    if chromium is None:
        if os.environ.get("RUNG_REQUIRE_BROWSER") or os.environ.get("CI"):
            pytest.fail("no Chromium: `make browser` installs one")
        pytest.skip("no Chromium: `make browser` installs one")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT_MS)

    with sync_playwright() as playwright:
        chromium_browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield chromium_browser
        chromium_browser.close()


@dataclass
class PageMonitor:
    """Console errors and requested hosts of a browser context."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def attach(self, context: BrowserContext) -> None:
        """Record the errors and requests of every page of a context."""
        context.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open signed-in pages; afterwards, fail on console errors and on requests to other hosts."""
    from playwright.sync_api import expect

    monitors: list[tuple[PageMonitor, str]] = []
    contexts: list[BrowserContext] = []
    own_hosts: set[str] = set()

    def open_signed_in(service: Service, place: str = "/sessions", *, expects: str = "", **settings: Any) -> Page:
        context = browser.new_context(**{"locale": "en-US", "viewport": {"width": 1360, "height": 860}, **settings})
        contexts.append(context)
        monitor = PageMonitor()
        monitor.attach(context)
        monitors.append((monitor, expects))
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(service.sign_in)
        expect(page.locator("#content")).to_be_attached()  # signed in: leaving the page would interrupt that
        page.goto(service.url(place))
        own_hosts.add(service.address.split("/")[2])
        return page

    yield open_signed_in
    for context in contexts:
        context.close()
    for monitor, expects in monitors:
        unexpected = [text for text in monitor.errors if not expects or not re.search(expects, text)]
        assert not unexpected
        assert monitor.hosts <= own_hosts
