"""The dashboard over a large journal with ten thousand sessions and a million events."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.journal import reports
from playwright.sync_api import expect

from rung.store.read_models.batch import DAY_SECONDS
from tests.browser.conftest import up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from tests.browser.conftest import Service

EVENTS = int(os.environ.get("RUNG_EVENTS", "1000000"))
SECONDS = float(os.environ.get("RUNG_SECONDS", "1.0"))
PAGES = {
    "/sessions": ".grid-row",
    "/incidents": "tbody tr",
    "/analytics": ".days svg",
    "/analytics?period=30": ".days svg",
    "/analytics?by=pattern": ".bars li",
    "/inbox": "h1",
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service over a generated journal."""
    place = tmp_path_factory.mktemp("large") / "journal.db"
    journal, events = reports.generate(place, EVENTS, time.time() - reports.DAYS * DAY_SECONDS)
    assert events >= EVENTS
    ((sessions,),) = journal.read("SELECT count(*) FROM session")
    assert sessions >= EVENTS // 100
    journal.close()
    with up(journal=place) as service:
        yield service


def processor_seconds(process: int) -> float:
    """User and system time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def least_work(service: Service, look: Callable[[], None], rounds: int = 4) -> float:
    """Seconds of processor time that the service needs for a page: the same beside other work as without."""
    times = []
    for _ in range(rounds):
        began = processor_seconds(service.process.pid)
        look()
        times.append(processor_seconds(service.process.pid) - began)
    return min(times)


def test_every_page_within_a_second(large: Service, open_page: Callable[..., Page]) -> None:
    """From nothing to rows and charts, the service works less than a second."""
    page = open_page(large)
    took = {}
    for place, sign in PAGES.items():

        def look(place: str = place, sign: str = sign) -> None:
            page.goto("about:blank")
            page.goto(large.url(place))
            expect(page.locator(sign).first).to_be_visible()
            expect(page.locator(".skeleton")).to_have_count(0)

        took[place] = least_work(large, look)
    assert max(took.values()) <= SECONDS, took


def test_the_list_goes_on(large: Service, open_page: Callable[..., Page]) -> None:
    """Scrolling loads more rows, and the document contains only the visible ones."""
    page = open_page(large)
    expect(page.locator(".grid-row").first).to_be_visible()
    for _ in range(30):
        page.mouse.move(700, 500)
        page.mouse.wheel(0, 4_000)
        page.wait_for_timeout(30)
    expect(page.locator(".grid-row").first).to_be_visible()
    assert page.locator(".grid-row").count() < 200
