"""The crew pages: the board and the actions of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from rung.core.crew.contract import ASKS_PREFIX, MessageType, TaskState
from rung.store.crew.rows import NewTask, TaskLease
from rung.store.crew.table import CrewTable
from tests.browser.conftest import up
from tests.browser.stage import HOSTILE
from tests.browser.test_pages import LOOKS, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Service


@pytest.fixture
def table(tmp_path: Path) -> Iterator[CrewTable]:
    """A crew with a task in each state: needs review, working, escalated, with hostile texts, and watching."""
    with CrewTable.open(str(tmp_path / "move.db"), create=True) as opened:
        for name, title in (("asks", "Move the prices"), ("works", "Write the guide"), ("lost", "Port the parser"),
                            ("hostile", HOSTILE), ("waits", "Tidy up")):  # fmt: skip
            opened.add_task(
                NewTask(task_id=name, instruction="do it", title=title, depends_on=("asks",) if name == "waits" else ())
            )
        opened.request_review(opened.claim("asks", "a-session"), "Summary: all of it\nTests: 12 passed", checkpoint=1)
        opened.update_columns("asks", note=f"{ASKS_PREFIX}shall the prices pass?")
        opened.heartbeat(opened.claim("works", "b-session", "worker-b"), progress="7 of 9 pages")
        opened.hand_off(opened.claim("lost", "c-session"), "HANDOFF: it died three times")
        opened.update_columns("lost", outcome="escalated", note="it died three times")
        opened.report_error(opened.claim("hostile", "d-session", f"w{HOSTILE}".replace(" ", "")), HOSTILE, body=HOSTILE)
        yield opened


@pytest.fixture
def crew(table: CrewTable, tmp_path: Path) -> Iterator[Service]:
    """The service with that crew."""
    with up("--no-gateway", "--crew", table.location, journal=tmp_path / "journal.db") as service:
        yield service


def test_a_review_is_approved_on_the_page(crew: Service, table: CrewTable, open_page: Callable[..., Page]) -> None:
    """Tasks that need attention come first, an approval reaches the worker, and the page follows the table."""
    page = open_page(crew, "/crew")
    top = page.get_by_role("region", name="Needs attention")
    expect(top.locator("li")).to_have_count(2)
    expect(page.locator(".lane", has_text="Write the guide")).to_contain_text("7 of 9 pages")
    top.locator("a", has_text="shall the prices pass?").click()
    expect(page.locator("h1")).to_have_text("asks")
    expect(page.locator(".messages")).to_contain_text("12 passed")
    page.get_by_label("Message to the worker").fill("well done")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("h1 + .badge")).to_have_text("review approved")
    assert table.require_task("asks").state is TaskState.REVIEW_APPROVED
    assert table.messages("asks")[-1].message == "well done"
    claim_of = table.require_task("works")
    table.connection.execute("UPDATE orchestration_tasks SET progress = '8 of 9 pages' WHERE task_id = 'works'")
    page.goto(crew.url(f"/crew/move/{claim_of.task_id}"))
    expect(page.locator(".facts")).to_contain_text("8 of 9 pages")
    table.connection.execute("UPDATE orchestration_tasks SET progress = '9 of 9 pages' WHERE task_id = 'works'")
    expect(page.locator(".facts")).to_contain_text("9 of 9 pages")


def test_a_lane_counts_the_tasks_that_it_shows(crew: Service, table: CrewTable, open_page: Callable[..., Page]) -> None:
    """The number of a lane is that of its cards: tasks that a search leaves out, or that need attention, are not counted."""
    table.heartbeat(table.claim("waits", "e-session", "worker-e"), progress="1 of 2 rooms")
    page = open_page(crew, "/crew")
    working = page.get_by_role("region", name="Working")
    expect(working.locator(".task-card")).to_have_count(2)
    expect(working.locator("h2")).to_have_text("working 2")
    page.get_by_role("searchbox", name="Search tasks").fill("guide")
    page.keyboard.press("Enter")
    expect(working.locator(".task-card")).to_have_count(1)
    expect(working.locator("h2")).to_have_text("working 1")


def test_a_lost_task_begins_again_and_a_late_word_is_refused(
    crew: Service, table: CrewTable, open_page: Callable[..., Page]
) -> None:
    """A task is restarted after a confirmation, and an action on an outdated state is rejected."""
    page = open_page(crew, "/crew/move/lost", expects="412|ERR_FAILED")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_label("Message to the worker").fill("mind the door")
    page.get_by_role("button", name="Restart").click()
    expect(page.locator("h1 + .badge")).to_have_text("watching")
    assert table.require_task("lost").state is TaskState.WATCHING
    page.goto(crew.url("/crew/move/works"))
    end = page.get_by_role("button", name="Stop")
    expect(end).to_be_enabled()
    page.route("**/api/crews/move/tasks/works", lambda route: route.abort())  # the page is not told of what comes now
    table.report_error(table_claim(table, "works"), "it broke")
    end.click()
    expect(page.locator(".toast.failed")).to_contain_text("has changed")
    assert table.require_task("works").state is TaskState.ERROR


def test_a_successor_is_told_from_its_predecessor(
    crew: Service, table: CrewTable, open_page: Callable[..., Page]
) -> None:
    """The messages and processes of two workers of one task are numbered in their order."""
    for session in ("first-session", "second-session"):
        table.record_launch(session, "waits", ["rung", "worker", "run"])
        claim = table.claim("waits", session)
        table.warn_context(claim, f"CONTEXT WARNING of {session}")
        table.hand_off(claim, f"Done by {session}")
        row = table.require_task("waits")
        table.reply(row, TaskState.FIX_PROPOSED, "go on", MessageType.INSTRUCTION)
    page = open_page(crew, "/crew/move/waits")
    expect(page.locator(".facts")).to_contain_text("Workers so far")
    expect(page.locator(".messages li", has_text="Done by first-session")).to_contain_text("worker 1")
    expect(page.locator(".messages li", has_text="Done by second-session")).to_contain_text("worker 2")
    expect(page.get_by_role("region", name="Workers")).to_contain_text("worker 2")
    expect(page.locator(".facts")).to_contain_text("Context warnings")
    page.goto(crew.url("/crew"))
    expect(page.locator(".task-card", has_text="waits")).to_contain_text("2 context warnings")


def table_claim(table: CrewTable, name: str) -> TaskLease:
    """Return the current claim of a task."""
    row = table.require_task(name)
    return TaskLease(task_id=name, session=row.session_id, generation=row.generation)


@pytest.mark.parametrize("looks", LOOKS)
def test_the_board_and_a_task_can_be_used_by_everybody(
    looks: str, crew: Service, open_page: Callable[..., Page]
) -> None:
    """The crew pages fit both widths, pass axe in both themes, and show hostile texts as text."""
    page = open_page(crew, "/crew", **LOOKS[looks])
    expect(page.locator(".task-card").first).to_be_visible()
    look(page, f"crew-board-{looks}")
    page.goto(crew.url("/crew/move/hostile"))
    expect(page.locator(".messages")).to_contain_text("onerror")
    look(page, f"crew-task-{looks}")
    assert page.evaluate("window.hurt") is None


def test_without_a_crew_the_page_says_how_to_have_one(service: Service, open_page: Callable[..., Page]) -> None:
    """Without a crew, the page explains how to start one and the menu has no entry."""
    page = open_page(service, "/crew")
    expect(page.locator(".empty")).to_contain_text("rung serve --crew plan.db")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Crew")).to_have_count(0)
