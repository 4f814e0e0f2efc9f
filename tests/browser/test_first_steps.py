"""What a newcomer sees: the guide, commands that work on this machine, and empty pages that say how to fill them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, up
from tests.browser.test_pages import LOOKS, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Service


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over a journal in which nothing happened, in a folder whose name a shell would split."""
    folder = tmp_path_factory.mktemp("first steps")
    with up("--gateway-port", "0", journal=folder / "journal.db", folder=folder) as service:
        yield service


def run_shell(command: str) -> None:
    """Run a command of the page in a shell, with this environment's `rung`."""
    words = f'rung() {{ {shlex.quote(sys.executable)} -m rung "$@"; }}\n{command}'
    done = subprocess.run(["sh", "-c", words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Service]:
    """A service over a journal of one test."""
    with up("--no-gateway", journal=tmp_path / "journal.db", folder=tmp_path) as service:
        yield service


def test_the_guide_leads_to_a_recovered_failure(fresh: Service, open_page: Callable[..., Page]) -> None:
    """On an empty journal the guide is shown; its first command, run as it is, becomes an incident on the page."""
    page = open_page(fresh)
    guide = page.get_by_role("region", name="First steps")
    expect(guide.locator("li")).to_have_count(5)
    run_shell(guide.locator("pre").first.inner_text())
    expect(guide.locator("li").first.locator(".badge")).to_have_text("done")
    guide.get_by_role("link", name="Open the incident").click()
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".badge.recovered").first).to_be_visible()
    page.goto(fresh.url("/sessions"))
    expect(guide).to_be_visible()  # until it is dismissed
    guide.get_by_role("button", name="Dismiss the guide").click()
    expect(guide).to_have_count(0)
    page.reload()
    expect(page.locator(".grid-row").first).to_be_visible()
    expect(guide).to_have_count(0)
    page.keyboard.press("?")
    page.get_by_role("button", name="Show the first steps").click()
    expect(guide).to_be_visible()


def test_the_guide_is_not_shown_where_agents_run_already(service: Service, open_page: Callable[..., Page]) -> None:
    """A journal with sessions opens without the guide."""
    page = open_page(service)
    expect(page.locator(".grid-row").first).to_be_visible()
    expect(page.get_by_role("region", name="First steps")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(1280, 860), (420, 860), (1280, 500)])
def test_the_guide_leaves_the_sessions_visible(
    width: int, height: int, demo: Service, open_page: Callable[..., Page]
) -> None:
    """With the guide open, rows of sessions are below it, and the page can be scrolled to them."""
    page = open_page(demo, viewport={"width": width, "height": height})
    expect(page.locator(".grid-row").first).to_be_visible()
    page.keyboard.press("?")
    page.get_by_role("button", name="Show the first steps").click()
    guide = page.get_by_role("region", name="First steps")
    expect(guide.get_by_text("Open the incident to see the failure")).to_be_visible()
    body = page.locator(".grid-body")
    assert body.evaluate("body => body.clientHeight") >= 200
    body.scroll_into_view_if_needed()
    above, below = guide.bounding_box(), body.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    assert below["y"] < height


def test_the_empty_list_is_below_its_filters_on_a_phone(empty: Service, open_page: Callable[..., Page]) -> None:
    """The text of an empty list does not lie behind the filters, with and without the guide."""
    page = open_page(empty, viewport={"width": 420, "height": 860})
    dismiss = page.get_by_role("button", name="Dismiss the guide")
    expect(dismiss).to_be_visible()
    assert gap_above_icon(page) >= 0
    dismiss.click()
    expect(dismiss).to_have_count(0)
    assert gap_above_icon(page) >= 0


def gap_above_icon(page: Page) -> float:
    """Return the distance in pixels between the filters and the icon of the empty list."""
    icon, filters = page.locator(".empty > svg").bounding_box(), page.locator(".filters").bounding_box()
    assert icon is not None
    assert filters is not None
    return icon["y"] - filters["y"] - filters["height"]


@pytest.mark.parametrize("looks", LOOKS)
def test_empty_pages_fit_and_can_be_used_by_everybody(
    looks: str, empty: Service, open_page: Callable[..., Page]
) -> None:
    """Every page without data fits the screen, has no serious accessibility violation, and says what to do."""
    page = open_page(empty, **LOOKS[looks])
    for place in ("sessions", "incidents", "analytics", "inbox", "crew", "fleet", "alerts", "budgets", "policies"):
        page.goto(empty.url(f"/{place}"))
        if place != "policies":
            expect(page.locator(".empty h2").first).to_be_visible()
        look(page, f"empty-{place}-{looks}")


def test_commands_name_this_service(empty: Service, open_page: Callable[..., Page]) -> None:
    """Commands have the journal's path, quoted for a shell, and the address of the running gateway."""
    page = open_page(empty)
    ways = page.locator(".ways-in pre")
    expect(ways.nth(0)).to_contain_text(f"rung run --journal '{empty.journal}' -- my-agent")
    gateway = empty.request("GET", "me")["gateway"]
    assert gateway.startswith("http://127.0.0.1:")
    expect(ways.nth(1)).to_contain_text(f"export ANTHROPIC_BASE_URL={gateway}\n")
    expect(ways.nth(2)).to_contain_text(f'journal=rung.journal("{empty.journal}")')
    page.goto(empty.url("/incidents"))
    expect(page.locator(".empty pre")).to_contain_text(f"--journal '{empty.journal}'")


def test_a_command_is_copied(empty: Service, open_page: Callable[..., Page]) -> None:
    """The button puts the whole command on the clipboard and says so."""
    page = open_page(empty, "/incidents", permissions=["clipboard-read", "clipboard-write"])
    shown = page.locator(".empty pre").inner_text()
    page.get_by_role("button", name="Copy the command").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == shown
