"""The session list and the session page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page, Route

    from tests.browser.conftest import Service
    from tests.browser.stage import Stage


def row(page: Page, name: str) -> Locator:
    return page.locator(".grid-row", has_text=name)


def test_a_session_appears_while_one_looks(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """A new session appears in the list without a reload."""
    page = open_page(service)
    expect(row(page, "mended-1")).to_contain_text("recovered")
    stage.recovered("fresh-1")
    expect(row(page, "fresh-1")).to_contain_text("not found")


def test_a_retry_is_counted_down_and_can_be_hastened(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """A waiting retry shows a countdown, and a manual retry runs immediately with the edited prompt."""
    again = stage.waits("limited-1")
    page = open_page(service)
    expect(row(page, "limited-1")).to_contain_text(re.compile(r"retry 1 of \d+ in \d+ s"))
    row(page, "limited-1").click()
    expect(page.locator(".turn.pending")).to_contain_text(re.compile(r"Retry 1 of \d+ starts in \d+ s"))
    expect(page.locator(".turn-icon")).to_have_text(["1", ""])  # one was made; the next has an icon
    expect(page.locator(".turn.failed").first).to_contain_text("rate limit")
    expect(page.locator(".turn.failed").first).to_contain_text("rule:")
    page.keyboard.press("r")
    prompt = page.get_by_label("Prompt to send")
    expect(prompt).to_have_value(re.compile("slow down"))
    prompt.fill("Go slower, and fix the cart")
    expect(page.get_by_text("edited")).to_be_visible()
    page.get_by_role("button", name="Retry", exact=True).click()
    assert again.wait(15)
    expect(page.locator(".turn.recovered")).to_be_visible()
    expect(page.locator("h1 + .badge")).to_have_text("recovered")


def test_a_retry_that_is_not_possible_says_why(service: Service, open_page: Callable[..., Page]) -> None:
    """Without access to the model, the retry button is disabled and the reason is shown."""
    page = open_page(service, "/sessions/broken-1")
    page.get_by_role("button", name="Retry with error context").click()
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_disabled()
    expect(page.locator("dialog .disabled-reason")).not_to_be_empty()


def test_an_escalation_is_priced_before_it_is_done(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """The escalation dialog shows both models and the cost, and confirming it switches the session."""
    stage.waits("limited-2")
    page = open_page(service, "/sessions/limited-2")
    page.get_by_role("button", name="Escalate").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("to")).to_have_value("large")
    expect(dialog).to_contain_text("small")
    expect(dialog.locator(".summary")).to_contain_text("$0.20")
    expect(dialog).to_contain_text("Remaining budget")
    dialog.locator(".button.primary").click()
    expect(page.locator(".turn.change").first).to_contain_text("small → large")
    expect(page.locator(".turn.change").first).to_contain_text("manual")
    expect(page.locator(".turn.recovered")).to_contain_text("large")


def test_an_escalation_shows_before_the_next_call(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """A session that has ended names the model that a person chose, until its next call uses it."""
    stage.failed("broken-2")
    page = open_page(service, "/sessions/broken-2")
    expect(page.locator(".facts")).not_to_contain_text("from the next call")
    page.get_by_role("button", name="Escalate").click()
    page.get_by_role("dialog").locator(".button.primary").click()
    expect(page.locator(".facts")).to_contain_text("large from the next call")


def test_a_recovery_can_be_stopped(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """Stop ends a waiting recovery and is then disabled."""
    stage.waits("limited-3")
    page = open_page(service, "/sessions/limited-3")
    page.on("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("no recovery is running")).to_be_visible()
    expect(page.locator("h1 + .badge")).not_to_have_text("retrying")


def test_filters_are_in_the_address(service: Service, open_page: Callable[..., Page]) -> None:
    """Search, status and sort order are part of the URL and survive a reload."""
    page = open_page(service)
    page.get_by_role("button", name="failed", exact=True).click()
    page.keyboard.press("/")
    page.keyboard.type("broken")
    page.get_by_role("button", name="Cost").click()
    expect(row(page, "mended-1")).to_have_count(0)
    expect(row(page, "broken-1")).to_be_visible()
    page.wait_for_url(re.compile(r"#/sessions\?(?=.*status=failed)(?=.*q=broken)(?=.*sort=cost)"))
    page.reload()
    expect(row(page, "broken-1")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_value("broken")
    expect(page.get_by_role("button", name="failed", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("searchbox").fill("nobody has this name")
    expect(page.get_by_text("No matching sessions")).to_be_visible()
    page.get_by_role("button", name="Show all sessions").click()
    expect(row(page, "mended-1")).to_be_visible()


def test_a_late_answer_to_an_earlier_filter_is_dropped(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """A refresh that was requested before the filter changed does not bring the old rows back."""
    page = open_page(service)
    expect(row(page, "mended-1")).to_be_visible()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/api/sessions\?(?!.*q=nobody)"), hold)
    with page.expect_request(re.compile(r"/api/sessions\?")):
        stage.recovered("late-1")
    page.get_by_role("searchbox").fill("nobody has this name")
    expect(page.get_by_text("No matching sessions")).to_be_visible()
    with page.expect_response(re.compile(r"/api/sessions\?(?!.*q=nobody)")) as answer:
        held[0].continue_()
    answer.value.finished()
    page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    expect(page.get_by_text("No matching sessions")).to_be_visible()


def test_a_paused_list_stands_still(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """A paused list counts changes and shows them when it resumes."""
    page = open_page(service)
    expect(row(page, "mended-1")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    stage.recovered("unseen-1")
    expect(page.get_by_role("button", name="Paused")).to_contain_text("changed")
    expect(row(page, "unseen-1")).to_have_count(0)
    page.keyboard.press("p")
    expect(row(page, "unseen-1")).to_be_visible()


def test_keys_choose_and_open_a_session(service: Service, open_page: Callable[..., Page]) -> None:
    """The keys j and k move the selection, and Enter opens the session."""
    page = open_page(service)
    expect(page.locator(".grid-row").nth(1)).to_be_visible()
    page.keyboard.press("p")  # else the list may move under the keys
    page.keyboard.press("j")
    name = page.locator(".grid-row.chosen .row-name").inner_text()
    assert page.locator(".grid-row").nth(1).locator(".row-name").inner_text() == name
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(name)


def test_a_change_of_model_is_marked(service: Service, open_page: Callable[..., Page], stage: Stage) -> None:
    """After a hand-over, the list shows both models."""
    stage.asks("asking-0")
    page = open_page(service)
    expect(row(page, "asking-0")).to_contain_text("needs input")
    row(page, "asking-0").click()
    page.get_by_role("link", name="Answer").click()
    page.locator(".ask-body .button.primary").click()
    expect(page.locator("h1 + .badge")).to_have_text("recovered")
    page.goto(service.url("/sessions?q=asking-0"))
    expect(row(page, "asking-0").locator(".model-change")).to_contain_text("large")


def test_what_does_not_exist_says_so(service: Service, open_page: Callable[..., Page]) -> None:
    """An unknown session shows a not-found message."""
    page = open_page(service, "/sessions/nobody", expects="404")
    expect(page.get_by_role("alert")).to_contain_text("Not found")
    expect(page.get_by_role("alert")).to_contain_text("nobody")


def test_the_root_cause_is_on_the_sessions_page(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """A failed session shows which attempt first went wrong, and leads to its incident."""
    stage.failed("s-cause")
    page = open_page(service, "/sessions/s-cause")
    card = page.get_by_role("region", name="Root cause")
    expect(card).to_contain_text("Attempt 1 of the session went wrong first")
    card.get_by_role("link", name="Open its incident").click()
    expect(page).to_have_url(re.compile(r"#/incidents/"))
