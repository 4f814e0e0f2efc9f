"""The connection between browser and service: one stream for all tabs, stale and lost states, hostile content."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.conftest import up
from tests.browser.stage import HOSTILE, Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Service

TABS = 12


def test_twelve_tabs_share_one_stream(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """Twelve tabs share one event stream, and another tab takes over when its tab closes."""
    first = open_page(service)
    expect(first.locator(".connection")).to_have_text("live")
    streams: list[str] = []
    first.context.on("request", lambda request: streams.append(request.url) if "/api/events" in request.url else None)
    tabs = [first]
    for _ in range(TABS - 1):
        tab = first.context.new_page()
        tab.goto(service.url("/sessions"))
        tabs.append(tab)
    for tab in tabs:
        expect(tab.locator(".connection")).to_have_text("live")
        expect(tab.locator(".grid-row").first).to_be_visible()
    assert not streams
    stage.recovered("many-1")
    expect(tabs[-1].locator(".grid-row", has_text="many-1")).to_be_visible()
    first.close()
    stage.recovered("many-2")
    tabs[5].bring_to_front()
    expect(tabs[5].locator(".grid-row", has_text="many-2")).to_be_visible()
    for _ in range(50):
        if not streams:
            tabs[5].wait_for_timeout(100)
    assert len(streams) == 1
    stage.recovered("many-3")
    expect(tabs[5].locator(".grid-row", has_text="many-3")).to_be_visible()


def test_silence_is_called_stale(service: Service, open_page: Callable[..., Page]) -> None:
    """After thirty seconds without data, the page shows a banner and pauses its countdowns."""
    page = open_page(service)
    expect(page.locator(".connection")).to_have_text("live")
    page.clock.install()
    page.clock.pause_at(time.time() + 1)
    page.clock.fast_forward(32_000)
    expect(page.locator(".connection")).to_have_text("stale")
    expect(page.locator(".banner", has_text="No updates")).to_contain_text("countdowns are paused")


def test_a_service_that_comes_back_is_found_again(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    """The page reports a lost connection, and after a restart of the service shows all missed changes."""
    with Stage(tmp_path / "journal.db") as stage:
        with up(journal=stage.place) as service:
            port = service.address.rsplit(":", 1)[1].rstrip("/")
            page = open_page(service, expects="ERR_|Failed to load|net::")
            expect(page.locator(".grid-row", has_text="mended-1")).to_be_visible()
            service.process.kill()
            service.process.wait()
            expect(page.locator(".connection")).to_have_text("reconnecting")
            expect(page.locator(".banner", has_text="lost")).to_be_visible()
            stage.recovered("meanwhile-1")
        with up("--port", port, journal=stage.place):
            expect(page.locator(".connection")).to_have_text("live")
            expect(page.locator(".grid-row", has_text="meanwhile-1")).to_be_visible()
            page.goto("about:blank")


def test_the_first_load_is_small_and_quick(demo: Service, open_page: Callable[..., Page]) -> None:
    """The first page loads at most 80 KB, all of it from the service."""
    page = open_page(demo)
    expect(page.locator(".grid-row").first).to_be_visible()  # signed in: a reload would interrupt that
    sizes: dict[str, int] = {}
    line = page.context.new_cdp_session(page)
    names: dict[str, str] = {}
    line.send("Network.enable")
    line.send("Network.setCacheDisabled", {"cacheDisabled": True})
    line.on("Network.responseReceived", lambda told: names.update({told["requestId"]: told["response"]["url"]}))
    line.on(
        "Network.loadingFinished",
        lambda told: sizes.update({names.get(told["requestId"], "/api/"): told["encodedDataLength"]}),
    )
    page.reload()
    expect(page.locator(".grid-row").first).to_be_visible()
    built = {url: size for url, size in sizes.items() if "/api/" not in url}
    assert len(built) >= 3
    assert sum(built.values()) <= 80 * 1024, built


def test_nothing_an_agent_writes_runs(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """Scripts in prompts, errors and names of models, agents, projects, sessions and tools are shown as text."""
    ended = stage.hostile()
    page = open_page(service)
    places = (
        "/sessions", f"/incidents/{ended.id}", "/incidents", "/analytics", "/analytics?by=tool", "/analytics?by=model",
        "/inbox", "/policies",
    )  # fmt: skip
    for place in places:
        page.goto(service.url(place))
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator(".skeleton")).to_have_count(0)
        assert page.evaluate("window.hurt") is None
        assert page.locator("img").count() == 0
    page.goto(service.url("/sessions?q=hostile"))
    page.locator(".grid-row .row-name").first.click()
    expect(page.locator("h1")).to_contain_text(HOSTILE)
    expect(page.locator(".turn.failed").first).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Retry with error context").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate("window.hurt") is None


def test_ctrl_c_ends_it_with_pages_open(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    """The service shuts down cleanly while a page is connected."""
    with up(journal=tmp_path / "journal.db") as service:
        page = open_page(service, expects="ERR_|Failed to load|net::")
        expect(page.locator(".connection")).to_have_text("live")
        expect(page.get_by_text("No sessions yet")).to_be_visible()
        service.end()  # raises when it does not end
        expect(page.locator(".connection")).to_have_text("reconnecting")
