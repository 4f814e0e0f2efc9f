"""Layout and accessibility of every page, in both themes and at phone width."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.conftest import Service

AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
SHOTS = Path(__file__).parent / "shots"
PAGES = {
    "sessions": "Sessions",
    "inbox": "Inbox",
    "incidents": "Incidents",
    "analytics": "Analytics",
    "policies": "Policies",
    "policies?project=docs": "Policies",
    "crew": "Crew",
    "fleet": "Fleet",
    "alerts": "Alerts",
    "budgets": "Budgets",
    "nowhere": "Page not found",
}
LOOKS: dict[str, dict[str, Any]] = {
    "wide-light": {"color_scheme": "light"},
    "wide-dark": {"color_scheme": "dark"},
    "phone-light": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
    "phone-dark": {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
}


def audit(page: Page) -> list[str]:
    """Return axe's serious and critical violations. The debugger injects axe past the content security policy."""
    page.wait_for_function("document.getAnimations().every((one) => !(one instanceof CSSTransition))")  # final colours
    page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": AXE.read_text()})
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {json.dumps([node['html'][:160] for node in one['nodes'][:3]])}" for one in grave]


def settle(page: Page) -> None:
    """Wait until the page has loaded and is connected."""
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    expect(page.locator(".connection.recovered")).to_have_text("live")


def look(page: Page, name: str) -> None:
    """Take a screenshot and check that the page fits and has no serious accessibility violation."""
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, "wider than the screen"
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")
    assert audit(page) == []


@pytest.mark.parametrize("looks", LOOKS)
def test_every_page_fits_and_can_be_used_by_everybody(
    looks: str, demo: Service, open_page: Callable[..., Page]
) -> None:
    """No page is wider than the screen or has a serious accessibility violation, in any theme and width."""
    page = open_page(demo, **LOOKS[looks])
    for place, title in PAGES.items():
        page.goto(demo.url(f"/{place}"))
        expect(page.locator("h1")).to_have_text(title)
        look(page, f"{place.replace('?', '-').replace('=', '-')}-{looks}")


@pytest.mark.parametrize("looks", LOOKS)
def test_a_session_and_its_incident_can_be_used_by_everybody(
    looks: str, demo: Service, open_page: Callable[..., Page]
) -> None:
    """A session, its dialogs and its incident are accessible, in any theme and width."""
    model = "swift-1"  # the cheapest one: the session can be escalated
    page = open_page(demo, f"/sessions?status=recovered&sort=failures&model={model}", **LOOKS[looks])
    page.locator(".grid-row .row-name").first.click()
    expect(page.locator(".turn").first).to_be_visible()
    look(page, f"session-{looks}")
    for name, title in (("Retry with error context", "Retry"), ("Escalate", "Escalate to another model")):
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("dialog", name=title)).to_be_visible()
        expect(page.locator("dialog .button.primary")).to_be_visible()
        expect(page.get_by_text("Loading the estimate")).to_have_count(0)
        page.wait_for_timeout(300)
        page.screenshot(path=SHOTS / f"dialog-{title.split()[0].lower()}-{looks}.png")
        assert audit(page) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.locator(".sidebar .list-link", has_text="attempts").first.click()
    expect(page.locator(".rung").first).to_be_visible()
    if page.locator("details summary").count():
        page.locator("details summary").first.click()
    look(page, f"incident-{looks}")


def test_the_whole_page_is_reached_by_keyboard(demo: Service, open_page: Callable[..., Page]) -> None:
    """Shortcuts open every page, and Tab always leaves a visible focus."""
    page = open_page(demo)
    expect(page.locator(".grid-row").first).to_be_visible()
    for keys, title in (
        ("gi", "Inbox"),
        ("gn", "Incidents"),
        ("ga", "Analytics"),
        ("gp", "Policies"),
        ("gb", "Budgets"),
        ("gl", "Alerts"),
        ("gc", "Crew"),
        ("gs", "Sessions"),
    ):
        for key in keys:
            page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(title)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("body").press("Tab")
    for _ in range(12):
        page.keyboard.press("Tab")
        drawn = page.evaluate(
            "document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'"
        )
        assert drawn


def test_keys_choose_search_and_open_an_incident(service: Service, open_page: Callable[..., Page]) -> None:
    """On incidents, j and k move the selection, Enter opens it, a slash searches, and a row can be clicked."""
    page = open_page(service, "/incidents")
    rows = page.locator(".incidents tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_have_class("chosen")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_have_class("chosen")
    page.keyboard.press("k")
    expect(rows.nth(0)).to_have_class("chosen")
    page.keyboard.press("j")
    chosen = rows.nth(1).locator(".row-name").get_attribute("href") or ""
    page.keyboard.press("Enter")
    expect(page).to_have_url(service.url(chosen.removeprefix("#")))
    page.goto(service.url("/incidents"))
    expect(rows).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("cart.py")
    expect(rows).to_have_count(1)
    expect(page).to_have_url(service.url("/incidents?q=cart.py"))
    opened = rows.locator(".row-name").get_attribute("href") or ""
    rows.locator(".cost-cell").click()
    expect(page).to_have_url(service.url(opened.removeprefix("#")))


def test_shortcuts_are_those_of_the_menu(demo: Service, open_page: Callable[..., Page]) -> None:
    """The shortcut of a page that is not in the menu is neither listed nor active."""
    page = open_page(demo, "/sessions")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Crew")).to_be_visible()
    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_contain_text("go to crew")
    expect(shortcuts).not_to_contain_text("go to fleet")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page.locator("h1")).to_have_text("Sessions")


def test_the_theme_chosen_stays(demo: Service, open_page: Callable[..., Page]) -> None:
    """A chosen theme overrides the system's theme and survives a reload."""
    page = open_page(demo, color_scheme="light")
    page.get_by_role("button", name="Use the dark theme").click()
    dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.reload()
    expect(page.get_by_role("button", name="Use the light theme")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == dark == "rgb(19, 22, 26)"


def test_times_are_in_the_readers_zone(demo: Service, open_page: Callable[..., Page]) -> None:
    """Times are shown in the time zone of the browser."""
    said = []
    for zone in ("Asia/Tokyo", "America/New_York"):
        page = open_page(demo, "/incidents?status=failed", timezone_id=zone)
        said.append(page.locator("td time").first.get_attribute("title"))
    assert said[0] != said[1]
    assert "GMT+9" in str(said[0])
