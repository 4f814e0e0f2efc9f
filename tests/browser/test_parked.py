"""Work that is parked until a limit reopens, on every page that shows it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from rung.core.crew.pool import Pool, PoolState
from rung.store.crew.table import CrewTable
from tests.browser.conftest import up
from tests.browser.test_pages import LOOKS, look

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import Service
    from tests.browser.stage import Stage

UNTIL = re.compile(r"[Pp]arked until .*\d?\d:\d\d.*, in 2 h (9|10) min")
WIDE = {"viewport": {"width": 1280, "height": 860}}
NARROW = {"viewport": {"width": 400, "height": 860}}


def item(page: Page, incident: str) -> Locator:
    """Return the inbox item of an incident."""
    return page.locator(".inbox-item").filter(has=page.locator(f'a[href$="{incident}"]'))


def open_parked(page: Page, service: Service, session: str) -> str:
    """Open the page of a session once it is parked, and return its incident."""
    page.goto(service.url(f"/sessions/{session}"))
    expect(page.locator("h1 + .badge")).to_have_text("parked")
    (incident,) = service.request("GET", f"incidents?session={session}")["items"]
    return str(incident["id"])


def test_a_parked_recovery_is_woken_in_the_inbox(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """The inbox says until when and for how long in local time, and waking it makes the next attempt at once."""
    again = stage.parks("plan-1")
    page = open_page(service, timezone_id="Asia/Kathmandu")
    incident = open_parked(page, service, "plan-1")
    page.goto(service.url("/inbox"))
    parked = item(page, incident)
    expect(parked.locator("h2")).to_have_text(UNTIL)
    until = service.request("GET", f"incidents/{incident}")["parkedUntil"]
    minute = time.gmtime(until + 5.75 * 3_600).tm_min
    expect(parked.locator("h2 time")).to_contain_text(f":{minute:02d}")
    parked.get_by_role("button", name="Wake now").click()
    assert again.wait(20)
    expect(parked).to_have_count(0)
    page.goto(service.url("/sessions/plan-1"))
    expect(page.locator("h1 + .badge")).to_have_text("recovered")


def test_a_parked_recovery_is_stopped_in_the_inbox(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """Stop asks, ends the recovery without another attempt, and its item disappears."""
    again = stage.parks("plan-2")
    page = open_page(service)
    incident = open_parked(page, service, "plan-2")
    page.goto(service.url("/inbox"))
    page.on("dialog", lambda asked: asked.accept())
    item(page, incident).get_by_role("button", name="Stop").click()
    expect(item(page, incident)).to_have_count(0)
    assert service.request("GET", f"incidents/{incident}")["status"] != "open"
    assert not again.is_set()


def test_a_session_and_an_incident_say_until_when_and_why(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """List, session and incident show the time; on the incident's page it goes on with another model."""
    again = stage.parks("plan-3")
    page = open_page(service)
    row = page.locator(".grid-row", has_text="plan-3")
    expect(row.locator(".badge")).to_have_text("parked")
    expect(row.locator(".next-attempt")).to_have_text(re.compile(r"until .*, in 2 h (9|10) min"))
    row.click()
    expect(page.locator(".turn.pending")).to_have_text(UNTIL)
    expect(page.locator(".turn.pending").get_by_role("button", name="Wake now")).to_be_enabled()
    page.locator(".sidebar .list-link").first.click()
    expect(page.locator("h1 + .badge")).to_have_text("parked")
    banner = page.get_by_role("region", name="Parked")
    expect(banner).to_contain_text(UNTIL)
    expect(banner).to_contain_text("because of quota exhausted: ")
    expect(banner).to_contain_text("usage_limit_reached")
    banner.get_by_role("button", name="Use another model").click()
    page.get_by_role("dialog").locator(".button.primary").click()
    assert again.wait(20)
    expect(page.locator("h1 + .badge")).to_have_text("recovered")
    expect(page.locator(".facts")).to_contain_text("large")
    expect(banner).to_have_count(0)


def test_a_reader_cannot_wake(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """With a read-only token the time is shown and the button is disabled."""
    stage.parks("plan-4")
    made = service.request("POST", "tokens", {"name": "watcher", "role": "read"})
    page = open_page(service, expects="401|403")
    incident = open_parked(page, service, "plan-4")
    page.context.clear_cookies()
    page.goto(f"{service.address}?token={made['token']}")
    page.goto(service.url(f"/incidents/{incident}"))
    expect(page.get_by_role("region", name="Parked")).to_contain_text(UNTIL)
    expect(page.get_by_role("button", name="Wake now")).to_be_disabled()
    expect(page.get_by_text("Your token is read-only.").first).to_be_visible()


@pytest.mark.parametrize("looks", LOOKS)
def test_parked_work_can_be_seen_by_everybody(
    looks: str, service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """The pages with parked work fit both widths and pass axe in both themes."""
    size = NARROW if looks.startswith("phone") else WIDE
    stage.parks(f"plan-{looks}")
    page = open_page(service, **{**LOOKS[looks], **size})
    incident = open_parked(page, service, f"plan-{looks}")
    look(page, f"parked-session-{looks}")
    for place in ("inbox", "sessions", f"incidents/{incident}"):
        page.goto(service.url(f"/{place}"))
        expect(page.locator(".parked").first).to_be_visible()
        look(page, f"parked-{place.replace(incident, 'one').replace('/', '-')}-{looks}")


@pytest.mark.parametrize("looks", ["wide-light", "phone-dark"])
def test_a_closed_pool_is_opened_on_the_page(looks: str, tmp_path: Path, open_page: Callable[..., Page]) -> None:
    """The crew page shows until when a pool is closed and why, and so does the inbox; Wake opens the pool."""
    now = time.time()
    closed = Pool(
        state=PoolState.PARKED, reason="the plan's limit", since=now, until=now + 7_800, next_probe=now + 7_830
    )
    with CrewTable.open(str(tmp_path / "move.db"), create=True) as table:
        table.change_pool("default", lambda _: closed)
        with up("--no-gateway", "--crew", table.location, journal=tmp_path / "journal.db") as service:
            page = open_page(service, "/inbox", **LOOKS[looks])
            expect(page.locator(".inbox-item")).to_contain_text(re.compile("in 2 h (9|10) min"))
            expect(page.get_by_role("button", name="Wake now")).to_be_enabled()
            page.goto(service.url("/crew"))
            pool = page.get_by_role("region", name="Pool default")
            expect(pool).to_contain_text(UNTIL)
            expect(pool).to_contain_text("the plan's limit")
            look(page, f"parked-pool-{looks}")
            pool.get_by_role("button", name="Wake now").click()
            expect(pool).to_have_count(0)
            assert table.pools()["default"].is_open
            page.close()  # before its service: a page that polls would report an error
