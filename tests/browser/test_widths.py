"""Tables show whole numbers and states at every width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import Service

# Names of the visible cells that end outside the box that clips them.
CUT = """
(cells, box) => {
  const edge = document.querySelector(box).getBoundingClientRect();
  return cells
    .map((cell) => ({ cell, place: cell.getBoundingClientRect() }))
    .filter(({ place }) => place.width > 0 && (place.right > edge.right + 0.5 || place.left < edge.left - 0.5))
    .map(({ cell }) => cell.textContent);
}
"""


def cut(cells: Locator, box: str) -> list[str]:
    """Return the texts of the cells that are cut by their box."""
    expect(cells.first).to_be_attached()
    found: list[str] = cells.evaluate_all(CUT, box)
    return found


@pytest.mark.parametrize("width", [761, 900, 1024, 1100, 1160, 1280, 1440])
def test_no_cell_of_a_session_is_cut(width: int, demo: Service, open_page: Callable[..., Page]) -> None:
    """Every column of sessions that is shown is inside the list."""
    page = open_page(demo, "/sessions", viewport={"width": width, "height": 800})
    assert cut(page.locator(".grid-row > span"), ".grid") == []
    if width >= 1100:
        expect(page.locator(".grid-row .col-cost").first).to_be_visible()


@pytest.mark.parametrize("width", [761, 900, 1024, 1100, 1160, 1280, 1440])
def test_no_cell_of_an_incident_is_cut(width: int, demo: Service, open_page: Callable[..., Page]) -> None:
    """Every column of incidents that is shown is inside the list."""
    page = open_page(demo, "/incidents", viewport={"width": width, "height": 800})
    assert cut(page.locator(".incidents td"), ".incidents-card") == []
    if width >= 1100:
        expect(page.locator(".incidents .cost-cell").first).to_be_visible()


def test_an_incident_on_a_phone_has_its_status(demo: Service, open_page: Callable[..., Page]) -> None:
    """At 420 pixels, an incident shows its status, failure, session and start."""
    page = open_page(demo, "/incidents", viewport={"width": 420, "height": 860})
    for cell in ("status", "failure", "session", "started"):
        expect(page.locator(f".incidents .{cell}-cell").first).to_be_visible()
    expect(page.locator(".incidents .failure-cell .truncate").first).to_be_visible()
    assert (
        cut(page.locator(".incidents td, .incidents .badge, .incidents .failure-cell .truncate"), ".incidents-card")
        == []
    )


def test_an_alert_on_a_phone_can_be_tested_and_silenced(demo: Service, open_page: Callable[..., Page]) -> None:
    """At 420 pixels, the figures and the actions of a rule are on the screen."""
    page = open_page(demo, "/alerts", viewport={"width": 420, "height": 860})
    expect(page.get_by_role("button", name="Test failing")).to_be_visible()
    assert cut(page.locator(".alerts td, .alerts td button, .alerts td select"), ".alerts .card") == []
