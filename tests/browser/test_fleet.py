"""The fleet page: executors by host, queues, leases, runs and versions, live; and its empty state."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from rung.store.durable_runs import DurableRunStore
from rung.store.fleet.executors import ExecutorRole, announce, beat, drain, leave, new_executor
from tests.browser.test_pages import look

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from rung.store.fleet.executors import Executor
    from tests.browser.conftest import Service
    from tests.browser.stage import Stage

FOR_LONG = 3_600.0  # seconds of lease


def test_a_fleet_is_explained_before_there_is_one(service: Service, open_page: Callable[..., Page]) -> None:
    """Without executors, the page says how to start a fleet, and the menu does not offer it."""
    page = open_page(service, "/fleet")
    expect(page.locator(".empty h2")).to_have_text("No fleet")
    expect(page.locator(".empty pre")).to_contain_text("rung fleet init --url postgresql://OWNER@HOST/DATABASE --role")
    expect(page.locator(".empty pre")).to_contain_text("rung fleet worker --import MODULE")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Fleet")).to_have_count(0)


def test_a_fleet_is_shown_and_kept_up_to_date(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """Executors are grouped by host with state and age, what waits has a lag, and a change appears without a reload."""
    journal, now = stage.journal, time.time()

    def executor(
        role: ExecutorRole, host: str, at: float = now, lease: float = FOR_LONG, **changes: object
    ) -> Executor:
        made = replace(new_executor(role, lease=lease), host=host, **changes)  # type: ignore[arg-type]  # any field
        return announce(journal, made, at)

    worker = executor(ExecutorRole.WORKER, "north", engine="dbos", version="9.9.0")
    beat(journal, replace(worker, detail={"runs": 3, "queues": ["rung.report", "rung.mail"]}), now)
    gateway = executor(ExecutorRole.GATEWAY, "south")
    beat(journal, replace(gateway, detail={"requests": 12}), now)
    draining = executor(ExecutorRole.WORKER, "south")
    drain(journal, draining.id)
    dead = executor(ExecutorRole.WORKER, "south", at=now - 500, lease=30.0)
    DurableRunStore(journal, now=lambda: now - 95).submit("invoice-17", "bill", {})
    DurableRunStore(journal, now=lambda: now - 95).claim("invoice-16", "bill", {})

    page = open_page(service, "/fleet")
    expect(page.locator(".page-head-text p")).to_have_text("3 live executors on 2 hosts")
    expect(page.locator(".host-row th")).to_contain_text(["north 1 executor", "south 3 executors"])
    for one, words in (
        (worker, ("worker", "live", "9.9.0", "dbos", "rung.report, rung.mail", f"pid {worker.pid}")),
        (gateway, ("gateway", "live", "12")),
        (draining, ("worker", "draining")),
        (dead, ("worker", "dead", "8 min")),
    ):
        row = page.locator(".executors tr").filter(has_text=one.id[:8])
        for text in words:
            expect(row).to_contain_text(text)
    expect(page.get_by_role("region", name="Queues").locator("tbody tr")).to_contain_text(["billembedded2"])
    expect(page.get_by_role("region", name="Queues").locator("tbody tr").first).to_contain_text("1 min")
    expect(page.get_by_role("region", name="Leases").locator("tbody tr")).to_contain_text(["invoice-16"])
    expect(page.get_by_role("region", name="Leases").locator(".badge")).to_contain_text("expired 1 min")
    expect(page.get_by_role("region", name="Open runs").locator("tbody tr")).to_have_count(2)
    expect(page.locator(".notice")).to_contain_text("Versions side by side")
    expect(page.locator(".notice")).to_contain_text("9.9.0 (1 executor)")
    leave(journal, worker.id)
    expect(page.locator(".executors tr").filter(has_text=worker.id[:8])).to_have_count(0)
    expect(page.locator(".notice")).to_have_count(0)
    page = open_page(service, "/fleet")
    link = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Fleet")
    expect(link).to_have_attribute("aria-current", "page")
    look(page, "fleet")
    phone = open_page(service, "/fleet", viewport={"width": 390, "height": 844}, color_scheme="dark")
    look(phone, "fleet-phone")
