"""The service as people start it, and a real Chromium that looks at it."""

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
    """A running `rung serve`."""

    process: subprocess.Popen[str]
    address: str
    journal: Path | None = None

    def url(self, place: str = "") -> str:
        """The address of a page, as a signed-in browser has it."""
        return f"{self.address}#{place}"

    @property
    def sign_in(self) -> str:
        """The address that was printed."""
        return f"{self.address}?token={TOKEN}"

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """Use the API without a browser."""
        asked = urllib.request.Request(
            f"{self.address}api/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **(headers or {})},
            method=method,
        )
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return json.loads(answer.read())

    def end(self) -> int:
        """Ctrl-C: with pages listening too, it is over in a moment."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)


@contextmanager
def up(*words: str, journal: Path | None = None, command: Sequence[str] = ("rung", "up")) -> Iterator[Service]:
    """Start it; end it. The command is a module and its words."""
    given = [] if journal is None else ["--journal", str(journal)]
    port = [] if "--port" in words else ["--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", *command, *port, "--token", TOKEN, *given, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"(http://\S+/)\?token=", line):
            service = Service(process, found[1], journal)
            break
    else:
        raise AssertionError(f"rung serve did not start: {''.join(said)}")
    try:
        yield service
    finally:
        service.end()
        process.stdout.close()


@pytest.fixture(scope="session")
def demo() -> Iterator[Service]:
    """The demo's live world."""
    with up(command=["examples.demo_world"]) as service:
        yield service


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A journal that the tests themselves write to, while the service shows it."""
    with Stage(tmp_path_factory.mktemp("stage") / "journal.db") as stage:
        yield stage


@pytest.fixture(scope="module")
def service(stage: Stage) -> Iterator[Service]:
    """The service over the stage's journal."""
    with up(journal=stage.place) as service:
        service.ask("PUT", "retry-policy", {"settings": {"ladder": "model", "models": MODELS}}, {"If-Match": '"0"'})
        yield service


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium. A laptop may have none; the gate must."""
    chromium = FINDER["find"]()
    if chromium is None:
        if os.environ.get("RUNG_REQUIRE_BROWSER") or os.environ.get("CI"):
            pytest.fail("no Chromium: `make browser` installs one")
        pytest.skip("no Chromium: `make browser` installs one")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT_MS)

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@dataclass
class Watch:
    """What a page said and asked for while it was looked at."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def over(self, context: BrowserContext) -> None:
        """Watch every page of a context."""
        context.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens signed-in pages; afterwards none may have complained, or asked another host for anything."""
    watches: list[tuple[Watch, str]] = []
    contexts: list[BrowserContext] = []
    homes: set[str] = set()

    def opened(service: Service, place: str = "/sessions", *, expects: str = "", **settings: Any) -> Page:
        context = browser.new_context(**{"locale": "en-US", "viewport": {"width": 1360, "height": 860}, **settings})
        contexts.append(context)
        watch = Watch()
        watch.over(context)
        watches.append((watch, expects))
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(service.sign_in)
        page.goto(service.url(place))
        homes.add(service.address.split("/")[2])
        return page

    yield opened
    for context in contexts:
        context.close()
    for watch, expects in watches:
        unexpected = [text for text in watch.errors if not expects or not re.search(expects, text)]
        assert not unexpected
        assert watch.hosts <= homes
