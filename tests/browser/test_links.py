"""Numbers lead to the rows that they count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.conftest import Service
    from tests.browser.stage import Stage


def test_the_figures_of_a_session_lead_to_its_incidents(service: Service, open_page: Callable[..., Page]) -> None:
    """Attempts, failures and project of a session open the list of what they count."""
    page = open_page(service, "/sessions/mended-1")
    facts = page.locator(".facts")
    facts.get_by_role("link", name="1 failed").click()
    expect(page.locator("h1")).to_have_text("Incidents")
    expect(page.locator("table.incidents tbody tr")).to_have_count(1)
    expect(page.get_by_role("button", name="Remove filter: session")).to_contain_text("mended-1")
    page.locator("table.incidents td.number a").first.click()
    expect(page.locator(".rung").first).to_be_visible()
    page.locator(".facts").get_by_role("link", name="shop").click()
    expect(page.locator("h1")).to_have_text("Incidents")
    expect(page.locator("table.incidents tbody tr")).to_have_count(2)


def test_analytics_leads_to_the_incidents_of_its_period(service: Service, open_page: Callable[..., Page]) -> None:
    """The head of the page opens the incidents of the same period."""
    page = open_page(service, "/analytics?period=1")
    expect(page.locator(".page > header")).to_contain_text("2 failures in 3 attempts")
    page.get_by_role("link", name="Open the incidents").click()
    expect(page.locator("h1")).to_have_text("Incidents")
    expect(page.locator("table.incidents tbody tr")).to_have_count(2)
    expect(page.get_by_role("button", name="Remove filter: since")).to_be_visible()


def test_figures_that_no_list_matches_are_no_links(service: Service, open_page: Callable[..., Page]) -> None:
    """Attempts, restarts, stuck sessions and tries of a rung are not counted by incidents, so they are plain text."""
    page = open_page(service, "/analytics?period=1")
    expect(page.locator(".tile")).to_have_count(4)
    expect(page.locator("a.tile, .tile a")).to_have_count(0)
    expect(page.locator(".bar-value").first).to_be_visible()
    expect(page.locator("a .bar-value, .bar-value a")).to_have_count(0)


def test_a_group_leads_to_the_incidents_of_its_project(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """The same failure in two projects is two groups, and each opens the incidents of its own project."""
    stage.failed("broken-docs", project="docs")
    page = open_page(service, "/analytics?period=1")
    group = page.locator(".groups tr", has_text="docs")
    group.locator("a.row-name").click()
    expect(page).to_have_url(re.compile(r"#/incidents\?(?=.*fingerprint=)(?=.*project=docs)"))
    expect(page.locator("table.incidents tbody tr")).to_have_count(1)
    expect(page.locator("table.incidents tbody tr")).to_contain_text("broken-docs")


def test_the_states_of_a_crew_lead_to_their_tasks(demo: Service, open_page: Callable[..., Page]) -> None:
    """The number of a lane shows the tasks of that state alone."""
    page = open_page(demo, "/crew")
    lane = page.locator(".lane").first
    name = lane.get_attribute("aria-label")
    lane.locator("h2 a").click()
    expect(page.get_by_role("combobox", name="State")).to_have_value((name or "").replace(" ", "_"))
