"""Figures of a crew for alerts: its pools, its dead workers, and its tasks that wait for a person, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import AlertRule, Metric
from rung.core.crew.contract import ASKS_PREFIX
from rung.core.crew.liveness import Liveness
from rung.core.crew.pool import Pool, PoolState
from rung.core.domain.event_codec import to_json
from rung.core.domain.events import Ask, Decided, Event
from rung.crew.alert_figures import crew_figures, crew_scope
from rung.store import open_journal
from rung.store.crew.rows import NewTask
from tests.store.crew.conftest import place, postgres_server, postgres_url, table
from tests.store.stories import NOON, failed, opened
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.crew.table import CrewTable
    from rung.store.journal.journal import Journal

__all__ = ["place", "postgres_server", "postgres_url", "table"]  # fixtures
NONE = Reading(0.0)


def figure(place: str, when: Metric, window: float, journal: Journal | None = None, **rule: Any) -> Reading | None:
    """Read a figure of the crew at NOON."""
    return crew_figures(place, journal, lambda: NOON)(AlertRule(when=when, threshold=1, window=window, **rule))


def asking(table: CrewTable, name: str, history: Any = None) -> None:
    """Add a task that asks a person."""
    table.add_task(NewTask(task_id=name, instruction="do it"))
    table.report_error(table.claim(name, f"s-{name}"), "it broke")
    table.update_columns(name, note=f"{ASKS_PREFIX} what now?", history=history)


def test_a_task_that_asks_counts_when_it_has_waited(table: CrewTable, place: str) -> None:
    """A task counts from the end of the window on, and is named."""
    assert figure(place, Metric.UNANSWERED, 1e-9) == NONE
    asking(table, "t1")
    assert figure(place, Metric.UNANSWERED, 3_600.0) == NONE
    wait_until(lambda: figure(place, Metric.UNANSWERED, 1e-9) == Reading(1.0, "Tasks: t1."))


def test_a_question_in_the_journal_does_not_count_again(table: CrewTable, place: str, tmp_path: Path) -> None:
    """The journal's own figure counts a question about an incident, so the crew's does not."""
    events: list[Event] = [opened("i1"), failed(NOON), Decided(NOON, Ask(0, "what now?", (), None, "", "", "stuck"))]
    asking(table, "t1", [to_json(event) for event in events])
    asking(table, "t2")
    with open_journal(tmp_path / "journal.db") as journal:
        wait_until(lambda: figure(place, Metric.UNANSWERED, 1e-9, journal) == Reading(2.0, "Tasks: t1, t2."))
        journal.append("i1", 0, events).result(30)
        assert figure(place, Metric.UNANSWERED, 1e-9, journal) == Reading(1.0, "Tasks: t2.")


def test_a_question_that_is_asked_while_the_figure_is_read(table: CrewTable, place: str, tmp_path: Path) -> None:
    """A question that reaches the journal and then the table during a reading does not count for the crew."""
    events: list[Event] = [opened("i1"), failed(NOON), Decided(NOON, Ask(0, "what now?", (), None, "", "", "stuck"))]
    with open_journal(tmp_path / "journal.db") as journal:

        class Asking:
            """A journal in which a conductor asks just after it was read."""

            def read(self, sql: str, values: Any = ()) -> Any:
                rows = journal.read(sql, values)
                journal.append("i1", 0, events).result(30)
                asking(table, "t1", [to_json(event) for event in events])
                return rows

        assert figure(place, Metric.UNANSWERED, 1e-9, cast("Journal", Asking())) == NONE


def test_closed_pools_and_dead_workers(table: CrewTable, place: str) -> None:
    """A pool counts once it is closed for the window, a worker while its death is in the window, others do not."""
    table.change_pool("claude", lambda _: Pool(state=PoolState.PARKED, since=NOON - 600, until=NOON + 600))
    assert figure(place, Metric.PARKED, 600.0) == Reading(1.0, "Pools: claude.")
    assert figure(place, Metric.PARKED, 601.0) == NONE
    for why in (f"{Liveness.DEAD.value}: exit code 1", "context is full"):
        table.record_restart("t1", why)
    assert figure(place, Metric.DEAD_WORKERS, 3_600.0) == Reading(1.0, "Workers of the tasks: t1.")


def test_other_rules_are_not_about_the_crew(place: str) -> None:
    """Figures of the journal, and rules of another project, are not read from a crew; a missing table is unknown."""
    assert figure(place, Metric.COST, 1.0) is None
    assert figure(place, Metric.PARKED, 1.0, project="shop") is None
    assert figure(place + "-missing", Metric.PARKED, 1.0, project="crew") == Reading(None)


def test_a_scope_names_no_password() -> None:
    """The scope of a crew on PostgreSQL is its location without the password."""
    assert crew_scope("postgresql://ada:secret@db/crew") == "crew:postgresql://ada@db/crew"
