"""Sessions of the gateway and of `rung run` are retried from the page: real service, gateway, agent and browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from playwright.sync_api import expect

from rung.testing.provider import Lab
from tests.browser.conftest import TOKEN, up
from tests.trusting import write_trusted
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Service

FAILS_ONCE = [{"fault": "bad_request", "times": 1}]
AGENT = 'cat > given\nif [ -e good ]; then cat given; exit 0; fi\necho "ValueError: upside down" >&2\nexit 7\n'


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(FAILS_ONCE) as provider:
        yield provider


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: Lab) -> Path:
    """A directory with the user's own data, and the gateway of its service in front of the lab."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    prices = "[gateway.prices]\nsmall = { input = 1.0, output = 5.0 }\nlarge = { input = 5.0, output = 25.0 }\n"
    text = f'[policy]\nmodels = ["small", "large"]\n[gateway]\nanthropic = "{lab.url}"\n{prices}'
    write_trusted(tmp_path / "rung.toml", text)
    return tmp_path


def failed_call(gateway: str, session: str) -> None:
    client = anthropic.Anthropic(base_url=gateway, api_key="sk-ant-of-the-client", max_retries=0)
    asked: Any = {"model": "small", "max_tokens": 400, "messages": [{"role": "user", "content": "count to 4 as apple"}]}
    with client, suppress(anthropic.APIError):
        client.messages.create(**asked, extra_headers={"x-rung-session": session})


def gateway_of(service: Service) -> str:
    assert service.process.stdout is not None
    for line in service.process.stdout:
        if match := re.search(r"ANTHROPIC_BASE_URL=(\S+)", line):
            return match[1]
    raise AssertionError("no gateway")


def test_a_session_of_the_gateway(place: Path, lab: Lab, open_page: Callable[..., Page]) -> None:
    """The page asks for a key where the client used its own; the retry succeeds, and the attempt before it is kept."""
    with up("--gateway-port", "0", journal=place / "journal.db") as service:
        failed_call(gateway_of(service), "gw-1")
        wait_until(lambda: "gw-1" in str(service.request("GET", "sessions")))
        page = open_page(service, "/sessions/gw-1")
        wait_until(lambda: service.request("GET", "sessions/gw-1/retry-preview")["possible"], 0.2)
        page.get_by_role("button", name="Retry with error context").click()
        retry = page.get_by_role("button", name="Retry", exact=True)
        expect(retry).to_be_disabled()
        expect(page.locator("dialog .disabled-reason")).to_contain_text("key")
        page.get_by_label("Key for the upstream").fill("sk-for-this-retry")
        retry.click()
        expect(page.locator("h1 + .badge")).to_have_text(re.compile("succeeded"))
        made = lab.calls[-1]
        assert "The previous attempt at this task failed." in str(made.json)
        assert made.headers["x-api-key"] == "sk-for-this-retry"
        page.get_by_role("button", name="Retry with error context").click()
        page.get_by_label("On another model").check()
        page.get_by_label("Key for the upstream").fill("sk-for-this-retry")
        expect(page.get_by_role("dialog")).to_contain_text("more")
        retry.click()
        page.get_by_role("button", name="Confirm and retry").click()
        wait_until(lambda: lab.calls[-1].model == "large")
        expect(page.locator(".turn.change").first).to_contain_text("small → large")
        page.close()


def test_a_session_of_a_command(place: Path, open_page: Callable[..., Page]) -> None:
    """Without leave the page shows what to type; a service with --run-commands runs the command again."""
    (place / "agent.sh").write_text(AGENT)
    journal = place / "journal.db"
    line = [
        sys.executable,
        "-m",
        "rung",
        "run",
        "--max-attempts",
        "1",
        "--journal",
        str(journal),
        "--",
        "sh",
        "agent.sh",
    ]
    subprocess.run(line, input=b"the task", check=False, capture_output=True, env={**os.environ, "RUNG_TOKEN": TOKEN})
    with up("--no-gateway", journal=journal) as service:
        session = service.request("GET", "sessions")["items"][0]["id"]
        page = open_page(service, f"/sessions/{session}")
        page.get_by_role("button", name="Retry with error context").click()
        expect(page.locator("dialog .disabled-reason")).to_contain_text(f"rung retry {session}")
        page.close()
    (place / "good").touch()
    with up("--no-gateway", "--run-commands", journal=journal) as service:
        page = open_page(service, f"/sessions/{session}")
        page.get_by_role("button", name="Retry with error context").click()
        page.get_by_role("button", name="Retry", exact=True).click()
        expect(page.locator("h1 + .badge")).to_have_text(re.compile("succeeded"))
        page.close()
    given = (place / "given").read_text()
    assert "upside down" in given
    assert given.endswith("the task")
